/** Lays out the steps of a call one after the other. */
import type { StepTimes } from '@/api/types';

export interface WaterfallRow {
  name: string;
  label: string;
  hint: string;
  ms: number;
  /** Fractions of the whole. */
  start: number;
  width: number;
}

export const STEPS = ['check', 'reserve', 'wait', 'admit', 'prepare', 'execute'] as const;
export type StepName = (typeof STEPS)[number];

export function layoutSteps(steps: StepTimes, total: number, words: (name: StepName | 'rest') => { label: string; hint: string }): WaterfallRow[] {
  const rows: WaterfallRow[] = [];
  let at = 0;
  const times = STEPS.map((name) => [name, steps[`${name}_ms`] ?? 0] as const).filter(([, ms]) => ms > 0);
  const sum = times.reduce((all, [, ms]) => all + ms, 0);
  const whole = Math.max(total, sum, 0.001);
  for (const [name, ms] of times) {
    rows.push({ name, ...words(name), ms, start: at / whole, width: ms / whole });
    at += ms;
  }
  const rest = whole - sum;
  if (rows.length > 0 && rest > whole * 0.02) rows.push({ name: 'rest', ...words('rest'), ms: rest, start: at / whole, width: rest / whole });
  return rows;
}
