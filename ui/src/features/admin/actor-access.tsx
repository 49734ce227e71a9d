/** With what somebody uses haft, and what haft uses for them: sessions, connected applications, accounts. */
import { ActionIcon, Group, Table, Text, Tooltip } from '@mantine/core';
import { IconPlugConnectedX, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { accounts as accountActions, sessions as sessionActions } from '@/api/actions';
import { applicationKeys, applications as applicationActions, applicationsOfQuery } from '@/api/applications';
import { keys } from '@/api/keys';
import { peopleKeys } from '@/api/people';
import { accountsOfQuery, openSessionsQuery } from '@/api/queries';
import type { Application, Connectable, OpenSession } from '@/api/types';
import { useT, type Translate } from '@/i18n';
import { Chip, ErrorPanel, SectionTitle } from '@/parts/basics';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { PageLink } from '@/parts/links';
import { Loading } from '@/parts/page';
import { Time } from '@/parts/time';

interface ListProps<T> {
  query: { data: T[] | undefined; error: unknown; refetch: () => unknown };
  empty: string;
  columns: string[];
  row: (item: T) => ReactNode;
}

/** A short table inside a page. */
function ShortList<T>({ query, empty, columns, row }: ListProps<T>) {
  const t = useT();
  const { data, error, refetch } = query;
  if (error) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading rows={2} />;
  if (data.length === 0) return <Text c="dimmed">{empty}</Text>;
  return (
    <Table.ScrollContainer minWidth={340}>
      <Table verticalSpacing={4}>
        <Table.Thead><Table.Tr>{columns.map((column) => <Table.Th key={column}>{column}</Table.Th>)}<Table.Th aria-label={t('common.more')} /></Table.Tr></Table.Thead>
        <Table.Tbody>{data.map(row)}</Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function EndButton({ label, icon, loading, onClick }: { label: string; icon: ReactNode; loading: boolean; onClick: () => void }) {
  return <Group justify="flex-end"><Tooltip label={label}><ActionIcon size="sm" aria-label={label} loading={loading} onClick={onClick}>{icon}</ActionIcon></Tooltip></Group>;
}

const opener = (session: OpenSession, t: Translate) => (session.token_name === null ? t('sessions.login') : t('sessions.token', { name: visibleText(session.token_name) }));

function SessionRow({ session, person }: { session: OpenSession; person: string | undefined }) {
  const t = useT();
  const ask = useAsk();
  const end = useAction(() => sessionActions.end(session.id, person), { invalidates: [keys.sessions, peopleKeys.all], done: () => notify(t('sessions.ended')) });
  const askEnd = async () => { if (await ask({ title: t('sessions.endTitle'), body: t('sessions.endBody'), confirm: t('sessions.end'), danger: true })) end.mutate(undefined); };
  return (
    <Table.Tr>
      <Table.Td style={{ overflowWrap: 'anywhere' }}>{opener(session, t)} {session.is_current && <Chip>{t('sessions.current')}</Chip>}</Table.Td>
      <Table.Td><Time at={session.created_at} /></Table.Td>
      <Table.Td><Time at={session.expires_at} /></Table.Td>
      <Table.Td>{!session.is_current && <EndButton label={t('sessions.end')} icon={<IconTrash size={14} />} loading={end.isPending} onClick={() => void askEnd()} />}</Table.Td>
    </Table.Tr>
  );
}

/** The open sessions of a person, or the own ones. */
export function OpenSessions({ person }: { person?: string }) {
  const t = useT();
  const query = useQuery(openSessionsQuery(person));
  return (
    <>
      <SectionTitle>{t(person ? 'people.sessions' : 'sessions.mine')}</SectionTitle>
      <ShortList query={query} empty={t('sessions.none')} columns={[t('sessions.opened'), t('common.created'), t('approvals.expires')]} row={(session) => <SessionRow key={session.id} session={session} person={person} />} />
    </>
  );
}

function ApplicationRow({ application }: { application: Application }) {
  const t = useT();
  const ask = useAsk();
  const disconnect = useAction(() => applicationActions.disconnect(application.id), { invalidates: [applicationKeys.all], done: () => notify(t('applications.disconnected')) });
  const askDisconnect = async () => { if (await ask({ title: t('applications.disconnectTitle', { name: application.name }), body: t('applications.disconnectBody'), confirm: t('applications.disconnect'), danger: true })) disconnect.mutate(undefined); };
  return (
    <Table.Tr>
      <Table.Td style={{ overflowWrap: 'anywhere' }}><PageLink to="/applications" search={{ open: application.id }}>{visibleText(application.name)}</PageLink></Table.Td>
      <Table.Td>{t(`role.${application.role}`)}</Table.Td>
      <Table.Td><Time at={application.last_used_at} /></Table.Td>
      <Table.Td><EndButton label={`${t('applications.disconnect')}: ${application.name}`} icon={<IconPlugConnectedX size={14} />} loading={disconnect.isPending} onClick={() => void askDisconnect()} /></Table.Td>
    </Table.Tr>
  );
}

/** The applications that somebody has connected. */
export function ActorApplications({ actor }: { actor: string }) {
  const t = useT();
  const query = useQuery(applicationsOfQuery(actor));
  return (
    <>
      <SectionTitle>{t('nav.applications')}</SectionTitle>
      <ShortList query={query} empty={t('applications.empty')} columns={[t('common.name'), t('tokens.role'), t('tokens.lastUsed')]} row={(application) => <ApplicationRow key={application.id} application={application} />} />
    </>
  );
}

function AccountRow({ item, actor, name }: { item: Connectable; actor: string; name: string }) {
  const t = useT();
  const ask = useAsk();
  const provider = visibleText(item.display_name);
  const revoke = useAction(() => accountActions.revokeOf(item.provider, actor), { invalidates: [keys.accounts], done: () => notify(t('accounts.revoked')) });
  const askRevoke = async () => { if (await ask({ title: t('accounts.revokeOfTitle', { person: name, name: provider }), body: t('accounts.revokeOfBody'), confirm: t('accounts.revoke'), danger: true })) revoke.mutate(undefined); };
  return (
    <Table.Tr>
      <Table.Td style={{ overflowWrap: 'anywhere' }}>{provider}</Table.Td>
      <Table.Td>{t(item.account?.state === 'expired' ? 'accounts.state.expiredShort' : 'accounts.state.connected')}</Table.Td>
      <Table.Td><Time at={item.account?.last_used_at ?? null} /></Table.Td>
      <Table.Td><EndButton label={`${t('accounts.revoke')}: ${provider}`} icon={<IconTrash size={14} />} loading={revoke.isPending} onClick={() => void askRevoke()} /></Table.Td>
    </Table.Tr>
  );
}

/** What somebody has connected at other services. */
export function ActorAccounts({ actor, name }: { actor: string; name: string }) {
  const t = useT();
  const query = useQuery(accountsOfQuery(actor));
  return (
    <>
      <SectionTitle>{t('nav.accounts')}</SectionTitle>
      <ShortList query={query} empty={t('accounts.noneConnected')} columns={[t('common.name'), t('common.status'), t('tokens.lastUsed')]} row={(item) => <AccountRow key={item.provider} item={item} actor={actor} name={name} />} />
    </>
  );
}
