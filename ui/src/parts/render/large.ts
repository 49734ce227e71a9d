/** The parts of a large result that a render plan refers to by handles: `$result:<call>#/rows`. */
import { useQueries } from '@tanstack/react-query';
import { useMemo } from 'react';
import { resultQuery } from '@/api/rendering';
import type { ReadyPlan } from './plan';

/** The settings of a plan that are handles of this call, with the part that each refers to. */
export function handlesOf(config: Record<string, unknown>, call: string): { key: string; pointer: string }[] {
  const whole = `$result:${call}`;
  return Object.entries(config).flatMap(([key, value]) => {
    if (typeof value !== 'string' || !value.startsWith(whole)) return [];
    const rest = value.slice(whole.length);
    return rest === '' ? [{ key, pointer: '' }] : rest.startsWith('#/') ? [{ key, pointer: rest.slice(1) }] : [];
  });
}

/** The plan with large parts of the result in place of their handles. */
export function useWholePlan(plan: ReadyPlan, call: string) {
  const handles = useMemo(() => handlesOf(plan.config, call), [plan.config, call]);
  return useQueries({
    queries: handles.map(({ pointer }) => resultQuery(call, pointer)),
    combine: (results) => {
      const failed = results.find((result) => result.error);
      const values = results.map((result, index) => [handles[index]?.key ?? '', result.data] as const);
      return {
        plan: handles.length === 0 ? plan : { ...plan, config: { ...plan.config, ...Object.fromEntries(values) } },
        isLoading: results.some((result) => result.isPending),
        error: failed?.error ?? null,
        refetch: () => void failed?.refetch(),
      };
    },
  });
}
