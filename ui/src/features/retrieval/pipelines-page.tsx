import { Button, Group, Modal, Text } from '@mantine/core';
import { IconFileSearch, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { pipelinesQuery } from '@/api/retrieval';
import type { Pipeline } from '@/api/retrieval-types';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel, Highlight, Mono } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { FilterInput } from '@/parts/filters';
import { bytes, visibleText } from '@/parts/format';
import { Loading, Page, Split, Toolbar } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { PipelineDrawer } from './pipeline-detail';
import { PipelineForm } from './pipeline-form';

export function PipelinesPage() {
  const t = useT();
  const navigate = useNavigate();
  const mayEdit = useMay('editor');
  const [url, setUrl] = useUrlState();
  const { data: all, error, isPending, refetch } = useQuery(pipelinesQuery);
  const openRef = url['open'];
  // In the drawer, `q` filters documents.
  const q = openRef === undefined ? (url['q'] ?? '') : '';
  const rows = (all ?? []).filter((pipeline) => `${pipeline.slug} ${pipeline.name} ${pipeline.description}`.toLowerCase().includes(q.toLowerCase()));
  const columns = useMemo<Column<Pipeline>[]>(() => [
    { key: 'state', header: '', width: '16px', render: (row) => <StatusBadge status={row.status} iconOnly /> },
    { key: 'name', header: t('common.name'), width: 'minmax(8rem, 1fr)', render: (row) => <Highlight text={row.name} query={q} /> },
    { key: 'slug', header: t('agents.slug'), width: 'minmax(7rem, 0.8fr)', render: (row) => <Mono><Highlight text={row.slug} query={q} /></Mono> },
    { key: 'description', header: t('common.description'), width: 'minmax(6rem, 2fr)', secondary: true, render: (row) => <Text c="dimmed" truncate>{visibleText(row.description)}</Text> },
    { key: 'documents', header: t('retrieval.documents'), width: '6.5rem', align: 'end', render: (row) => row.documents.toLocaleString() },
    { key: 'chunks', header: t('retrieval.chunks'), width: '6rem', align: 'end', secondary: true, render: (row) => row.chunks.toLocaleString() },
    { key: 'bytes', header: t('workspaces.size'), width: '6rem', align: 'end', secondary: true, render: (row) => bytes(row.bytes) },
    { key: 'modified', header: t('common.modified'), width: '7rem', align: 'end', secondary: true, render: (row) => <Time at={row.modified_at} /> },
  ], [t, q]);
  const add = mayEdit && <Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ new: '1' })}>{t('retrieval.new')}</Button>;
  return (
    <Page title={t('nav.retrieval')} count={all?.length} primary={add}>
      <Toolbar><FilterInput value={q} onChange={(next) => setUrl({ q: next || undefined })} label={t('common.filter')} /></Toolbar>
      <Split drawer={openRef && <PipelineDrawer key={openRef} target={openRef} onClose={() => setUrl({ open: undefined, tab: undefined, q: undefined, query: undefined })} />}>
        {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading rows={8} /> : (
          <DataTable label={t('nav.retrieval')} rows={rows} columns={columns} rowKey={(row) => row.slug} rowName={(row) => row.name} openKey={openRef} onOpen={(row) => setUrl({ open: row.slug, q: undefined }, { push: openRef === undefined })}
            empty={all.length === 0 ? <EmptyState icon={IconFileSearch} title={t('retrieval.empty')} action={add}>{t('retrieval.emptyHint')}</EmptyState> : <EmptyState icon={IconFileSearch} title={t('retrieval.noPipelineFound')} />}
            phone={(row) => (
              <div>
                <Group gap={6} wrap="nowrap"><StatusBadge status={row.status} iconOnly /><Text truncate flex={1}>{visibleText(row.name)}</Text></Group>
                <Text size="xs" c="dimmed" truncate>{t('retrieval.documentCount', { n: row.documents })} · {bytes(row.bytes)} · <Time at={row.modified_at} /></Text>
              </div>
            )} />
        )}
      </Split>
      <Modal opened={url['new'] !== undefined && mayEdit} onClose={() => setUrl({ new: undefined })} title={t('retrieval.new')} size="lg">
        <PipelineForm onCancel={() => setUrl({ new: undefined })} onDone={(pipeline) => void navigate({ to: '/retrieval/$ref' as never, params: { ref: pipeline.slug } as never })} />
      </Modal>
    </Page>
  );
}
