/** Text with ANSI colour sequences as spans; every other control sequence is removed. */
export interface Span {
  text: string;
  color?: string;
  bold?: boolean;
}

const COLORS = ['gray', 'red', 'green', 'yellow', 'blue', 'grape', 'cyan', 'gray'];
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\u001B\[([0-9;]*)([A-Za-z])|\u001B\][^\u0007\u001B]*(?:\u0007|\u001B\\)|\u001B./g;

export function parseAnsi(line: string): Span[] {
  const spans: Span[] = [];
  let color: string | undefined;
  let bold = false;
  let from = 0;
  const push = (text: string) => {
    if (text !== '') spans.push({ text, ...(color ? { color } : {}), ...(bold ? { bold } : {}) });
  };
  for (const match of line.matchAll(SEQUENCE)) {
    push(line.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] !== 'm') continue;
    for (const code of (match[1] ?? '').split(';').map(Number)) {
      if (code === 0) { color = undefined; bold = false; }
      else if (code === 1) bold = true;
      else if (code >= 30 && code <= 37) color = COLORS[code - 30];
      else if (code >= 90 && code <= 97) color = COLORS[code - 90];
      else if (code === 39) color = undefined;
    }
  }
  push(line.slice(from));
  return spans;
}

const MAX_LINE = 2000;

/** Lines of a text; very long ones are cut into several rows, so that no row freezes the page. */
export function toLines(text: string): string[] {
  const lines: string[] = [];
  for (const line of text.split(/\r\n|\n|\r/)) {
    if (line.length <= MAX_LINE) lines.push(line);
    else for (let at = 0; at < line.length; at += MAX_LINE) lines.push(line.slice(at, at + MAX_LINE));
  }
  return lines;
}
