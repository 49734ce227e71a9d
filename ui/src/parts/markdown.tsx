import { Text } from '@mantine/core';
import { Suspense } from 'react';
import { visibleText } from './format';
import { lazyPart } from './lazy';

const MarkdownHtml = lazyPart(async () => (await import('./markdown-html')).default);
const MAX_MARKDOWN = 100_000;
const LOOKS_FORMATTED = /[*_`#[\]|>]|^\s*[-\d]+[.)]?\s/m;

/** Markdown without scripts, images and styles; plain text stays plain and needs no parser. */
export function Markdown({ text }: { text: string }) {
  const shown = visibleText(text);
  const plain = <Text style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>{shown.slice(0, MAX_MARKDOWN)}</Text>;
  if (text.length > MAX_MARKDOWN || !LOOKS_FORMATTED.test(text)) return plain;
  return <Suspense fallback={plain}><MarkdownHtml text={shown} /></Suspense>;
}
