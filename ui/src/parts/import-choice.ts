import type { ImportItem } from '@/api/types';

export const importable = (item: ImportItem): boolean => item.action === 'create' || item.action === 'replace';

/** The names to import: those that can be, without those that were switched off; each name once. */
export function chosenItems(items: readonly ImportItem[], off: ReadonlySet<string>): string[] {
  return [...new Set(items.filter((item) => importable(item) && !off.has(item.name)).map((item) => item.name))];
}
