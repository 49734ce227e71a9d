/** Rows for a table: from what a plan gives, sorted, filtered, and as CSV. */

export interface TableColumn {
  key: string;
  label: string;
}

export interface TableData {
  columns: TableColumn[];
  rows: Record<string, unknown>[];
}

export interface Sorting {
  key: string;
  descending: boolean;
}

const SAMPLE = 200;
const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

function readColumns(value: unknown): TableColumn[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  return value.map((column: unknown, index) => {
    if (isObject(column)) {
      const key = String(column['key'] ?? column['name'] ?? index);
      return { key, label: String(column['label'] ?? column['title'] ?? key) };
    }
    return { key: String(column), label: String(column) };
  });
}

/** `rows` of objects, of lists (with `columns`, or numbered), or of single values; CSV as text. */
export function toTable(rows: unknown, columns?: unknown): TableData | undefined {
  const named = readColumns(columns);
  if (typeof rows === 'string') return fromCsv(rows, named);
  if (isObject(rows) && Array.isArray(rows['rows'])) return toTable(rows['rows'], columns ?? rows['columns']);
  if (!Array.isArray(rows)) return undefined;
  const list = rows as unknown[];
  if (list.length > 0 && list.slice(0, SAMPLE).every(Array.isArray)) {
    const width = Math.max(...list.slice(0, SAMPLE).map((row) => (row as unknown[]).length));
    const shown = named ?? Array.from({ length: width }, (_, index) => ({ key: String(index), label: String(index + 1) }));
    return { columns: shown, rows: list.map((row) => Object.fromEntries(shown.map((column, index) => [column.key, (row as unknown[])[index]]))) };
  }
  if (list.every((row) => !isObject(row))) {
    const column = named?.[0] ?? { key: 'value', label: 'value' };
    return { columns: [column], rows: list.map((value) => ({ [column.key]: value })) };
  }
  const keys = [...new Set(list.slice(0, SAMPLE).flatMap((row) => (isObject(row) ? Object.keys(row) : [])))];
  return { columns: named ?? keys.map((key) => ({ key, label: key })), rows: list.map((row) => (isObject(row) ? row : { [keys[0] ?? 'value']: row })) };
}

/** Cells of a CSV text, with quotes, and with `;` or a tab where the first line has more of them. */
export function parseCsv(text: string): string[][] {
  const first = text.slice(0, text.search(/\n|$/));
  const count = (separator: string) => first.split(separator).length;
  const separator = [',', ';', '\t'].toSorted((a, b) => count(b) - count(a))[0] ?? ',';
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = '';
  let isQuoted = false;
  const endRow = () => {
    row.push(cell);
    if (row.length > 1 || cell !== '') rows.push(row);
    row = [];
    cell = '';
  };
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] ?? '';
    if (isQuoted) {
      if (character !== '"') cell += character;
      else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else isQuoted = false;
    } else if (character === '"' && cell === '') isQuoted = true;
    else if (character === separator) {
      row.push(cell);
      cell = '';
    } else if (character === '\n') endRow();
    else if (character !== '\r') cell += character;
  }
  endRow();
  return rows;
}

function fromCsv(text: string, named: TableColumn[] | undefined): TableData | undefined {
  const [head, ...rest] = parseCsv(text);
  if (!head) return undefined;
  const columns = head.map((label, index) => ({ key: String(index), label: named?.find((column) => column.key === label)?.label ?? label }));
  return { columns, rows: rest.map((row) => Object.fromEntries(row.map((cell, index) => [String(index), cell]))) };
}

export function cellText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const NUMBER = /^\s*[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?\s*$/i;
const asNumber = (value: unknown) => (typeof value === 'number' ? value : typeof value === 'string' && NUMBER.test(value) ? Number(value) : undefined);

/** Numbers by value and before texts; texts by the rules of the language; empty cells last. */
function compare(a: unknown, b: unknown): number {
  const [left, right] = [asNumber(a), asNumber(b)];
  if (left !== undefined && right !== undefined) return left - right;
  if (left !== undefined) return -1;
  if (right !== undefined) return 1;
  return cellText(a).localeCompare(cellText(b), undefined, { numeric: true });
}

export function sortRows<T extends Record<string, unknown>>(rows: readonly T[], sorting: Sorting | undefined): readonly T[] {
  if (!sorting) return rows;
  const { key, descending } = sorting;
  return rows.toSorted((a, b) => {
    const [emptyA, emptyB] = [cellText(a[key]) === '', cellText(b[key]) === ''];
    if (emptyA || emptyB) return Number(emptyA) - Number(emptyB);
    return compare(a[key], b[key]) * (descending ? -1 : 1);
  });
}

/** Rows in which every word occurs, in any cell. */
export function filterRows<T extends Record<string, unknown>>(rows: readonly T[], text: string): readonly T[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter((row) => {
    const line = Object.values(row).map(cellText).join('\n').toLowerCase();
    return words.every((word) => line.includes(word));
  });
}

/** Whether every filled cell of a column is a number: such columns are set flush right. */
export function isNumeric(rows: readonly Record<string, unknown>[], key: string): boolean {
  const filled = rows.slice(0, SAMPLE).map((row) => row[key]).filter((value) => cellText(value) !== '');
  return filled.length > 0 && filled.every((value) => asNumber(value) !== undefined);
}

/** A text that starts like a formula would run in a spreadsheet; a number stays a number. */
function csvCell(value: unknown): string {
  const plain = cellText(value);
  const text = typeof value === 'number' || NUMBER.test(plain) ? plain : plain.replace(/^([=+\-@\t\r])/, "'$1");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCsv({ columns, rows }: { columns: readonly TableColumn[]; rows: readonly Record<string, unknown>[] }): string {
  return [columns.map((column) => csvCell(column.label)), ...rows.map((row) => columns.map((column) => csvCell(row[column.key])))].map((row) => row.join(',')).join('\r\n');
}
