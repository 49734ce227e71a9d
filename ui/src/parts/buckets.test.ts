import { expect, it } from 'vitest';
import { percentile, placeBuckets } from './buckets';

const bucket = (at: string) => ({ at, success: 1, error: 0, other: 0 });

it('places buckets by their time; the last one is shorter', () => {
  const from = Date.parse('2026-01-01T00:00:00Z');
  const places = placeBuckets([bucket('2026-01-01T00:00:00Z'), bucket('2026-01-01T00:40:00Z'), bucket('2026-01-01T01:20:00Z')], from, from + 100 * 60_000);
  expect(places.map(({ x, width }) => [Math.round(x), Math.round(width)])).toEqual([[0, 40], [40, 40], [80, 20]]);
});

it('keeps buckets inside of the range', () => {
  const from = Date.parse('2026-01-01T00:30:00Z');
  expect(placeBuckets([bucket('2026-01-01T00:00:00Z')], from, from + 60_000)).toEqual([{ x: 0, width: 100 }]);
});

it('finds percentiles', () => {
  expect(percentile([], 0.5)).toBeUndefined();
  expect(percentile([30, 10, 20], 0.5)).toBe(20);
  expect(percentile(Array.from({ length: 100 }, (_, index) => index + 1), 0.95)).toBe(95);
});
