/** Numbers, times and sizes as text. */

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000], ['month', 2_592_000], ['day', 86_400], ['hour', 3_600], ['minute', 60],
];

/** "3 minutes ago", "in 2 hours"; "now" within ten seconds. */
export function relativeTime(time: number, now: number, language: string): string {
  const seconds = Math.round((time - now) / 1000);
  const formatter = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' });
  if (Math.abs(seconds) < 10) return formatter.format(0, 'second');
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return formatter.format(Math.trunc(seconds / size), unit);
  }
  return formatter.format(seconds, 'second');
}

/** "0.4 ms", "12 ms", "1.25 s", "2 min 3 s". */
export function duration(ms: number): string {
  if (ms < 10) return `${ms.toFixed(ms < 1 ? 2 : 1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const minutes = Math.floor(ms / 60_000);
  return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  if (count < 1024 * 1024) return `${(count / 1024).toFixed(1)} KiB`;
  return `${(count / 1024 / 1024).toFixed(1)} MiB`;
}

/** Characters that change the direction or hide parts of a text, shown as their code points. */
export function visibleText(text: string): string {
  return text.replaceAll(/[\u061C\u200B-\u200F\u202A-\u202E\u2066-\u2069\uFEFF]/g, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
  });
}

/** A JSON value on one line, at most `limit` characters; never serialises more than it needs. */
export function oneLine(value: unknown, limit = 160): string {
  if (value === undefined) return '';
  let text: string;
  if (typeof value === 'string') text = value.slice(0, limit + 1);
  else if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const parts: string[] = [];
    let length = 0;
    for (const [key, item] of Object.entries(value)) {
      const part = `${key}: ${oneLine(item, limit - length)}`;
      parts.push(part);
      length += part.length;
      if (length > limit) break;
    }
    text = parts.join(', ');
  } else if (Array.isArray(value)) text = `[${value.slice(0, 5).map((item) => oneLine(item, 40)).join(', ')}${value.length > 5 ? ', …' : ''}]`;
  else text = String(value);
  const flat = visibleText(text.replaceAll(/\s+/g, ' '));
  return flat.length > limit ? `${flat.slice(0, limit)}…` : flat;
}
