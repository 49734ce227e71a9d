/** The tree of files: folders open and close, arrow keys move, the mark shows what the last call changed. */
import { Text } from '@mantine/core';
import { IconChevronDown, IconChevronRight, IconFile, IconFolder, IconFolderOpen, IconLink } from '@tabler/icons-react';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import type { FileChange, FileEntry } from '@/api/types';
import { useT } from '@/i18n';
import { ChangeMark } from '@/parts/change-mark';
import { bytes, visibleText } from '@/parts/format';
import { initiallyOpen, moveInTree, parents, treeRows, type TreeRow } from './tree';
import classes from './workspace.module.css';

const ROW = 28;

function RowIcon({ row }: { row: TreeRow }) {
  if (row.isFolder) return row.isOpen ? <IconFolderOpen size={15} aria-hidden /> : <IconFolder size={15} aria-hidden />;
  return row.file?.kind === 'link' ? <IconLink size={15} aria-hidden /> : <IconFile size={15} aria-hidden />;
}

interface TreeProps {
  files: FileEntry[];
  changes: FileChange[];
  filter: string;
  selected: string | undefined;
  onSelect: (path: string) => void;
}

export function FileTree({ files, changes, filter, selected, onSelect }: TreeProps) {
  const t = useT();
  const [open, setOpen] = useState(() => initiallyOpen(files, selected));
  const [active, setActive] = useState(selected);
  const [seen, setSeen] = useState(selected);
  if (seen !== selected) {
    // An address that leads to a file opens its folders.
    setSeen(selected);
    setActive(selected);
    if (selected) setOpen(new Set([...open, ...parents(selected)]));
  }
  const rows = useMemo(() => treeRows(files, open, changes, filter), [files, open, changes, filter]);
  const scroll = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroll.current, estimateSize: () => ROW, overscan: 15 });
  const at = rows.findIndex((row) => row.path === active);
  useEffect(() => { if (at >= 0) virtual.scrollToIndex(at, { align: 'auto' }); }, [at, virtual]);
  const toggle = (path: string) => setOpen((current) => {
    const next = new Set(current);
    if (!next.delete(path)) next.add(path);
    return next;
  });
  const choose = (row: TreeRow) => {
    setActive(row.path);
    if (row.isFolder) toggle(row.path);
    else onSelect(row.path);
  };
  return (
    <div ref={scroll} className={classes.tree} role="tree" aria-label={t('workspaces.files')} tabIndex={0} aria-activedescendant={at >= 0 ? `tree-${at}` : undefined}
      onKeyDown={(event) => {
        const row = rows[at];
        if ((event.key === 'Enter' || event.key === ' ') && row) choose(row);
        else {
          const move = moveInTree(rows, active, event.key);
          if (move.path === undefined && move.toggle === undefined) return;
          if (move.path !== undefined) setActive(move.path);
          if (move.toggle !== undefined) toggle(move.toggle);
        }
        event.preventDefault();
        event.stopPropagation();
      }}>
      <div role="presentation" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index];
          return row && (
            // The tree handles the keys of its rows.
            // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
            <div key={row.path} id={`tree-${item.index}`} role="treeitem" tabIndex={-1} aria-level={row.depth + 1} aria-selected={row.path === selected} {...(row.isFolder ? { 'aria-expanded': row.isOpen } : {})} className={classes.treeRow} data-active={row.path === active}
              style={{ height: ROW, transform: `translateY(${item.start}px)`, paddingLeft: 8 + row.depth * 16 }} onClick={() => choose(row)} title={visibleText(row.path)}>
              <span className={classes.chevron}>{row.isFolder && (row.isOpen ? <IconChevronDown size={13} aria-hidden /> : <IconChevronRight size={13} aria-hidden />)}</span>
              <RowIcon row={row} />
              <span className={classes.treeName}>{visibleText(row.name)}</span>
              {row.change && !row.isFolder && <ChangeMark change={row.change} />}
              {row.change && row.isFolder && !row.isOpen && <span className={classes.dot} role="img" aria-label={t('workspaces.changedInside')} title={t('workspaces.changedInside')} />}
              <Text size="xs" c="dimmed" className={classes.treeSize}>{row.isFolder ? row.count.toLocaleString() : row.file?.kind === 'link' ? '' : bytes(row.file?.size ?? 0)}</Text>
            </div>
          );
        })}
      </div>
    </div>
  );
}
