/** The people of the tenant: who they are, what they may do, and how they log in. */
import { Button, Group, Modal, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import { IconArrowsExchange, IconLink, IconPencil, IconPlus, IconTrash, IconUser, IconUserCheck, IconUserOff } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useCallback, useMemo, useState, type ReactNode } from 'react';
import { keys } from '@/api/keys';
import { people as actions, peopleKeys, peopleQuery, personQuery } from '@/api/people';
import { useMay, useSession } from '@/api/session';
import type { Actor, ActorStatus, Invitation } from '@/api/types';
import { useT, type Translate } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { FilterInput } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { PageLink } from '@/parts/links';
import { Content, Drawer, Loading, Page, Split, Toolbar } from '@/parts/page';
import { ShownOnce } from '@/parts/secret-field';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { ActorAccounts, ActorApplications, OpenSessions } from './actor-access';
import { changedActor, newPerson } from './actor-draft';
import { ActorForm, ActorTokens } from './actor-parts';
import { ActorSelect } from './actor-select';
import { RightsChips, rightsRows } from './rights';
import { rateText } from './token-form';

const STATUSES: readonly ActorStatus[] = ['active', 'invited', 'disabled'];

/** How the identity provider knows a person. */
function scimRows({ provisioned }: Pick<Actor, 'provisioned'>, t: Translate): [label: string, value: ReactNode][] {
  if (!provisioned) return [];
  const { user_name: userName, external_id: externalId } = provisioned;
  return [
    [t('people.userName'), <Mono key="user">{visibleText(userName)}</Mono>],
    [t('people.externalId'), externalId && <Mono key="external">{visibleText(externalId)}</Mono>],
  ];
}

/** A login link and the person whom it is for. */
interface Link {
  name: string;
  invitation: Invitation;
}

function LoginLink({ link, onClose }: { link: Link; onClose: () => void }) {
  const t = useT();
  return (
    <Stack>
      <Text>{t('people.sendLink', { name: visibleText(link.name) })}</Text>
      <ShownOnce value={link.invitation.url} />
      <Text c="dimmed">{t('people.linkOnce')} {t('approvals.expires')}: <Time at={link.invitation.expires_at} /></Text>
      <Group justify="flex-end"><Button onClick={onClose}>{t('common.close')}</Button></Group>
    </Stack>
  );
}

function HandOverForm({ person, onDone }: { person: Actor; onDone: () => void }) {
  const t = useT();
  const [to, setTo] = useState('');
  const [failure, setFailure] = useState<unknown>();
  const handOver = useAction(() => actions.handOver(person.id, to), {
    invalidates: [peopleKeys.all, ['chats']], failed: setFailure,
    done: ({ chats, service_accounts: accounts }) => { notify(t('people.handedOver', { chats, accounts })); onDone(); },
  });
  return (
    <form onSubmit={(event) => { event.preventDefault(); handOver.mutate(undefined); }}>
      <Stack>
        <Text c="dimmed">{t('people.handOverHelp', { name: visibleText(person.name) })}</Text>
        <ActorSelect label={t('people.handOverTo')} value={to} onChange={setTo} except={person.id} required hasFocus />
        {Boolean(failure) && <ErrorPanel error={failure} />}
        <Group justify="flex-end"><Button variant="default" onClick={onDone}>{t('common.cancel')}</Button><Button type="submit" disabled={!to} loading={handOver.isPending}>{t('people.handOver')}</Button></Group>
      </Stack>
    </form>
  );
}

