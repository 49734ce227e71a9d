import { ActionIcon, Alert, Button, Checkbox, Group, Modal, SegmentedControl, Stack, Switch, Table, TagsInput, Text, TextInput, Title, Tooltip } from '@mantine/core';
import { IconChevronDown, IconChevronRight, IconPlus, IconRefresh, IconSend, IconTrash, IconWebhook } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Fragment, useMemo, useState } from 'react';
import { webhooks as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { deliveriesQuery, webhooksQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import type { Delivery, Webhook, WebhookEvent, WebhookWithSecret } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { JsonView } from '@/parts/json-view';
import { Content, Drawer, Loading, Page, Split } from '@/parts/page';
import { ShownOnce } from '@/parts/secret-field';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { changedEvents, WEBHOOK_EVENTS } from './webhook-events';

function EventsField({ value, onChange }: { value: WebhookEvent[]; onChange: (value: WebhookEvent[]) => void }) {
  const t = useT();
  return (
    <Checkbox.Group label={t('webhooks.events')} value={value} onChange={(next) => onChange(next as WebhookEvent[])}>
      <Stack gap={6} mt={4}>{WEBHOOK_EVENTS.map((event) => <Checkbox key={event} value={event} label={<><Mono>{event}</Mono> <Text span c="dimmed">{t(`webhooks.event.${event}` as MessageKey)}</Text></>} />)}</Stack>
    </Checkbox.Group>
  );
}

function WebhookForm({ webhook, onDone }: { webhook?: Webhook; onDone: (saved: WebhookWithSecret) => void }) {
  const t = useT();
  const [url, setUrl] = useState(webhook?.url ?? '');
  const [events, setEvents] = useState<WebhookEvent[]>(webhook?.events ?? ['call.finished', 'approval.requested']);
  const [tools, setTools] = useState<string[]>(webhook?.tools ?? []);
  const [failure, setFailure] = useState<unknown>();
  const save = useAction(() => (webhook
    ? actions.patch(webhook.id, { url, tools, ...changedEvents(webhook.events, events) })
    : actions.create({ url, events, tools, enabled: true })), { invalidates: [keys.webhooks], failed: setFailure, done: onDone });
  return (
    <form onSubmit={(event) => { event.preventDefault(); save.mutate(undefined); }}>
      <Stack>
        <TextInput label="URL" type="url" required value={url} placeholder="https://example.com/hooks/haft" description={t('webhooks.urlHelp')} onChange={(event) => setUrl(event.currentTarget.value)} data-autofocus />
        <EventsField value={events} onChange={setEvents} />
        <TagsInput label={t('webhooks.tools')} description={t('tokens.toolsHelp')} placeholder={tools.length === 0 ? t('connect.allTools') : ''} value={tools} onChange={setTools} />
        {Boolean(failure) && <ErrorPanel error={failure} />}
        <Group justify="flex-end"><Button type="submit" loading={save.isPending} disabled={events.length === 0}>{t(webhook ? 'common.save' : 'webhooks.create')}</Button></Group>
      </Stack>
    </form>
  );
}

const DELIVERY_STATUS = { pending: 'pending', delivered: 'success', failed: 'error' } as const;

function DeliveryRow({ delivery, mayRedeliver }: { delivery: Delivery; mayRedeliver: boolean }) {
  const t = useT();
  const [open, setOpen] = useState(false);
  const redeliver = useAction(() => actions.redeliver(delivery.webhook_id, delivery.id), { invalidates: [keys.webhooks], done: () => notify(t('webhooks.redelivering')) });
  return (
    <Fragment>
      <Table.Tr>
        <Table.Td w={24} pr={0}><ActionIcon size="sm" aria-expanded={open} aria-label={t('webhooks.payload')} onClick={() => setOpen(!open)}>{open ? <IconChevronDown size={14} /> : <IconChevronRight size={14} />}</ActionIcon></Table.Td>
        <Table.Td><StatusBadge status={DELIVERY_STATUS[delivery.status]} label={t(`webhooks.status.${delivery.status}`)} /></Table.Td>
        <Table.Td><Mono>{delivery.event}</Mono>{delivery.error && <Text size="xs" c="var(--haft-bad)" style={{ overflowWrap: 'anywhere' }}>{visibleText(delivery.error.slice(0, 300))}</Text>}</Table.Td>
        <Table.Td ta="right">{delivery.response_status ?? '—'}</Table.Td>
        <Table.Td ta="right"><Time at={delivery.attempted_at ?? delivery.created_at} /></Table.Td>
        <Table.Td w={32}>{mayRedeliver && <Tooltip label={t('webhooks.redeliver')}><ActionIcon size="sm" aria-label={t('webhooks.redeliver')} loading={redeliver.isPending} onClick={() => redeliver.mutate(undefined)}><IconRefresh size={14} /></ActionIcon></Tooltip>}</Table.Td>
      </Table.Tr>
      {open && (
        <Table.Tr>
          <Table.Td colSpan={6}>
            <Facts rows={[[t('webhooks.attempts'), delivery.attempts], [t('webhooks.next'), delivery.next_attempt_at && <Time key="next" at={delivery.next_attempt_at} />], ['webhook-id', <Mono key="i">{delivery.id}</Mono>]]} />
            <JsonView value={delivery.payload} maxHeight={240} />
          </Table.Td>
        </Table.Tr>
      )}
    </Fragment>
  );
}

function Deliveries({ webhook }: { webhook: Webhook }) {
  const t = useT();
  const [url, setUrl] = useUrlState();
  const status = url['delivery'] ?? '';
  const { data, error, refetch } = useQuery(deliveriesQuery(webhook.id, status));
  return (
    <>
      <SectionTitle right={<SegmentedControl size="xs" aria-label={t('common.status')} value={status} onChange={(next) => setUrl({ delivery: next || undefined })} data={[{ value: '', label: t('common.all') }, { value: 'failed', label: t('webhooks.status.failed') }, { value: 'pending', label: t('webhooks.status.pending') }]} />}>{t('webhooks.deliveries')}</SectionTitle>
      {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : !data ? <Loading rows={3} /> : data.deliveries.length === 0 ? <Text c="dimmed">{t('webhooks.noDeliveries')}</Text> : (
        <Table.ScrollContainer minWidth={420}>
          <Table verticalSpacing={4}>
            <Table.Thead><Table.Tr><Table.Th /><Table.Th>{t('common.status')}</Table.Th><Table.Th>{t('webhooks.event')}</Table.Th><Table.Th ta="right">HTTP</Table.Th><Table.Th ta="right">{t('calls.time')}</Table.Th><Table.Th /></Table.Tr></Table.Thead>
            <Table.Tbody>{data.deliveries.map((delivery) => <DeliveryRow key={delivery.id} delivery={delivery} mayRedeliver={delivery.event !== 'webhook.test'} />)}</Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
    </>
  );
}

function Detail({ webhook, onSecret, onClose }: { webhook: Webhook; onSecret: (secret: string) => void; onClose: () => void }) {
  const t = useT();
  const ask = useAsk();
  const [editing, setEditing] = useState(false);
  const invalidates = [keys.webhooks];
  const enable = useAction((enabled: boolean) => actions.patch(webhook.id, { enabled }), { invalidates });
  const test = useAction(() => actions.test(webhook.id), { invalidates });
  const rotate = useAction(() => actions.patch(webhook.id, { rotate_secret: true }), { invalidates, done: (saved) => { if (saved.secret) onSecret(saved.secret); } });
  const remove = useAction(() => actions.remove(webhook.id), { invalidates, done: () => { onClose(); notify(t('common.deleted')); } });
  const askDelete = async () => { if (await ask({ title: t('webhooks.deleteTitle'), body: t('webhooks.deleteBody', { url: webhook.url }), confirm: t('common.delete'), danger: true })) remove.mutate(undefined); };
  const askRotate = async () => { if (await ask({ title: t('webhooks.rotate'), body: t('webhooks.rotateBody'), confirm: t('webhooks.rotate') })) rotate.mutate(undefined); };
  return (
    <Drawer label={webhook.url} onClose={onClose} title={<div><Title order={2} style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(webhook.url)}</Mono></Title><StatusBadge status={webhook.enabled ? 'enabled' : 'disabled'} /></div>}>
      <Stack gap="sm">
        <Group gap="sm">
          <Switch label={t('common.enabled')} checked={webhook.enabled} onChange={(event) => enable.mutate(event.currentTarget.checked)} />
          <Button variant="default" leftSection={<IconSend size={14} />} loading={test.isPending} onClick={() => test.mutate(undefined)}>{t('webhooks.test')}</Button>
          <Button variant="default" onClick={() => setEditing(true)}>{t('common.edit')}</Button>
          <Button variant="default" onClick={() => void askRotate()}>{t('webhooks.rotate')}</Button>
          <Button variant="default" leftSection={<IconTrash size={14} />} onClick={() => void askDelete()}>{t('common.delete')}</Button>
        </Group>
        {test.data && (
          <Alert variant="light" color={test.data.status === 'delivered' ? 'green' : 'red'} title={t(test.data.status === 'delivered' ? 'webhooks.testOk' : 'webhooks.testFailed')}>
            {test.data.response_status !== null && <Text>HTTP {test.data.response_status}</Text>}{test.data.error && <Text>{visibleText(test.data.error)}</Text>}
          </Alert>
        )}
        <Facts rows={[
          [t('webhooks.events'), <Group key="e" gap={4}>{webhook.events.map((event) => <Chip key={event}>{event}</Chip>)}</Group>],
          [t('webhooks.tools'), webhook.tools.length === 0 ? t('connect.allTools') : <Group key="allTools" gap={4}>{webhook.tools.map((rule) => <Chip key={rule}>{rule}</Chip>)}</Group>],
          [t('common.created'), <Time key="c" at={webhook.created_at} />], ['ID', <Mono key="i">{webhook.id}</Mono>],
        ]} />
        <Deliveries webhook={webhook} />
      </Stack>
      <Modal opened={editing} onClose={() => setEditing(false)} title={t('common.edit')} size="lg"><WebhookForm webhook={webhook} onDone={() => { setEditing(false); notify(t('common.saved')); }} /></Modal>
    </Drawer>
  );
}

export function WebhooksPage() {
  const t = useT();
  const mayAdmin = useMay('admin');
  const [url, setUrl] = useUrlState();
  const [secret, setSecret] = useState<string>();
  const { data: rows, error, isPending, refetch } = useQuery({ ...webhooksQuery, enabled: mayAdmin });
  const open = rows?.find((webhook) => webhook.id === url['open']);
  const columns = useMemo<Column<Webhook>[]>(() => [
    { key: 'state', header: '', width: '16px', render: (row) => <StatusBadge status={row.enabled ? 'enabled' : 'disabled'} iconOnly /> },
    { key: 'url', header: 'URL', width: 'minmax(10rem, 1.4fr)', render: (row) => <Mono>{visibleText(row.url)}</Mono> },
    { key: 'events', header: t('webhooks.events'), width: 'minmax(8rem, 1.6fr)', secondary: true, render: (row) => <Text c="dimmed" truncate>{row.events.join(', ')}</Text> },
    { key: 'tools', header: t('webhooks.tools'), width: 'minmax(5rem, 0.8fr)', secondary: true, render: (row) => <Text c="dimmed" truncate>{row.tools.length === 0 ? t('connect.allTools') : visibleText(row.tools.join(', '))}</Text> },
    { key: 'modified', header: t('common.modified'), width: '8rem', render: (row) => <Time at={row.modified_at} /> },
  ], [t]);
  if (!mayAdmin) return <Page title={t('nav.webhooks')}><Content><PermissionNote needs="admin" /></Content></Page>;
  const add = <Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ new: '1' })}>{t('webhooks.new')}</Button>;
  const close = () => { setSecret(undefined); setUrl({ new: undefined }); };
  return (
    <Page title={t('nav.webhooks')} count={rows?.length} primary={add}>
      <Split drawer={open && <Detail key={open.id} webhook={open} onSecret={setSecret} onClose={() => setUrl({ open: undefined, delivery: undefined })} />}>
        {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : (
          <DataTable label={t('nav.webhooks')} rows={rows} columns={columns} rowKey={(row) => row.id} rowName={(row) => row.url} openKey={url['open']} onOpen={(row) => setUrl({ open: row.id }, { push: true })}
            empty={<EmptyState icon={IconWebhook} title={t('webhooks.empty')} action={add}>{t('webhooks.emptyHint')}</EmptyState>}
            phone={(row) => <div><Group gap={6} wrap="nowrap"><StatusBadge status={row.enabled ? 'enabled' : 'disabled'} iconOnly /><Text truncate flex={1}><Mono>{visibleText(row.url)}</Mono></Text></Group><Text size="xs" c="dimmed" truncate>{row.events.join(', ')}</Text></div>} />
        )}
      </Split>
      <Modal opened={url['new'] !== undefined || secret !== undefined} onClose={close} title={t(secret ? 'webhooks.secret' : 'webhooks.new')} size="lg">
        {secret
          ? <Stack><ShownOnce value={secret} /><Text c="dimmed">{t('webhooks.secretHelp')}</Text><Group justify="flex-end"><Button onClick={close}>{t('common.close')}</Button></Group></Stack>
          : <WebhookForm onDone={(saved) => { setSecret(saved.secret); setUrl({ open: saved.id }); }} />}
      </Modal>
    </Page>
  );
}
