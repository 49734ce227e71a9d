/** The definition of an agent: what of the stored agent belongs to it, and what one reads from it. */
import { ApiError } from '@/api/error';
import type { Agent, AgentDefinition } from '@/api/agent-types';
import type { Json, JsonObject } from '@/api/types';

/** What the server adds to a definition. */
const ADDED = new Set(['id', 'revision', 'published_revision', 'status', 'enabled', 'ready', 'error', 'path', 'created_by', 'modified_by', 'created_at', 'modified_at', 'published_at', 'published_by', 'warnings', 'tool_count']);
/** What a definition without these means anyway. */
const DEFAULTS: JsonObject = { description: '', instructions: '', tools: [], exclude_tools: [], variables: {}, tool_execution: 'sequential', max_iterations: 25, max_parallel_tools: 4, require_published: false, budget: {} };

/** The definition as one would write it: without what the server adds, and without defaults. */
export function definitionOf(agent: Agent | AgentDefinition | JsonObject): JsonObject {
  const entries = Object.entries(agent as unknown as JsonObject).filter(([key, value]) =>
    !ADDED.has(key) && value !== null && value !== undefined && JSON.stringify(value) !== JSON.stringify(DEFAULTS[key]));
  return Object.fromEntries(entries);
}

export const NEW_AGENT: JsonObject = {
  slug: 'assistant', name: 'Assistant', description: 'What it is for', model: { name: 'scripted' },
  instructions: 'You are a helpful assistant. Answer briefly.\n', tools: ['datetime_utils'],
};

/** Words of the template language. */
const CONTROL = /^(if|else|end|each|unless)\b/;

/** The variables that instructions refer to, in order. */
export function variableNames(instructions: string): string[] {
  const names = [...instructions.matchAll(/\{\{\s*([^{}]+?)\s*\}\}/g)].flatMap(([, inner = '']) => {
    const expression = inner.replace(/^if\s+/, '');
    if (inner === expression && CONTROL.test(expression)) return [];
    return /^[A-Za-z_][\w-]*/.exec(expression)?.[0] ?? [];
  });
  return [...new Set(names)];
}

/** A model may be written as its name alone. */
export function readModel(value: unknown): JsonObject {
  if (typeof value === 'string') return { name: value };
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

export function isScripted(model: JsonObject): boolean {
  const name = String(model['name'] ?? '');
  return model['provider'] === 'scripted' || name === 'scripted' || name.startsWith('scripted/');
}

/** A value of a variable as text in a field, and back: `5` and `true` stay what they are. */
export const variableText = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value));
export function variableValue(text: string, before: Json | undefined): Json {
  if (typeof before !== 'string' && before !== undefined) {
    try {
      return JSON.parse(text) as Json;
    } catch {
      return text;
    }
  }
  return text;
}

export interface Blocker {
  /** A tool that has a page, or the rule that finds none. */
  tool: string;
  message: string;
}

const text = (value: unknown) => (typeof value === 'string' ? value : '');

/** The tools that keep an agent from being published, from the details of the error. */
export function readBlockers(error: unknown): Blocker[] {
  if (!(error instanceof ApiError)) return [];
  const lists = [error.details['tools'], error.details['problems'], error.details['missing']];
  const found = lists.flatMap((list): Blocker[] => (Array.isArray(list) ? list.map((item: unknown): Blocker => {
    if (typeof item === 'string') return { tool: item, message: '' };
    const entry = (item ?? {}) as Record<string, unknown>;
    const message = text(entry['message']) || text(entry['reason']);
    return { tool: text(entry['tool']) || text(entry['qualified']) || text(entry['rule']) || (/`([^`]+)`/.exec(message)?.[1] ?? ''), message };
  }) : []));
  return found.filter((blocker) => blocker.tool !== '' || blocker.message !== '');
}

/** Whether somebody stored another revision meanwhile. */
export const isConflict = (error: unknown): boolean => error instanceof ApiError && (error.status === 409 || error.status === 412) && error.code !== 'read_only';
