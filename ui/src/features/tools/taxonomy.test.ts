import { describe, expect, it } from 'vitest';
import { translator } from '@/i18n';
import { filterTools, getSubtypeLabel, getToolBucket, rankTools, shownStatus, TOOL_BUCKETS, TOOL_SUBTYPES, type Filterable } from './taxonomy';

const tool = (change: Partial<Filterable>): Filterable => ({
  name: 'weather', display_name: 'Weather', description: 'Current weather', bundle: 'user-created', tags: ['web'], status: 'published', enabled: true, ready: true, warning_count: 0,
  tool_type: 'custom', implementation_type: 'http', ...change,
});

describe('buckets', () => {
  it('takes the bucket of the server', () => expect(getToolBucket(tool({ tool_type: 'mcp', built_in: true }))).toBe('mcp'));
  it('derives it by the same rules', () => {
    expect(getToolBucket({ built_in: true, implementation_type: 'http' })).toBe('built_in');
    expect(getToolBucket({ source: 'built-in' })).toBe('built_in');
    expect(getToolBucket({ implementation_type: 'mcp' })).toBe('mcp');
    expect(getToolBucket({ implementation_type: 'artifact' })).toBe('artifact');
    expect(getToolBucket({ implementation_type: 'agent_call' })).toBe('custom');
  });
  it('has four buckets and a label for each subtype', () => {
    expect(TOOL_BUCKETS.map((bucket) => bucket.value).toSorted()).toEqual(['artifact', 'built_in', 'custom', 'mcp']);
    for (const subtype of TOOL_SUBTYPES) expect(getSubtypeLabel(subtype.value)).toBe(translator('en')(subtype.label));
    expect(getSubtypeLabel('script', translator('de'))).toBe('Skript');
    expect(getSubtypeLabel('teleport')).toBe('teleport');
    expect(getSubtypeLabel(null)).toBe('—');
  });
});

describe('filterTools', () => {
  const list = [tool({}), tool({ name: 'git_log', bundle: 'git', tool_type: 'mcp', implementation_type: 'mcp', tags: [] }), tool({ name: 'bash', tool_type: 'built_in', implementation_type: 'script', warning_count: 1 }), tool({ name: 'broken', ready: false, enabled: false })];
  const names = (filters: Parameters<typeof filterTools>[1]) => filterTools(list, filters).map((item) => item.name);
  it('shows all without filters', () => expect(names({})).toHaveLength(4));
  it('filters by bucket', () => expect(names({ bucket: ['built_in', 'mcp'] })).toEqual(['git_log', 'bash']));
  it('filters by subtype, bundle and tag', () => {
    expect(names({ subtype: ['mcp'] })).toEqual(['git_log']);
    expect(names({ bundle: ['git'] })).toEqual(['git_log']);
    expect(names({ tag: ['web'] })).not.toContain('git_log');
  });
  it('counts a disabled tool as disabled', () => {
    expect(shownStatus(tool({ enabled: false }))).toBe('disabled');
    expect(names({ status: ['disabled'] })).toEqual(['broken']);
    expect(names({ status: ['published'] })).not.toContain('broken');
  });
  it('finds tools with warnings and tools that are not ready', () => {
    expect(names({ health: 'warnings' })).toEqual(['bash']);
    expect(names({ health: 'failed' })).toEqual(['broken']);
  });
  it('needs every word, in any case', () => {
    expect(names({ q: 'GIT weather' })).toEqual(['git_log']);
    expect(names({ q: 'git nothing' })).toEqual([]);
  });
  it('puts matches of the name first', () => expect(rankTools([tool({ name: 'a', description: 'git' }), tool({ name: 'git_log' })], 'git')[0]?.name).toBe('git_log'));
});
