import { Text } from '@mantine/core';
import { useEffect, useState, useSyncExternalStore } from 'react';
import { useI18n } from '@/i18n';
import { duration, relativeTime } from './format';

// One clock for all times of the page.
let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void) {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 10_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** A time relative to now; local time and UTC on hover. */
export function Time({ at, absolute = false }: { at: string | null | undefined; absolute?: boolean }) {
  const { t, language } = useI18n();
  const clock = useSyncExternalStore(subscribe, () => now);
  if (!at) return <Text span c="dimmed">{t('common.never')}</Text>;
  const date = new Date(at);
  const local = date.toLocaleString(language, { dateStyle: 'medium', timeStyle: 'medium' });
  const utc = date.toISOString().replace('T', ' ').slice(0, 19);
  const text = absolute
    ? date.toLocaleString(language, { ...(date.getFullYear() === new Date(clock).getFullYear() ? {} : { year: 'numeric' }), month: 'short', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit' })
    : relativeTime(date.getTime(), Math.max(clock, now), language);
  return <time dateTime={at} title={`${local} · ${t('common.utc', { time: utc })}`} style={{ whiteSpace: 'nowrap' }}>{text}</time>;
}

/** A day, whatever the time zone. */
export function DateOnly({ at }: { at: string }) {
  const { language } = useI18n();
  return <time dateTime={at}>{new Date(at).toLocaleDateString(language, { dateStyle: 'medium', timeZone: 'UTC' })}</time>;
}

export function Duration({ ms }: { ms: number | null | undefined }) {
  return ms === null || ms === undefined ? null : <span style={{ whiteSpace: 'nowrap', fontVariantNumeric: 'tabular-nums' }}>{duration(ms)}</span>;
}

/** The current time, renewed in this interval while the page is visible. */
export function useNow(intervalMs: number): number {
  const [value, setValue] = useState(() => Date.now());
  useEffect(() => {
    const tick = setInterval(() => { if (!document.hidden) setValue(Date.now()); }, intervalMs);
    return () => clearInterval(tick);
  }, [intervalMs]);
  return value;
}
