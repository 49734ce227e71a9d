/** A line diff (Myers), as pairs for a side-by-side view. */
export interface DiffRow {
  left: string | null;
  right: string | null;
  changed: boolean;
}

const MAX_EDITS = 2000;

/** The kept lines as pairs of indexes; `null` if the texts differ too much to compare quickly. */
function matchLines(a: string[], b: string[]): [number, number][] | null {
  const limit = Math.min(MAX_EDITS, a.length + b.length);
  let reach = new Map<number, number>([[1, 0]]);
  const history: Map<number, number>[] = [];
  for (let edits = 0; edits <= limit; edits += 1) {
    history.push(new Map(reach));
    const next = new Map(reach);
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) { x += 1; y += 1; }
      next.set(k, x);
      if (x >= a.length && y >= b.length) return backtrack(a, b, history, edits);
    }
    reach = next;
  }
  return null;
}

function backtrack(a: string[], b: string[], history: Map<number, number>[], edits: number): [number, number][] {
  const pairs: [number, number][] = [];
  let x = a.length;
  let y = b.length;
  for (let step = edits; step >= 0; step -= 1) {
    const reach = history[step] ?? new Map<number, number>();
    const k = x - y;
    const down = k === -step || (k !== step && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const previousK = down ? k + 1 : k - 1;
    const previousX = step === 0 ? 0 : (reach.get(previousK) ?? 0);
    const previousY = step === 0 ? 0 : previousX - previousK;
    while (x > previousX && y > previousY && x > 0 && y > 0) {
      x -= 1;
      y -= 1;
      pairs.push([x, y]);
    }
    x = previousX;
    y = previousY;
  }
  return pairs.toReversed();
}

export function diffLines(before: string, after: string): DiffRow[] {
  const a = before === '' ? [] : before.split('\n');
  const b = after === '' ? [] : after.split('\n');
  const pairs = matchLines(a, b) ?? [];
  const rows: DiffRow[] = [];
  let x = 0;
  let y = 0;
  for (const [matchX, matchY] of [...pairs, [a.length, b.length] as [number, number]]) {
    while (x < matchX || y < matchY) {
      rows.push({ left: x < matchX ? (a[x] ?? '') : null, right: y < matchY ? (b[y] ?? '') : null, changed: true });
      if (x < matchX) x += 1;
      if (y < matchY) y += 1;
    }
    if (matchX < a.length && matchY < b.length) {
      rows.push({ left: a[matchX] ?? '', right: b[matchY] ?? '', changed: false });
      x = matchX + 1;
      y = matchY + 1;
    }
  }
  return rows;
}

export type Folded = { fold: number } | DiffRow;

/** Leaves out unchanged lines that are further than `context` from a change. */
export function foldUnchanged(rows: DiffRow[], context = 3): Folded[] {
  const keep = rows.map((_, index) => rows.slice(Math.max(0, index - context), index + context + 1).some((row) => row.changed));
  const folded: Folded[] = [];
  let hidden = 0;
  for (const [index, row] of rows.entries()) {
    if (keep[index]) {
      if (hidden > 0) folded.push({ fold: hidden });
      hidden = 0;
      folded.push(row);
    } else hidden += 1;
  }
  if (hidden > 0) folded.push({ fold: hidden });
  return folded;
}
