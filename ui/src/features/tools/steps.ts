/** The steps of a tool that is made of other tools: references between them, their order, and what is wrong. */
import type { Json, JsonObject } from '@/api/types';

const REFERENCE = /\$\$|\$(args|steps|item|index)((?:\.[\w-]+|\[\d+\])*)(?![\w-])/g;

export interface Reference {
  name: string;
  path: string[];
}

/** The references in a mapping, at any depth. `$$` is a dollar sign. */
export function references(value: unknown): Reference[] {
  if (typeof value === 'string') {
    return [...value.matchAll(REFERENCE)].flatMap(([, name, path = '']) => (name === undefined ? [] : [{ name, path: path.split(/[.[\]]+/).filter(Boolean) }]));
  }
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(references);
  return [];
}

const text = (value: unknown) => (typeof value === 'string' ? value : '');
export const stepId = (step: JsonObject) => text(step['id']);
export const readSteps = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.map((step) => (typeof step === 'object' && step !== null && !Array.isArray(step) ? (step as JsonObject) : {})) : []);

const MAPPINGS = ['args', 'when', 'for_each', 'fallback'];
const mappings = (step: JsonObject) => MAPPINGS.map((key) => step[key]);

/** The steps that a step waits for. */
export function waitsFor(step: JsonObject): string[] {
  const named = references(mappings(step)).flatMap(({ name, path }) => (name === 'steps' && path[0] !== undefined ? [path[0]] : []));
  const after = Array.isArray(step['after']) ? step['after'].map(text) : [];
  return [...new Set([...named, ...after])];
}

/** The steps of a circle, if there is one. */
export function findCycle(steps: readonly JsonObject[]): string[] | undefined {
  const waits = new Map(steps.map((step) => [stepId(step), waitsFor(step)]));
  const done = new Set<string>();
  const visit = (id: string, path: string[]): string[] | undefined => {
    if (path.includes(id)) return [...path.slice(path.indexOf(id)), id];
    if (done.has(id)) return undefined;
    for (const next of waits.get(id) ?? []) {
      const found = visit(next, [...path, id]);
      if (found) return found;
    }
    done.add(id);
    return undefined;
  };
  for (const id of waits.keys()) {
    const found = visit(id, []);
    if (found) return found;
  }
  return undefined;
}

export type StepProblem = { index: number; kind: 'id' | 'twice' | 'unknown' | 'argument' | 'item' | 'cycle'; name: string };

const ID = /^[\w-]{1,64}$/;

/** What the form can tell without the server. */
export function checkSteps(steps: readonly JsonObject[], parameters: readonly string[] | undefined): StepProblem[] {
  const ids = steps.map(stepId);
  const problems = steps.flatMap((step, index): StepProblem[] => {
    const id = ids[index] ?? '';
    const inEach = step['for_each'] !== undefined;
    const used = references(mappings(step));
    const outside = references(step['for_each']);
    return [
      ...(ID.test(id) ? [] : [{ index, kind: 'id' as const, name: id }]),
      ...(ids.indexOf(id) < index ? [{ index, kind: 'twice' as const, name: id }] : []),
      ...waitsFor(step).filter((other) => !ids.includes(other)).map((name) => ({ index, kind: 'unknown' as const, name })),
      ...(parameters === undefined ? [] : used.filter(({ name, path }) => name === 'args' && path[0] !== undefined && !parameters.includes(path[0])).map(({ path }) => ({ index, kind: 'argument' as const, name: path[0] ?? '' }))),
      ...([...(inEach ? [] : used), ...outside].some(({ name }) => name === 'item' || name === 'index') ? [{ index, kind: 'item' as const, name: '$item' }] : []),
    ];
  });
  const cycle = findCycle(steps);
  return cycle ? [...problems, { index: Math.max(0, ids.indexOf(cycle[0] ?? '')), kind: 'cycle', name: cycle.join(' → ') }] : problems;
}

/** A step with an id that no other has. */
export function newStep(steps: readonly JsonObject[]): JsonObject {
  const ids = new Set(steps.map(stepId));
  let n = steps.length + 1;
  while (ids.has(`step_${n}`)) n += 1;
  return { id: `step_${n}`, tool: '' };
}

export function moveStep(steps: readonly JsonObject[], from: number, to: number): JsonObject[] {
  const step = steps[from];
  if (step === undefined || to < 0 || to >= steps.length) return [...steps];
  const rest = steps.filter((_, index) => index !== from);
  return [...rest.slice(0, to), step, ...rest.slice(to)];
}

/** Replaces `$steps.from` in every text of a mapping. */
export function renameIn(value: Json, from: string, to: string): Json {
  if (typeof value === 'string') return value.replaceAll(REFERENCE, (whole, name?: string, path = '') => (name === 'steps' && String(path).split(/[.[\]]+/)[1] === from ? `$steps.${to}${String(path).slice(from.length + 1)}` : whole));
  if (Array.isArray(value)) return value.map((item) => renameIn(item, from, to));
  if (typeof value === 'object' && value !== null) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, renameIn(item, from, to)]));
  return value;
}

/** The steps, where one has another id, and all that refer to it follow. */
export function renameStep(steps: readonly JsonObject[], index: number, to: string): JsonObject[] {
  const from = stepId(steps[index] ?? {});
  return steps.map((step, at) => {
    const followed = from === '' ? step : Object.fromEntries(Object.entries(step).map(([key, value]) => [key, key === 'after' && Array.isArray(value) ? value.map((id) => (id === from ? to : id)) : MAPPINGS.includes(key) ? renameIn(value, from, to) : value]));
    return at === index ? { ...followed, id: to } : followed;
  });
}

/** What one can write in the mapping of a step. */
export function suggestions(steps: readonly JsonObject[], index: number, parameters: readonly string[]): string[] {
  const step = steps[index];
  const others = steps.flatMap((each, at) => (at === index || stepId(each) === '' || waitsFor(each).includes(stepId(step ?? {})) ? [] : [`$steps.${stepId(each)}.value`, `$steps.${stepId(each)}.ok`]));
  return [...parameters.map((name) => `$args.${name}`), ...(step?.['for_each'] === undefined ? [] : ['$item', '$index']), ...others, '$args'];
}

/** A value of a mapping as text in a field, and back: text for arguments of type string, otherwise JSON where it is some. */
export const mappingText = (value: Json | undefined): string => (value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value));

export function mappingValue(entry: string, type: string | undefined): Json | undefined {
  if (entry === '') return undefined;
  if (type === 'string' || entry.startsWith('$')) return entry;
  try {
    return JSON.parse(entry) as Json;
  } catch {
    return entry;
  }
}