/** What can be done with a person. Nobody locks themselves out: another admin does that. */
function Actions({ person, onLink, onGone }: { person: Actor; onLink: (link: Link) => void; onGone: () => void }) {
  const t = useT();
  const ask = useAsk();
  const session = useSession();
  const [dialog, setDialog] = useState<'edit' | 'handOver'>();
  const [isPicking, setPicking] = useState(false);
  const invalidates = [peopleKeys.all, keys.tokens];
  const isSelf = session.actor?.id === person.id;
  const isLocked = person.is_shared && !session.platform;
  const setStatus = useAction((status: ActorStatus) => actions.patch(person.id, { status }), { invalidates, done: (_, status) => notify(t(status === 'disabled' ? 'people.disabled' : 'people.enabled', { name: visibleText(person.name) })) });
  const newLink = useAction(() => actions.newLink(person.id), { invalidates, done: (invitation) => onLink({ name: person.name, invitation }) });
  const remove = useAction(() => actions.remove(person.id), { invalidates, done: () => { onGone(); notify(t('people.removed', { name: visibleText(person.name) })); } });
  const counts = { sessions: person.sessions, tokens: person.tokens };
  const askDisable = async () => { if (await ask({ title: t('people.disableTitle', { name: visibleText(person.name) }), body: t('people.disableBody', counts), confirm: t('common.disable'), danger: true })) setStatus.mutate('disabled'); };
  const askLink = async () => { if (await ask({ title: t('people.newLinkTitle', { name: visibleText(person.name) }), body: t('people.newLinkBody'), confirm: t('people.newLink') })) newLink.mutate(undefined); };
  const askRemove = async () => { if (await ask({ title: t('people.removeTitle', { name: visibleText(person.name), tenant: person.tenant }), body: t('people.removeBody', counts), confirm: t('common.remove'), danger: true })) remove.mutate(undefined); };
  const close = () => setDialog(undefined);
  return (
    <>
      <Group gap="sm">
        <Button variant="default" leftSection={<IconPencil size={14} />} onClick={() => setDialog('edit')}>{t('common.edit')}</Button>
        {person.status !== 'disabled' && <Button variant="default" leftSection={<IconLink size={14} />} loading={newLink.isPending} onClick={() => void askLink()}>{t('people.newLink')}</Button>}
        {person.status === 'disabled'
          ? <Button variant="default" leftSection={<IconUserCheck size={14} />} disabled={isLocked && !person.is_suspended} loading={setStatus.isPending} onClick={() => setStatus.mutate('active')}>{t('common.enable')}</Button>
          : <Button variant="default" leftSection={<IconUserOff size={14} />} disabled={isSelf || isLocked} loading={setStatus.isPending} onClick={() => void askDisable()}>{t('common.disable')}</Button>}
        <Button variant="default" leftSection={<IconArrowsExchange size={14} />} onClick={() => setDialog('handOver')}>{t('people.handOver')}</Button>
        <Button variant="default" leftSection={<IconTrash size={14} />} disabled={isSelf} loading={remove.isPending} onClick={() => void askRemove()}>{t('common.remove')}</Button>
      </Group>
      {isSelf && <Text size="xs" c="dimmed">{t('people.self')}</Text>}
      {isLocked && <Text size="xs" c="dimmed">{t('people.sharedNote')}</Text>}
      <Modal opened={dialog === 'edit'} onClose={close} closeOnEscape={!isPicking} title={t('people.editTitle', { name: visibleText(person.name) })} size="lg">
        <ActorForm key={person.modified_at} kind="person" actor={person} submit={t('common.save')} save={(draft) => actions.patch(person.id, changedActor(person, draft))} onDone={() => { close(); notify(t('common.saved')); }} onPicking={setPicking} />
      </Modal>
      <Modal opened={dialog === 'handOver'} onClose={close} title={t('people.handOverTitle', { name: visibleText(person.name) })}><HandOverForm person={person} onDone={close} /></Modal>
    </>
  );
}

function Detail({ id, known, onLink, onClose }: { id: string; known: Actor | undefined; onLink: (link: Link) => void; onClose: () => void }) {
  const t = useT();
  const { data: loaded, error } = useQuery(personQuery(id));
  const person = loaded ?? known;
  if (!person) return <Drawer label={id} title={null} onClose={onClose}>{error ? <ErrorPanel error={error} /> : <Loading />}</Drawer>;
  return (
    <Drawer label={person.name} onClose={onClose} title={<div><Title order={2}>{visibleText(person.name)}</Title><Group gap="sm"><StatusBadge status={person.status} />{person.provisioned && <Chip>{t('people.scim')}</Chip>}{person.email && <Text c="dimmed" style={{ overflowWrap: 'anywhere' }}>{visibleText(person.email)}</Text>}</Group></div>}>
      <Stack gap="sm">
        <Actions person={person} onLink={onLink} onGone={onClose} />
        {person.provisioned && <Text size="xs" c="dimmed">{t('people.scimNote')}</Text>}
        <SectionTitle>{t('people.rights')}</SectionTitle>
        <Facts rows={[...rightsRows(person.rights, t), [t('tokens.rateLimit'), rateText(person.rate_limit, t)]]} />
        {person.groups.length > 0 && (
          <Facts rows={[
            [t('nav.groups'), <Group key="groups" gap="sm">{person.groups.map((group) => <PageLink key={group.id} to="/groups" search={{ open: group.id }}>{visibleText(group.name)}</PageLink>)}</Group>],
            [t('people.withoutGroups'), <RightsChips key="own" rights={person.membership} />],
          ]} />
        )}
        <ActorTokens actor={person} />
        <OpenSessions person={person.id} />
        <ActorApplications actor={person.id} />
        <ActorAccounts actor={person.id} name={visibleText(person.name)} />
        <SectionTitle>{t('tools.about')}</SectionTitle>
        <Facts rows={[
          [t('people.lastSeen'), <Time key="seen" at={person.last_seen_at} />],
          [t('tokens.tenant'), person.tenant],
          [t('nav.calls'), <PageLink key="calls" to="/calls" search={{ actor: person.id, since: '30d' }}>{t('common.showAll')}</PageLink>],
          [t('common.created'), <Time key="created" at={person.created_at} />], [t('common.modified'), <Time key="modified" at={person.modified_at} />],
          ['ID', <Mono key="id">{person.id}</Mono>],
          ...scimRows(person, t),
        ]} />
      </Stack>
    </Drawer>
  );
}

