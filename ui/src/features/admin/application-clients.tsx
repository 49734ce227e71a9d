/** The applications that admins have registered: the list, the form, and what ends with one. */
import { Button, Checkbox, Group, List, Modal, Stack, Text, Textarea, TextInput, Title } from '@mantine/core';
import { IconApps, IconPlus, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { applicationClientsQuery, applicationKeys, applications as actions, applicationsQuery } from '@/api/applications';
import type { ApplicationClient, CreatedApplicationClient } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, CopyButton, EmptyState, ErrorPanel, Facts, Mono, SectionTitle } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { Drawer, Loading, Split } from '@/parts/page';
import { ShownOnce } from '@/parts/secret-field';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { peopleOf, redirectUris } from './application-text';

const SHOWN_NAMES = 12;

function ClientForm({ onDone }: { onDone: (client: CreatedApplicationClient) => void }) {
  const t = useT();
  const [name, setName] = useState('');
  const [uris, setUris] = useState('');
  const [confidential, setConfidential] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const create = useAction(() => actions.createClient({ name: name.trim(), redirect_uris: redirectUris(uris), confidential }), { invalidates: [applicationKeys.clients], failed: setFailure, done: onDone });
  return (
    <form onSubmit={(event) => { event.preventDefault(); create.mutate(undefined); }}>
      <Stack>
        <TextInput required label={t('common.name')} description={t('clients.nameHelp')} placeholder="Intranet" maxLength={64} value={name} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
        <Textarea required label={t('clients.redirects')} description={t('clients.redirectsHelp')} placeholder="https://intranet.example.com/callback" autosize minRows={2} maxRows={8} spellCheck={false} value={uris} onChange={(event) => setUris(event.currentTarget.value)} />
        <Checkbox label={t('clients.confidential')} description={t('clients.confidentialHelp')} checked={confidential} onChange={(event) => setConfidential(event.currentTarget.checked)} />
        {Boolean(failure) && <ErrorPanel error={failure} />}
        <Group justify="flex-end"><Button type="submit" loading={create.isPending}>{t('clients.create')}</Button></Group>
      </Stack>
    </form>
  );
}

/** What its developer needs. */
function Created({ client, onClose }: { client: CreatedApplicationClient; onClose: () => void }) {
  const t = useT();
  return (
    <Stack>
      <Text>{t('clients.created', { name: visibleText(client.name) })}</Text>
      <Facts rows={[[t('applications.client'), <Group key="id" gap="xs" wrap="nowrap"><Text component="div" style={{ overflowWrap: 'anywhere' }}><Mono>{client.client_id}</Mono></Text><CopyButton text={client.client_id} /></Group>]]} />
      {client.client_secret && <ShownOnce value={client.client_secret} note={t('clients.secretOnce')} />}
      <Group justify="flex-end"><Button onClick={onClose}>{t('common.close')}</Button></Group>
    </Stack>
  );
}

function AffectedPeople({ client }: { client: ApplicationClient }) {
  const t = useT();
  const { data, error } = useQuery(applicationsQuery);
  if (error) return <ErrorPanel error={error} />;
  if (!data) return <Loading rows={1} />;
  const names = peopleOf(data, client.client_id);
  if (names.length === 0) return <Text c="dimmed">{t('clients.nobody')}</Text>;
  return (
    <Stack gap={4}>
      <Text>{t('clients.affected', { n: names.length })}</Text>
      <List>{names.slice(0, SHOWN_NAMES).map((name) => <List.Item key={name}>{visibleText(name)}</List.Item>)}</List>
      {names.length > SHOWN_NAMES && <Text c="dimmed">{t('providers.affectedMore', { n: names.length - SHOWN_NAMES })}</Text>}
    </Stack>
  );
}

