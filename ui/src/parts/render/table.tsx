/** Rows with sorting, a filter and an export; as many rows as there are, since only the visible ones are drawn. */
import { Button, Group, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconArrowDown, IconArrowUp, IconDownload, IconSearch } from '@tabler/icons-react';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useMemo, useRef, useState } from 'react';
import { useT } from '@/i18n';
import { saveFile } from '../download';
import { visibleText } from '../format';
import classes from '../parts.module.css';
import { cellText, filterRows, isNumeric, sortRows, toCsv, type Sorting, type TableColumn, type TableData } from './table-data';

const ROW = 30;
const MAX_CELL = 300;
const SAMPLE = 100;
const FEW_ROWS = 8;

/** A width in characters that fits most cells of a column. */
export function columnWidth(column: TableColumn, rows: TableData['rows']): number {
  const longest = Math.max(column.label.length + 3, ...rows.slice(0, SAMPLE).map((row) => cellText(row[column.key]).length));
  return Math.max(6, Math.min(longest + 3, 48));
}

/** The first click sorts upwards, the second downwards, the third not at all. */
export function nextSorting(current: Sorting | undefined, key: string): Sorting | undefined {
  if (current?.key !== key) return { key, descending: false };
  return current.descending ? undefined : { key, descending: true };
}

export function TableView({ data, name, maxHeight = 420 }: { data: TableData; name: string; maxHeight?: number }) {
  const t = useT();
  const { columns } = data;
  const [text, setText] = useState('');
  const [query] = useDebouncedValue(text, 150);
  const [sorting, setSorting] = useState<Sorting>();
  const rows = useMemo(() => sortRows(filterRows(data.rows, query), sorting), [data.rows, query, sorting]);
  const numeric = useMemo(() => new Set(columns.filter((column) => isNumeric(data.rows, column.key)).map((column) => column.key)), [columns, data.rows]);
  // Columns share the place that is left by their width; where there is too little, the table scrolls.
  const layout = useMemo(() => {
    const widths = columns.map((column) => columnWidth(column, data.rows));
    return { gridTemplateColumns: widths.map((width) => `minmax(${width}ch, ${width}fr)`).join(' '), minWidth: `${widths.reduce((sum, width) => sum + width, 0)}ch`, height: ROW };
  }, [columns, data.rows]);
  const scroll = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroll.current, estimateSize: () => ROW, overscan: 12, scrollPaddingStart: ROW });
  const align = (key: string) => (numeric.has(key) ? 'end' : undefined);
  return (
    <div>
      <Group gap="sm" mb="sm">
        {data.rows.length > FEW_ROWS && <TextInput value={text} onChange={(event) => setText(event.currentTarget.value)} placeholder={t('render.filterRows')} aria-label={t('render.filterRows')} leftSection={<IconSearch size={13} />} w={{ base: '100%', sm: 240 }} />}
        <Text size="xs" c="dimmed">{rows.length === data.rows.length ? t('render.rows', { n: rows.length }) : t('render.rowsOf', { n: rows.length, total: data.rows.length })}</Text>
        <span className={classes.spacer} />
        <Button variant="default" size="compact-xs" leftSection={<IconDownload size={13} />} onClick={() => saveFile(`${name}.csv`, 'text/csv', toCsv({ columns, rows }))}>CSV</Button>
      </Group>
      <div ref={scroll} className={classes.grid} style={{ maxHeight }} role="table" aria-label={name} aria-rowcount={rows.length + 1} aria-colcount={columns.length}
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the box scrolls
        tabIndex={0}>
        <div role="rowgroup" className={classes.gridHead}>
          <div role="row" className={classes.gridRow} style={layout}>
            {columns.map((column) => {
              const isSorted = sorting?.key === column.key;
              return (
                <div key={column.key} role="columnheader" data-align={align(column.key)} aria-sort={isSorted ? (sorting.descending ? 'descending' : 'ascending') : 'none'}>
                  <button type="button" className={classes.gridSort} onClick={() => setSorting((current) => nextSorting(current, column.key))}>
                    <span className={classes.cell}>{visibleText(column.label)}</span>{isSorted && (sorting.descending ? <IconArrowDown size={12} aria-hidden /> : <IconArrowUp size={12} aria-hidden />)}
                  </button>
                </div>
              );
            })}
          </div>
        </div>
        <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index];
            return row && (
              <div key={item.index} role="row" aria-rowindex={item.index + 2} className={classes.gridRow} style={{ ...layout, position: 'absolute', left: 0, transform: `translateY(${item.start}px)` }}>
                {columns.map((column) => <div key={column.key} role="cell" className={classes.cell} data-align={align(column.key)} title={cellText(row[column.key]).length > 30 ? visibleText(cellText(row[column.key]).slice(0, 1000)) : undefined}>{visibleText(cellText(row[column.key]).slice(0, MAX_CELL))}</div>)}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
