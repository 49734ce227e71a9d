import { MantineProvider } from '@mantine/core';
import { render, screen } from '@testing-library/react';
import { describe, expect, it } from 'vitest';
import { ApiError } from '@/api/error';
import { affectedKeys } from '@/api/events';
import { hasRole } from '@/api/session';
import { parseAnsi, toLines } from './ansi';
import { ErrorPanel, Highlight } from './basics';
import { clientSetup, CLIENTS } from './clients';
import { copyAs, pythonLiteral, shellQuote } from './copy-as';
import { diffLines, foldUnchanged } from './diff';
import { bytes, duration, oneLine, relativeTime, visibleText } from './format';
import { initialExpansion, jsonRows, searchJson } from './json-rows';
import { resultKind } from './result';
import { defaults, schemaRows, typeName } from './schema';
import { readViolations, toErrorSchema } from './schema-form/errors';
import { validator } from './schema-form/validator';
import { parseSearch, readList, stringifySearch, writeList } from './url-state';
import { layoutSteps } from './waterfall';

const show = (node: React.ReactNode) => render(<MantineProvider>{node}</MantineProvider>);

describe('hostile text', () => {
  it('shows direction marks as code points', () => expect(visibleText('a\u202Eb')).toBe('a⟨U+202E⟩b'));
  it('renders markup as text', () => {
    show(<Highlight text={'<img src=x onerror=alert(1)> tool'} query="tool" />);
    expect(document.querySelector('img')).toBeNull();
    expect(document.querySelector('mark')?.textContent).toBe('tool');
  });
  // The sanitiser needs a real DOM: e2e/run.mjs checks markdown in a browser.
  it('takes only safe images', () => {
    expect(resultKind({ type: 'image', mimeType: 'image/png', data: 'AAAA' })).toEqual({ kind: 'image', src: 'data:image/png;base64,AAAA' });
    expect(resultKind({ type: 'image', mimeType: 'image/svg+xml', data: 'AAAA' }).kind).toBe('json');
    expect(resultKind({ type: 'image', mimeType: 'image/png', data: '"><script>' }).kind).toBe('json');
  });
  it('cuts very long lines and values', () => {
    expect(toLines('x'.repeat(5000))).toHaveLength(3);
    expect(oneLine({ a: 'x'.repeat(100_000) }, 50).length).toBeLessThan(60);
  });
});

describe('JSON view', () => {
  it('shows only what is expanded', () => {
    const value = { a: { b: [1, 2] }, c: 'x' };
    expect(jsonRows(value, new Set(['$'])).map((row) => row.path)).toEqual(['$', '$.a', '$.c', '$#end']);
    expect(jsonRows(value, new Set(['$', '$.a', '$.a.b'])).map((row) => row.path)).toContain('$.a.b[1]');
  });
  it('limits children and stays quick with a large value', () => {
    const large = { rows: Array.from({ length: 200_000 }, (_, id) => ({ id, text: 'some text' })) };
    const start = performance.now();
    const rows = jsonRows(large, new Set([...initialExpansion(large), '$.rows']));
    expect(rows.length).toBeLessThan(1100);
    expect(rows.some((row) => row.kind === 'more' && row.size === 199_000)).toBe(true);
    searchJson(large, 'zzz');
    expect(performance.now() - start).toBeLessThan(1500);
  });
  it('finds keys and values and opens their parents', () => {
    const { matches, parents } = searchJson({ a: { needle: 1 }, b: ['x needle'] }, 'NEEDLE');
    expect(matches).toEqual(['$.a.needle', '$.b[0]']);
    expect(parents).toEqual(new Set(['$', '$.a', '$.b']));
  });
});

describe('schema', () => {
  const schema = { type: 'object', required: ['city'], properties: { city: { type: 'string', description: 'City' }, days: { type: 'integer', minimum: 1, default: 3 }, tags: { type: 'array', items: { $ref: '#/$defs/tag' } } }, $defs: { tag: { type: 'object', properties: { name: { enum: ['a', 'b'] } } } } };
  it('lists fields with types and limits', () => {
    const rows = schemaRows(schema, { default: (value) => `default ${value}`, oneOf: (values) => values });
    expect(rows.map((row) => [row.path, row.type, row.required])).toEqual([['city', 'string', true], ['days', 'integer', false], ['tags', 'object[]', false], ['tags[].name', 'enum', false]]);
    expect(rows[1]?.notes).toEqual(['≥ 1', 'default 3']);
  });
  it('does not follow a circle of references', () => expect(typeName({ $ref: '#/$defs/a' }, { $defs: { a: { $ref: '#/$defs/a' } } })).toBe('any'));
  it('starts with the defaults', () => expect(defaults(schema)).toEqual({ days: 3 }));
  it('puts the errors of the server at the fields', () => {
    const violations = readViolations({ violations: [{ path: '/a/0/b', message: 'wrong' }, { path: '', message: 'unknown' }, 3] });
    expect(toErrorSchema(violations)).toEqual({ a: { 0: { b: { __errors: ['wrong'] } } }, __errors: ['unknown'] });
  });
  it('chooses variants without eval', () => {
    expect(validator.isValid({ type: 'string' }, 'x', {})).toBe(true);
    expect(validator.isValid({ type: 'string' }, 3 as never, {})).toBe(false);
  });
});

