/** The one table: virtual rows of a fixed height, keyboard, selection. */
import { Checkbox } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { useVirtualizer } from '@tanstack/react-virtual';
import { memo, useCallback, useEffect, useId, useMemo, useRef, useState, type ReactNode } from 'react';
import { useT } from '@/i18n';
import classes from './parts.module.css';

export interface Column<T> {
  key: string;
  header: string;
  /** A grid track: `8rem`, `minmax(10rem, 1fr)`. */
  width: string;
  render: (row: T) => ReactNode;
  align?: 'end';
  /** Left out when a drawer is open or the window is narrow. */
  secondary?: boolean;
}

interface TableProps<T> {
  label: string;
  rows: T[];
  columns: Column<T>[];
  rowKey: (row: T) => string;
  rowName: (row: T) => string;
  onOpen?: (row: T) => void;
  openKey?: string | undefined;
  /** How a row looks on a phone, in one cell of two lines. */
  phone?: (row: T) => ReactNode;
  selection?: { selected: Set<string>; onChange: (selected: Set<string>) => void };
  onEnd?: () => void;
  footer?: ReactNode;
  empty?: ReactNode;
}

const ROW = 36;
const PHONE_ROW = 60;

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

interface RowProps<T> {
  id: string;
  row: T;
  rowId: string;
  index: number;
  start: number;
  height: number;
  template: string;
  columns: Column<T>[];
  phone: ((row: T) => ReactNode) | undefined;
  rowName: (row: T) => string;
  /** Undefined where rows cannot be selected. */
  isSelected: boolean | undefined;
  isOpen: boolean;
  isActive: boolean;
  onOpen: (row: T, index: number) => void;
  onToggle: (key: string) => void;
}

function PlainRow<T>({ id, row, rowId, index, start, height, template, columns, phone, rowName, isSelected, isOpen, isActive, onOpen, onToggle }: RowProps<T>) {
  const t = useT();
  return (
    // The table handles the keys of its rows.
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
    <div id={id} role="row" tabIndex={-1} aria-rowindex={index + 2} className={classes.row}
      aria-selected={isSelected ?? isOpen} data-open={isOpen} data-active={isActive}
      style={{ height, transform: `translateY(${start}px)`, gridTemplateColumns: phone ? '1fr' : template }}
      onClick={(event) => {
        if ((event.target as HTMLElement).closest('a, button, input, label') === null) onOpen(row, index);
      }}>
      {phone ? <div role="gridcell" className={classes.cell}>{phone(row)}</div> : (
        <>
          {isSelected !== undefined && (
            <span role="gridcell">
              <input type="checkbox" className={classes.check} aria-label={t('common.selectRow', { name: rowName(row) })} checked={isSelected} onChange={() => onToggle(rowId)} />
            </span>
          )}
          {columns.map((column) => (
            <div key={column.key} role="gridcell" className={classes.cell} data-align={column.align}>{column.render(row)}</div>
          ))}
        </>
      )}
    </div>
  );
}

/** Scrolling renders the rows that come into view, and no others. */
const BodyRow = memo(PlainRow) as typeof PlainRow;

export function DataTable<T>(props: TableProps<T>) {
  const { label, rows, rowKey, rowName, onOpen, openKey, phone, selection, onEnd, footer, empty } = props;
  const t = useT();
  const id = useId();
  const isPhone = useMediaQuery('(max-width: 48em)') && phone !== undefined;
  const isNarrow = useMediaQuery('(max-width: 62em)') === true || openKey !== undefined;
  const scroll = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(-1);
  const columns = useMemo(() => props.columns.filter((column) => !(isNarrow && column.secondary === true)), [props.columns, isNarrow]);
  const template = [selection ? '18px' : '', ...columns.map((column) => column.width)].join(' ');
  const height = isPhone ? PHONE_ROW : ROW;

  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroll.current, estimateSize: () => height, overscan: 8 });
  useEffect(() => virtual.measure(), [height, virtual]);
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - 10) onEnd?.();
  }, [last, rows.length, onEnd]);

  const toggle = useCallback((key: string) => {
    if (!selection) return;
    const next = new Set(selection.selected);
    if (!next.delete(key)) next.add(key);
    selection.onChange(next);
  }, [selection]);
  const open = useCallback((row: T, index: number) => {
    setActive(index);
    onOpen?.(row);
  }, [onOpen]);
  const move = useCallback(
    (step: number) => {
      setActive((current) => {
        const next = Math.max(0, Math.min(rows.length - 1, current + step));
        virtual.scrollToIndex(next, { align: 'auto' });
        return next;
      });
    },
    [rows.length, virtual],
  );
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector('[role="dialog"]') !== null) return;
      const inside = scroll.current?.parentElement?.contains(document.activeElement) === true || document.activeElement === document.body;
      if (event.key === 'j' || (event.key === 'ArrowDown' && inside)) move(1);
      else if (event.key === 'k' || (event.key === 'ArrowUp' && inside)) move(-1);
      else if (event.key === 'Enter' && inside && rows[active] !== undefined) onOpen?.(rows[active]);
      else if (event.key === 'x' && selection && rows[active] !== undefined) toggle(rowKey(rows[active]));
      else return;
      event.preventDefault();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  });

  const allSelected = selection !== undefined && rows.length > 0 && rows.every((row) => selection.selected.has(rowKey(row)));

  if (rows.length === 0 && empty) return <>{empty}</>;
  return (
    <div className={classes.table} role="grid" tabIndex={0} aria-label={label} aria-rowcount={rows.length + 1}
      aria-activedescendant={active >= 0 ? `${id}-${active}` : undefined}>
      {!isPhone && (
        <div role="rowgroup">
          <div className={classes.head} role="row" style={{ gridTemplateColumns: template }}>
            {selection && (
              <span role="columnheader">
                <Checkbox aria-label={t('common.selectAll')} checked={allSelected} indeterminate={!allSelected && selection.selected.size > 0}
                  onChange={() => selection.onChange(allSelected ? new Set() : new Set(rows.map(rowKey)))} />
              </span>
            )}
            {columns.map((column) => (
              <span key={column.key} role="columnheader" className={classes.cell} data-align={column.align}>{column.header}</span>
            ))}
          </div>
        </div>
      )}
      <div ref={scroll} className={classes.rows} role="rowgroup">
        <div role="presentation" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
          {items.map((item) => {
            const row = rows[item.index];
            if (row === undefined) return null;
            const key = rowKey(row);
            return (
              <BodyRow key={key} id={`${id}-${item.index}`} row={row} rowId={key} index={item.index} start={item.start} height={height} template={template} columns={columns} phone={isPhone ? phone : undefined} rowName={rowName}
                isSelected={selection?.selected.has(key)} isOpen={key === openKey} isActive={item.index === active} onOpen={open} onToggle={toggle} />
            );
          })}
        </div>
        {footer}
      </div>
    </div>
  );
}
