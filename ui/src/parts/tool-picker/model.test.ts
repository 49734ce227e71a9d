import { describe, expect, it } from 'vitest';
import { distinctTools, emptyRules, groupTools, isRule, joinRules, matchesPattern, matchesRule, ruleOf, selectedTools, splitRules, withoutTools, withTools, type PickTool } from './model';

const tool = (bundle: string, name: string, change: Partial<PickTool> = {}): PickTool => ({
  bundle, name, version: '1.0.0', display_name: name, description: '', tags: [], status: 'published', enabled: true, ready: true, warning_count: 0, source: 'user', callable: true, ...change,
});
const WEB = [tool('web', 'fetch', { tags: ['read-only'] }), tool('web', 'post'), tool('web', 'post_all')];
const ALL = [...WEB, tool('builtin', 'fetch', { source: 'built-in' }), tool('kit', 'chart', { source: 'toolset' }), tool('github', 'issues_list', { source: 'mcp', tags: ['read-only'] })];
const names = (tools: PickTool[]) => tools.map(ruleOf);

describe('rules', () => {
  it.each([
    ['fetch', 'fetch', true], ['fetch', 'fetch_all', false], ['*', '', true], ['fetch*', 'fetch_all', true], ['*_all', 'fetch_all', true],
    ['a*b*c', 'a-b-b-c', true], ['a*b*c', 'acb', false], ['ab*ba', 'aba', false], ['a*a', 'a', false],
  ])('%s and %s: %s', (pattern, text, expected) => expect(matchesPattern(pattern, text)).toBe(expected));
  it('a name holds in every bundle, a tag wherever it is', () => {
    expect(names(selectedTools(['fetch'], ALL))).toEqual(['web:fetch', 'builtin:fetch']);
    expect(names(selectedTools(['tag:read-only'], ALL))).toEqual(['web:fetch', 'github:issues_list']);
    expect(names(selectedTools(['web:post*', 'github:*'], ALL))).toEqual(['web:post', 'web:post_all', 'github:issues_list']);
    expect(matchesRule('tag:read', WEB[0] as PickTool)).toBe(false);
  });
  it('are what the server takes', () => {
    for (const good of ['fetch', 'web:*', '*', '*:*', 'tag:read only', 'grüße:ä']) expect(isRule(good), good).toBe(true);
    for (const bad of ['', ':', 'a:', ':b', 'tag:', 'tag: ', 'a b', 'a:b:c', 'x'.repeat(300)]) expect(isRule(bad), bad).toBe(false);
  });
  it('that select nothing are named', () => expect(emptyRules(['web:fetch', 'web:gone', 'tag:x', 'post*'], ALL)).toEqual(['web:gone', 'tag:x']));
});

describe('groups', () => {
  it('are built-in, own bundles, toolsets, MCP servers', () => expect(groupTools(ALL).map((group) => [group.kind, group.bundle, group.tools.length])).toEqual([['builtin', 'builtin', 1], ['own', 'web', 3], ['toolset', 'kit', 1], ['mcp', 'github', 1]]));
  it('have one row per tool, of the version that can be called', () => {
    const rows = distinctTools([tool('a', 'x', { version: '1.0.0', callable: false }), tool('a', 'x', { version: '2.0.0' }), tool('a', 'x', { version: '3.0.0' })]);
    expect(rows.map((row) => row.version)).toEqual(['2.0.0']);
  });
});

describe('choosing', () => {
  it('adds a tool once', () => {
    expect(withTools([], [ALL[3] as PickTool], ALL)).toEqual(['builtin:fetch']);
    expect(withTools(['tag:read-only'], [WEB[0] as PickTool], ALL)).toEqual(['tag:read-only']);
  });
  it('takes a whole bundle as one rule, and a part of it as single tools', () => {
    expect(withTools(['web:post', 'github:*'], WEB, ALL)).toEqual(['github:*', 'web:*']);
    expect(withTools([], WEB.slice(0, 2), ALL)).toEqual(['web:fetch', 'web:post']);
  });
  it('splits a pattern when one of its tools is removed', () => {
    expect(withoutTools(['web:*', 'kit:chart'], [WEB[1] as PickTool], ALL)).toEqual(['web:fetch', 'web:post_all', 'kit:chart']);
    expect(withoutTools(['tag:read-only', 'web:fetch'], [WEB[0] as PickTool], ALL)).toEqual(['github:issues_list']);
    expect(withoutTools(['web:*', 'web:post'], WEB, ALL)).toEqual([]);
  });
});

describe('exclusions', () => {
  it('take tools out of what other rules select', () => {
    expect(names(selectedTools(['web:*', '!web:post*'], ALL))).toEqual(['web:fetch']);
    expect(names(selectedTools(['web:*', 'github:*', '!tag:read-only'], ALL))).toEqual(['web:post', 'web:post_all']);
    expect(names(selectedTools(['!web:fetch'], ALL))).toEqual([]);
    expect(emptyRules(['!web:gone', '!web:post'], ALL)).toEqual(['!web:gone']);
  });
  it('are rules only where they are possible', () => {
    expect(isRule('!web:*')).toBe(false);
    expect(isRule('!web:*', true)).toBe(true);
    expect(isRule('!!web:*', true)).toBe(false);
  });
  it('keep a pattern when one of its tools is removed', () => {
    expect(withoutTools(['web:*'], [WEB[1] as PickTool], ALL, true)).toEqual(['web:*', '!web:post']);
    expect(withoutTools(['web:post', 'kit:chart'], [WEB[1] as PickTool], ALL, true)).toEqual(['kit:chart']);
  });
  it('end when the tool is chosen again', () => {
    expect(withTools(['web:*', '!web:post'], [WEB[1] as PickTool], ALL)).toEqual(['web:*']);
    expect(withTools(['web:*', '!web:post*'], [WEB[1] as PickTool], ALL)).toEqual(['web:*', '!web:post_all']);
    expect(withTools(['web:*', '!web:post'], WEB, ALL)).toEqual(['web:*']);
  });
  it('are a list of their own in a definition', () => {
    expect(splitRules(['web:*', '!web:post'])).toEqual({ tools: ['web:*'], exclude: ['web:post'] });
    expect(joinRules(['web:*'], ['web:post'])).toEqual(['web:*', '!web:post']);
  });
});
