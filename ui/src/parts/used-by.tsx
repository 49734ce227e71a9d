/** The users of a tool, an agent, a pipeline or an artifact. */
import { Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { resourceUsageQuery, type ResourcePath, type ResourceUsage } from '@/api/resources';
import { useMay } from '@/api/session';
import type { ToolUsage } from '@/api/types';
import { useT } from '@/i18n';
import { ErrorPanel, Facts, Mono, SectionTitle } from './basics';
import { visibleText } from './format';
import { PageLink, ToolLink } from './links';
import { StatusBadge } from './status';
import { Time } from './time';

const MAX_USERS = 12;

export function UsedBy({ usage }: { usage: ToolUsage | ResourceUsage | undefined }) {
  const t = useT();
  if (!usage) return null;
  const called = 'tool' in usage ? usage.tool : usage.resource;
  const agents = 'agents' in usage ? usage.agents : [];
  const views = 'mcp_views' in usage ? usage.mcp_views : [];
  const rows: [string, ReactNode][] = [
    [t('usage.callers'), usage.callers.length > 0 && usage.callers.slice(0, MAX_USERS).map((caller) => <Group key={caller.name} gap={6} wrap="nowrap"><PageLink to="/calls" search={{ tool: called, caller: caller.name, since: '30d' }}>{visibleText(caller.name)}</PageLink><Text c="dimmed" size="xs">{t('usage.calls', { n: caller.calls })} · <Time at={caller.last_called_at} /></Text></Group>)],
    [t('usage.tokens'), (usage.tokens.length > 0 || usage.unrestricted_tokens > 0) && <Text key="tokens">{[...usage.tokens.slice(0, MAX_USERS).map((token) => visibleText(token.name)), usage.unrestricted_tokens > 0 && t('usage.unrestricted', { n: usage.unrestricted_tokens })].filter(Boolean).join(', ')}</Text>],
    [t('usage.rules'), usage.policy_rules.length > 0 && <Group key="rules" gap="sm">{usage.policy_rules.map((rule) => <Group key={`${rule.scope}${rule.name}`} gap={4}><StatusBadge status={rule.effect} iconOnly /><PageLink to="/policy">{visibleText(rule.name)}</PageLink></Group>)}</Group>],
    [t('usage.tools'), usage.tools.length > 0 && <Group key="tools" gap="sm">{usage.tools.slice(0, MAX_USERS).map((tool) => <ToolLink key={tool.id + tool.field} tool={tool.tool} />)}</Group>],
    [t('nav.agents'), agents.length > 0 && <Group key="agents" gap="sm">{agents.slice(0, MAX_USERS).map((agent) => <PageLink key={agent.id} to="/agents" search={{ open: agent.agent }}>{visibleText(agent.agent)}</PageLink>)}</Group>],
    [t('usage.views'), views.length > 0 && <Mono key="views">{views.join(', ')}</Mono>],
  ];
  if (rows.every(([, value]) => value === false)) return <Text c="dimmed">{t('usage.nobody')}</Text>;
  return <Facts rows={rows.filter(([, value]) => value !== false)} />;
}

/** Reads and shows the users of a resource, for editors. */
export function ResourceUsers({ path, id }: { path: ResourcePath; id: string }) {
  const t = useT();
  const mayEdit = useMay('editor');
  const { data, error, refetch } = useQuery({ ...resourceUsageQuery(path, id), enabled: mayEdit });
  if (!mayEdit) return null;
  return <div><SectionTitle>{t('usage.title')}</SectionTitle>{error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : <UsedBy usage={data} />}</div>;
}