function Detail({ client, onClose }: { client: ApplicationClient; onClose: () => void }) {
  const t = useT();
  const ask = useAsk();
  const name = visibleText(client.name);
  const remove = useAction(() => actions.removeClient(client.client_id), { invalidates: [applicationKeys.all], done: () => { onClose(); notify(t('common.deleted')); } });
  const body = <Stack gap="sm"><Text>{t('clients.deleteBody')}</Text><AffectedPeople client={client} /></Stack>;
  const askDelete = async () => { if (await ask({ title: t('clients.deleteTitle', { name }), body, confirm: t('common.delete'), danger: true })) remove.mutate(undefined); };
  return (
    <Drawer label={client.name} onClose={onClose} title={<div><Title order={2}>{name}</Title><Chip>{t(client.confidential ? 'clients.withSecret' : 'clients.withoutSecret')}</Chip></div>}>
      <Stack gap="sm">
        <Group gap="sm"><Button variant="default" leftSection={<IconTrash size={14} />} loading={remove.isPending} onClick={() => void askDelete()}>{t('common.delete')}</Button></Group>
        <SectionTitle>{t('clients.redirects')}</SectionTitle>
        <Stack gap={2}>{client.redirect_uris.map((uri) => <Text key={uri} component="div" style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(uri)}</Mono></Text>)}</Stack>
        <SectionTitle>{t('tools.about')}</SectionTitle>
        <Facts rows={[
          [t('applications.client'), <Group key="id" gap="xs" wrap="nowrap"><Text component="div" style={{ overflowWrap: 'anywhere' }}><Mono>{client.client_id}</Mono></Text><CopyButton text={client.client_id} /></Group>],
          [t('tokens.tenant'), client.tenant],
          [t('clients.lastConnected'), <Time key="used" at={client.last_connected_at} />],
          [t('common.created'), <Time key="created" at={client.created_at} />],
        ]} />
      </Stack>
    </Drawer>
  );
}

export function NewClientButton() {
  const t = useT();
  const [, setUrl] = useUrlState();
  return <Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ new: '1' })}>{t('clients.new')}</Button>;
}

/** For admins. */
export function ApplicationClients({ q }: { q: string }) {
  const t = useT();
  const [url, setUrl] = useUrlState();
  const [made, setMade] = useState<CreatedApplicationClient>();
  const { data: all, error, isPending, refetch } = useQuery(applicationClientsQuery);
  const rows = (all ?? []).filter((client) => [client.name, client.client_id, ...client.redirect_uris].join(' ').toLowerCase().includes(q.toLowerCase()));
  const open = all?.find((client) => client.client_id === url['open']);
  const close = () => { setMade(undefined); setUrl({ new: undefined }); };
  const columns = useMemo<Column<ApplicationClient>[]>(() => [
    { key: 'name', header: t('common.name'), width: 'minmax(8rem, 1fr)', render: (row) => visibleText(row.name) },
    { key: 'redirects', header: t('clients.redirects'), width: 'minmax(8rem, 1.6fr)', secondary: true, render: (row) => <Text c="dimmed" truncate>{visibleText(row.redirect_uris.join(', '))}</Text> },
    { key: 'secret', header: t('clients.type'), width: '9rem', render: (row) => <Chip>{t(row.confidential ? 'clients.withSecret' : 'clients.withoutSecret')}</Chip> },
    { key: 'used', header: t('clients.lastConnected'), width: '9rem', render: (row) => <Time at={row.last_connected_at} /> },
    { key: 'created', header: t('common.created'), width: '8rem', secondary: true, render: (row) => <Time at={row.created_at} /> },
  ], [t]);
  return (
    <>
      <Split drawer={open && <Detail key={open.client_id} client={open} onClose={() => setUrl({ open: undefined })} />}>
        {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : (
          <DataTable label={t('clients.title')} rows={rows} columns={columns} rowKey={(row) => row.client_id} rowName={(row) => row.name} openKey={url['open']} onOpen={(row) => setUrl({ open: row.client_id }, { push: true })}
            empty={<EmptyState icon={IconApps} title={t(all.length === 0 ? 'clients.empty' : 'applications.noneFound')} action={all.length === 0 && <NewClientButton />}>{all.length === 0 && t('clients.emptyHint')}</EmptyState>}
            phone={(row) => <div><Group gap={6} wrap="nowrap"><Text truncate flex={1}>{visibleText(row.name)}</Text><Chip>{t(row.confidential ? 'clients.withSecret' : 'clients.withoutSecret')}</Chip></Group><Text size="xs" c="dimmed" truncate>{visibleText(row.redirect_uris.join(', '))}</Text></div>} />
        )}
      </Split>
      <Modal opened={made !== undefined || url['new'] !== undefined} onClose={close} title={t(made ? 'clients.createdTitle' : 'clients.new')} size="lg">
        {made ? <Created client={made} onClose={close} /> : <ClientForm onDone={setMade} />}
      </Modal>
    </>
  );
}
