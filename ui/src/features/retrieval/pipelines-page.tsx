import { Button, Group, Modal, Text } from '@mantine/core';
import { IconFileSearch, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useCallback } from 'react';
import { brokenPipelineFilesQuery, PIPELINES, pipelines, pipelinesQuery } from '@/api/retrieval';
import type { Pipeline } from '@/api/retrieval-types';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { Highlight, Mono } from '@/parts/basics';
import type { Column } from '@/parts/data-table';
import { bytes, visibleText } from '@/parts/format';
import { ResourceListPage } from '@/parts/resource-list';
import { StatusBadge } from '@/parts/status';
import { shownStatus } from '@/parts/taxonomy';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { PipelineDrawer } from './pipeline-detail';
import { PipelineForm } from './pipeline-form';

export function PipelinesPage() {
  const t = useT();
  const navigate = useNavigate();
  const mayEdit = useMay('editor');
  const [url, setUrl] = useUrlState();
  const { data, error, refetch } = useQuery(pipelinesQuery);
  const { data: brokenFiles } = useQuery(brokenPipelineFilesQuery);
  const columns = useCallback((q: string): Column<Pipeline>[] => [
    { key: 'state', header: '', width: '16px', render: (row) => <StatusBadge status={shownStatus(row)} iconOnly /> },
    { key: 'name', header: t('common.name'), width: 'minmax(8rem, 1fr)', render: (row) => <Highlight text={row.name} query={q} /> },
    { key: 'slug', header: t('agents.slug'), width: 'minmax(7rem, 0.8fr)', render: (row) => <Mono><Highlight text={row.slug} query={q} /></Mono> },
    { key: 'description', header: t('common.description'), width: 'minmax(6rem, 2fr)', secondary: true, render: (row) => <Text c="dimmed" truncate>{visibleText(row.description)}</Text> },
    { key: 'documents', header: t('retrieval.documents'), width: '6.5rem', align: 'end', render: (row) => row.documents.toLocaleString() },
    { key: 'chunks', header: t('retrieval.chunks'), width: '6rem', align: 'end', secondary: true, render: (row) => row.chunks.toLocaleString() },
    { key: 'bytes', header: t('workspaces.size'), width: '6rem', align: 'end', secondary: true, render: (row) => bytes(row.bytes) },
    { key: 'modified', header: t('common.modified'), width: '7rem', align: 'end', secondary: true, render: (row) => <Time at={row.modified_at} /> },
  ], [t]);
  return (
    <ResourceListPage title={t('nav.retrieval')} icon={IconFileSearch} kind={PIPELINES} undelete={pipelines.undelete} data={data} error={error} onRetry={() => void refetch()} brokenFiles={brokenFiles}
      text={(row) => `${row.slug} ${row.name} ${row.description}`} columns={columns}
      add={mayEdit && <Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ new: '1' })}>{t('retrieval.new')}</Button>}
      empty={{ title: t('retrieval.empty'), hint: t('retrieval.emptyHint'), none: t('retrieval.noPipelineFound') }}
      // In the drawer, `q` filters documents.
      drawerKeys={['q', 'query']} drawer={(ref, close) => <PipelineDrawer key={ref} target={ref} onClose={close} />}
      phone={(row) => (
        <div>
          <Group gap={6} wrap="nowrap"><StatusBadge status={shownStatus(row)} iconOnly /><Text truncate flex={1}>{visibleText(row.name)}</Text></Group>
          <Text size="xs" c="dimmed" truncate>{t('retrieval.documentCount', { n: row.documents })} · {bytes(row.bytes)} · <Time at={row.modified_at} /></Text>
        </div>
      )}>
      <Modal opened={url['new'] !== undefined && mayEdit} onClose={() => setUrl({ new: undefined })} title={t('retrieval.new')} size="lg">
        <PipelineForm onCancel={() => setUrl({ new: undefined })} onDone={(pipeline) => void navigate({ to: '/retrieval/$ref' as never, params: { ref: pipeline.slug } as never })} />
      </Modal>
    </ResourceListPage>
  );
}
