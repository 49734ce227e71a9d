/** How a result is best shown. */
export type ResultKind =
  | { kind: 'none' }
  | { kind: 'text'; text: string }
  | { kind: 'table'; columns: string[]; rows: Record<string, unknown>[] }
  | { kind: 'image'; src: string }
  | { kind: 'json' };

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);
const isScalar = (value: unknown) => typeof value !== 'object' || value === null;
const IMAGE = /^image\/(?:png|jpeg|gif|webp)$/;
const MAX_COLUMNS = 12;
const SAMPLE = 50;

function asImage(value: unknown): string | undefined {
  if (!isObject(value) || value['type'] !== 'image') return undefined;
  const { data, mimeType } = value;
  return typeof data === 'string' && typeof mimeType === 'string' && IMAGE.test(mimeType) && /^[A-Za-z0-9+/=\s]*$/.test(data) ? `data:${mimeType};base64,${data}` : undefined;
}

export function resultKind(value: unknown): ResultKind {
  if (value === undefined || value === null) return { kind: 'none' };
  if (typeof value === 'string') return { kind: 'text', text: value };
  const image = asImage(value);
  if (image) return { kind: 'image', src: image };
  if (isObject(value)) {
    // Content of one text block, as MCP servers return it.
    if (value['type'] === 'text' && typeof value['text'] === 'string') return { kind: 'text', text: value['text'] };
    return { kind: 'json' };
  }
  if (Array.isArray(value) && value.length > 0) {
    if (value.length === 1) {
      const inner = resultKind(value[0]);
      if (inner.kind === 'image' || (inner.kind === 'text' && isObject(value[0]))) return inner;
    }
    const sample = value.slice(0, SAMPLE);
    if (sample.every(isObject)) {
      const columns = [...new Set(sample.flatMap((row) => Object.keys(row as object)))];
      const flat = sample.every((row) => Object.values(row as object).every(isScalar));
      if (flat && columns.length > 0 && columns.length <= MAX_COLUMNS) return { kind: 'table', columns, rows: value as Record<string, unknown>[] };
    }
  }
  return { kind: 'json' };
}
