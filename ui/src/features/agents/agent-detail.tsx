import { Alert, Group, Stack, Table, Tabs, Text, Title } from '@mantine/core';
import { IconFile } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Fragment, Suspense } from 'react';
import type { Agent, AgentRevision } from '@/api/agent-types';
import { AGENTS, agents, agentToolsQuery } from '@/api/agents';
import { relatedRunsQuery } from '@/api/runs';
import { readResource } from '@/api/resources';
import { useMay } from '@/api/session';
import type { Json } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, CodeBlock, CopyButton, EmptyState, ErrorPanel, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { duration, oneLine, visibleText } from '@/parts/format';
import { lazyPart } from '@/parts/lazy';
import { PageLink, ToolLink } from '@/parts/links';
import { Loading } from '@/parts/page';
import { ResourceDrawer, ResourcePage, type ResourceParts } from '@/parts/resource-detail';
import { ResourceHistory } from '@/parts/resource-history';
import type { Schema } from '@/parts/schema';
import { SchemaTable } from '@/parts/schema-table';
import { toYaml } from '@/parts/source';
import { StatusBadge } from '@/parts/status';
import { getSubtypeLabel, shownStatus } from '@/parts/taxonomy';
import { Time } from '@/parts/time';
import { ToolMarks } from '@/parts/tool-picker/marks';
import { useUrlState } from '@/parts/url-state';
import { ResourceUsers } from '@/parts/used-by';
import { AgentMenu, TryAgent } from './agent-actions';
import { definitionOf, variableText } from './definition';

// The editor brings CodeMirror with it.
const EditAgent = lazyPart(async () => (await import('./agent-editor')).EditAgent);
const ReadAgent = lazyPart(async () => (await import('./agent-editor')).ReadAgent);

const TABS = ['overview', 'definition', 'tools', 'runs', 'revisions'] as const;

function Heading({ agent, isPage }: { agent: Agent; isPage: boolean }) {
  return (
    <div>
      <Title order={isPage ? 1 : 2} style={{ overflowWrap: 'anywhere' }}>{visibleText(agent.name)}</Title>
      <Group gap="sm" mt={2}>
        <StatusBadge status={agent.ready ? shownStatus(agent) : 'not_ready'} />
        <Group gap={2}><Mono>{visibleText(agent.slug)}</Mono><CopyButton text={agent.slug} /></Group>
        <Chip>{visibleText(agent.model.name)}</Chip>
      </Group>
    </div>
  );
}

