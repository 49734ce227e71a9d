import { Button, Group, Skeleton, Stack, Text, Title } from '@mantine/core';
import { IconPencil, IconPlayerStop, IconRepeat } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { invoke } from '@/api/actions';
import { cancelCall } from '@/api/invoke';
import { keys } from '@/api/keys';
import { callListQuery, callQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import type { Call, JsonObject } from '@/api/types';
import { useT } from '@/i18n';
import { CopyButton, ErrorPanel, Facts, Mono, SectionTitle } from '@/parts/basics';
import { ChangeMark } from '@/parts/change-mark';
import { notify, useAction } from '@/parts/feedback';
import { oneLine, visibleText } from '@/parts/format';
import { JsonView } from '@/parts/json-view';
import { CallLink, PageLink, shortName, ToolLink } from '@/parts/links';
import { Drawer, Loading } from '@/parts/page';
import { ResultView } from '@/parts/result-view';
import { StatusBadge } from '@/parts/status';
import { Duration, Time } from '@/parts/time';

const CHILDREN = 20;

function Actions({ call }: { call: Call }) {
  const t = useT();
  const navigate = useNavigate();
  const mayCall = useMay('caller');
  const again = useAction(() => invoke(call.tool, (call.args ?? {}) as JsonObject), {
    invalidates: [keys.calls, keys.approvals],
    done: (outcome) => {
      const id = (outcome as { call_id?: string } | undefined)?.call_id;
      notify(t('calls.ranAgain'));
      if (id) void navigate({ to: '/calls', search: { open: id } as never });
    },
  });
  const cancel = useAction(() => cancelCall(call.id), { invalidates: [keys.calls], done: () => notify(t('calls.cancelRequested')) });
  if (!mayCall) return null;
  const isOpen = call.status === 'running' || call.status === 'pending';
  return (
    <Group gap="xs">
      {isOpen && <Button variant="default" leftSection={<IconPlayerStop size={14} />} loading={cancel.isPending} onClick={() => cancel.mutate(undefined)}>{t('try.cancel')}</Button>}
      <Button variant="default" leftSection={<IconRepeat size={14} />} loading={again.isPending} disabled={call.args === null} onClick={() => again.mutate(undefined)}>{t('calls.runAgain')}</Button>
      <Button variant="default" leftSection={<IconPencil size={14} />} onClick={() => void navigate({ to: '/tools/$ref', params: { ref: call.tool } as never, search: { tab: 'try', call: call.id } as never })}>{t('calls.editAndRun')}</Button>
    </Group>
  );
}

/** The calls that this one made. */
function Children({ call }: { call: Call }) {
  const t = useT();
  const query = useInfiniteQuery(callListQuery({ parent_id: call.id }, CHILDREN));
  const page = query.data?.pages[0];
  if (!page || page.calls.length === 0) return null;
  return (
    <>
      <SectionTitle right={page.total > CHILDREN && <PageLink to="/calls" search={{ parent_id: call.id }}>{t('common.showAll')}</PageLink>}>{t('calls.children', { n: page.total })}</SectionTitle>
      <Stack gap={4}>{page.calls.map((child) => (
        <Group key={child.id} gap="sm" wrap="nowrap"><StatusBadge status={child.status} iconOnly /><CallLink id={child.id}><Mono>{visibleText(shortName(child.tool))}</Mono></CallLink><Text c="dimmed" truncate flex={1}>{oneLine(child.args, 90)}</Text><Text c="dimmed"><Duration ms={child.duration_ms} /></Text></Group>
      ))}</Stack>
    </>
  );
}

/** What the call changed in its workspace. */
function ChangedFiles({ call }: { call: Call }) {
  const t = useT();
  const use = call.workspace_use;
  if (!use || (use.changes.length === 0 && !use.error)) return null;
  const files = use.changes;
  const address = `/workspaces/${encodeURIComponent(use.name)}`;
  return (
    <>
      <SectionTitle right={<PageLink to={address} search={{ tab: 'timeline' }}>{t('workspaces.timeline')}</PageLink>}>{t('workspaces.changedFiles', { n: use.changed })}</SectionTitle>
      {use.error && <Text c="var(--haft-bad)">{visibleText(use.error)}</Text>}
      <Stack gap={4}>{files.map((file) => (
        <Group key={file.path} gap="sm" wrap="nowrap"><ChangeMark change={file.change} />{file.change === 'removed' ? <Mono>{visibleText(file.path)}</Mono> : <PageLink to={address} search={{ file: file.path }}><Mono>{visibleText(file.path)}</Mono></PageLink>}</Group>
      ))}</Stack>
      {use.changed > files.length && <Text size="xs" c="dimmed">{t('json.moreItems', { n: use.changed - files.length })}</Text>}
    </>
  );
}

function Body({ call }: { call: Call }) {
  const t = useT();
  return (
    <Stack gap="sm">
      <Actions call={call} />
      <SectionTitle>{t('calls.arguments')}</SectionTitle>
      {call.args === null ? <Text c="dimmed">{t('result.removed')}</Text> : <JsonView value={call.args} maxHeight={260} />}
      <SectionTitle>{t('calls.outcome')}</SectionTitle>
      <ResultView call={call} isRunning={call.status === 'running'} />
      <ChangedFiles call={call} />
      <Children call={call} />
      <SectionTitle>{t('tools.about')}</SectionTitle>
      <Facts rows={[
        [t('calls.tool'), <><ToolLink tool={call.tool}>{visibleText(call.tool)}</ToolLink> · {t('tools.revisionN', { n: call.revision })}</>],
        [t('calls.caller'), visibleText(call.caller)],
        [t('calls.surface'), `${call.surface} · ${call.mode}`],
        [t('calls.started'), <Time key="s" at={call.started_at} absolute />],
        [t('calls.finished'), call.finished_at && <Time key="finished" at={call.finished_at} absolute />],
        [t('calls.decidedBy'), call.decision && <>{call.decision.decided_by ?? ''} {call.decision.rule && <PageLink to="/policy">{call.decision.rule}</PageLink>} {call.decision.approval_id && <PageLink to="/approvals" search={{ open: call.decision.approval_id, status: 'all' }}>{t('calls.approval')}</PageLink>}</>],
        [t('calls.parent'), call.parent_id && <CallLink key="parent" id={call.parent_id} />],
        [t('calls.root'), call.root_id && call.root_id !== call.parent_id && call.root_id !== call.id && <CallLink key="root" id={call.root_id} />],
        [t('calls.chat'), call.chat_id && <PageLink key="chat" to={`/chat/${encodeURIComponent(call.chat_id)}`}><Mono>{call.chat_id}</Mono></PageLink>],
        [t('calls.idempotency'), call.idempotency_key && <Mono key="idempotency">{visibleText(call.idempotency_key)}</Mono>],
        [t('calls.request'), call.request_id && <Mono key="request">{call.request_id}</Mono>],
        ['ID', <Group key="i" gap={4}><Mono>{call.id}</Mono><CopyButton text={call.id} /></Group>],
      ]} />
    </Stack>
  );
}

export function CallDrawer({ id, onClose }: { id: string; onClose: () => void }) {
  const { data: call, error, refetch } = useQuery(callQuery(id));
  const title = call ? (
    <div>
      <Title order={2}><Mono>{visibleText(shortName(call.tool))}</Mono></Title>
      <Group gap="md"><StatusBadge status={call.status} /><Text c="dimmed"><Duration ms={call.duration_ms} /></Text><Text c="dimmed"><Time at={call.started_at} /></Text></Group>
    </div>
  ) : <Skeleton h={22} w={200} />;
  return <Drawer label={call ? shortName(call.tool) : id} title={title} onClose={onClose}>{error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : call ? <Body call={call} /> : <Loading />}</Drawer>;
}
