import { Button, Group, Menu, SegmentedControl, Text } from '@mantine/core';
import { IconActivity, IconArrowsDiff, IconDownload } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useCallback, useEffect, useMemo, useState } from 'react';
import { callListQuery, histogramQuery, type CallFilters } from '@/api/queries';
import { useMay } from '@/api/session';
import type { Call } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { messages } from '@/i18n/messages';
import { EmptyState, ErrorPanel, Mono } from '@/parts/basics';
import { Histogram } from '@/parts/charts';
import { DataTable, type Column } from '@/parts/data-table';
import { saveFile } from '@/parts/download';
import { ClearFilters, Facet, FilterInput } from '@/parts/filters';
import { oneLine, visibleText } from '@/parts/format';
import { shortName } from '@/parts/links';
import { Loading, Page, Split, Toolbar } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Duration, Time, useNow } from '@/parts/time';
import { readList, useUrlState, writeList } from '@/parts/url-state';
import { CallDrawer } from './call-drawer';
import { PERIOD_NAMES, readRange } from './ranges';

const STATUSES = ['success', 'error', 'running', 'pending', 'awaiting_approval', 'cancelled', 'denied', 'expired', 'interrupted'];
const SURFACES = ['rest', 'mcp', 'cli', 'test'];
const FILTERS = ['tool', 'status', 'caller', 'actor', 'surface', 'error_code', 'parent_id', 'q'] as const;
const BUCKETS = 60;
const TICK_MS = 15_000;

function useColumns(): Column<Call>[] {
  const t = useT();
  return useMemo(() => [
    { key: 'status', header: '', width: '16px', render: (call) => <StatusBadge status={call.status} iconOnly /> },
    { key: 'time', header: t('calls.time'), width: '9.5rem', render: (call) => <Time at={call.started_at} absolute /> },
    { key: 'tool', header: t('calls.tool'), width: 'minmax(8rem, 1fr)', render: (call) => <span title={call.tool}><Mono>{visibleText(shortName(call.tool))}</Mono></span> },
    { key: 'arguments', header: t('calls.arguments'), width: 'minmax(6rem, 2fr)', secondary: true, render: (call) => <Text c={call.error ? 'var(--haft-bad)' : 'dimmed'} truncate>{call.error ? oneLine(call.error.message, 160) : oneLine(call.args, 160)}</Text> },
    { key: 'caller', header: t('calls.caller'), width: 'minmax(5rem, 0.6fr)', render: (call) => visibleText(call.caller) },
    { key: 'surface', header: t('calls.surface'), width: '4.5rem', secondary: true, render: (call) => <Surface name={call.surface} /> },
    { key: 'duration', header: t('calls.duration'), width: '5rem', align: 'end', render: (call) => <Duration ms={call.duration_ms} /> },
  ], [t]);
}

function Surface({ name }: { name: string }) {
  const t = useT();
  const key = `surface.${name}`;
  return <>{key in messages ? t(key as MessageKey) : visibleText(name)}</>;
}

