import { Alert, Button, Checkbox, Group, Modal, SegmentedControl, Select, Stack, Text, Textarea, Title } from '@mantine/core';
import { IconBell, IconCheck, IconHandStop, IconPencil, IconX } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { approvals as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { approvalGrantsQuery, approvalQuery, approvalsQuery, callListQuery, toolQuery } from '@/api/queries';
import { useSession } from '@/api/session';
import type { Approval, JsonObject, RememberScope } from '@/api/types';
import { useT } from '@/i18n';
import { CodeBlock, EmptyState, ErrorPanel, Facts, Mono, SectionTitle } from '@/parts/basics';
import { ConnectAccount } from '@/parts/connect-account';
import { DataTable, type Column } from '@/parts/data-table';
import { notify, useAction } from '@/parts/feedback';
import { oneLine, visibleText } from '@/parts/format';
import { JsonView } from '@/parts/json-view';
import { CallLink, shortName, ToolLink } from '@/parts/links';
import { Drawer, Loading, Page, Split, Toolbar } from '@/parts/page';
import type { Schema } from '@/parts/schema';
import { ArgumentsInput } from '@/parts/schema-form';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { causeText } from './cause';
import { Grants } from './grants';

function History({ approval }: { approval: Approval }) {
  const t = useT();
  const calls = useInfiniteQuery(callListQuery({ tool: approval.tool }, 6)).data?.pages[0]?.calls.filter((call) => call.id !== approval.call_id) ?? [];
  if (calls.length === 0) return <Text c="dimmed">{t('approvals.firstTime')}</Text>;
  return (
    <Stack gap={4}>
      {calls.slice(0, 5).map((call) => (
        <Group key={call.id} gap="sm" wrap="nowrap"><StatusBadge status={call.status} iconOnly /><CallLink id={call.id}><Time at={call.started_at} /></CallLink><Text c="dimmed" truncate flex={1}>{oneLine(call.args, 100)}</Text></Group>
      ))}
    </Stack>
  );
}

function Decide({ approval, onDone }: { approval: Approval; onDone: () => void }) {
  const t = useT();
  const tool = useQuery(toolQuery(approval.tool)).data;
  const [editing, setEditing] = useState(false);
  const [args, setArgs] = useState(approval.args as JsonObject);
  const [mode, setMode] = useState<'form' | 'json'>('form');
  const [denying, setDenying] = useState(false);
  const [reason, setReason] = useState('');
  const [scope, setScope] = useState<string | null>(null);
  const [anyArgs, setAnyArgs] = useState(false);
  const invalidates = [keys.approvals, keys.calls];
  const approve = useAction(() => actions.approve(approval.id, {
    ...(editing ? { args } : {}), ...(scope ? { remember: { scope: scope as RememberScope, any_args: anyArgs } } : {}),
  }), { invalidates, done: () => { notify(t('approvals.approvedNotice', { name: shortName(approval.tool) })); onDone(); } });
  const deny = useAction(() => actions.deny(approval.id, reason || undefined), { invalidates, done: () => { notify(t('approvals.deniedNotice', { name: shortName(approval.tool) })); onDone(); } });
  if (!approval.may_decide) return <Alert variant="light" color="gray">{t('approvals.mayNot')}</Alert>;
  return (
    <Stack gap="md">
      {editing && <ArgumentsInput schema={(tool?.input_schema ?? { type: 'object' }) as Schema} value={args} onChange={setArgs} violations={[]} mode={mode} onMode={setMode} />}
      <Group align="flex-end" gap="sm">
        <Select label={t('approvals.remember')} placeholder={t('approvals.rememberNot')} clearable value={scope} onChange={setScope} flex={1}
          data={[{ value: 'session', label: t('approvals.scope.session') }, { value: 'token', label: t('approvals.scope.token') }, { value: 'tool', label: t('approvals.scope.tool') }]} />
        {scope && <Checkbox mb={6} label={t('approvals.anyArgs')} checked={anyArgs} onChange={(event) => setAnyArgs(event.currentTarget.checked)} />}
      </Group>
      <Group grow gap="sm">
        <Button size="md" leftSection={<IconCheck size={17} />} loading={approve.isPending} onClick={() => approve.mutate(undefined)}>{t(editing ? 'approvals.approveEdited' : 'approvals.approve')}</Button>
        <Button size="md" variant="default" leftSection={<IconX size={17} />} onClick={() => setDenying(true)}>{t('approvals.deny')}</Button>
      </Group>
      {!editing && <Button variant="subtle" leftSection={<IconPencil size={14} />} onClick={() => setEditing(true)}>{t('approvals.edit')}</Button>}
      <Modal opened={denying} onClose={() => setDenying(false)} title={t('approvals.denyTitle', { name: shortName(approval.tool) })}>
        <form onSubmit={(event) => { event.preventDefault(); deny.mutate(undefined); }}>
          <Stack><Textarea label={t('approvals.reason')} description={t('approvals.reasonHelp')} value={reason} onChange={(event) => setReason(event.currentTarget.value)} autosize minRows={2} data-autofocus />
            <Group justify="flex-end"><Button variant="default" onClick={() => setDenying(false)}>{t('common.cancel')}</Button><Button type="submit" color="red.8" loading={deny.isPending}>{t('approvals.deny')}</Button></Group></Stack>
        </form>
      </Modal>
    </Stack>
  );
}

/** Nobody approves such a call: it goes on when its person has connected the account. */
function WaitsForAccount({ approval, provider }: { approval: Approval; provider: string }) {
  const t = useT();
  const session = useSession();
  if (approval.requested_by !== session.name) return <Alert variant="light" color="gray">{t('accounts.waitsForOther', { who: visibleText(approval.requested_by), provider: visibleText(provider) })}</Alert>;
  return (
    <Stack gap="sm">
      <Text>{t('accounts.waits', { tool: visibleText(approval.tool), provider: visibleText(provider) })}</Text>
      <div><ConnectAccount provider={provider} /></div>
    </Stack>
  );
}

function Detail({ id, known, onClose }: { id: string; known: Approval | undefined; onClose: () => void }) {
  const t = useT();
  const { data: loaded, error } = useQuery(approvalQuery(id));
  // A list leaves out long arguments.
  const approval = loaded ?? (known?.shortened ? undefined : known);
  const tool = useQuery({ ...toolQuery(approval?.tool ?? ''), enabled: approval !== undefined }).data;
  if (!approval) return <Drawer label={id} title={null} onClose={onClose}>{error ? <ErrorPanel error={error} /> : <Loading />}</Drawer>;
  const { preview } = approval;
  const cause = causeText('name' in approval.cause ? `${approval.cause.kind}:${approval.cause.name}` : approval.cause.kind, t);
  return (
    <Drawer label={approval.tool} onClose={onClose} title={<div><Title order={2}><Mono>{visibleText(shortName(approval.tool))}</Mono></Title><Group gap="md"><StatusBadge status={approval.status} /><Text c="dimmed"><Time at={approval.created_at} /></Text></Group></div>}>
      <Stack gap="sm">
        <Text>{t('approvals.wants', { who: visibleText(approval.requested_by), tool: visibleText(approval.tool) })}</Text>
        {tool && <Text c="dimmed">{visibleText(tool.description)}</Text>}
        <SectionTitle>{t('calls.arguments')}</SectionTitle>
        <JsonView value={approval.args} maxHeight={320} />
        {preview ? <><SectionTitle>{t('approvals.preview')}</SectionTitle><CodeBlock text={visibleText(preview)} wrap maxHeight="16rem" /></>
          : tool?.implementation && <><SectionTitle>{t('approvals.whatItDoes')}</SectionTitle><JsonView value={tool.implementation} maxHeight={220} /></>}
        {approval.status === 'waiting' && approval.cause.kind === 'account' && <WaitsForAccount approval={approval} provider={approval.cause.name} />}
        {approval.status === 'waiting' && approval.cause.kind !== 'account' && <Decide key={approval.id} approval={approval} onDone={onClose} />}
        <SectionTitle>{t('approvals.lastTimes')}</SectionTitle>
        <History approval={approval} />
        <SectionTitle>{t('tools.about')}</SectionTitle>
        <Facts rows={[
          [t('approvals.why'), cause], [t('calls.tool'), <ToolLink key="t" tool={approval.tool}>{approval.tool}</ToolLink>], [t('calls.surface'), approval.surface], [t('tools.revision'), approval.revision],
          [t('approvals.expires'), <Time key="e" at={approval.expires_at} />], [t('approvals.decided'), approval.decided_at && <><Time at={approval.decided_at} /> · {approval.decided_by}</>],
          [t('approvals.reason'), approval.reason && visibleText(approval.reason)], [t('nav.calls'), <CallLink key="c" id={approval.call_id} />],
        ]} />
      </Stack>
    </Drawer>
  );
}

function NotifyButton() {
  const t = useT();
  const [state, setState] = useState(() => ('Notification' in window ? Notification.permission : 'denied'));
  if (state !== 'default') return null;
  return <Button variant="default" leftSection={<IconBell size={14} />} onClick={() => void Notification.requestPermission().then(setState)}>{t('approvals.notify')}</Button>;
}

export function ApprovalsPage() {
  const t = useT();
  const [url, setUrl] = useUrlState();
  const status = url['status'] ?? 'waiting';
  const isRemembered = status === 'remembered';
  const { data: page, error, isPending, refetch } = useQuery({ ...approvalsQuery(status), enabled: !isRemembered });
  const grants = useQuery({ ...approvalGrantsQuery, enabled: isRemembered }).data;
  const rows = page?.approvals ?? [];
  const columns = useMemo<Column<Approval>[]>(() => [
    { key: 'status', header: '', width: '16px', render: (row) => <StatusBadge status={row.status} iconOnly /> },
    { key: 'tool', header: t('calls.tool'), width: 'minmax(8rem, 1fr)', render: (row) => <Mono>{visibleText(shortName(row.tool))}</Mono> },
    { key: 'who', header: t('approvals.requestedBy'), width: 'minmax(6rem, 0.7fr)', render: (row) => visibleText(row.requested_by) },
    { key: 'args', header: t('calls.arguments'), width: 'minmax(6rem, 2fr)', secondary: true, render: (row) => <Text c="dimmed" truncate>{oneLine(row.args)}</Text> },
    { key: 'time', header: t('approvals.asked'), width: '7rem', render: (row) => <Time at={row.created_at} /> },
    { key: 'expires', header: t('approvals.expires'), width: '7rem', secondary: true, render: (row) => <Time at={row.expires_at} /> },
  ], [t]);
  return (
    <Page title={t('nav.approvals')} count={isRemembered ? grants?.length : page?.total} primary={<NotifyButton />}>
      <Toolbar>
        <SegmentedControl aria-label={t('common.status')} value={status} onChange={(next) => setUrl({ status: next === 'waiting' ? undefined : next, open: undefined })}
          data={[{ value: 'waiting', label: t('status.waiting') }, { value: 'approved', label: t('status.approved') }, { value: 'denied', label: t('status.denied') }, { value: 'all', label: t('common.all') }, { value: 'remembered', label: t('approvals.remembered') }]} />
      </Toolbar>
      {isRemembered ? <Split drawer={null}><Grants /></Split> : <Split drawer={url['open'] && <Detail key={url['open']} id={url['open']} known={rows.find((row) => row.id === url['open'])} onClose={() => setUrl({ open: undefined })} />}>
        {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : (
          <DataTable label={t('nav.approvals')} rows={rows} columns={columns} rowKey={(row) => row.id} rowName={(row) => row.tool} openKey={url['open']} onOpen={(row) => setUrl({ open: row.id }, { push: true })}
            empty={<EmptyState icon={IconHandStop} title={t(status === 'waiting' ? 'approvals.empty' : 'approvals.none')}>{t('approvals.emptyHint')}</EmptyState>}
            phone={(row) => <div><Group gap={6} wrap="nowrap"><StatusBadge status={row.status} iconOnly /><Text truncate flex={1}><Mono>{visibleText(shortName(row.tool))}</Mono></Text><Text size="xs" c="dimmed"><Time at={row.created_at} /></Text></Group><Text size="xs" c="dimmed" truncate>{visibleText(row.requested_by)}: {oneLine(row.args, 90)}</Text></div>} />
        )}
      </Split>}
    </Page>
  );
}
