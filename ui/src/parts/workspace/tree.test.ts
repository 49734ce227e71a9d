import { describe, expect, it } from 'vitest';
import type { FileEntry } from '@/api/types';
import { initiallyOpen, moveInTree, parents, treeRows, uploadPath } from './tree';

const file = (path: string, kind: FileEntry['kind'] = 'file'): FileEntry => ({ path, kind, size: 1, executable: false });
const files = [file('z.txt'), file('src/b.py'), file('src/a10.py'), file('src/a2.py'), file('src/deep/c.py'), file('README.md')];
const paths = (open: string[], filter = '') => treeRows(files, new Set(open), [], filter).map((row) => row.path);

describe('tree', () => {
  it('shows folders first, and numbers by value', () => {
    expect(paths([])).toEqual(['src', 'README.md', 'z.txt']);
    expect(paths(['src'])).toEqual(['src', 'src/deep', 'src/a2.py', 'src/a10.py', 'src/b.py', 'README.md', 'z.txt']);
  });
  it('shows folders without files', () => {
    const rows = treeRows([file('empty', 'folder'), file('src', 'folder'), file('src/a.py')], new Set());
    expect(rows.map((row) => [row.path, row.isFolder, row.count])).toEqual([['empty', true, 0], ['src', true, 1]]);
  });
  it('opens folders for a filter', () => expect(paths([], 'c.py')).toEqual(['src', 'src/deep', 'src/deep/c.py']));
  it('marks what the last call changed, up to the root', () => {
    const rows = treeRows(files, new Set(['src']), [{ path: 'src/deep/c.py', change: 'added' }]);
    expect(rows.filter((row) => row.change).map((row) => [row.path, row.change])).toEqual([['src', 'modified'], ['src/deep', 'modified']]);
  });
  it('opens everything in a small workspace, and the folders of the chosen file in a large one', () => {
    expect([...initiallyOpen(files, undefined)].toSorted()).toEqual(['src', 'src/deep']);
    expect([...initiallyOpen(files, 'src/deep/c.py', 1)]).toEqual(['src', 'src/deep']);
    expect(parents('a/b/c')).toEqual(['a', 'a/b']);
  });
  it('is walked with the arrow keys', () => {
    const rows = treeRows(files, new Set(['src']));
    expect(moveInTree(rows, undefined, 'ArrowDown')).toEqual({ path: 'src' });
    expect(moveInTree(rows, 'src', 'ArrowDown')).toEqual({ path: 'src/deep' });
    expect(moveInTree(rows, 'src', 'ArrowLeft')).toEqual({ toggle: 'src' });
    expect(moveInTree(rows, 'src/deep', 'ArrowRight')).toEqual({ toggle: 'src/deep' });
    expect(moveInTree(rows, 'src/b.py', 'ArrowLeft')).toEqual({ path: 'src' });
    expect(moveInTree(rows, 'z.txt', 'ArrowDown')).toEqual({ path: 'z.txt' });
    expect(moveInTree(rows, 'z.txt', 'Home')).toEqual({ path: 'src' });
  });
  it('puts dropped files where they belong, and never outside', () => {
    expect(uploadPath('', { name: 'a.txt' })).toBe('a.txt');
    expect(uploadPath('data', { name: 'a.txt', webkitRelativePath: 'set/one/a.txt' })).toBe('data/set/one/a.txt');
    expect(uploadPath('', { name: 'x', webkitRelativePath: '../../etc/x' })).toBe('etc/x');
  });
});
