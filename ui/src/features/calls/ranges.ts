/** The time range of the calls page: a period before now, or two times. */
const PERIODS: Record<string, number> = { '15m': 900_000, '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000, '30d': 2_592_000_000 };
export const PERIOD_NAMES = Object.keys(PERIODS);
export const DEFAULT_PERIOD = '24h';

export interface Range {
  from: number;
  to: number;
  period: string | undefined;
}

export function readRange(since: string | undefined, until: string | undefined, now: number): Range {
  if (since !== undefined && until !== undefined) {
    const [from, to] = [Date.parse(since), Date.parse(until)];
    if (!Number.isNaN(from) && !Number.isNaN(to) && from < to) return { from, to, period: undefined };
  }
  const period = since !== undefined && Object.hasOwn(PERIODS, since) ? since : DEFAULT_PERIOD;
  return { from: now - (PERIODS[period] ?? 0), to: now, period };
}
