/** Markdown to HTML, sanitised; loaded on demand. This is the only place that writes HTML into the page. */
import DOMPurify from 'dompurify';
import { Marked } from 'marked';
import { useMemo } from 'react';
import classes from './parts.module.css';

const ALLOWED = {
  ALLOWED_TAGS: ['p', 'br', 'b', 'strong', 'i', 'em', 'code', 'pre', 'ul', 'ol', 'li', 'h1', 'h2', 'h3', 'h4', 'blockquote', 'a', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'hr', 'del'],
  ALLOWED_ATTR: ['href'],
  ALLOWED_URI_REGEXP: /^https?:/i,
};

const escape = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
// HTML in a text is shown as text. It does not reach the parser of the browser, which reports styles and handlers in it as
// violations of the page's policy even where they have no effect.
const markdown = new Marked({ async: false, gfm: true, renderer: { html: ({ text }) => escape(text) } });

export function toSafeHtml(text: string): string {
  // Without a full DOM, DOMPurify returns its input unchanged.
  if (!DOMPurify.isSupported) return escape(text);
  return DOMPurify.sanitize(markdown.parse(text, { async: false }), ALLOWED);
}

export default function MarkdownHtml({ text }: { text: string }) {
  const html = useMemo(() => toSafeHtml(text), [text]);
  // oxlint-disable-next-line react/no-danger -- sanitised above
  return <div className={classes.markdown} dangerouslySetInnerHTML={{ __html: html }} />;
}
