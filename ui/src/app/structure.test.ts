import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readRange } from '@/features/calls/ranges';
import { RECIPES } from '@/features/recipes/recipes';
import { format, translator } from '@/i18n';
import { messages } from '@/i18n/messages';
import { PAGES } from './pages';

const SRC = join(process.cwd(), 'src');
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file) && !file.includes('.test.') && !file.endsWith('.d.ts'));
const source = (file: string) => readFileSync(join(SRC, file), 'utf8');

describe('structure', () => {
  it('features do not import each other', () => {
    for (const file of files.filter((name) => name.startsWith('features/'))) {
      const own = file.split('/')[1];
      for (const [, feature] of source(file).matchAll(/from '@\/features\/([\w-]+)/g)) expect(`${file} -> ${feature}`).toBe(`${file} -> ${own}`);
      expect(source(file), file).not.toMatch(/from '@\/app/);
    }
  });
  it('parts and api do not import features or app', () => {
    for (const file of files.filter((name) => /^(parts|api|i18n)\//.test(name))) expect(source(file), file).not.toMatch(/from '@\/(features|app)\//);
  });
  it('features have no raw colours', () => {
    for (const file of files.filter((name) => name.startsWith('features/'))) expect(source(file), file).not.toMatch(/#[0-9a-f]{6}\b/i);
  });
  it('HTML is written in one place only', () => {
    expect(files.filter((file) => /dangerouslySetInnerHTML|innerHTML/.test(source(file)))).toEqual(['parts/markdown-html.tsx']);
  });
});

describe('translations', () => {
  it('every message has both languages and the same parameters', () => {
    for (const [key, pair] of Object.entries<readonly string[]>(messages)) {
      expect(pair, key).toHaveLength(2);
      const names = pair.map((text) => [...new Set([...text.matchAll(/\{(\w+)/g)].map((match) => match[1]))].toSorted().join());
      expect(pair.every((text) => text.trim() !== ''), key).toBe(true);
      expect(names[0], key).toBe(names[1]);
    }
  });
  it('every key that the code names exists, and every key is used', () => {
    const all = files.filter((file) => !file.startsWith('i18n/messages')).map(source).join('\n');
    for (const [, key] of all.matchAll(/\bt\('([\w.]+)'/g)) expect(messages, key).toHaveProperty([key ?? '']);
    const prefixes = [...all.matchAll(/`([\w.]+\.)\$\{/g)].map((match) => match[1] ?? '');
    const unused = Object.keys(messages).filter((key) => !all.includes(`'${key}'`) && !prefixes.some((prefix) => key.startsWith(prefix)) && !(key.endsWith('.fix') && key.startsWith('error.')));
    expect(unused).toEqual([]);
  });
  it('chooses by number and keeps other braces', () => {
    expect(format('{n} {n|tool|tools}', { n: 1 })).toBe('1 tool');
    expect(format('{n} {n|tool|tools}', { n: 1200 })).toBe('1,200 tools');
    expect(format('{{name}} ${NAME}')).toBe('{{name}} ${NAME}');
    expect(translator('de')('nav.calls')).toBe('Aufrufe');
  });
});

describe('pages', () => {
  it('have one address and one shortcut each', () => {
    expect(new Set(PAGES.map((page) => page.to)).size).toBe(PAGES.length);
    const go = PAGES.flatMap((page) => page.go ?? []);
    expect(new Set(go).size).toBe(go.length);
  });
  it('recipes keep secrets out of the definition', () => {
    for (const recipe of RECIPES) {
      const doc = recipe.build(Object.fromEntries(recipe.questions.map((question) => [question.key, question.secret ? 'S3CRET' : question.value])));
      expect(JSON.stringify(doc), recipe.id).not.toContain('S3CRET');
      expect(doc['name'], recipe.id).toBeTruthy();
    }
  });
  it('reads a range of time', () => {
    expect(readRange(undefined, undefined, 100_000_000)).toMatchObject({ period: '24h', to: 100_000_000 });
    expect(readRange('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', 0).period).toBeUndefined();
    expect(readRange('nonsense', undefined, 0).period).toBe('24h');
  });
});
