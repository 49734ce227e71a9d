import { Button, Group, Text } from '@mantine/core';
import { IconTimeline } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useCallback, useMemo } from 'react';
import { agentsQuery } from '@/api/agents';
import type { Run } from '@/api/run-types';
import { runListQuery, type RunFilters } from '@/api/runs';
import { useMay } from '@/api/session';
import { useI18n, useT, type MessageKey } from '@/i18n';
import { EmptyState, ErrorPanel } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { ClearFilters, Facet } from '@/parts/filters';
import { oneLine, visibleText } from '@/parts/format';
import { Loading, Page, Split, Toolbar } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Duration, Time } from '@/parts/time';
import { cost } from '@/parts/usage';
import { useUrlState } from '@/parts/url-state';
import { RunDrawer } from './run-view';
import { Surface } from './surface';

const STATUSES = ['running', 'awaiting_approval', 'pending', 'success', 'error', 'cancelled'];
const FILTERS = ['agent', 'status', 'chat_id', 'parent_id'] as const;

const tokens = (run: Run) => run.usage.input_tokens + run.usage.output_tokens;
const summary = (run: Run, limit: number) => (run.error ? oneLine(run.error.message, limit) : oneLine(run.output ?? undefined, limit));

function useColumns(): Column<Run>[] {
  const { t, language } = useI18n();
  return useMemo(() => [
    { key: 'status', header: '', width: '16px', render: (run) => <StatusBadge status={run.status} iconOnly /> },
    { key: 'time', header: t('calls.time'), width: '9.5rem', render: (run) => <Time at={run.created_at} absolute /> },
    { key: 'agent', header: t('runs.agent'), width: 'minmax(7rem, 0.8fr)', render: (run) => visibleText(run.agent) },
    { key: 'output', header: t('runs.output'), width: 'minmax(6rem, 2fr)', secondary: true, render: (run) => <Text c={run.error ? 'var(--haft-bad)' : 'dimmed'} truncate>{summary(run, 160)}</Text> },
    { key: 'by', header: t('runs.requestedBy'), width: 'minmax(5rem, 0.6fr)', secondary: true, render: (run) => visibleText(run.requested_by) },
    { key: 'surface', header: t('calls.surface'), width: '5.5rem', secondary: true, render: (run) => <Surface name={run.surface} /> },
    { key: 'calls', header: t('runs.calls'), width: '4rem', align: 'end', secondary: true, render: (run) => run.usage.calls.toLocaleString(language) },
    { key: 'tokens', header: t('runs.tokens'), width: '5rem', align: 'end', render: (run) => tokens(run).toLocaleString(language) },
    { key: 'cost', header: t('runs.cost'), width: '5rem', align: 'end', secondary: true, render: (run) => cost(run.usage, language) ?? '' },
    { key: 'duration', header: t('calls.duration'), width: '5rem', align: 'end', render: (run) => <Duration ms={run.usage.active_ms} /> },
  ], [t, language]);
}

export function RunsPage() {
  const t = useT();
  const [url, setUrl] = useUrlState();
  const mayEdit = useMay('editor');
  const filters = useMemo<RunFilters>(() => {
    const chosen: RunFilters = {};
    for (const key of FILTERS) if (url[key]) chosen[key] = url[key];
    return chosen;
  }, [url]);
  const query = useInfiniteQuery(runListQuery(filters));
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.runs) ?? [], [query.data]);
  const agents = useQuery(agentsQuery).data;
  const choices = useMemo(() => [...new Set([...(agents ?? []).map((agent) => agent.slug), ...rows.map((run) => run.agent), ...(url['agent'] ? [url['agent']] : [])])].toSorted().map((value) => ({ value, label: visibleText(value) })), [agents, rows, url]);
  const columns = useColumns();
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const onEnd = useCallback(() => { if (hasNextPage && !isFetchingNextPage) void fetchNextPage(); }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const isFiltered = Object.keys(filters).length > 0;
  const single = (key: string) => ({ value: url[key] ? [url[key]] : [], onChange: (value: string[]) => setUrl({ [key]: value.at(-1) }) });
  return (
    <Page title={t('nav.runs')}>
      <Toolbar>
        <Facet label={t('common.status')} choices={STATUSES.map((value) => ({ value, label: t(`status.${value}` as MessageKey) }))} {...single('status')} />
        <Facet label={t('runs.agent')} choices={choices} {...single('agent')} />
        {url['chat_id'] && <Button variant="light" color="gray" onClick={() => setUrl({ chat_id: undefined })}>{t('runs.ofChat', { id: url['chat_id'].slice(-8) })} ×</Button>}
        {url['parent_id'] && <Button variant="light" color="gray" onClick={() => setUrl({ parent_id: undefined })}>{t('runs.insideOf', { id: url['parent_id'].slice(-8) })} ×</Button>}
        <ClearFilters visible={isFiltered} onClear={() => setUrl(Object.fromEntries(FILTERS.map((key) => [key, undefined])))} />
      </Toolbar>
      <Split drawer={url['open'] && <RunDrawer key={url['open']} id={url['open']} onClose={() => setUrl({ open: undefined })} />}>
        {query.error ? <div style={{ padding: 24 }}><ErrorPanel error={query.error} onRetry={() => void query.refetch()} /></div> : query.isPending ? <Loading rows={12} /> : (
          <DataTable label={t('nav.runs')} rows={rows} columns={columns} rowKey={(run) => run.id} rowName={(run) => `${run.agent} ${run.created_at}`} openKey={url['open']} onEnd={onEnd} onOpen={(run) => setUrl({ open: run.id }, { push: url['open'] === undefined })}
            empty={<EmptyState icon={IconTimeline} title={t(isFiltered ? 'runs.noneFound' : 'runs.empty')}>{t(isFiltered ? 'runs.noneFoundHint' : 'runs.emptyHint')} {!mayEdit && t('runs.ownOnly')}</EmptyState>}
            phone={(run) => (
              <div>
                <Group gap={6} wrap="nowrap"><StatusBadge status={run.status} iconOnly /><Text truncate flex={1}>{visibleText(run.agent)}</Text><Text size="xs" c="dimmed"><Duration ms={run.usage.active_ms} /></Text></Group>
                <Text size="xs" c="dimmed" truncate><Time at={run.created_at} /> · {[t('usage.tokens', { n: tokens(run) }), summary(run, 80)].filter(Boolean).join(' · ')}</Text>
              </div>
            )} />
        )}
      </Split>
    </Page>
  );
}