describe('copy as', () => {
  const target = { origin: 'http://h', ref: 'b:t@1', name: 't', args: { text: "it's", n: 1, yes: true, none: null } };
  it('quotes for the shell', () => {
    expect(shellQuote('plain-1.0')).toBe('plain-1.0');
    expect(shellQuote("it's; rm -rf /")).toBe(String.raw`'it'\''s; rm -rf /'`);
    expect(copyAs('curl', target)).toContain('http://h/api/tools/b%3At%401/invoke');
    expect(copyAs('cli', target)).toBe(String.raw`haft tool call b:t@1 -a 'text=it'\''s' -a n=1 -a yes=true -a none=null`);
  });
  it('writes Python and MCP', () => {
    expect(pythonLiteral(target.args)).toBe('{"text": "it\'s", "n": 1, "yes": True, "none": None}');
    expect(JSON.parse(copyAs('mcp', target))).toMatchObject({ method: 'tools/call', params: { name: 't', arguments: target.args } });
  });
  it('configures every client with the token', () => {
    for (const client of CLIENTS) expect(clientSetup(client, 'http://h', 'haft_x').text).toContain('haft_x');
    expect(JSON.parse(clientSetup('cursor', 'http://h', 'x', 'web').text)).toMatchObject({ mcpServers: { 'haft-web': { url: 'http://h/mcp/bundles/web' } } });
  });
});

describe('diff', () => {
  it('pairs lines', () => expect(diffLines('a\nb\nc', 'a\nx\nc').map((row) => [row.left, row.right, row.changed])).toEqual([['a', 'a', false], ['b', 'x', true], ['c', 'c', false]]));
  it('shows added and removed lines', () => {
    expect(diffLines('', 'a')).toEqual([{ left: null, right: 'a', changed: true }]);
    expect(diffLines('a\nb', 'b').filter((row) => row.changed)).toEqual([{ left: 'a', right: null, changed: true }]);
  });
  it('rebuilds both texts', () => {
    const [before, after] = ['a\nb\nc\nd\ne', 'b\nx\nc\ne\nf'];
    const rows = diffLines(before, after);
    expect(rows.flatMap((row) => row.left ?? []).join('\n')).toBe(before);
    expect(rows.flatMap((row) => row.right ?? []).join('\n')).toBe(after);
  });
  it('folds what is the same', () => {
    const text = Array.from({ length: 30 }, (_, index) => String(index)).join('\n');
    expect(foldUnchanged(diffLines(text, `${text}\nnew`))[0]).toEqual({ fold: 27 });
  });
});

describe('formats', () => {
  it('durations and sizes', () => expect([duration(0.41), duration(12.3), duration(1250), duration(123_000), bytes(512), bytes(2048)]).toEqual(['0.41 ms', '12 ms', '1.25 s', '2 min 3 s', '512 B', '2.0 KiB']));
  it('relative times', () => {
    expect(relativeTime(0, 4000, 'en')).toBe('now');
    expect(relativeTime(0, 120_000, 'en')).toContain('2 min');
    expect(relativeTime(0, 120_000, 'de')).toContain('vor');
  });
  it('ANSI colours, without other control sequences', () => expect(parseAnsi('\u001B[31mred\u001B[0m\u001B[2Jx\u001B]0;title\u0007')).toEqual([{ text: 'red', color: 'red' }, { text: 'x' }]));
  it('the address keeps plain text', () => {
    expect(stringifySearch({ q: 'a&b', n: undefined, empty: '' })).toBe('?q=a%26b');
    expect(parseSearch('?q=123&x=true')).toEqual({ q: '123', x: 'true' });
    expect(readList(writeList(['a', 'b']))).toEqual(['a', 'b']);
  });
  it('lays out the steps of a call', () => {
    const rows = layoutSteps({ check_ms: 1, execute_ms: 8 }, 10, (name) => ({ label: name, hint: '' }));
    expect(rows.map((row) => [row.name, row.start, row.width])).toEqual([['check', 0, 0.1], ['execute', 0.1, 0.8], ['rest', 0.9, 0.1]]);
  });
  it('chooses a table for flat rows only', () => {
    expect(resultKind([{ a: 1 }, { a: 2, b: 'x' }])).toMatchObject({ kind: 'table', columns: ['a', 'b'] });
    expect(resultKind([{ a: {} }]).kind).toBe('json');
  });
});

describe('server side', () => {
  it('orders roles', () => expect([hasRole('admin', 'editor'), hasRole('caller', 'editor')]).toEqual([true, false]));
  it('knows what an event changes', () => {
    expect(affectedKeys('approval')).toEqual([['approvals'], ['calls'], ['stats'], ['runs']]);
    expect(affectedKeys('ready')).toEqual([]);
    expect(affectedKeys('reset')).toEqual([[]]);
    expect(affectedKeys('agent')).toEqual([['agents']]);
    expect(affectedKeys('run', 'r1')).toEqual([['runs']]);
    expect(affectedKeys('pipeline')).toEqual([['pipelines']]);
    expect(affectedKeys('document')).toEqual([['pipelines']]);
    expect(affectedKeys('artifact')).toEqual([['artifacts']]);
  });
  it('reads one chat again, not those that others look at', () => {
    expect(affectedKeys('chat', 'c1')).toEqual([['chats', 'list'], ['chats', 'one', 'c1'], ['runs']]);
    expect(affectedKeys('chat')).toEqual([['chats'], ['runs']]);
  });
  it('shows an error with its request', () => {
    show(<ErrorPanel error={new ApiError(403, { error: { code: 'forbidden', message: 'no <b>' }, request_id: 'r-1' } as never, '')} />);
    expect(screen.getByRole('alert').textContent).toContain('no <b>');
    expect(screen.getByRole('alert').textContent).toContain('r-1');
  });
});