export function PeoplePage() {
  const t = useT();
  const mayAdmin = useMay('admin');
  const [url, setUrl] = useUrlState();
  const [link, setLink] = useState<Link>();
  const [isPicking, setPicking] = useState(false);
  const status = STATUSES.find((each) => each === url['status']);
  const isFiltered = url['q'] !== undefined || status !== undefined;
  const query = useInfiniteQuery({ ...peopleQuery({ ...(url['q'] ? { q: url['q'] } : {}), ...(status ? { status } : {}) }), enabled: mayAdmin });
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.people) ?? [], [query.data]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const onEnd = useCallback(() => { if (hasNextPage && !isFetchingNextPage) void fetchNextPage(); }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const columns = useMemo<Column<Actor>[]>(() => [
    { key: 'status', header: '', width: '16px', render: (row) => <StatusBadge status={row.status} iconOnly /> },
    { key: 'name', header: t('common.name'), width: 'minmax(8rem, 1.2fr)', render: (row) => visibleText(row.name) },
    { key: 'email', header: t('people.email'), width: 'minmax(8rem, 1.4fr)', secondary: true, render: (row) => <Text c="dimmed" truncate>{visibleText(row.email ?? '')}</Text> },
    { key: 'role', header: t('tokens.role'), width: 'minmax(8rem, 1fr)', render: (row) => <RightsChips rights={row.rights} /> },
    { key: 'groups', header: t('nav.groups'), width: 'minmax(6rem, 1fr)', secondary: true, render: (row) => <Text c="dimmed" truncate>{visibleText(row.groups.map((group) => group.name).join(', '))}</Text> },
    { key: 'seen', header: t('people.lastSeen'), width: '8rem', render: (row) => <Time at={row.last_seen_at} /> },
  ], [t]);
  if (!mayAdmin) return <Page title={t('nav.people')}><Content><PermissionNote needs="admin" /></Content></Page>;
  const invite = <Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ new: '1' })}>{t('palette.invite')}</Button>;
  const close = () => { setLink(undefined); setUrl({ new: undefined }); };
  return (
    <Page title={t('nav.people')} count={query.data?.pages[0]?.total} primary={invite}>
      {(rows.length > 0 || isFiltered) && (
        <Toolbar>
          <FilterInput value={url['q'] ?? ''} onChange={(q) => setUrl({ q: q || undefined })} label={t('people.search')} />
          <SegmentedControl aria-label={t('common.status')} value={status ?? ''} onChange={(next) => setUrl({ status: next || undefined })} data={[{ value: '', label: t('common.all') }, ...STATUSES.map((value) => ({ value, label: t(`status.${value}`) }))]} />
        </Toolbar>
      )}
      <Split drawer={url['open'] && <Detail key={url['open']} id={url['open']} known={rows.find((row) => row.id === url['open'])} onLink={setLink} onClose={() => setUrl({ open: undefined })} />}>
        {query.error ? <div style={{ padding: 24 }}><ErrorPanel error={query.error} onRetry={() => void query.refetch()} /></div> : query.isPending ? <Loading /> : (
          <DataTable label={t('nav.people')} rows={rows} columns={columns} rowKey={(row) => row.id} rowName={(row) => row.name} onEnd={onEnd} openKey={url['open']} onOpen={(row) => setUrl({ open: row.id }, { push: true })}
            empty={isFiltered ? <EmptyState icon={IconUser} title={t('people.noneFound')} /> : <EmptyState icon={IconUser} title={t('people.empty')} action={invite}>{t('people.emptyHint')}</EmptyState>}
            phone={(row) => <div><Group gap={6} wrap="nowrap"><StatusBadge status={row.status} iconOnly /><Text truncate flex={1}>{visibleText(row.name)}</Text><Chip>{t(`role.${row.rights.role}`)}</Chip></Group><Text size="xs" c="dimmed" truncate>{row.email && `${visibleText(row.email)} · `}{t('people.lastSeen')}: <Time at={row.last_seen_at} /></Text></div>} />
        )}
      </Split>
      <Modal opened={url['new'] !== undefined || link !== undefined} onClose={close} closeOnEscape={!isPicking} title={t(link ? 'people.loginLink' : 'palette.invite')} size="lg">
        {link ? <LoginLink link={link} onClose={close} /> : (
          <ActorForm kind="person" submit={t('people.invite')} save={(draft, tenant) => actions.invite(newPerson(draft, tenant))} onPicking={setPicking}
            onDone={(person) => { setLink({ name: person.name, invitation: person.invitation }); notify(t('people.invited', { name: visibleText(person.name) })); }} />
        )}
      </Modal>
    </Page>
  );
}
