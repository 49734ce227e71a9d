import { Menu, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import { IconDownload, IconListDetails } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useCallback, useMemo } from 'react';
import { auditQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import type { AuditRecord } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { CopyButton, EmptyState, ErrorPanel, Facts, Mono, PermissionNote } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { ClearFilters, Facet, FilterInput } from '@/parts/filters';
import { duration, visibleText } from '@/parts/format';
import { CallLink, PageLink, ToolLink } from '@/parts/links';
import { Content, Drawer, Loading, Page, Split, Toolbar } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';

const FILTERS = ['action', 'target', 'actor', 'decision', 'rule'] as const;
const DECISIONS = ['allowed', 'denied', 'awaiting_approval', 'approved', 'rejected', 'expired'] as const;
const DECISION_STATUS = { allowed: 'ok', denied: 'denied', awaiting_approval: 'awaiting_approval', approved: 'approved', rejected: 'denied', expired: 'expired' } as const;

function Outcome({ record }: { record: AuditRecord }) {
  const t = useT();
  if (record.call) return <StatusBadge status={record.call.status} />;
  return <StatusBadge status={record.outcome === 'success' ? 'success' : 'error'} label={record.outcome === 'success' ? t('status.success') : record.outcome} />;
}

function Detail({ record, onClose }: { record: AuditRecord; onClose: () => void }) {
  const t = useT();
  const { call } = record;
  return (
    <Drawer label={record.action} onClose={onClose} title={<div><Title order={2}><Mono>{visibleText(record.action)}</Mono></Title><Outcome record={record} /></div>}>
      <Stack>
        <Facts rows={[
          [t('calls.time'), <Time key="t" at={record.at} absolute />],
          [t('audit.actor'), visibleText(record.actor)],
          [t('audit.target'), call || record.action.startsWith('tool.') ? <ToolLink key="target" tool={record.target}>{visibleText(record.target)}</ToolLink> : visibleText(record.target)],
          [t('audit.decision'), call && <StatusBadge key="decision" status={DECISION_STATUS[call.decision]} label={t(`audit.decision.${call.decision}`)} />],
          [t('policy.rule'), call?.rule && <PageLink key="rule" to="/policy">{visibleText(call.rule)}</PageLink>],
          [t('approvals.decided'), call?.decided_by && visibleText(call.decided_by)],
          [t('calls.approval'), call?.approval_id && <PageLink key="approval" to="/approvals" search={{ open: call.approval_id, status: 'all' }}>{call.approval_id.slice(-8)}</PageLink>],
          [t('audit.role'), call && t(`role.${call.role}`)],
          [t('calls.surface'), call?.surface],
          [t('tools.revision'), call?.revision],
          [t('calls.duration'), call?.duration_ms !== undefined && duration(call.duration_ms)],
          [t('calls.parent'), call?.parent && <CallLink key="parent" id={call.parent} />],
          [t('nav.calls'), call && <CallLink key="calls" id={record.id} />],
          [t('audit.digest'), call?.args_digest && <Mono key="digest">{call.args_digest}</Mono>],
          [t('calls.request'), record.request_id && <Mono key="request">{record.request_id}</Mono>],
          ['ID', <span key="i"><Mono>{record.id}</Mono> <CopyButton text={record.id} /></span>],
        ]} />
      </Stack>
    </Drawer>
  );
}

export function AuditPage() {
  const t = useT();
  const mayAdmin = useMay('admin');
  const [url, setUrl] = useUrlState();
  const kind = url['kind'] ?? 'changes';
  const filters = useMemo(() => ({ kind, ...Object.fromEntries(FILTERS.flatMap((key) => (url[key] ? [[key, url[key]]] : []))) }), [url, kind]);
  const query = useInfiniteQuery({ ...auditQuery(filters), enabled: mayAdmin });
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.records) ?? [], [query.data]);
  const open = rows.find((record) => record.id === url['open']);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const onEnd = useCallback(() => { if (hasNextPage && !isFetchingNextPage) void fetchNextPage(); }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const columns = useMemo<Column<AuditRecord>[]>(() => [
    { key: 'at', header: t('calls.time'), width: '10rem', render: (row) => <Time at={row.at} absolute /> },
    { key: 'actor', header: t('audit.actor'), width: 'minmax(6rem, 0.8fr)', render: (row) => visibleText(row.actor) },
    { key: 'action', header: t('audit.action'), width: 'minmax(7rem, 0.8fr)', render: (row) => <Mono>{visibleText(row.action)}</Mono> },
    { key: 'target', header: t('audit.target'), width: 'minmax(7rem, 2fr)', render: (row) => <span title={row.target}>{visibleText(row.target)}</span> },
    ...(kind === 'changes' ? [] : [{ key: 'decision', header: t('audit.decision'), width: '11rem', secondary: true, render: (row: AuditRecord) => row.call && <StatusBadge status={DECISION_STATUS[row.call.decision]} label={t(`audit.decision.${row.call.decision}`)} /> }]),
    { key: 'outcome', header: t('calls.outcome'), width: '11rem', render: (row) => <Outcome record={row} /> },
    { key: 'request', header: t('calls.request'), width: '8rem', secondary: true, render: (row) => <Text c="dimmed"><Mono>{row.request_id}</Mono></Text> },
  ], [t, kind]);
  if (!mayAdmin) return <Page title={t('nav.audit')}><Content><PermissionNote needs="admin" /></Content></Page>;
  return (
    <Page title={t('nav.audit')} count={query.data?.pages[0]?.total} menu={<Menu.Item leftSection={<IconDownload size={15} />} component="a" href={`/api/audit?${new URLSearchParams({ ...filters, format: 'jsonl' })}`} download="audit.jsonl">{t('audit.export')}</Menu.Item>}>
      <Toolbar>
        <SegmentedControl aria-label={t('audit.kind')} value={kind} onChange={(next) => setUrl({ kind: next === 'changes' ? undefined : next, open: undefined, decision: undefined, rule: undefined, action: undefined })} data={(['changes', 'calls', 'all'] as const).map((value) => ({ value, label: t(`audit.kind.${value}`) }))} />
        {kind !== 'calls' && <FilterInput value={url['action'] ?? ''} onChange={(action) => setUrl({ action: action || undefined })} label={t('audit.action')} half />}
        <FilterInput value={url['target'] ?? ''} onChange={(target) => setUrl({ target: target || undefined })} label={t('audit.target')} half />
        <FilterInput value={url['actor'] ?? ''} onChange={(actor) => setUrl({ actor: actor || undefined })} label={t('audit.actor')} half />
        {kind !== 'changes' && <Facet label={t('audit.decision')} choices={DECISIONS.map((value) => ({ value, label: t(`audit.decision.${value}` as MessageKey) }))} value={url['decision'] ? [url['decision']] : []} onChange={(next) => setUrl({ decision: next.at(-1) })} />}
        <ClearFilters visible={FILTERS.some((key) => url[key] !== undefined)} onClear={() => setUrl(Object.fromEntries(FILTERS.map((key) => [key, undefined])))} />
      </Toolbar>
      <Split drawer={open && <Detail key={open.id} record={open} onClose={() => setUrl({ open: undefined })} />}>
        {query.error ? <div style={{ padding: 24 }}><ErrorPanel error={query.error} onRetry={() => void query.refetch()} /></div> : query.isPending ? <Loading rows={12} /> : (
          <DataTable label={t('nav.audit')} rows={rows} columns={columns} rowKey={(row) => row.id} rowName={(row) => row.action} onEnd={onEnd} openKey={open?.id} onOpen={(row) => setUrl({ open: row.id }, { push: url['open'] === undefined })}
            empty={<EmptyState icon={IconListDetails} title={t('audit.empty')}>{t('audit.emptyHint')}</EmptyState>}
            phone={(row) => <div><Text truncate><Mono>{visibleText(row.action)}</Mono> {visibleText(row.target)}</Text><Text size="xs" c="dimmed" truncate><Time at={row.at} /> · {visibleText(row.actor)} · {row.call?.status ?? row.outcome}</Text></div>} />
        )}
      </Split>
    </Page>
  );
}