function ToolTable({ agent }: { agent: Agent }) {
  const t = useT();
  const { data, error, refetch } = useQuery(agentToolsQuery(agent.slug));
  if (error) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading rows={4} />;
  return (
    <Stack>
      {data.missing.length > 0 && <Alert color="yellow" variant="light" title={t('agents.missing')}>{data.missing.map((rule) => <Text key={rule}><Mono>{visibleText(rule)}</Mono></Text>)}</Alert>}
      {data.tools.length === 0 ? <EmptyState title={t('agents.noToolsYet')}>{t('agents.noToolsHint')}</EmptyState> : (
        <>
          <Text c="dimmed">{t('picker.summary', { n: data.tools.length })} · {t('picker.cost', { n: data.tokens })}</Text>
          <Table.ScrollContainer minWidth={320}>
            <Table verticalSpacing={6}>
              <Table.Thead><Table.Tr><Table.Th>{t('common.name')}</Table.Th><Table.Th>{t('tools.type')}</Table.Th><Table.Th ta="right">{t('agents.tokens')}</Table.Th></Table.Tr></Table.Thead>
              <Table.Tbody>
                {data.tools.map((tool) => (
                  <Table.Tr key={tool.qualified}>
                    <Table.Td><Group gap={6} wrap="nowrap"><ToolLink tool={tool.qualified} /><ToolMarks renderer={tool.renderer ?? undefined} needsApproval={tool.requires_approval} /></Group><Text size="xs" c="dimmed" lineClamp={1}>{visibleText(tool.description)}</Text></Table.Td>
                    <Table.Td><Chip>{getSubtypeLabel(tool.implementation_type, t)}</Chip></Table.Td>
                    <Table.Td ta="right">{tool.tokens.toLocaleString()}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        </>
      )}
    </Stack>
  );
}

function Runs({ agent }: { agent: Agent }) {
  const t = useT();
  const { data, error, refetch } = useQuery(relatedRunsQuery({ agent: agent.slug }));
  if (error) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading rows={4} />;
  if (data.length === 0) return <EmptyState title={t('agents.noRuns')} action={<TryAgent agent={agent} />}>{t('agents.noRunsHint')}</EmptyState>;
  return (
    <Stack>
      <Table.ScrollContainer minWidth={340}>
        <Table verticalSpacing={6} highlightOnHover>
          <Table.Thead><Table.Tr><Table.Th>{t('calls.time')}</Table.Th><Table.Th>{t('common.status')}</Table.Th><Table.Th>{t('agents.result')}</Table.Th><Table.Th ta="right">{t('agents.tokens')}</Table.Th></Table.Tr></Table.Thead>
          <Table.Tbody>
            {data.slice(0, 30).map((run) => (
              <Table.Tr key={run.id}>
                <Table.Td><PageLink to="/runs" search={{ open: run.id }}><Time at={run.created_at} /></PageLink></Table.Td>
                <Table.Td><StatusBadge status={run.status} /></Table.Td>
                <Table.Td><Text c={run.error ? 'var(--haft-bad)' : 'dimmed'} lineClamp={1}>{run.error ? oneLine(run.error.message, 120) : oneLine(run.output, 120)}</Text></Table.Td>
                <Table.Td ta="right">{(run.usage.input_tokens + run.usage.output_tokens).toLocaleString()}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      <div><PageLink to="/runs" search={{ agent: agent.slug }}>{t('agents.allRuns')}</PageLink></div>
    </Stack>
  );
}

function Definition({ agent }: { agent: Agent }) {
  const t = useT();
  const mayEdit = useMay('editor');
  if (agent.path !== null) return <Stack><Group gap={6} c="dimmed" wrap="nowrap"><IconFile size={14} aria-hidden /><Text c="dimmed">{t('agents.fromFile', { path: agent.path })}</Text></Group><ReadAgent agent={agent} /></Stack>;
  return mayEdit ? <EditAgent key={agent.id} agent={agent} /> : <Stack><PermissionNote needs="editor" /><ReadAgent agent={agent} /></Stack>;
}

const modelText = (model: Agent['model']) => [model.name, model.provider, model.base_url].filter(Boolean).join(' · ');

function Overview({ agent }: { agent: Agent }) {
  const t = useT();
  const { budget, supervision, model, fallback } = agent;
  const variables = Object.entries(agent.variables ?? {});
  const tools = useQuery(agentToolsQuery(agent.slug)).data;
  return (
    <Stack gap="md">
      {agent.error && <ErrorPanel error={new Error(agent.error)} title={t('agents.notReady')} />}
      {tools && tools.missing.length > 0 && <Alert color="yellow" variant="light" title={t('agents.missing')}>{tools.missing.map((rule) => <Text key={rule}><Mono>{visibleText(rule)}</Mono></Text>)}</Alert>}
      {agent.description && <Text style={{ overflowWrap: 'anywhere' }}>{visibleText(agent.description)}</Text>}
      <div>
        <SectionTitle>{t('agents.model')}</SectionTitle>
        <Facts rows={[
          [t('agents.modelName'), <Mono key="m">{visibleText(modelText(model))}</Mono>],
          [t('agents.credential'), model.credential && <PageLink key="c" to="/credentials" search={{ open: model.credential }}>{visibleText(model.credential)}</PageLink>],
          [t('agents.temperature'), model.temperature], [t('agents.reasoning'), model.reasoning],
          [t('agents.fallback'), fallback && <Mono key="f">{visibleText(modelText(fallback))}</Mono>],
        ]} />
        <SectionTitle>{t('agents.instructions')}</SectionTitle>
        {agent.instructions ? <CodeBlock wrap text={visibleText(agent.instructions)} maxHeight="18rem" /> : <Text c="dimmed">{t('common.none')}</Text>}
        {variables.length > 0 && <><SectionTitle>{t('agents.variables')}</SectionTitle><Facts rows={variables.map(([name, value]) => [visibleText(name), visibleText(variableText(value as Json))])} /></>}
        <SectionTitle>{t('nav.tools')}</SectionTitle>
        {agent.tools.length === 0 ? <Text c="dimmed">{t('agents.noTools')}</Text> : (
          <Stack gap="sm">
            <Group gap={4}>{agent.tools.map((rule) => <Chip key={rule}>{visibleText(rule)}</Chip>)}{(agent.exclude_tools ?? []).map((rule) => <Chip key={`!${rule}`} title={t('picker.excluded')}>!{visibleText(rule)}</Chip>)}</Group>
            {tools && <Text c="dimmed">{t('agents.toolCount', { n: tools.tools.length })} · {t('picker.cost', { n: tools.tokens })}</Text>}
          </Stack>
        )}
        <SectionTitle>{t('agents.limits')}</SectionTitle>
        <Facts rows={[
          [t('agents.execution'), t(agent.tool_execution === 'parallel_safe' ? 'agents.parallel' : 'agents.sequential')],
          [t('agents.maxIterations'), agent.max_iterations.toLocaleString()],
          [t('agents.maxParallel'), agent.tool_execution === 'parallel_safe' && agent.max_parallel_tools.toLocaleString()],
          [t('agents.budgetCalls'), budget?.calls?.toLocaleString()], [t('agents.budgetTokens'), budget?.tokens?.toLocaleString()],
          [t('agents.budgetTime'), budget?.time_ms ? duration(budget.time_ms) : undefined], [t('agents.budgetCost'), budget?.cost],
          [t('agents.requirePublished'), agent.require_published && t('common.yes')],
          [t('agents.attempts'), supervision?.attempts],
          [t('agents.contextWindow'), agent.context_window?.toLocaleString()],
        ]} />
        {agent.output_schema !== undefined && agent.output_schema !== null && <><SectionTitle>{t('agents.outputSchema')}</SectionTitle><SchemaTable schema={agent.output_schema as Schema} /></>}
        <ResourceUsers path="agents" id={agent.id} />
        <SectionTitle>{t('agents.use')}</SectionTitle>
        <CodeBlock text={`haft chat --agent ${agent.slug}`} />
        <SectionTitle>{t('tools.about')}</SectionTitle>
        <Facts rows={[
          ['ID', <Mono key="id">{agent.id}</Mono>], [t('tools.file'), agent.path && <Mono key="file">{visibleText(agent.path)}</Mono>],
          [t('tools.revision'), agent.revision],
          [t('common.created'), <Fragment key="c"><Time at={agent.created_at} />{agent.created_by && ` · ${visibleText(agent.created_by)}`}</Fragment>],
          [t('common.modified'), <Fragment key="m"><Time at={agent.modified_at} />{agent.modified_by && ` · ${visibleText(agent.modified_by)}`}</Fragment>],
          [t('tools.published'), agent.published_at && <><Time at={agent.published_at} /> · {t('tools.revisionN', { n: agent.published_revision ?? 0 })}</>],
        ]} />
      </div>
    </Stack>
  );
}

const agentText = (revision: AgentRevision) => toYaml(definitionOf(revision.definition ?? {}));

function Body({ agent }: { agent: Agent }) {
  const t = useT();
  const [url, setUrl] = useUrlState();
  const tab = TABS.find((name) => name === url['tab']) ?? 'overview';
  return (
    <Tabs value={tab} onChange={(next) => setUrl({ tab: next === 'overview' || next === null ? undefined : next })}>
      <Tabs.List mb="lg">{TABS.map((name) => <Tabs.Tab key={name} value={name}>{t(`agents.tab.${name}`)}</Tabs.Tab>)}</Tabs.List>
      <Suspense fallback={<Loading rows={5} />}>
        <Tabs.Panel value="overview"><Overview agent={agent} /></Tabs.Panel>
        <Tabs.Panel value="definition"><Definition agent={agent} /></Tabs.Panel>
        <Tabs.Panel value="tools"><ToolTable agent={agent} /></Tabs.Panel>
        <Tabs.Panel value="runs"><Runs agent={agent} /></Tabs.Panel>
        <Tabs.Panel value="revisions"><ResourceHistory kind={AGENTS} resource={agent} requests={agents} text={agentText} oneText={t('agents.oneRevision')} /></Tabs.Panel>
      </Suspense>
    </Tabs>
  );
}

const PARTS: ResourceParts<Agent> = {
  kind: AGENTS,
  read: readResource<Agent>('agents'),
  heading: (agent, isPage) => <Heading agent={agent} isPage={isPage} />,
  actions: (agent, onDeleted) => <><TryAgent agent={agent} /><AgentMenu agent={agent} onDeleted={onDeleted} /></>,
  body: (agent) => <Body agent={agent} />,
};

export const AgentDrawer = ({ target, onClose }: { target: string; onClose: () => void }) => <ResourceDrawer parts={PARTS} target={target} onClose={onClose} />;

export const AgentPage = () => <ResourcePage parts={PARTS} />;
