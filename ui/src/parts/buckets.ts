/** Counts of calls over time, and where they are drawn. */
export interface Bucket {
  at: string;
  success: number;
  error: number;
  other: number;
}

/** The place of each bucket in percent of the range; the last one ends where the range does. */
export function placeBuckets(buckets: readonly Bucket[], from: number, to: number): { x: number; width: number }[] {
  const percent = (time: number) => Math.max(0, Math.min(100, ((time - from) / Math.max(1, to - from)) * 100));
  return buckets.map((bucket, index) => {
    const next = buckets[index + 1];
    const x = percent(Date.parse(bucket.at));
    return { x, width: (next ? percent(Date.parse(next.at)) : 100) - x };
  });
}

/** The value below which this share of the values lies. */
export function percentile(values: readonly number[], share: number): number | undefined {
  const sorted = [...values].toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1))];
}
