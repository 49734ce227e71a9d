import { describe, expect, it } from 'vitest';
import { parseCurl, shellWords } from './curl';
import { detectKind } from './detect';

describe('curl', () => {
  it('splits words as a shell does', () => expect(shellWords(`curl 'a b' "c \\"d\\"" e\\ f \\\n g`)).toEqual(['curl', 'a b', 'c "d"', 'e f', 'g']));
  it('turns query, body and secrets into arguments and credentials', () => {
    const result = parseCurl(`curl -s -X POST 'https://api.example.com/v1/items?limit=5' -H 'Authorization: Bearer abc' -d '{"title": "x", "nested": {"a": 1}}'`);
    expect(result).toMatchObject({
      doc: {
        name: 'post-v1-items', params: [{ name: 'limit', type: 'integer', default: 5 }, { name: 'title', type: 'string', default: 'x' }],
        implementation: { method: 'POST', url: 'https://api.example.com/v1/items', query: { limit: '{{limit}}' }, body: { title: '{{title}}', nested: { a: 1 } } },
      },
      secrets: [{ header: 'Authorization' }],
    });
    expect(JSON.stringify(result)).not.toContain('abc');
  });
  it('chooses the method and names options without effect', () => {
    expect(parseCurl('curl -d a=b example.com/x')).toMatchObject({ doc: { implementation: { method: 'POST', body: 'a=b', url: 'https://example.com/x' } } });
    expect(parseCurl('curl --http2 https://example.com')).toMatchObject({ ignored: ['--http2'], doc: { implementation: { method: 'GET' } } });
  });
  it('explains what is missing', () => {
    expect(parseCurl('curl -s')).toEqual({ error: 'The command has no URL.' });
    expect(parseCurl('wget x')).toHaveProperty('error');
  });
});

describe('detectKind', () => {
  it.each([
    ['', 'empty'], ['https://a.example/openapi.json', 'url'], ['curl https://a', 'curl'], ['openapi: 3.1.0\ninfo: {}', 'openapi'], ['{"openapi":"3.0.0"}', 'openapi'],
    ['{"mcpServers": {"a": {}}}', 'mcp'], ['---\nname: a\n---\necho', 'skill'], ['name: a', 'yaml'], ['{"name":"a"}', 'json'],
  ])('%s', (text, kind) => expect(detectKind(text)).toBe(kind));
});
