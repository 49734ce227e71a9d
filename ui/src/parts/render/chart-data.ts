/** What a chart shows: categories and series from rows, round steps of the axis, and the shapes of a pie. */
import { cellText, toTable } from './table-data';

export type ChartKind = 'bar' | 'line' | 'pie';

export interface Series {
  name: string;
  values: (number | null)[];
}

export interface ChartData {
  kind: ChartKind;
  labels: string[];
  series: Series[];
  /** Rows that are not drawn. */
  left: number;
}

const MAX_POINTS: Record<ChartKind, number> = { bar: 100, line: 2000, pie: 12 };
const MAX_SERIES = 8;

const toNumber = (value: unknown): number | null => {
  const number = typeof value === 'number' ? value : typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN;
  return Number.isFinite(number) ? number : null;
};

const kindOf = (value: unknown): ChartKind => (value === 'line' || value === 'pie' ? value : 'bar');
const names = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : typeof value === 'string' && value !== '' ? [value] : []);

/** A chart from `{type, rows, x, y}`; without `x` and `y`, the first text and all numbers. */
export function toChart(config: Record<string, unknown>): ChartData | undefined {
  const kind = kindOf(config['type'] ?? config['kind']);
  const table = toTable(config['rows'] ?? config['data'] ?? config['content']);
  if (!table || table.rows.length === 0) return undefined;
  const keys = table.columns.map((column) => column.key);
  const labelOf = (key: string) => table.columns.find((column) => column.key === key)?.label ?? key;
  const byName = (name: string) => table.columns.find((column) => column.key === name || column.label === name)?.key;
  const isNumber = (key: string) => table.rows.every((row) => cellText(row[key]) === '' || toNumber(row[key]) !== null) && table.rows.some((row) => toNumber(row[key]) !== null);
  const wanted = names(config['y'] ?? config['values']).flatMap((name) => byName(name) ?? []);
  const x = names(config['x'] ?? config['labels']).flatMap((name) => byName(name) ?? [])[0] ?? keys.find((key) => !wanted.includes(key) && !isNumber(key)) ?? (wanted.length > 0 ? keys.find((key) => !wanted.includes(key)) : undefined);
  const y = (wanted.length > 0 ? wanted : keys.filter((key) => key !== x && isNumber(key))).slice(0, kind === 'pie' ? 1 : MAX_SERIES);
  if (y.length === 0) return undefined;
  const shown = table.rows.slice(0, MAX_POINTS[kind]);
  return {
    kind, left: table.rows.length - shown.length,
    labels: shown.map((row, index) => (x === undefined ? String(index + 1) : cellText(row[x]))),
    series: y.map((key) => ({ name: labelOf(key), values: shown.map((row) => toNumber(row[key])) })),
  };
}

/** Round values from below the smallest to above the largest one; zero is among them unless a line is far away from it. */
export function axisTicks(values: readonly (number | null)[], kind: ChartKind, count = 5): number[] {
  const numbers = values.filter((value): value is number => value !== null);
  if (numbers.length === 0) return [0, 1];
  let low = Math.min(...numbers);
  let high = Math.max(...numbers);
  const isFar = kind === 'line' && (low > 0 ? low > (high - low) * 2 : high < 0 && -high > (high - low) * 2);
  if (!isFar) {
    low = Math.min(0, low);
    high = Math.max(0, high);
  }
  if (low === high) high = low + 1;
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? rough;
  const from = Math.floor(low / step + 1e-9);
  const to = Math.ceil(high / step - 1e-9);
  return Array.from({ length: to - from + 1 }, (_, index) => Number(((from + index) * step).toPrecision(12)));
}

export interface Slice {
  label: string;
  value: number;
  share: number;
  path: string;
}

const point = (share: number) => `${Math.sin(share * 2 * Math.PI).toFixed(5)} ${(-Math.cos(share * 2 * Math.PI)).toFixed(5)}`;

/** The slices of a pie with radius 1 around the origin, from the top clockwise. Values below zero have no slice. */
export function pieSlices({ labels, series }: ChartData): Slice[] {
  const values = (series[0]?.values ?? []).map((value) => Math.max(0, value ?? 0));
  const total = values.reduce((sum, value) => sum + value, 0);
  if (total === 0) return [];
  let start = 0;
  return values.map((value, index) => {
    const share = value / total;
    const end = start + share;
    // An arc from a point to itself is nothing, so a whole circle is made of two.
    const path = share > 0.9999 ? 'M 0 -1 A 1 1 0 1 1 0 1 A 1 1 0 1 1 0 -1 Z' : `M 0 0 L ${point(start)} A 1 1 0 ${share > 0.5 ? 1 : 0} 1 ${point(end)} Z`;
    start = end;
    return { label: labels[index] ?? '', value, share, path };
  });
}
