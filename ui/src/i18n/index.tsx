/**
 * Translations. A message is a pair of English and German, so that none can be missing.
 * `{name}` is replaced by a parameter; `{n|one|other}` chooses by number.
 */
import { createContext, use, useEffect, useMemo, useState, type ReactNode } from 'react';
import { messages } from './messages';

export type MessageKey = keyof typeof messages;
export type Language = 'en' | 'de';
export type Params = Record<string, string | number>;
export type Translate = (key: MessageKey, params?: Params) => string;

const LANGUAGES: Language[] = ['en', 'de'];
const STORAGE_KEY = 'haft.language';
/** Tells the pages that the server renders, such as that of the login. */
const COOKIE = 'haft_language';
const COOKIE_SECONDS = 365 * 24 * 3600;

export function format(text: string, params: Params = {}, language: Language = 'en'): string {
  return text.replaceAll(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (whole, name: string, one?: string, other?: string) => {
    const value = params[name];
    if (value === undefined) return whole;
    if (one !== undefined && other !== undefined) return Number(value) === 1 ? one : other;
    return typeof value === 'number' ? value.toLocaleString(language) : value;
  });
}

export function translator(language: Language): Translate {
  const index = LANGUAGES.indexOf(language);
  return (key, params) => format(messages[key][index] ?? messages[key][0], params, language);
}

function initialLanguage(): Language {
  const stored = localStorage.getItem(STORAGE_KEY);
  if (stored === 'en' || stored === 'de') return stored;
  return navigator.language.startsWith('de') ? 'de' : 'en';
}

interface I18n {
  t: Translate;
  language: Language;
  setLanguage: (language: Language) => void;
}

const Context = createContext<I18n>({ t: translator('en'), language: 'en', setLanguage: () => undefined });

export function I18nProvider({ children }: { children: ReactNode }) {
  const [language, setLanguage] = useState(initialLanguage);
  useEffect(() => {
    document.documentElement.lang = language;
    localStorage.setItem(STORAGE_KEY, language);
    document.cookie = `${COOKIE}=${language}; Path=/; SameSite=Lax; Max-Age=${COOKIE_SECONDS}${window.location.protocol === 'https:' ? '; Secure' : ''}`;
  }, [language]);
  const value = useMemo(() => ({ t: translator(language), language, setLanguage }), [language]);
  return <Context value={value}>{children}</Context>;
}

export const useI18n = (): I18n => use(Context);
export const useT = (): Translate => use(Context).t;
