import { Alert, Button, Group, Text } from '@mantine/core';
import { IconPlus, IconRobot } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { Agent } from '@/api/agent-types';
import { agentsQuery, brokenAgentFilesQuery } from '@/api/agents';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, Highlight, Mono } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { ClearFilters, Facet, FilterInput } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { Loading, Page, Split, Toolbar } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { shownStatus } from '@/parts/taxonomy';
import { Time } from '@/parts/time';
import { readList, useUrlState, writeList } from '@/parts/url-state';
import { AgentDrawer } from './agent-detail';

const STATUSES = ['draft', 'published', 'deprecated', 'disabled'] as const;
const badge = (agent: Agent) => (agent.ready ? shownStatus(agent) : 'not_ready');

/** Files that define no agent, or an outdated one, until somebody fixes them. */
function BrokenFiles() {
  const t = useT();
  const { data: files = [] } = useQuery(brokenAgentFilesQuery);
  if (files.length === 0) return null;
  return (
    <Alert color="red" variant="light" mx="md" mb="sm" title={t('agents.brokenFiles', { n: files.length })}>
      {files.map((file) => <Text key={file.path} style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(file.path)}</Mono>: {visibleText(file.error)}</Text>)}
    </Alert>
  );
}

export function AgentsPage() {
  const t = useT();
  const mayEdit = useMay('editor');
  const [url, setUrl] = useUrlState();
  const { data: all, error, isPending, refetch } = useQuery(agentsQuery);
  const q = url['q'] ?? '';
  const status = readList(url['status']);
  const rows = (all ?? []).filter((agent) => `${agent.slug} ${agent.name} ${agent.description} ${agent.model.name}`.toLowerCase().includes(q.toLowerCase()) && (status.length === 0 || status.includes(shownStatus(agent))));
  const columns = useMemo<Column<Agent>[]>(() => [
    { key: 'state', header: '', width: '16px', render: (agent) => <StatusBadge status={badge(agent)} iconOnly {...(agent.error ? { label: agent.error } : {})} /> },
    { key: 'name', header: t('common.name'), width: 'minmax(8rem, 1fr)', render: (agent) => <Highlight text={agent.name} query={q} /> },
    { key: 'slug', header: t('agents.slug'), width: 'minmax(7rem, 0.8fr)', render: (agent) => <Mono><Highlight text={agent.slug} query={q} /></Mono> },
    { key: 'description', header: t('common.description'), width: 'minmax(8rem, 2fr)', secondary: true, render: (agent) => <Text c="dimmed" truncate><Highlight text={agent.description.slice(0, 200)} query={q} /></Text> },
    { key: 'model', header: t('agents.model'), width: 'minmax(7rem, 0.8fr)', render: (agent) => <Chip>{visibleText(agent.model.name)}</Chip> },
    { key: 'status', header: t('common.status'), width: '8rem', secondary: true, render: (agent) => <StatusBadge status={badge(agent)} /> },
    { key: 'modified', header: t('common.modified'), width: '7rem', align: 'end', secondary: true, render: (agent) => <Time at={agent.modified_at} /> },
  ], [t, q]);
  const isFiltered = q !== '' || status.length > 0;
  const clear = () => setUrl({ q: undefined, status: undefined });
  const add = mayEdit && <Button component={Link} to={'/agents/new' as never} leftSection={<IconPlus size={15} />}>{t('agents.new')}</Button>;
  const openRef = url['open'];
  return (
    <Page title={t('nav.agents')} count={isFiltered ? rows.length : all?.length} primary={add}>
      <Toolbar>
        <FilterInput value={q} onChange={(next) => setUrl({ q: next || undefined })} label={t('agents.filter')} />
        <Facet label={t('common.status')} value={status} onChange={(next) => setUrl({ status: writeList(next) })} choices={STATUSES.map((value) => ({ value, label: t(`status.${value}`) }))} />
        <ClearFilters visible={isFiltered} onClear={clear} />
      </Toolbar>
      <BrokenFiles />
      <Split drawer={openRef && <AgentDrawer key={openRef} target={openRef} onClose={() => setUrl({ open: undefined, tab: undefined })} />}>
        {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading rows={8} /> : (
          <DataTable label={t('nav.agents')} rows={rows} columns={columns} rowKey={(agent) => agent.slug} rowName={(agent) => agent.name} openKey={openRef} onOpen={(agent) => setUrl({ open: agent.slug }, { push: openRef === undefined })}
            empty={isFiltered ? <EmptyState icon={IconRobot} title={t('agents.noneFound')} action={<Button variant="default" onClick={clear}>{t('common.clearFilters')}</Button>} /> : <EmptyState icon={IconRobot} title={t('agents.empty')} action={add}>{t('agents.emptyHint')}</EmptyState>}
            phone={(agent) => (
              <div>
                <Group gap={6} wrap="nowrap"><StatusBadge status={badge(agent)} iconOnly /><Text truncate flex={1}>{visibleText(agent.name)}</Text><Chip>{visibleText(agent.model.name)}</Chip></Group>
                <Text size="xs" c="dimmed" truncate><Mono>{visibleText(agent.slug)}</Mono>{agent.description && ` · ${visibleText(agent.description)}`}</Text>
              </div>
            )} />
        )}
      </Split>
    </Page>
  );
}
