/** A new chat: who answers, and the first message. */
import { Button, Stack, Text, Title } from '@mantine/core';
import { IconRobot } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import type { KeyboardEvent } from 'react';
import { agentsQuery } from '@/api/agents';
import type { Agent } from '@/api/agent-types';
import { chatKeys, chats } from '@/api/chats';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel, Mono, PermissionNote } from '@/parts/basics';
import { useDraft } from '@/parts/draft';
import { useAction } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { Loading } from '@/parts/page';
import type { SetUrlState, UrlState } from '@/parts/url-state';
import classes from './chat.module.css';
import { Composer, EMPTY_DRAFT, type Draft } from './composer';
import { keepFirst } from './first';

function Choices({ agents, chosen, onChoose }: { agents: Agent[]; chosen: string | undefined; onChoose: (slug: string) => void }) {
  const t = useT();
  const onKey = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const at = agents.findIndex((agent) => agent.slug === chosen);
    const next = agents[(at + step + agents.length) % agents.length];
    if (!next) return;
    onChoose(next.slug);
    event.currentTarget.querySelectorAll<HTMLElement>('[role="radio"]')[agents.indexOf(next)]?.focus();
  };
  return (
    <div className={classes.choices} role="radiogroup" tabIndex={-1} aria-label={t('chat.whoAnswers')} onKeyDown={onKey}>
      {agents.map((agent, index) => (
        <button key={agent.id} type="button" role="radio" aria-checked={agent.slug === chosen} tabIndex={agent.slug === chosen || (chosen === undefined && index === 0) ? 0 : -1} className={classes.choice} onClick={() => onChoose(agent.slug)}>
          <Text truncate fw={600}>{visibleText(agent.name)} <Text span c="dimmed" size="xs" fw={400}><Mono>{visibleText(agent.slug)}</Mono></Text></Text>
          <Text size="xs" c="dimmed" lineClamp={2}>{visibleText(agent.description)}</Text>
        </button>
      ))}
    </div>
  );
}

export function NewChat({ url, setUrl }: { url: UrlState; setUrl: SetUrlState }) {
  const t = useT();
  const navigate = useNavigate();
  const mayCall = useMay('caller');
  const mayEdit = useMay('editor');
  const { data: all, error, isPending, refetch } = useQuery(agentsQuery);
  const agents = (all ?? []).filter((agent) => agent.enabled && agent.error === null && agent.published_revision !== null && agent.status !== 'deprecated');
  const chosen = agents.find((agent) => agent.slug === url['agent'])?.slug ?? agents[0]?.slug;
  const draft = useDraft<Draft>('chat.new', EMPTY_DRAFT);
  const create = useAction(() => chats.create(chosen ? { agent: chosen } : {}), {
    invalidates: [chatKeys.lists],
    done: (chat) => {
      keepFirst(chat.id, draft.value.text.trim());
      draft.clear();
      void navigate({ to: '/chat/$id', params: { id: chat.id } as never });
    },
  });
  if (error) return <Stack p="xl"><ErrorPanel error={error} onRetry={() => void refetch()} /></Stack>;
  if (isPending) return <Loading />;
  if (agents.length === 0) {
    return <EmptyState icon={IconRobot} title={t('chat.noAgent')} action={mayEdit ? <Button component={Link} to="/agents">{t('chat.toAgents')}</Button> : <PermissionNote needs="editor" />}>{t('chat.noAgentHint')}</EmptyState>;
  }
  return (
    <div className={classes.start}>
      <Stack className={classes.startInner}>
        <Title order={2}>{t('chat.startTitle')}</Title>
        <Choices agents={agents} chosen={chosen} onChoose={(agent) => setUrl({ agent })} />
        {mayCall ? <Composer draft={draft.value} onDraft={draft.set} isSending={create.isPending} onSend={() => create.mutate(undefined)} placeholder={t('chat.placeholder', { name: visibleText(agents.find((agent) => agent.slug === chosen)?.name ?? '') })} /> : <PermissionNote needs="caller" />}
      </Stack>
    </div>
  );
}
