/** A JSON value as the visible rows of a tree. Cost follows what is expanded, not what exists. */
export interface JsonRow {
  path: string;
  depth: number;
  /** Key or index; `null` at the root. */
  key: string | null;
  kind: 'leaf' | 'open' | 'closed' | 'end' | 'more';
  value: unknown;
  /** Children of a container, or items left out. */
  size: number;
  isArray: boolean;
}

export const CHILD_LIMIT = 1000;
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

export function childPath(path: string, key: string, isArray: boolean): string {
  if (isArray) return `${path}[${key}]`;
  return IDENTIFIER.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function size(value: object): number {
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}

export function jsonRows(root: unknown, expanded: ReadonlySet<string>, limits: ReadonlyMap<string, number> = new Map()): JsonRow[] {
  const rows: JsonRow[] = [];
  const visit = (value: unknown, path: string, key: string | null, depth: number) => {
    if (!isContainer(value)) {
      rows.push({ path, depth, key, kind: 'leaf', value, size: 0, isArray: false });
      return;
    }
    const isArray = Array.isArray(value);
    const count = size(value);
    const isOpen = expanded.has(path) && count > 0;
    rows.push({ path, depth, key, kind: isOpen ? 'open' : 'closed', value, size: count, isArray });
    if (!isOpen) return;
    const limit = limits.get(path) ?? CHILD_LIMIT;
    if (isArray) {
      for (let index = 0; index < Math.min(count, limit); index += 1) visit(value[index], childPath(path, String(index), true), String(index), depth + 1);
    } else {
      let seen = 0;
      for (const [name, child] of Object.entries(value)) {
        if (seen >= limit) break;
        seen += 1;
        visit(child, childPath(path, name, false), name, depth + 1);
      }
    }
    if (count > limit) rows.push({ path, depth: depth + 1, key: null, kind: 'more', value: null, size: count - limit, isArray });
    rows.push({ path: `${path}#end`, depth, key: null, kind: 'end', value: null, size: 0, isArray });
  };
  visit(root, '$', null, 0);
  return rows;
}

/** Containers to expand at first: level by level, as long as few rows result. */
export function initialExpansion(root: unknown, maxRows = 60): Set<string> {
  const expanded = new Set<string>();
  let level: [unknown, string][] = [[root, '$']];
  let rows = 1;
  while (level.length > 0) {
    const next: [unknown, string][] = [];
    for (const [value, path] of level) {
      if (!isContainer(value)) continue;
      const count = size(value);
      if (path !== '$' && rows + count > maxRows) continue;
      expanded.add(path);
      rows += Math.min(count, CHILD_LIMIT);
      if (count > maxRows) continue;
      const isArray = Array.isArray(value);
      for (const [key, child] of Object.entries(value)) next.push([child, childPath(path, key, isArray)]);
    }
    level = next;
  }
  return expanded;
}

/** Paths whose key or scalar contains the text; stops after `limit` matches or `budget` values. */
export function searchJson(root: unknown, text: string, limit = 500, budget = 400_000): { matches: string[]; parents: Set<string> } {
  const wanted = text.toLowerCase();
  const matches: string[] = [];
  const parents = new Set<string>();
  if (wanted === '') return { matches, parents };
  let left = budget;
  const stack: [value: unknown, path: string, key: string | null, trail: string[]][] = [[root, '$', null, []]];
  while (stack.length > 0 && matches.length < limit && left > 0) {
    const [value, path, key, trail] = stack.pop() ?? [null, '', null, []];
    left -= 1;
    const hit = (key !== null && key.toLowerCase().includes(wanted)) || (!isContainer(value) && String(value).toLowerCase().includes(wanted));
    if (hit) {
      matches.push(path);
      for (const parent of trail) parents.add(parent);
    }
    if (isContainer(value)) {
      const isArray = Array.isArray(value);
      const entries = Object.entries(value).slice(0, CHILD_LIMIT);
      const inner = [...trail, path];
      for (let index = entries.length - 1; index >= 0; index -= 1) {
        const entry = entries[index];
        if (entry) stack.push([entry[1], childPath(path, entry[0], isArray), entry[0], inner]);
      }
    }
  }
  return { matches, parents };
}
