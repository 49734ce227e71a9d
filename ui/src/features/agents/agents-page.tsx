import { Button, Group, Text } from '@mantine/core';
import { IconPlus, IconRobot } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useCallback } from 'react';
import type { Agent } from '@/api/agent-types';
import { AGENTS, agents, agentsQuery, brokenAgentFilesQuery } from '@/api/agents';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { Chip, Highlight, Mono } from '@/parts/basics';
import type { Column } from '@/parts/data-table';
import { Facet } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { ResourceListPage } from '@/parts/resource-list';
import { StatusBadge } from '@/parts/status';
import { shownStatus } from '@/parts/taxonomy';
import { Time } from '@/parts/time';
import { readList, useUrlState, writeList } from '@/parts/url-state';
import { AgentDrawer } from './agent-detail';

const STATUSES = ['draft', 'published', 'deprecated', 'disabled'] as const;
const badge = (agent: Agent) => (agent.ready ? shownStatus(agent) : 'not_ready');

export function AgentsPage() {
  const t = useT();
  const mayEdit = useMay('editor');
  const [url, setUrl] = useUrlState();
  const { data, error, refetch } = useQuery(agentsQuery);
  const { data: brokenFiles } = useQuery(brokenAgentFilesQuery);
  const status = readList(url['status']);
  const columns = useCallback((q: string): Column<Agent>[] => [
    { key: 'state', header: '', width: '16px', render: (agent) => <StatusBadge status={badge(agent)} iconOnly {...(agent.error ? { label: agent.error } : {})} /> },
    { key: 'name', header: t('common.name'), width: 'minmax(8rem, 1fr)', render: (agent) => <Highlight text={agent.name} query={q} /> },
    { key: 'slug', header: t('agents.slug'), width: 'minmax(7rem, 0.8fr)', render: (agent) => <Mono><Highlight text={agent.slug} query={q} /></Mono> },
    { key: 'description', header: t('common.description'), width: 'minmax(8rem, 2fr)', secondary: true, render: (agent) => <Text c="dimmed" truncate><Highlight text={agent.description.slice(0, 200)} query={q} /></Text> },
    { key: 'model', header: t('agents.model'), width: 'minmax(7rem, 0.8fr)', render: (agent) => <Chip>{visibleText(agent.model.name)}</Chip> },
    { key: 'status', header: t('common.status'), width: '8rem', secondary: true, render: (agent) => <StatusBadge status={badge(agent)} /> },
    { key: 'modified', header: t('common.modified'), width: '7rem', align: 'end', secondary: true, render: (agent) => <Time at={agent.modified_at} /> },
  ], [t]);
  return (
    <ResourceListPage title={t('nav.agents')} icon={IconRobot} kind={AGENTS} undelete={agents.undelete} data={data} error={error} onRetry={() => void refetch()} brokenFiles={brokenFiles}
      text={(agent) => `${agent.slug} ${agent.name} ${agent.description} ${agent.model.name}`} matches={(agent) => status.length === 0 || status.includes(shownStatus(agent))} columns={columns}
      filterLabel={t('agents.filter')} filterKeys={['status']}
      filters={<Facet label={t('common.status')} value={status} onChange={(next) => setUrl({ status: writeList(next) })} choices={STATUSES.map((value) => ({ value, label: t(`status.${value}`) }))} />}
      add={mayEdit && <Button component={Link} to={'/agents/new' as never} leftSection={<IconPlus size={15} />}>{t('agents.new')}</Button>}
      empty={{ title: t('agents.empty'), hint: t('agents.emptyHint'), none: t('agents.noneFound') }}
      drawer={(ref, close) => <AgentDrawer key={ref} target={ref} onClose={close} />}
      phone={(agent) => (
        <div>
          <Group gap={6} wrap="nowrap"><StatusBadge status={badge(agent)} iconOnly /><Text truncate flex={1}>{visibleText(agent.name)}</Text><Chip>{visibleText(agent.model.name)}</Chip></Group>
          <Text size="xs" c="dimmed" truncate><Mono>{visibleText(agent.slug)}</Mono>{agent.description && ` · ${visibleText(agent.description)}`}</Text>
        </div>
      )} />
  );
}
