import type { LimitUse } from '@/api/types';

export const LIMIT_SCOPES = ['server', 'tenant', 'tool', 'token'] as const;
export type LimitScope = (typeof LIMIT_SCOPES)[number];

function scopeOf(limit: LimitUse): LimitScope {
  const scope = limit.name.split('.')[0];
  return LIMIT_SCOPES.find((known) => known === scope) ?? 'server';
}

/** How much of a limit is used, in percent. */
export function usedShare(limit: LimitUse): number {
  return limit.used === undefined ? 0 : limit.value === 0 ? 100 : Math.min(100, (limit.used / limit.value) * 100);
}

/** By what they apply to; within a group, the fullest first. */
export function groupLimits(limits: LimitUse[]): { scope: LimitScope; limits: LimitUse[] }[] {
  return LIMIT_SCOPES.map((scope) => ({ scope, limits: limits.filter((limit) => scopeOf(limit) === scope).toSorted((a, b) => usedShare(b) - usedShare(a)) }))
    .filter((group) => group.limits.length > 0);
}
