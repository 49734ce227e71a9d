import { Menu, Text } from '@mantine/core';
import { IconDownload, IconListDetails } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useCallback, useMemo } from 'react';
import { auditQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import type { AuditRecord } from '@/api/types';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel, Mono, PermissionNote } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { FilterInput } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { Content, Loading, Page, Split, Toolbar } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';

export function AuditPage() {
  const t = useT();
  const mayAdmin = useMay('admin');
  const [url, setUrl] = useUrlState();
  const filters = useMemo(() => Object.fromEntries(['action', 'target', 'actor'].flatMap((key) => (url[key] ? [[key, url[key]]] : []))), [url]);
  const query = useInfiniteQuery({ ...auditQuery(filters), enabled: mayAdmin });
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.records) ?? [], [query.data]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const onEnd = useCallback(() => { if (hasNextPage && !isFetchingNextPage) void fetchNextPage(); }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const columns = useMemo<Column<AuditRecord>[]>(() => [
    { key: 'at', header: t('calls.time'), width: '10rem', render: (row) => <Time at={row.at} absolute /> },
    { key: 'actor', header: t('audit.actor'), width: 'minmax(6rem, 0.8fr)', render: (row) => visibleText(row.actor) },
    { key: 'action', header: t('audit.action'), width: 'minmax(7rem, 1fr)', render: (row) => <Mono>{visibleText(row.action)}</Mono> },
    { key: 'target', header: t('audit.target'), width: 'minmax(7rem, 2fr)', render: (row) => <span title={row.target}>{visibleText(row.target)}</span> },
    { key: 'outcome', header: t('calls.outcome'), width: '8rem', render: (row) => <StatusBadge status={row.outcome} /> },
    { key: 'request', header: t('calls.request'), width: '8rem', secondary: true, render: (row) => <Text c="dimmed"><Mono>{row.request_id}</Mono></Text> },
  ], [t]);
  if (!mayAdmin) return <Page title={t('nav.audit')}><Content><PermissionNote needs="admin" /></Content></Page>;
  return (
    <Page title={t('nav.audit')} count={query.data?.pages[0]?.total} menu={<Menu.Item leftSection={<IconDownload size={15} />} component="a" href="/api/audit?format=jsonl" download="audit.jsonl">{t('audit.export')}</Menu.Item>}>
      <Toolbar>
        <FilterInput value={url['action'] ?? ''} onChange={(action) => setUrl({ action: action || undefined })} label={t('audit.action')} />
        <FilterInput value={url['target'] ?? ''} onChange={(target) => setUrl({ target: target || undefined })} label={t('audit.target')} />
        <FilterInput value={url['actor'] ?? ''} onChange={(actor) => setUrl({ actor: actor || undefined })} label={t('audit.actor')} />
      </Toolbar>
      <Split drawer={null}>
        {query.error ? <div style={{ padding: 24 }}><ErrorPanel error={query.error} onRetry={() => void query.refetch()} /></div> : query.isPending ? <Loading rows={12} /> : (
          <DataTable label={t('nav.audit')} rows={rows} columns={columns} rowKey={(row) => row.id} rowName={(row) => row.action} onEnd={onEnd} empty={<EmptyState icon={IconListDetails} title={t('audit.empty')}>{t('audit.emptyHint')}</EmptyState>}
            phone={(row) => <div><Text truncate><Mono>{visibleText(row.action)}</Mono> {visibleText(row.target)}</Text><Text size="xs" c="dimmed" truncate><Time at={row.at} /> · {visibleText(row.actor)} · {row.outcome}</Text></div>} />
        )}
      </Split>
    </Page>
  );
}
