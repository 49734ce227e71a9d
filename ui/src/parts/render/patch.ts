/** A unified diff as rows for a side-by-side view, file by file. */
import type { DiffRow, Folded } from '../diff';

export interface PatchFile {
  from: string;
  to: string;
  rows: Folded[];
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@/;
const name = (line: string) => line.slice(4).replace(/\t.*$/, '').replace(/^[ab]\//, '');

export function isPatch(text: string): boolean {
  return /^--- .*\r?\n\+\+\+ /m.test(text) && /^@@ -\d/m.test(text);
}

export function parsePatch(text: string): PatchFile[] {
  const files: PatchFile[] = [];
  let removed: string[] = [];
  let added: string[] = [];
  let line = 1;
  let isInside = false;
  const flush = () => {
    const rows: DiffRow[] = Array.from({ length: Math.max(removed.length, added.length) }, (_, index) => ({ left: removed[index] ?? null, right: added[index] ?? null, changed: true }));
    files.at(-1)?.rows.push(...rows);
    line += removed.length;
    removed = [];
    added = [];
  };
  const lines = text.split(/\r?\n/);
  for (const [index, each] of lines.entries()) {
    const hunk = HUNK.exec(each);
    if (each.startsWith('--- ') && lines[index + 1]?.startsWith('+++ ')) {
      flush();
      files.push({ from: name(each), to: name(lines[index + 1] ?? ''), rows: [] });
      isInside = false;
      line = 1;
    } else if (hunk) {
      flush();
      const start = Number(hunk[1]);
      if (start > line) files.at(-1)?.rows.push({ fold: start - line });
      line = Math.max(1, start);
      isInside = true;
    } else if (isInside) {
      const rest = each.slice(1);
      if (each.startsWith('-')) removed.push(rest);
      else if (each.startsWith('+')) added.push(rest);
      else if (each.startsWith(' ')) {
        flush();
        files.at(-1)?.rows.push({ left: rest, right: rest, changed: false });
        line += 1;
      } else if (!each.startsWith('\\')) {
        flush();
        isInside = false;
      }
    }
  }
  flush();
  return files;
}
