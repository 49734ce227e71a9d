import { describe, expect, it } from 'vitest';
import type { JsonObject } from '@/api/types';
import { checkSteps, findCycle, mappingValue, moveStep, newStep, references, renameStep, suggestions, waitsFor } from './steps';

const FETCH = { id: 'fetch', tool: 'web:fetch', args: { url: 'https://x/$args.city' } };
const EACH = { id: 'each', tool: 'web:post', for_each: '$steps.fetch.value.items', args: { body: { id: '$item.id', n: '$index' } }, when: '$steps.fetch.ok', after: ['log'] };
const LOG = { id: 'log', tool: 'log', args: { text: 'cost $$5 of $argsx' } };

describe('references', () => {
  it('are found at any depth; two dollar signs are one', () => {
    expect(references({ a: ['$args.x and $steps.y.ok', { b: '$$item' }], c: '$index' })).toEqual([{ name: 'args', path: ['x'] }, { name: 'steps', path: ['y', 'ok'] }, { name: 'index', path: [] }]);
    expect(references(LOG)).toEqual([]);
    expect(references('$steps.a.value[0].b')).toEqual([{ name: 'steps', path: ['a', 'value', '0', 'b'] }]);
  });
  it('decide what a step waits for', () => expect(waitsFor(EACH)).toEqual(['fetch', 'log']));
  it('follow a step that gets another name', () => {
    const renamed = renameStep([FETCH, EACH, LOG, { id: 'fetch2', tool: 't', args: { a: '$steps.fetch2.value', b: 'x $steps.fetch.ok y' } }], 0, 'load');
    expect(renamed[0]).toMatchObject({ id: 'load' });
    expect(renamed[1]).toMatchObject({ for_each: '$steps.load.value.items', when: '$steps.load.ok' });
    expect(renamed[3]).toMatchObject({ id: 'fetch2', args: { a: '$steps.fetch2.value', b: 'x $steps.load.ok y' } });
    expect(renameStep([FETCH, LOG, EACH], 1, 'note')[2]).toMatchObject({ after: ['note'] });
  });
});

describe('problems', () => {
  it('none where all is well', () => expect(checkSteps([FETCH, LOG, EACH], ['city'])).toEqual([]));
  it('name unknown steps and arguments', () => {
    expect(checkSteps([EACH], [])).toEqual([{ index: 0, kind: 'unknown', name: 'fetch' }, { index: 0, kind: 'unknown', name: 'log' }]);
    expect(checkSteps([FETCH], ['town'])).toEqual([{ index: 0, kind: 'argument', name: 'city' }]);
    expect(checkSteps([FETCH], undefined)).toEqual([]);
  });
  it('name ids that are wrong or used twice, and items outside of a list', () => {
    expect(checkSteps([{ id: 'a b', tool: 't' }], [])).toEqual([{ index: 0, kind: 'id', name: 'a b' }]);
    expect(checkSteps([LOG, LOG], [])).toEqual([{ index: 1, kind: 'twice', name: 'log' }]);
    expect(checkSteps([{ id: 'a', tool: 't', args: { x: '$item' } }], [])).toEqual([{ index: 0, kind: 'item', name: '$item' }]);
  });
  it('name a circle', () => {
    const circle: JsonObject[] = [{ id: 'a', tool: 't', args: { x: '$steps.b.value' } }, { id: 'b', tool: 't', after: ['c'] }, { id: 'c', tool: 't', when: '$steps.a.ok' }];
    expect(findCycle(circle)).toEqual(['a', 'b', 'c', 'a']);
    expect(checkSteps(circle, [])).toEqual([{ index: 0, kind: 'cycle', name: 'a → b → c → a' }]);
    expect(findCycle([{ id: 'a', tool: 't', after: ['a'] }])).toEqual(['a', 'a']);
    expect(findCycle([FETCH, EACH, LOG])).toBeUndefined();
  });
});

describe('editing', () => {
  it('adds and moves', () => {
    expect(newStep([{ id: 'step_2' }])).toEqual({ id: 'step_3', tool: '' });
    expect(moveStep([FETCH, LOG, EACH], 2, 0).map((step) => step['id'])).toEqual(['each', 'fetch', 'log']);
    expect(moveStep([FETCH, LOG], 0, 5)).toEqual([FETCH, LOG]);
  });
  it('suggests what a step can use', () => {
    expect(suggestions([FETCH, EACH], 1, ['city'])).toEqual(['$args.city', '$item', '$index', '$steps.fetch.value', '$steps.fetch.ok', '$args']);
    expect(suggestions([FETCH, EACH], 0, [])).toEqual(['$args']);
  });
  it('keeps the type of literal values', () => {
    expect(mappingValue('5', 'integer')).toBe(5);
    expect(mappingValue('5', 'string')).toBe('5');
    expect(mappingValue('$args.n', 'integer')).toBe('$args.n');
    expect(mappingValue('{"a":1}', undefined)).toEqual({ a: 1 });
    expect(mappingValue('', 'string')).toBeUndefined();
  });
});
