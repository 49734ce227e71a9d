/** Text with ANSI colour sequences as spans; every other control sequence is removed. */
export interface AnsiStyle {
  /** A colour of the theme, or `rgb(…)`. */
  color?: string;
  background?: string;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  inverse?: boolean;
}

export interface Span extends AnsiStyle {
  text: string;
}

const COLORS = ['gray', 'red', 'green', 'yellow', 'blue', 'grape', 'cyan', 'gray'];
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\u001B\[([0-9;:?]*)([A-Za-z])|\u001B\][^\u0007\u001B]*(?:\u0007|\u001B\\)|\u001B./g;

const level = (value: number) => (value === 0 ? 0 : 55 + value * 40);

/** One of 256 colours: the 16 of the theme, a cube of 216, and 24 greys. */
function indexed(index: number): string | undefined {
  if (index < 16) return COLORS[index % 8];
  if (index < 232) {
    const at = index - 16;
    return `rgb(${level(Math.floor(at / 36))} ${level(Math.floor(at / 6) % 6)} ${level(at % 6)})`;
  }
  const grey = 8 + (index - 232) * 10;
  return index < 256 ? `rgb(${grey} ${grey} ${grey})` : undefined;
}

/** The colour after `38` or `48`, and how many codes it takes. */
function extended(codes: number[]): [color: string | undefined, taken: number] {
  if (codes[0] === 5) return [indexed(codes[1] ?? 0), 2];
  if (codes[0] === 2) return [`rgb(${[codes[1], codes[2], codes[3]].map((part) => Math.max(0, Math.min(255, part ?? 0))).join(' ')})`, 4];
  return [undefined, 0];
}

const RESETS: Record<number, (keyof AnsiStyle)[]> = { 22: ['bold', 'dim'], 23: ['italic'], 24: ['underline'], 27: ['inverse'], 39: ['color'], 49: ['background'] };
const FLAGS: Record<number, 'bold' | 'dim' | 'italic' | 'underline' | 'inverse'> = { 1: 'bold', 2: 'dim', 3: 'italic', 4: 'underline', 7: 'inverse' };

function apply(style: AnsiStyle, parameters: string): AnsiStyle {
  const codes = parameters.split(/[;:]/).map(Number);
  let next = { ...style };
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    const flag = FLAGS[code];
    if (code === 0) next = {};
    else if (flag) next[flag] = true;
    else if (RESETS[code]) for (const key of RESETS[code]) delete next[key];
    else if (code === 38 || code === 48) {
      const [color, taken] = extended(codes.slice(at + 1));
      if (color) next[code === 38 ? 'color' : 'background'] = color;
      at += taken;
    } else {
      const color = COLORS[code % 10];
      if (color && ((code >= 30 && code <= 37) || (code >= 90 && code <= 97))) next.color = color;
      else if (color && ((code >= 40 && code <= 47) || (code >= 100 && code <= 107))) next.background = color;
    }
  }
  return next;
}

export function parseAnsi(line: string, start: AnsiStyle = {}): Span[] {
  const spans: Span[] = [];
  let style = start;
  let from = 0;
  const push = (text: string) => {
    if (text !== '') spans.push({ text, ...style });
  };
  for (const match of line.matchAll(SEQUENCE)) {
    push(line.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] === 'm') style = apply(style, match[1] ?? '');
  }
  push(line.slice(from));
  return spans;
}

/** The style in which the next line begins. */
export function styleAfter(line: string, start: AnsiStyle = {}): AnsiStyle {
  let style = start;
  if (!line.includes('\u001B')) return style;
  for (const match of line.matchAll(SEQUENCE)) if (match[2] === 'm') style = apply(style, match[1] ?? '');
  return style;
}

const MAX_LINE = 2000;

function pieces(line: string): string[] {
  return line.length <= MAX_LINE ? [line] : Array.from({ length: Math.ceil(line.length / MAX_LINE) }, (_, index) => line.slice(index * MAX_LINE, (index + 1) * MAX_LINE));
}

/** Lines of a text; very long ones are cut into several rows, so that no row freezes the page. */
export function toLines(text: string): string[] {
  return text.split(/\r\n|\n|\r/).flatMap(pieces);
}

/** Lines as a terminal ends up showing them: a carriage return starts the line anew, and a backspace takes a character back. */
export function terminalLines(text: string): { text: string; style: AnsiStyle }[] {
  let style: AnsiStyle = {};
  return text.replace(/\r?\n$/, '').split(/\r?\n/).flatMap((line) => {
    let shown = line.replace(/\r+$/, '').split('\r').at(-1) ?? '';
    // eslint-disable-next-line no-control-regex
    while (/[^\u0008]\u0008/.test(shown)) shown = shown.replaceAll(/[^\u0008]\u0008/g, '');
    return pieces(shown).map((part) => {
      const start = style;
      style = styleAfter(part, start);
      return { text: part, style: start };
    });
  });
}
