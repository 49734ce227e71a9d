import { Button, Group, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import { IconApps, IconPlugConnectedX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { applicationClientsQuery, applicationKeys, applications as actions, applicationsQuery } from '@/api/applications';
import { useMay } from '@/api/session';
import type { Application } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, Facts, Mono } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { FilterInput } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { PageLink } from '@/parts/links';
import { Drawer, Loading, Page, Split, Toolbar } from '@/parts/page';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { ActorLink } from './actor-parts';
import { ApplicationClients, NewClientButton } from './application-clients';
import { describedBy, endOf, matches } from './application-text';

function Detail({ application, onClose }: { application: Application; onClose: () => void }) {
  const t = useT();
  const ask = useAsk();
  const mayAdmin = useMay('admin');
  const origin = describedBy(application);
  const end = endOf(application);
  const disconnect = useAction(() => actions.disconnect(application.id), { invalidates: [applicationKeys.all], done: () => { onClose(); notify(t('applications.disconnected')); } });
  const askDisconnect = async () => { if (await ask({ title: t('applications.disconnectTitle', { name: application.name }), body: t('applications.disconnectBody'), confirm: t('applications.disconnect'), danger: true })) disconnect.mutate(undefined); };
  return (
    <Drawer label={application.name} onClose={onClose} title={<div><Title order={2}>{visibleText(application.name)}</Title><Chip>{t(`role.${application.role}`)}</Chip></div>}>
      <Stack gap="sm">
        <Group gap="sm"><Button variant="default" leftSection={<IconPlugConnectedX size={14} />} loading={disconnect.isPending} onClick={() => void askDisconnect()}>{t('applications.disconnect')}</Button></Group>
        {origin === 'unverified' && <Text size="xs" c="dimmed">{t('applications.unverifiedHelp')}</Text>}
        <Facts rows={[
          [t('applications.person'), mayAdmin && application.actor && <ActorLink key="actor" actor={application.actor} />],
          [t('applications.describedBy'), origin === 'unverified' ? t('applications.unverified') : origin.host],
          [t('applications.destination'), visibleText(application.destination)],
          [t('tokens.role'), t(`role.${application.role}`)],
          [t('tokens.tools'), application.tools ? visibleText(application.tools.join(', ')) : t('common.all')],
          [t('tokens.tenant'), mayAdmin && application.tenant],
          [t('tokens.lastUsed'), <Time key="used" at={application.last_used_at} />],
          [t('applications.connected'), <Time key="created" at={application.created_at} />],
          [t('approvals.expires'), end ? <Time key="expires" at={end} /> : t('common.never')],
          [t('nav.calls'), <PageLink key="calls" to="/calls" search={{ caller: application.actor?.name ?? application.name, since: '30d' }}>{t('common.showAll')}</PageLink>],
          [t('applications.client'), <Mono key="client">{application.client_id}</Mono>],
          ['ID', <Mono key="id">{application.id}</Mono>],
        ]} />
      </Stack>
    </Drawer>
  );
}

/** The applications that people have connected: all of the tenant for admins, the own ones for everybody else. */
function Connected({ q }: { q: string }) {
  const t = useT();
  const mayAdmin = useMay('admin');
  const title = t('nav.applications');
  const [url, setUrl] = useUrlState();
  const { data: all, error, isPending, refetch } = useQuery(applicationsQuery);
  const rows = (all ?? []).filter((application) => matches(application, q));
  const open = all?.find((application) => application.id === url['open']);
  const columns = useMemo<Column<Application>[]>(() => [
    { key: 'name', header: t('common.name'), width: 'minmax(8rem, 1.2fr)', render: (row) => visibleText(row.name) },
    ...(mayAdmin ? [{ key: 'person', header: t('applications.person'), width: 'minmax(6rem, 1fr)', render: (row: Application) => (row.actor ? visibleText(row.actor.name) : <Text c="dimmed">—</Text>) }] : []),
    { key: 'destination', header: t('applications.destination'), width: 'minmax(8rem, 1.2fr)', render: (row) => visibleText(row.destination) },
    { key: 'role', header: t('tokens.role'), width: '8rem', render: (row) => <Chip>{t(`role.${row.role}`)}</Chip> },
    { key: 'tools', header: t('tokens.tools'), width: 'minmax(6rem, 1.2fr)', secondary: true, render: (row) => (row.tools ? visibleText(row.tools.join(', ')) : <Text c="dimmed">{t('common.all')}</Text>) },
    { key: 'used', header: t('tokens.lastUsed'), width: '8rem', render: (row) => <Time at={row.last_used_at} /> },
    { key: 'connected', header: t('applications.connected'), width: '8rem', secondary: true, render: (row) => <Time at={row.created_at} /> },
  ], [t, mayAdmin]);
  return (
    <Split drawer={open && <Detail key={open.id} application={open} onClose={() => setUrl({ open: undefined })} />}>
      {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : (
        <DataTable label={title} rows={rows} columns={columns} rowKey={(row) => row.id} rowName={(row) => row.name} openKey={url['open']} onOpen={(row) => setUrl({ open: row.id }, { push: true })}
          empty={<EmptyState icon={IconApps} title={t(all.length === 0 ? 'applications.empty' : 'applications.noneFound')}>{all.length === 0 && t('applications.emptyHint')}</EmptyState>}
          phone={(row) => <div><Group gap={6} wrap="nowrap"><Text truncate flex={1}>{visibleText(row.name)}</Text><Chip>{t(`role.${row.role}`)}</Chip></Group><Text size="xs" c="dimmed" truncate>{row.actor && mayAdmin && `${visibleText(row.actor.name)} · `}{visibleText(row.destination)}</Text></div>} />
      )}
    </Split>
  );
}

/** What is connected, and for admins what they have registered. */
export function ApplicationsPage() {
  const t = useT();
  const mayAdmin = useMay('admin');
  const [url, setUrl] = useUrlState();
  const { data: connected } = useQuery(applicationsQuery);
  const { data: clients } = useQuery({ ...applicationClientsQuery, enabled: mayAdmin });
  const isClients = mayAdmin && url['view'] === 'clients';
  const shown = isClients ? clients : connected;
  const q = url['q'] ?? '';
  return (
    <Page title={t('nav.applications')} count={shown?.length} primary={isClients && <NewClientButton />}>
      <Text c="dimmed" px={{ base: 'lg', sm: 'xl' }} pb="sm">{t(isClients ? 'clients.intro' : mayAdmin ? 'applications.intro' : 'applications.mineIntro')}</Text>
      {(mayAdmin || (shown !== undefined && shown.length > 0)) && (
        <Toolbar>
          {mayAdmin && <SegmentedControl aria-label={t('applications.view')} value={isClients ? 'clients' : 'connected'} onChange={(next) => setUrl({ view: next === 'clients' ? next : undefined, open: undefined, q: undefined })} data={[{ value: 'connected', label: t('applications.connected') }, { value: 'clients', label: t('clients.title') }]} />}
          {shown && shown.length > 0 && <FilterInput value={q} onChange={(next) => setUrl({ q: next || undefined })} label={t('common.filter')} />}
        </Toolbar>
      )}
      {isClients ? <ApplicationClients q={q} /> : <Connected q={q} />}
    </Page>
  );
}
