import { expect, it } from 'vitest';
import { groupLimits, usedShare } from './groups';

const limit = (name: string, used: number | undefined, value = 10) => ({ name, subject: null, value, ...(used === undefined ? {} : { used }) });

it('groups limits by what they apply to, the fullest first', () => {
  const groups = groupLimits([limit('tool.rate_limit', 1), limit('tenant.max_tools', 2), limit('tenant.max_parallel', 9), limit('limits.identical_calls', undefined)]);
  expect(groups.map((group) => [group.scope, ...group.limits.map((item) => item.name)])).toEqual([
    ['server', 'limits.identical_calls'], ['tenant', 'tenant.max_parallel', 'tenant.max_tools'], ['tool', 'tool.rate_limit'],
  ]);
});

it('counts the used share', () => {
  expect(usedShare(limit('a', 5))).toBe(50);
  expect(usedShare(limit('a', 50))).toBe(100);
  expect(usedShare(limit('a', 0, 0))).toBe(100);
  expect(usedShare(limit('a', undefined))).toBe(0);
});
