/** A JSON value as a tree: folds, search, copy of path and value. Stays quick with 10 MB. */
import { ActionIcon, Group, Text, TextInput, Tooltip } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconBraces, IconChevronDown, IconChevronRight, IconFold, IconSearch } from '@tabler/icons-react';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useMemo, useRef, useState } from 'react';
import { useT } from '@/i18n';
import { CopyButton } from './basics';
import { visibleText } from './format';
import { CHILD_LIMIT, initialExpansion, jsonRows, searchJson, type JsonRow } from './json-rows';
import classes from './parts.module.css';

const ROW = 22;
const MAX_STRING = 400;

function Scalar({ value }: { value: unknown }) {
  if (typeof value === 'string') {
    const text = value.length > MAX_STRING ? `${value.slice(0, MAX_STRING)}… (${value.length.toLocaleString()})` : value;
    return <span className={classes.jsonString}>{visibleText(JSON.stringify(text))}</span>;
  }
  return <span className={typeof value === 'number' ? classes.jsonNumber : classes.jsonKey}>{String(value)}</span>;
}

interface RowProps {
  row: JsonRow;
  isMatch: boolean;
  onToggle: () => void;
  onMore: () => void;
}

const SMALL = 12;

function Row({ row, isMatch, onToggle, onMore }: RowProps) {
  const t = useT();
  const [open, close] = row.isArray ? ['[', ']'] : ['{', '}'];
  const isContainer = row.kind === 'open' || row.kind === 'closed';
  return (
    <div className={classes.jsonRow} data-match={isMatch} style={{ paddingLeft: 6 + row.depth * 14 }}>
      {isContainer && row.size > 0 ? (
        <button type="button" className={classes.jsonToggle} onClick={onToggle} aria-expanded={row.kind === 'open'} aria-label={row.path}>
          {row.kind === 'open' ? <IconChevronDown size={12} /> : <IconChevronRight size={12} />}
        </button>
      ) : <span style={{ width: 16, flex: 'none' }} />}
      {row.kind === 'more' ? (
        <button type="button" className={classes.jsonToggle} style={{ width: 'auto' }} onClick={onMore}>{t('json.moreItems', { n: row.size })}</button>
      ) : row.kind === 'end' ? <span className={classes.jsonPunct}>{close}</span> : (
        <>
          {row.key !== null && <><span className={classes.jsonKey}>{visibleText(row.key.slice(0, MAX_STRING))}</span><span className={classes.jsonPunct}>: </span></>}
          {row.kind === 'leaf' ? <Scalar value={row.value} /> : (
            <span className={classes.jsonPunct}>
              {row.kind === 'open' ? open : `${open}${row.size > 0 ? '…' : ''}${close}`}
              {row.size > 0 && `  ${t(row.isArray ? 'json.items' : 'json.keys', { n: row.size })}`}
            </span>
          )}
          <span className={classes.jsonActions}>
            <CopyButton text={row.path} label={t('json.copyPath', { path: row.path.slice(0, 60) })} />
            <CopyButton text={() => (typeof row.value === 'string' ? row.value : JSON.stringify(row.value, null, 2))} />
          </span>
        </>
      )}
    </div>
  );
}

export function JsonView({ value, maxHeight = 420 }: { value: unknown; maxHeight?: number }) {
  const t = useT();
  const [expanded, setExpanded] = useState(() => initialExpansion(value));
  const [shown, setShown] = useState(value);
  const [limits, setLimits] = useState(new Map<string, number>());
  const [text, setText] = useState('');
  const [query] = useDebouncedValue(text, 200);
  if (shown !== value) {
    setShown(value);
    setExpanded(initialExpansion(value));
  }
  const found = useMemo(() => searchJson(value, query), [value, query]);
  const matches = useMemo(() => new Set(found.matches), [found]);
  const rows = useMemo(
    () => jsonRows(value, query === '' ? expanded : new Set([...expanded, ...found.parents]), limits),
    [value, expanded, limits, query, found],
  );
  // A value that is seen at a glance needs no search.
  const isSmall = useMemo(() => {
    const all = jsonRows(value, initialExpansion(value, SMALL * 2), new Map());
    return all.length <= SMALL && all.every((row) => row.kind !== 'closed' || row.size === 0);
  }, [value]);
  const scroll = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroll.current, estimateSize: () => ROW, overscan: 20 });
  if (value === undefined) return <Text c="dimmed">{t('json.empty')}</Text>;
  const toggle = (path: string) => setExpanded((current) => {
    const next = new Set(current);
    if (!next.delete(path)) next.add(path);
    return next;
  });
  const isTree = typeof value === 'object' && value !== null;
  return (
    <div className={classes.blockWrap}>
      {isTree && isSmall && <span className={classes.jsonCopy}><CopyButton text={() => JSON.stringify(value, null, 2)} /></span>}
      {isTree && !isSmall && (
        <Group gap="xs" mb={4} wrap="nowrap">
          <TextInput flex={1} maw={260} value={text} onChange={(event) => setText(event.currentTarget.value)} placeholder={t('json.search')} aria-label={t('json.search')}
            leftSection={<IconSearch size={13} />} rightSectionWidth={70} rightSection={query ? <Text size="xs" c="dimmed">{t('json.matches', { n: found.matches.length })}</Text> : undefined} />
          <span style={{ flex: 1 }} />
          <Tooltip label={t('json.expandAll')}>
            <ActionIcon aria-label={t('json.expandAll')} onClick={() => setExpanded(initialExpansion(value, 5000))}><IconBraces size={15} /></ActionIcon>
          </Tooltip>
          <Tooltip label={t('json.collapseAll')}>
            <ActionIcon aria-label={t('json.collapseAll')} onClick={() => setExpanded(new Set(['$']))}><IconFold size={15} /></ActionIcon>
          </Tooltip>
          <CopyButton text={() => JSON.stringify(value, null, 2)} />
        </Group>
      )}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the box scrolls */}
      <div ref={scroll} className={classes.virtual} style={{ height: Math.min(maxHeight, rows.length * ROW + 10) }} tabIndex={0} role="region" aria-label={t('json.tree')}>
        <div style={{ height: virtual.getTotalSize(), position: 'relative', marginTop: 4 }}>
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index];
            return row && (
              <div key={`${row.path}:${row.kind}`} style={{ position: 'absolute', insetInline: 0, height: ROW, transform: `translateY(${item.start}px)` }}>
                <Row row={row} isMatch={matches.has(row.path) && row.kind !== 'more'} onToggle={() => toggle(row.path)}
                  onMore={() => setLimits((current) => new Map(current).set(row.path, (current.get(row.path) ?? CHILD_LIMIT) + CHILD_LIMIT * 5))} />
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
