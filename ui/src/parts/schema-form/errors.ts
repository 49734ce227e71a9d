/** Violations of the server as errors at the fields of a form. */
import type { ErrorSchema } from '@rjsf/utils';

export interface Violation {
  /** A JSON pointer; empty for the arguments as a whole. */
  path: string;
  message: string;
}

export function toErrorSchema(violations: Violation[]): ErrorSchema {
  const root: Record<string, unknown> = {};
  for (const { path, message } of violations) {
    let node = root;
    for (const part of path.split('/').filter(Boolean)) {
      const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
      if (!Object.hasOwn(node, key)) Object.defineProperty(node, key, { value: {}, enumerable: true });
      node = node[key] as Record<string, unknown>;
    }
    node['__errors'] = [...((node['__errors'] as string[] | undefined) ?? []), message];
  }
  return root as ErrorSchema;
}

export function readViolations(details: Record<string, unknown>): Violation[] {
  const list = details['violations'];
  if (!Array.isArray(list)) return [];
  return list.flatMap((item: unknown) => {
    if (typeof item !== 'object' || item === null || !('message' in item)) return [];
    return [{ path: 'path' in item && typeof item.path === 'string' ? item.path : '', message: String(item.message) }];
  });
}