/** A cell that starts like a formula would run in a spreadsheet. */
function csvCell(value: unknown): string {
  const text = String(value ?? '').replace(/^([=+\-@\t])/, "'$1");
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCsv(calls: Call[]): string {
  const rows = calls.map((call) => [call.id, call.started_at, call.tool, call.caller, call.surface, call.status, call.duration_ms, call.error?.code, JSON.stringify(call.args)]);
  return [['id', 'started_at', 'tool', 'caller', 'surface', 'status', 'duration_ms', 'error', 'args'], ...rows].map((row) => row.map(csvCell).join(',')).join('\n');
}

export function CallsPage() {
  const t = useT();
  const navigate = useNavigate();
  const [url, setUrl] = useUrlState();
  const now = useNow(TICK_MS);
  const range = useMemo(() => readRange(url['since'], url['until'], now), [url, now]);
  const filters = useMemo<CallFilters>(() => {
    const chosen: CallFilters = {};
    for (const key of FILTERS) if (url[key]) chosen[key] = url[key];
    return chosen;
  }, [url]);
  const listFilters = useMemo(() => (range.period ? { ...filters, since: range.period } : { ...filters, since: new Date(range.from).toISOString(), until: new Date(range.to).toISOString() }), [filters, range]);
  const query = useInfiniteQuery(callListQuery(listFilters));
  const histogram = useQuery(histogramQuery(filters, range.from, range.to, BUCKETS));
  const calls = useMemo(() => query.data?.pages.flatMap((page) => page.calls) ?? [], [query.data]);
  const mayEdit = useMay('editor');
  const [selected, setSelected] = useState(new Set<string>());
  const columns = useColumns();
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const onEnd = useCallback(() => { if (hasNextPage && !isFetchingNextPage) void fetchNextPage(); }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  // A page of a search for a text can be empty and yet have a next one: the table has no end to scroll to then.
  const isLastEmpty = query.data?.pages.at(-1)?.calls.length === 0;
  useEffect(() => { if (isLastEmpty) onEnd(); }, [isLastEmpty, onEnd]);
  const callers = useMemo(() => [...new Set(calls.map((call) => call.caller))].toSorted().map((value) => ({ value, label: visibleText(value) })), [calls]);
  const tools = useMemo(() => [...new Set([...calls.map((call) => call.tool), ...(url['tool'] ? [url['tool']] : [])])].toSorted().map((value) => ({ value, label: visibleText(shortName(value)) })), [calls, url]);
  const codes = useMemo(() => [...new Set(calls.flatMap((call) => (call.error ? [call.error.code] : [])))].toSorted().map((value) => ({ value, label: value })), [calls]);
  const { actor } = url;
  const actorName = calls.find((call) => call.actor_id === actor)?.caller ?? actor?.slice(-8) ?? '';
  const isFiltered = Object.keys(filters).length > 0;
  const clear = () => setUrl(Object.fromEntries(FILTERS.map((key) => [key, undefined])));
  const single = (key: string) => ({ value: url[key] ? [url[key]] : [], onChange: (value: string[]) => setUrl({ [key]: value.at(-1) }) });
  const compare = () => { const [left, right] = [...selected]; void navigate({ to: '/calls/compare', search: { left, right } as never }); };
  return (
    <Page title={t('nav.calls')} count={query.data?.pages[0]?.total}
      primary={selected.size === 2 ? <Button leftSection={<IconArrowsDiff size={15} />} onClick={compare}>{t('calls.compare')}</Button> : undefined}
      menu={<>
        <Menu.Item leftSection={<IconDownload size={15} />} onClick={() => saveFile('calls.jsonl', 'application/x-ndjson', calls.map((call) => JSON.stringify(call)).join('\n'))}>{t('calls.exportJson', { n: calls.length })}</Menu.Item>
        <Menu.Item leftSection={<IconDownload size={15} />} onClick={() => saveFile('calls.csv', 'text/csv', toCsv(calls))}>{t('calls.exportCsv', { n: calls.length })}</Menu.Item>
      </>}>
      <Toolbar>
        <FilterInput value={url['q'] ?? ''} onChange={(q) => setUrl({ q: q || undefined })} label={t('calls.filter')} />
        <Facet label={t('common.status')} choices={STATUSES.map((value) => ({ value, label: t(`status.${value}` as MessageKey) }))} value={readList(url['status'])} onChange={(value) => setUrl({ status: writeList(value) })} />
        <Facet label={t('calls.tool')} choices={tools} {...single('tool')} />
        <Facet label={t('calls.caller')} choices={url['caller'] && !callers.some((item) => item.value === url['caller']) ? [...callers, { value: url['caller'], label: url['caller'] }] : callers} {...single('caller')} />
        <Facet label={t('calls.surface')} choices={SURFACES.map((value) => ({ value, label: t(`surface.${value}` as MessageKey) }))} {...single('surface')} />
        {(codes.length > 0 || url['error_code']) && <Facet label={t('calls.error')} choices={url['error_code'] && codes.length === 0 ? [{ value: url['error_code'], label: url['error_code'] }] : codes} {...single('error_code')} />}
        {actor && <Button variant="light" color="gray" onClick={() => setUrl({ actor: undefined })}>{t('calls.by', { name: visibleText(actorName) })} ×</Button>}
        {url['parent_id'] && <Button variant="light" color="gray" onClick={() => setUrl({ parent_id: undefined })}>{t('calls.childrenOf', { id: url['parent_id'].slice(-8) })} ×</Button>}
        <ClearFilters visible={isFiltered} onClear={clear} />
        <span style={{ flex: 1 }} />
        <SegmentedControl aria-label={t('calls.range')} value={range.period ?? ''} onChange={(since) => setUrl({ since, until: undefined })} data={PERIOD_NAMES.map((value) => ({ value, label: value }))} />
      </Toolbar>
      <div style={{ padding: '0 24px 8px' }}>
        {histogram.data && <Histogram buckets={histogram.data.buckets} from={range.from} to={range.to} label={t('calls.histogram')} onRange={(from, to) => setUrl({ since: new Date(from).toISOString(), until: new Date(to).toISOString() })} />}
      </div>
      <Split drawer={url['open'] && <CallDrawer key={url['open']} id={url['open']} onClose={() => setUrl({ open: undefined })} />}>
        {query.error ? <div style={{ padding: 24 }}><ErrorPanel error={query.error} onRetry={() => void query.refetch()} /></div> : query.isPending || (calls.length === 0 && hasNextPage) ? <Loading rows={12} /> : (
          <DataTable label={t('nav.calls')} rows={calls} columns={columns} rowKey={(call) => call.id} rowName={(call) => `${shortName(call.tool)} ${call.started_at}`} openKey={url['open']} onEnd={onEnd}
            onOpen={(call) => setUrl({ open: call.id }, { push: url['open'] === undefined })} selection={{ selected, onChange: setSelected }}
            empty={<EmptyState icon={IconActivity} title={t(isFiltered ? 'calls.noneFound' : 'calls.empty')}>{t(isFiltered ? 'calls.noneFoundHint' : 'calls.emptyHint')} {!mayEdit && t('calls.ownOnly')}</EmptyState>}
            phone={(call) => (
              <div>
                <Group gap={6} wrap="nowrap"><StatusBadge status={call.status} iconOnly /><Text truncate flex={1}><Mono>{visibleText(shortName(call.tool))}</Mono></Text><Text size="xs" c="dimmed"><Duration ms={call.duration_ms} /></Text></Group>
                <Text size="xs" c="dimmed" truncate><Time at={call.started_at} /> · {[visibleText(call.caller), call.error ? oneLine(call.error.message, 80) : oneLine(call.args, 80)].filter(Boolean).join(' · ')}</Text>
              </div>
            )} />
        )}
      </Split>
    </Page>
  );
}
