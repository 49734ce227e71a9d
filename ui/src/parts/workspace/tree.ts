/** The files of a workspace as the visible rows of a tree. */
import type { FileChange, FileChangeKind, FileEntry } from '@/api/types';

export interface TreeRow {
  path: string;
  name: string;
  depth: number;
  isFolder: boolean;
  isOpen: boolean;
  /** Files below a folder. */
  count: number;
  file?: FileEntry;
  /** What the last call did to the file, or to something in the folder. */
  change?: FileChangeKind;
}

interface Folder {
  folders: Map<string, Folder>;
  files: FileEntry[];
  count: number;
}

const emptyFolder = (): Folder => ({ folders: new Map(), files: [], count: 0 });
const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' });
const lastPart = (path: string) => path.slice(path.lastIndexOf('/') + 1);

function build(files: readonly FileEntry[]): Folder {
  const root = emptyFolder();
  for (const file of files) {
    const isFolder = file.kind === 'folder';
    let folder = root;
    for (const part of isFolder ? file.path.split('/') : file.path.split('/').slice(0, -1)) {
      const next = folder.folders.get(part) ?? emptyFolder();
      folder.folders.set(part, next);
      folder = next;
      if (!isFolder) folder.count += 1;
    }
    if (!isFolder) folder.files.push(file);
  }
  return root;
}

/** Folders first, then files, each by name. With a filter, only what matches, with its folders open. */
export function treeRows(files: readonly FileEntry[], open: ReadonlySet<string>, changes: readonly FileChange[] = [], filter = ''): TreeRow[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = words.length === 0 ? files : files.filter((file) => words.every((word) => file.path.toLowerCase().includes(word)));
  const changed = new Map(changes.map((change) => [change.path, change.change]));
  const touched = new Set(changes.flatMap(({ path }) => parents(path)));
  const rows: TreeRow[] = [];
  const visit = (folder: Folder, prefix: string, depth: number) => {
    for (const [name, inner] of [...folder.folders].toSorted(([a], [b]) => collator.compare(a, b))) {
      const path = prefix + name;
      const isOpen = words.length > 0 || open.has(path);
      rows.push({ path, name, depth, isFolder: true, isOpen, count: inner.count, ...(touched.has(path) ? { change: 'modified' as const } : {}) });
      if (isOpen) visit(inner, `${path}/`, depth + 1);
    }
    for (const file of folder.files.toSorted((a, b) => collator.compare(a.path, b.path))) {
      const change = changed.get(file.path);
      rows.push({ path: file.path, name: lastPart(file.path), depth, isFolder: false, isOpen: false, count: 0, file, ...(change ? { change } : {}) });
    }
  };
  visit(build(shown), '', 0);
  return rows;
}

/** The folders that contain a path, outermost first. */
export function parents(path: string): string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}

/** Folders to open at first: all, if the workspace is small. */
export function initiallyOpen(files: readonly FileEntry[], selected: string | undefined, few = 40): Set<string> {
  const open = new Set(selected ? parents(selected) : []);
  if (files.length <= few) for (const file of files) for (const folder of parents(file.path)) open.add(folder);
  return open;
}

/** The row to which a key leads, and whether it opens or closes a folder. */
export function moveInTree(rows: readonly TreeRow[], current: string | undefined, key: string): { path?: string; toggle?: string } {
  const at = rows.findIndex((row) => row.path === current);
  const row = rows[at];
  const target = (index: number) => {
    const path = rows[Math.max(0, Math.min(rows.length - 1, index))]?.path;
    return path === undefined ? {} : { path };
  };
  switch (key) {
    case 'ArrowDown': return target(at + 1);
    case 'ArrowUp': return target(at === -1 ? 0 : at - 1);
    case 'Home': return target(0);
    case 'End': return target(rows.length - 1);
    case 'ArrowRight': return row?.isFolder ? (row.isOpen ? target(at + 1) : { toggle: row.path }) : {};
    case 'ArrowLeft': {
      if (row?.isFolder && row.isOpen) return { toggle: row.path };
      const parent = row && parents(row.path).at(-1);
      return parent === undefined ? {} : { path: parent };
    }
    default: return {};
  }
}

/** Where a dropped file goes: below the chosen folder, with the path that it had in a dropped folder. */
export function uploadPath(folder: string, file: { name: string; webkitRelativePath?: string }): string {
  const name = (file.webkitRelativePath || file.name).replaceAll('\\', '/').split('/').filter((part) => part !== '' && part !== '.' && part !== '..').join('/');
  return folder === '' ? name : `${folder}/${name}`;
}
