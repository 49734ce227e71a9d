/** Service accounts: programs that use haft with tokens, and the people who are responsible for them. */
import { Button, Group, Modal, Stack, Text, Title } from '@mantine/core';
import { IconPencil, IconPlus, IconTrash, IconUserCheck, IconUserCog, IconUserOff } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { keys } from '@/api/keys';
import { peopleKeys, serviceAccounts as actions, serviceAccountsQuery } from '@/api/people';
import { useMay, useSession } from '@/api/session';
import type { Actor, ActorStatus } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { FilterInput } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { PageLink } from '@/parts/links';
import { Content, Drawer, Loading, Page, Split, Toolbar } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { changedActor, newServiceAccount } from './actor-draft';
import { ActorForm, ActorLink, ActorTokens } from './actor-parts';
import { RightsChips, rightsRows } from './rights';
import { rateText } from './token-form';

function Detail({ account, onClose }: { account: Actor; onClose: () => void }) {
  const t = useT();
  const ask = useAsk();
  const [isEditing, setEditing] = useState(false);
  const [isPicking, setPicking] = useState(false);
  const invalidates = [peopleKeys.all, keys.tokens];
  const name = visibleText(account.name);
  const setStatus = useAction((status: ActorStatus) => actions.patch(account.id, { status }), { invalidates, done: (_, status) => notify(t(status === 'disabled' ? 'people.disabled' : 'people.enabled', { name })) });
  const remove = useAction(() => actions.remove(account.id), { invalidates, done: () => { onClose(); notify(t('common.deleted')); } });
  const askDisable = async () => { if (await ask({ title: t('people.disableTitle', { name }), body: t('serviceAccounts.disableBody', { tokens: account.tokens }), confirm: t('common.disable'), danger: true })) setStatus.mutate('disabled'); };
  const askDelete = async () => { if (await ask({ title: t('serviceAccounts.deleteTitle', { name }), body: t('serviceAccounts.deleteBody', { tokens: account.tokens }), confirm: t('common.delete'), danger: true })) remove.mutate(undefined); };
  return (
    <Drawer label={account.name} onClose={onClose} title={<div><Title order={2}>{name}</Title><StatusBadge status={account.status} /></div>}>
      <Stack gap="sm">
        {account.description && <Text style={{ overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' }}>{visibleText(account.description)}</Text>}
        <Group gap="sm">
          <Button variant="default" leftSection={<IconPencil size={14} />} onClick={() => setEditing(true)}>{t('common.edit')}</Button>
          {account.status === 'disabled'
            ? <Button variant="default" leftSection={<IconUserCheck size={14} />} loading={setStatus.isPending} onClick={() => setStatus.mutate('active')}>{t('common.enable')}</Button>
            : <Button variant="default" leftSection={<IconUserOff size={14} />} loading={setStatus.isPending} onClick={() => void askDisable()}>{t('common.disable')}</Button>}
          <Button variant="default" leftSection={<IconTrash size={14} />} loading={remove.isPending} onClick={() => void askDelete()}>{t('common.delete')}</Button>
        </Group>
        <ActorTokens actor={account} />
        <SectionTitle>{t('people.rights')}</SectionTitle>
        <Facts rows={[...rightsRows(account.rights, t), [t('tokens.rateLimit'), rateText(account.rate_limit, t)]]} />
        <SectionTitle>{t('tools.about')}</SectionTitle>
        <Facts rows={[
          [t('people.responsible'), account.responsible ? <ActorLink key="responsible" actor={account.responsible} /> : t('serviceAccounts.nobody')],
          [t('nav.groups'), account.groups.length > 0 && <Group key="groups" gap="sm">{account.groups.map((group) => <PageLink key={group.id} to="/groups" search={{ open: group.id }}>{visibleText(group.name)}</PageLink>)}</Group>],
          [t('people.lastSeen'), <Time key="seen" at={account.last_seen_at} />],
          [t('tokens.tenant'), account.tenant],
          [t('nav.calls'), <PageLink key="calls" to="/calls" search={{ actor: account.id, since: '30d' }}>{t('common.showAll')}</PageLink>],
          [t('common.created'), <Time key="created" at={account.created_at} />], [t('common.modified'), <Time key="modified" at={account.modified_at} />],
          ['ID', <Mono key="id">{account.id}</Mono>],
        ]} />
      </Stack>
      <Modal opened={isEditing} onClose={() => setEditing(false)} closeOnEscape={!isPicking} title={t('people.editTitle', { name })} size="lg">
        <ActorForm key={account.modified_at} kind="service_account" actor={account} submit={t('common.save')} save={(draft) => actions.patch(account.id, changedActor(account, draft))} onDone={() => { setEditing(false); notify(t('common.saved')); }} onPicking={setPicking} />
      </Modal>
    </Drawer>
  );
}

export function ServiceAccountsPage() {
  const t = useT();
  const session = useSession();
  const mayAdmin = useMay('admin');
  const [url, setUrl] = useUrlState();
  const [isPicking, setPicking] = useState(false);
  const { data: all, error, isPending, refetch } = useQuery({ ...serviceAccountsQuery, enabled: mayAdmin });
  const q = (url['q'] ?? '').toLowerCase();
  const rows = (all ?? []).filter((account) => `${account.name} ${account.description} ${account.responsible?.name ?? ''}`.toLowerCase().includes(q));
  const open = all?.find((account) => account.id === url['open']);
  const columns = useMemo<Column<Actor>[]>(() => [
    { key: 'status', header: '', width: '16px', render: (row) => <StatusBadge status={row.status} iconOnly /> },
    { key: 'name', header: t('common.name'), width: 'minmax(8rem, 1fr)', render: (row) => visibleText(row.name) },
    { key: 'purpose', header: t('people.purpose'), width: 'minmax(8rem, 1.6fr)', secondary: true, render: (row) => <Text c="dimmed" truncate>{visibleText(row.description)}</Text> },
    { key: 'responsible', header: t('people.responsible'), width: 'minmax(6rem, 0.8fr)', secondary: true, render: (row) => (row.responsible ? visibleText(row.responsible.name) : <Text c="dimmed">—</Text>) },
    { key: 'role', header: t('tokens.role'), width: 'minmax(8rem, 1fr)', render: (row) => <RightsChips rights={row.rights} /> },
    { key: 'tokens', header: t('nav.tokens'), width: '5rem', align: 'end', render: (row) => row.tokens.toLocaleString() },
    { key: 'seen', header: t('people.lastSeen'), width: '8rem', align: 'end', render: (row) => <Time at={row.last_seen_at} /> },
  ], [t]);
  if (!mayAdmin) return <Page title={t('nav.serviceAccounts')}><Content><PermissionNote needs="admin" /></Content></Page>;
  const add = <Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ new: '1' })}>{t('serviceAccounts.new')}</Button>;
  return (
    <Page title={t('nav.serviceAccounts')} count={all?.length} primary={add}>
      {all && all.length > 0 && <Toolbar><FilterInput value={url['q'] ?? ''} onChange={(next) => setUrl({ q: next || undefined })} label={t('common.filter')} /></Toolbar>}
      <Split drawer={open && <Detail key={open.id} account={open} onClose={() => setUrl({ open: undefined })} />}>
        {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : (
          <DataTable label={t('nav.serviceAccounts')} rows={rows} columns={columns} rowKey={(row) => row.id} rowName={(row) => row.name} openKey={url['open']} onOpen={(row) => setUrl({ open: row.id }, { push: true })}
            empty={all.length === 0 ? <EmptyState icon={IconUserCog} title={t('serviceAccounts.empty')} action={add}>{t('serviceAccounts.emptyHint')}</EmptyState> : <EmptyState icon={IconUserCog} title={t('serviceAccounts.noneFound')} />}
            phone={(row) => <div><Group gap={6} wrap="nowrap"><StatusBadge status={row.status} iconOnly /><Text truncate flex={1}>{visibleText(row.name)}</Text><Chip>{t(`role.${row.rights.role}`)}</Chip></Group><Text size="xs" c="dimmed" truncate>{t('people.lastSeen')}: <Time at={row.last_seen_at} /></Text></div>} />
        )}
      </Split>
      <Modal opened={url['new'] !== undefined} onClose={() => setUrl({ new: undefined })} closeOnEscape={!isPicking} title={t('serviceAccounts.new')} size="lg">
        <ActorForm kind="service_account" submit={t('serviceAccounts.create')} save={(draft, tenant) => actions.create(newServiceAccount(draft, tenant))} onDone={(account) => { notify(t('common.saved')); setUrl({ new: undefined, open: account.tenant === session.tenant ? account.id : undefined }); }} onPicking={setPicking} />
      </Modal>
    </Page>
  );
}
