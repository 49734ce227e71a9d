/** Publish, deprecate, enable, delete, duplicate: the menu of an agent. */
import { ActionIcon, Button, Group, Menu, Modal, Stack, Text } from '@mantine/core';
import { IconArchive, IconCopy, IconDots, IconDownload, IconMessageCircle, IconPlayerPause, IconPlayerPlay, IconRocket, IconTrash } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Agent } from '@/api/agent-types';
import { agentKeys, agentQuery, agentRevisionQuery, agents } from '@/api/agents';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { ErrorPanel, Mono } from '@/parts/basics';
import { DiffView } from '@/parts/diff-view';
import { saveFile } from '@/parts/download';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { ToolLink } from '@/parts/links';
import { Loading } from '@/parts/page';
import { toYaml } from '@/parts/source';
import { definitionOf, readBlockers } from './definition';

/** The tools that block publishing, each with a link. */
function Blockers({ error }: { error: unknown }) {
  const t = useT();
  const blockers = readBlockers(error);
  if (blockers.length === 0) return null;
  return (
    <Stack gap={4} component="ul" style={{ margin: 0, paddingLeft: '1.2rem' }} aria-label={t('agents.blockers')}>
      {blockers.map((blocker) => (
        <li key={blocker.tool + blocker.message}>
          {blocker.tool.includes('*') || blocker.tool.startsWith('tag:') || blocker.tool === '' ? blocker.tool !== '' && <Mono>{visibleText(blocker.tool)}</Mono> : <ToolLink tool={blocker.tool}>{visibleText(blocker.tool)}</ToolLink>}
          {blocker.message !== '' && <Text span c="dimmed" ml={6}>{visibleText(blocker.message)}</Text>}
        </li>
      ))}
    </Stack>
  );
}

export function PublishDialog({ agent, onClose }: { agent: Agent; onClose: () => void }) {
  const t = useT();
  const from = agent.published_revision ?? 0;
  const [failure, setFailure] = useState<unknown>();
  const published = useQuery({ ...agentRevisionQuery(agent.slug, from), enabled: from > 0 && from !== agent.revision });
  const publish = useAction(() => agents.publish(agent.id), { invalidates: [agentKeys.all], failed: setFailure, done: () => { onClose(); notify(t('tools.publishedOne', { name: agent.name })); } });
  return (
    <Modal opened onClose={onClose} size="xl" title={<Text fw={600} size="md">{t('tools.publishTitle', { name: agent.name, n: agent.revision })}</Text>}>
      <Stack>
        <Text>{from === 0 ? t('agents.publishFirst') : from === agent.revision ? t('tools.publishSame') : t('tools.publishDiff', { from, to: agent.revision })}</Text>
        {published.isFetching && <Loading rows={3} />}
        {published.data?.definition && <DiffView before={toYaml(definitionOf(published.data.definition))} after={toYaml(definitionOf(agent))} beforeLabel={t('tools.revisionN', { n: from })} afterLabel={t('tools.revisionN', { n: agent.revision })} />}
        {Boolean(failure) && <><ErrorPanel error={failure} title={t('agents.cannotPublish')} /><Blockers error={failure} /></>}
        <Group justify="flex-end"><Button variant="default" onClick={onClose}>{t('common.cancel')}</Button><Button loading={publish.isPending} onClick={() => publish.mutate(undefined)}>{t('tools.publish')}</Button></Group>
      </Stack>
    </Modal>
  );
}

export function TryAgent({ agent }: { agent: Agent }) {
  const t = useT();
  const mayCall = useMay('caller');
  if (!mayCall) return null;
  const isOff = !agent.enabled || !agent.ready;
  return <Button component={Link} to={'/chat' as never} search={{ agent: agent.slug } as never} disabled={isOff} leftSection={<IconMessageCircle size={14} />}>{t('tools.try')}</Button>;
}

export function useEnableAgent() {
  const t = useT();
  const action = useAction(({ agent, enabled }: { agent: Agent; enabled: boolean }) => agents.enable(agent.id, enabled), {
    invalidates: [agentKeys.all],
    done: (_, { agent, enabled }) => notify(t(enabled ? 'agents.enabledNotice' : 'agents.disabledNotice', { name: agent.name }), { label: t('common.undo'), run: () => action.mutate({ agent, enabled: !enabled }) }),
  });
  return action;
}

export function AgentMenu({ agent, onDeleted }: { agent: Agent; onDeleted: () => void }) {
  const t = useT();
  const ask = useAsk();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const mayEdit = useMay('editor');
  const [publishing, setPublishing] = useState(false);
  const enable = useEnableAgent();
  const deprecate = useAction(() => agents.deprecate(agent.id), { invalidates: [agentKeys.all], done: () => notify(t('agents.deprecatedNotice', { name: agent.name })) });
  const revive = useAction(() => agents.create(definitionOf(agent)), { invalidates: [agentKeys.all], done: () => notify(t('agents.revived', { name: agent.name })) });
  const remove = useAction(() => agents.remove(agent.id), {
    invalidates: [agentKeys.all],
    done: () => {
      queries.removeQueries({ queryKey: agentQuery(agent.slug).queryKey });
      onDeleted();
      notify(t('agents.deleted', { name: agent.name }), { label: t('common.undo'), run: () => revive.mutate(undefined) });
    },
  });
  if (!mayEdit) return null;
  const isFile = agent.path !== null;
  const askRemove = async () => { if (await ask({ title: t('tools.deleteTitle', { name: agent.name }), body: t('agents.deleteBody'), confirm: t('common.delete'), danger: true })) remove.mutate(undefined); };
  const askDeprecate = async () => { if (await ask({ title: t('tools.deprecateTitle', { name: agent.name }), body: t('agents.deprecateBody'), confirm: t('tools.deprecate') })) deprecate.mutate(undefined); };
  return (
    <>
      <Menu position="bottom-end" width={220}>
        <Menu.Target><ActionIcon aria-label={t('common.more')}><IconDots size={16} /></ActionIcon></Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<IconRocket size={15} />} onClick={() => setPublishing(true)}>{t('tools.publishMenu')}</Menu.Item>
          {agent.status !== 'deprecated' && <Menu.Item leftSection={<IconArchive size={15} />} onClick={() => void askDeprecate()}>{t('tools.deprecateMenu')}</Menu.Item>}
          <Menu.Item leftSection={agent.enabled ? <IconPlayerPause size={15} /> : <IconPlayerPlay size={15} />} onClick={() => enable.mutate({ agent, enabled: !agent.enabled })}>{t(agent.enabled ? 'common.disable' : 'common.enable')}</Menu.Item>
          <Menu.Item leftSection={<IconCopy size={15} />} onClick={() => void navigate({ to: '/agents/new' as never, search: { from: agent.slug } as never })}>{t('tools.duplicate')}</Menu.Item>
          <Menu.Item leftSection={<IconDownload size={15} />} onClick={() => saveFile(`${agent.slug}.yaml`, 'text/plain', toYaml(definitionOf(agent)))}>{t('tools.download')}</Menu.Item>
          {!isFile && <><Menu.Divider /><Menu.Item color="red" leftSection={<IconTrash size={15} />} onClick={() => void askRemove()}>{t('common.delete')}…</Menu.Item></>}
        </Menu.Dropdown>
      </Menu>
      {publishing && <PublishDialog agent={agent} onClose={() => setPublishing(false)} />}
    </>
  );
}

