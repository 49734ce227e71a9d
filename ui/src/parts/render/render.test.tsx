import { describe, expect, it } from 'vitest';
import { fileUrl, workspacePath } from '@/api/workspaces';
import { parseAnsi, styleAfter, terminalLines } from '../ansi';
import { linePath } from './chart';
import { axisTicks, pieSlices, toChart } from './chart-data';
import { frameHeight } from './embed';
import { detectLanguage } from './language';
import { handlesOf } from './large';
import { isPatch, parsePatch } from './patch';
import { decodeText, imageSource, readPlan, safeFrameUrl, safePath } from './plan';
import { nextSorting } from './table';
import { filterRows, isNumeric, parseCsv, sortRows, toCsv, toTable } from './table-data';

describe('large results', () => {
  it('are found by the handles of their own call', () => {
    const config = { data: '$result:c1#/rows', all: '$result:c1', other: '$result:c2', text: 'see $result:c1', near: '$result:c10', n: 7 };
    expect(handlesOf(config, 'c1')).toEqual([{ key: 'data', pointer: '/rows' }, { key: 'all', pointer: '' }]);
  });
});

describe('plan', () => {
  it('is read with its file', () => expect(readPlan({ renderer: 'code', config: { file: './src//a.py', editable: true } })).toEqual({ renderer: 'code', config: { file: './src//a.py', editable: true }, file: 'src/a.py', isEditable: true }));
  it('says why it cannot be used', () => {
    expect(readPlan({ renderer: 'code', config: {}, error: '`$return.code` is missing' })).toEqual({ error: 'failed', message: '`$return.code` is missing' });
    expect(readPlan({ renderer: 'hologram', config: {} })).toEqual({ error: 'unknown', message: 'hologram' });
  });
  it('takes no path that leads out of the workspace', () => {
    for (const path of ['../secret', '/etc/passwd', 'a/../../b', 'C:\\x', 'a\\b', '', '.', 7, null]) expect(safePath(path), String(path)).toBeUndefined();
    expect(safePath('a/./b c/ü.txt')).toBe('a/b c/ü.txt');
  });
  it('takes no address that could run a script', () => {
    for (const url of ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', 'blob:https://x/y', '/relative', undefined]) expect(safeFrameUrl(url), String(url)).toBeUndefined();
    expect(safeFrameUrl('http://localhost:3000/app')).toBe('http://localhost:3000/app');
  });
  it('takes images of known types only', () => {
    expect(imageSource({ content: 'aGk=', mime_type: 'image/png' })).toBe('data:image/png;base64,aGk=');
    expect(imageSource({ src: 'data:image/webp;base64,aGk=' })).toBe('data:image/webp;base64,aGk=');
    expect(imageSource({ src: 'data:text/html;base64,aGk=' })).toBeUndefined();
    expect(imageSource({ src: 'https://example.com/pixel.png' })).toBeUndefined();
    expect(imageSource({ url: '/api/workspaces/demo/files/a.png' })).toBe('/api/workspaces/demo/files/a.png');
    expect(imageSource({ url: '/api/workspaces/demo/../../tokens' })).toBeUndefined();
    expect(imageSource({ url: '/logout' })).toBeUndefined();
    expect(imageSource({ content: '"onload="x', mime_type: 'image/png' })).toBeUndefined();
  });
  it('tells text from other bytes', () => {
    expect(decodeText(new TextEncoder().encode('grüße'))).toBe('grüße');
    expect(decodeText(new Uint8Array([1, 0, 2]))).toBeUndefined();
    expect(decodeText(new Uint8Array([0xff, 0xfe, 0x41]))).toBeUndefined();
  });
  it('keeps the height of a frame within reason', () => expect([frameHeight(undefined), frameHeight(9), frameHeight(1e9), frameHeight(300)]).toEqual([480, 120, 1600, 300]));
});

describe('addresses of files', () => {
  it('of a workspace and of a chat', () => {
    expect(fileUrl('demo', 'a b/ü#1.txt')).toBe('/api/workspaces/demo/files/a%20b/%C3%BC%231.txt');
    expect(fileUrl('chat:42', 'x', 'm1')).toBe('/api/chats/42/workspace/files/x?manifest=m1');
    expect(workspacePath('a/b')).toBe('/api/workspaces/a%2Fb');
  });
});

describe('language', () => {
  it('by the name of the file', () => expect(['a/b.py', 'x.TS', 'Dockerfile', 'style.css', 'main.rs', 'notes.md'].map((file) => detectLanguage('auto', file, ''))).toEqual(['python', 'typescript', 'dockerfile', 'css', 'rust', 'markdown']));
  it('by its first lines', () => {
    const cases: [string, string][] = [
      ['#!/usr/bin/env python3\nprint(1)', 'python'], ['#!/bin/bash\nls', 'shell'], ['{"a": 1}', 'json'], ['<!DOCTYPE html><p>', 'html'], ['<?xml version="1.0"?>', 'xml'],
      ['def run(workspace):\n    return {}', 'python'], ['fn main() {\n}', 'rust'], ["import x from 'y';", 'javascript'], ['SELECT a FROM b', 'sql'], ['name: x\nversion: 1', 'yaml'], ['# Title\n\ntext', 'markdown'], ['just words', 'text'],
      ['--- a/x\n+++ b/x\n@@ -1 +1 @@', 'diff'], ['package main\n\nfunc main() {}', 'go'],
    ];
    for (const [content, language] of cases) expect(detectLanguage('auto', 'unknown', content), content).toBe(language);
  });
  it('as the plan says', () => expect([detectLanguage('bash', 'x.py', ''), detectLanguage('Python', undefined, '')]).toEqual(['shell', 'python']));
});

describe('table', () => {
  it('from objects, lists, values and CSV', () => {
    expect(toTable([{ a: 1 }, { b: 2 }])?.columns.map((column) => column.key)).toEqual(['a', 'b']);
    expect(toTable([[1, 2]], ['x', 'y'])?.rows).toEqual([{ x: 1, y: 2 }]);
    expect(toTable(['a', 'b'])?.rows).toEqual([{ value: 'a' }, { value: 'b' }]);
    expect(toTable('n;t\n1;"a;b"\n')).toEqual({ columns: [{ key: '0', label: 'n' }, { key: '1', label: 't' }], rows: [{ 0: '1', 1: 'a;b' }] });
    expect(toTable({ columns: ['x'], rows: [[7]] })?.rows).toEqual([{ x: 7 }]);
    expect(toTable(7)).toBeUndefined();
    expect(toTable([{ a: 1 }], [{ key: 'a', label: 'Total' }])?.columns).toEqual([{ key: 'a', label: 'Total' }]);
  });
  it('parses quotes and line breaks in CSV', () => expect(parseCsv('a,"b ""c"""\r\n"d\ne",f')).toEqual([['a', 'b "c"'], ['d\ne', 'f']]));
  it('sorts numbers by value, empty cells last', () => {
    const rows = [{ v: '10' }, { v: 9 }, { v: '' }, { v: 'x' }, { v: '2' }];
    expect(sortRows(rows, { key: 'v', descending: false }).map((row) => row.v)).toEqual(['2', 9, '10', 'x', '']);
    expect(sortRows(rows, { key: 'v', descending: true }).map((row) => row.v)).toEqual(['x', '10', 9, '2', '']);
    expect(sortRows(rows, undefined)).toBe(rows);
  });
  it('changes the order with each click', () => {
    expect(nextSorting(undefined, 'a')).toEqual({ key: 'a', descending: false });
    expect(nextSorting({ key: 'a', descending: false }, 'a')).toEqual({ key: 'a', descending: true });
    expect(nextSorting({ key: 'a', descending: true }, 'a')).toBeUndefined();
  });
  it('filters by every word, in any cell', () => expect(filterRows([{ a: 'Red', b: 'car' }, { a: 'red', b: 'bus' }], 'RED ca')).toEqual([{ a: 'Red', b: 'car' }]));
  it('knows columns of numbers', () => expect([isNumeric([{ a: '1.5' }, { a: '' }, { a: 2 }], 'a'), isNumeric([{ a: '1x' }], 'a'), isNumeric([], 'a')]).toEqual([true, false, false]));
  it('exports without formulas', () => expect(toCsv({ columns: [{ key: 'a', label: 'A, B' }], rows: [{ a: '=1+1' }, { a: -5 }, { a: 'x "y"' }, { a: null }] })).toBe('"A, B"\r\n\'=1+1\r\n-5\r\n"x ""y"""\r\n'));
});

describe('chart', () => {
  const rows = [{ month: 'Jan', sales: 3, costs: '2' }, { month: 'Feb', sales: 5, costs: null }];
  it('finds the categories and the numbers', () => expect(toChart({ rows })).toEqual({ kind: 'bar', labels: ['Jan', 'Feb'], left: 0, series: [{ name: 'sales', values: [3, 5] }, { name: 'costs', values: [2, null] }] }));
  it('takes what the plan names', () => expect(toChart({ type: 'line', rows, x: 'month', y: 'costs' })).toMatchObject({ kind: 'line', series: [{ name: 'costs' }] }));
  it('says that there is nothing to draw', () => expect([toChart({ rows: [] }), toChart({ rows: [{ a: 'x' }] }), toChart({})]).toEqual([undefined, undefined, undefined]));
  it('draws no more than can be read', () => expect(toChart({ rows: Array.from({ length: 500 }, (_, index) => ({ label: `x${index}`, v: index })) })).toMatchObject({ left: 400 }));
  it('has round steps around all values', () => {
    expect(axisTicks([3, 47], 'bar')).toEqual([0, 10, 20, 30, 40, 50]);
    expect(axisTicks([-3, 4], 'bar')).toEqual([-4, -2, 0, 2, 4]);
    expect(axisTicks([1000, 1010], 'line')[0]).toBeGreaterThan(900);
    expect(axisTicks([0.1, 0.3], 'bar')).toEqual([0, 0.1, 0.2, 0.3]);
    expect(axisTicks([], 'bar')).toEqual([0, 1]);
  });
  it('divides a pie', () => {
    const pie = toChart({ type: 'pie', rows: [{ k: 'a', v: 3 }, { k: 'b', v: 1 }] });
    expect(pie && pieSlices(pie).map((slice) => slice.share)).toEqual([0.75, 0.25]);
    expect(pieSlices({ kind: 'pie', labels: ['a'], left: 0, series: [{ name: 'v', values: [1] }] })[0]?.path).toContain('A 1 1');
    expect(pieSlices({ kind: 'pie', labels: ['a'], left: 0, series: [{ name: 'v', values: [0] }] })).toEqual([]);
  });
  it('leaves a gap where a value is missing', () => expect(linePath([1, null, 2, 3], (index) => index, (value) => value)).toBe('M0.0 1.0 M2.0 2.0 L3.0 3.0'));
});

describe('patch', () => {
  const patch = 'diff --git a/x.txt b/x.txt\n--- a/x.txt\n+++ b/x.txt\n@@ -3,3 +3,4 @@ head\n same\n-old\n+new\n+more\n end\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n\\ No newline at end of file\n';
  it('is read file by file', () => {
    expect(isPatch(patch)).toBe(true);
    expect(parsePatch(patch)).toEqual([
      { from: 'x.txt', to: 'x.txt', rows: [{ fold: 2 }, { left: 'same', right: 'same', changed: false }, { left: 'old', right: 'new', changed: true }, { left: null, right: 'more', changed: true }, { left: 'end', right: 'end', changed: false }] },
      { from: 'y', to: 'y', rows: [{ left: '1', right: '2', changed: true }] },
    ]);
    expect(isPatch('just text')).toBe(false);
  });
});

describe('terminal', () => {
  it('knows 256 and all colours, and combinations', () => {
    expect(parseAnsi('\u001B[1;38;5;208ma\u001B[48;2;1;2;3mb\u001B[0mc')).toEqual([{ text: 'a', bold: true, color: 'rgb(255 135 0)' }, { text: 'b', bold: true, color: 'rgb(255 135 0)', background: 'rgb(1 2 3)' }, { text: 'c' }]);
    expect(parseAnsi('\u001B[4;7;44mx\u001B[24;27;49my')).toEqual([{ text: 'x', underline: true, inverse: true, background: 'blue' }, { text: 'y' }]);
  });
  it('carries a colour to the next line', () => {
    expect(styleAfter('\u001B[31mred')).toEqual({ color: 'red' });
    expect(terminalLines('\u001B[32ma\nb\u001B[0m\nc')).toEqual([{ text: '\u001B[32ma', style: {} }, { text: 'b\u001B[0m', style: { color: 'green' } }, { text: 'c', style: {} }]);
  });
  it('shows what a progress bar ended with', () => expect(terminalLines('10%\r50%\r100%\nab\u0008c\n').map((line) => line.text)).toEqual(['100%', 'ac']));
});
