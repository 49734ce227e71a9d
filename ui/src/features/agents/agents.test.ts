import { describe, expect, it } from 'vitest';
import { ApiError } from '@/api/error';
import { definitionOf, isConflict, isScripted, NEW_AGENT, readBlockers, readModel, variableNames, variableValue } from './definition';

const STORED = {
  id: 'a', revision: 3, published_revision: 2, status: 'published', enabled: true, ready: true, error: null, path: null, created_by: 'local', modified_by: null, created_at: '', modified_at: '', published_at: null,
  slug: 'helper', name: 'Helper', description: '', model: { name: 'gpt-5', temperature: 0.2 }, instructions: 'Be brief.', tools: ['web:*'], tool_execution: 'sequential', max_iterations: 25, max_parallel_tools: 8, require_published: false,
};

describe('definitions', () => {
  it('have neither what the server adds nor defaults', () => {
    expect(definitionOf(STORED)).toEqual({ slug: 'helper', name: 'Helper', model: { name: 'gpt-5', temperature: 0.2 }, instructions: 'Be brief.', tools: ['web:*'], max_parallel_tools: 8 });
  });
  it('start with a model that needs no key', () => expect(isScripted(readModel(NEW_AGENT['model']))).toBe(true));
  it('take a model by its name', () => {
    expect(readModel('gpt-5')).toEqual({ name: 'gpt-5' });
    expect(readModel(undefined)).toEqual({});
    expect(isScripted({ name: 'gpt-5' })).toBe(false);
    expect(isScripted({ name: 'x', provider: 'scripted' })).toBe(true);
  });
});

describe('variables', () => {
  it('are named once each; control words are none', () => {
    expect(variableNames('Hello {{ name }}, {{user.role}} of {{name}}. {{if formal}}Sir{{else}}Hi{{end}} {{lang | default:en}} {{ }}')).toEqual(['name', 'user', 'formal', 'lang']);
  });
  it('keep their type', () => {
    expect(variableValue('6', 5)).toBe(6);
    expect(variableValue('6', '5')).toBe('6');
    expect(variableValue('{', { a: 1 })).toBe('{');
    expect(variableValue('new', undefined)).toBe('new');
  });
});

const rejected = (details: unknown, status = 422) => new ApiError(status, { error: { code: 'invalid', message: 'no', details } } as never, '');

describe('a rejected publication', () => {
  it('names each tool, in whatever form the details have', () => {
    expect(readBlockers(rejected({ tools: ['web:fetch'] }))).toEqual([{ tool: 'web:fetch', message: '' }]);
    expect(readBlockers(rejected({ problems: [{ field: 'tools[0]', code: 'not_published', message: 'tool `web:post` is not published' }] }))).toEqual([{ tool: 'web:post', message: 'tool `web:post` is not published' }]);
    expect(readBlockers(rejected({}))).toEqual([]);
    expect(readBlockers(new Error('no'))).toEqual([]);
  });
  it('is told apart from a conflict', () => {
    expect(isConflict(rejected({}))).toBe(false);
    expect(isConflict(rejected({}, 409))).toBe(true);
    expect(isConflict(rejected({}, 412))).toBe(true);
  });
});
