import { Text } from '@mantine/core';
import { IconFolders } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { Workspace } from '@/api/types';
import { isChat, workspacesQuery } from '@/api/workspaces';
import { useT } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, Mono } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { FilterInput } from '@/parts/filters';
import { bytes, visibleText } from '@/parts/format';
import { Loading, Page, Split, Toolbar } from '@/parts/page';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';

const label = (workspace: Workspace) => workspace.name;

export function WorkspacesPage() {
  const t = useT();
  const navigate = useNavigate();
  const [url, setUrl] = useUrlState();
  const { data: all, error, isPending, refetch } = useQuery(workspacesQuery);
  const q = (url['q'] ?? '').toLowerCase();
  const rows = (all ?? []).filter((workspace) => workspace.name.toLowerCase().includes(q));
  const columns = useMemo<Column<Workspace>[]>(() => [
    { key: 'name', header: t('common.name'), width: 'minmax(10rem, 2fr)', render: (row) => <Mono>{visibleText(label(row))}</Mono> },
    { key: 'kind', header: t('bundles.kind'), width: '8rem', render: (row) => <Chip>{t(isChat(row.name) ? 'workspaces.ofChat' : 'workspaces.named')}</Chip> },
    { key: 'files', header: t('workspaces.files'), width: '6rem', align: 'end', render: (row) => row.files.toLocaleString() },
    { key: 'bytes', header: t('workspaces.size'), width: '7rem', align: 'end', secondary: true, render: (row) => bytes(row.bytes) },
    { key: 'modified', header: t('common.modified'), width: '8rem', render: (row) => <Time at={row.modified_at} /> },
  ], [t]);
  return (
    <Page title={t('nav.workspaces')} count={all?.length}>
      <Toolbar><FilterInput value={url['q'] ?? ''} onChange={(next) => setUrl({ q: next || undefined })} label={t('common.filter')} /></Toolbar>
      <Split drawer={null}>
        {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : (
          <DataTable label={t('nav.workspaces')} rows={rows} columns={columns} rowKey={label} rowName={label} onOpen={(row) => void navigate({ to: '/workspaces/$name', params: { name: row.name } as never })}
            empty={<EmptyState icon={IconFolders} title={t('workspaces.empty')}>{t('workspaces.emptyHint')}</EmptyState>}
            phone={(row) => <div><Text truncate><Mono>{visibleText(label(row))}</Mono></Text><Text size="xs" c="dimmed" truncate>{t('workspaces.fileCount', { n: row.files })} · {bytes(row.bytes)} · <Time at={row.modified_at} /></Text></div>} />
        )}
      </Split>
    </Page>
  );
}
