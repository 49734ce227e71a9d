/** The menu of an agent, and the dialog before its publication. */
import { Button, Group, Menu, Modal, Stack, Text } from '@mantine/core';
import { IconCopy, IconDownload, IconMessageCircle } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Agent } from '@/api/agent-types';
import { AGENTS, agentKeys, agentRevisionQuery, agents } from '@/api/agents';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { ErrorPanel, Mono } from '@/parts/basics';
import { DiffView } from '@/parts/diff-view';
import { saveFile } from '@/parts/download';
import { notify, useAction } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { ToolLink } from '@/parts/links';
import { Loading } from '@/parts/page';
import { ResourceMenu } from '@/parts/resource-detail';
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

export function AgentMenu({ agent, onDeleted }: { agent: Agent; onDeleted: () => void }) {
  const t = useT();
  const navigate = useNavigate();
  const [publishing, setPublishing] = useState(false);
  return (
    <>
      <ResourceMenu kind={AGENTS} requests={agents} resource={agent} publish={() => setPublishing(true)} deleteBody={t('agents.deleteBody')} onDeleted={onDeleted}>
        <Menu.Item leftSection={<IconCopy size={15} />} onClick={() => void navigate({ to: '/agents/new' as never, search: { from: agent.slug } as never })}>{t('tools.duplicate')}</Menu.Item>
        <Menu.Item leftSection={<IconDownload size={15} />} onClick={() => saveFile(`${agent.slug}.yaml`, 'text/plain', toYaml(definitionOf(agent)))}>{t('tools.download')}</Menu.Item>
      </ResourceMenu>
      {publishing && <PublishDialog agent={agent} onClose={() => setPublishing(false)} />}
    </>
  );
}
