import { describe, expect, it } from 'vitest';
import { chosenItems } from '@/parts/import-choice';
import { detectKind } from './detect';

describe('detectKind', () => {
  it.each([
    ['', 'empty'], ['https://a.example/openapi.json', 'url'], ['curl https://a', 'curl'], ['$ curl -s https://a', 'curl'], ['curlew: a bird', 'yaml'], ['openapi: 3.1.0\ninfo: {}', 'openapi'], ['{"openapi":"3.0.0"}', 'openapi'],
    ['{"mcpServers": {"a": {}}}', 'mcp'], ['---\nname: a\n---\necho', 'skill'], ['swagger: "2.0"\ninfo: {}', 'openapi'], ['{"info":{"_postman_id":"1","name":"a"},"item":[]}', 'postman'], ['meta {\n  name: a\n}\nget {\n}', 'bruno'], ['{"files":{"a.bru":""}}', 'bruno'], ['scalar Date\ntype Query { a: Int }', 'graphql'], ['{"data":{"__schema":{}}}', 'graphql'], ['name: a', 'yaml'], ['{"name":"a"}', 'json'],
  ])('%s', (text, kind) => expect(detectKind(text)).toBe(kind));
});

const item = (name: string, action: 'create' | 'replace' | 'skip' | 'error') => ({ name, action, warnings: [] });

describe('chosenItems', () => {
  it('leaves out what cannot be imported or was switched off', () =>
    expect(chosenItems([item('a', 'create'), item('b', 'replace'), item('c', 'error'), item('d', 'create'), item('a', 'create')], new Set(['d']))).toEqual(['a', 'b']));
});
