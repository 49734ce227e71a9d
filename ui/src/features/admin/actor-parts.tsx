/** What people and service accounts have in common: links, the form, their tokens. */
import { ActionIcon, Button, Group, Stack, Table, Text, TextInput, Textarea, Tooltip } from '@mantine/core';
import { IconPlus, IconRefresh, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { tokens as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { peopleKeys, tokensOfQuery } from '@/api/people';
import { useSession } from '@/api/session';
import type { Actor, ActorKind, ActorName, CreatedToken, Token } from '@/api/types';
import { useT } from '@/i18n';
import { ErrorPanel, SectionTitle } from '@/parts/basics';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { PageLink } from '@/parts/links';
import { Loading } from '@/parts/page';
import { Time } from '@/parts/time';
import { actorDraft, mayHoldToken, type ActorDraft } from './actor-draft';
import { ActorSelect, GroupsField } from './actor-select';
import { RightsFields } from './rights';
import { RateField, TokenDialog } from './token-form';

export function ActorLink({ actor }: { actor: ActorName }) {
  return <PageLink to={actor.kind === 'person' ? '/people' : '/service-accounts'} search={{ open: actor.id }}>{visibleText(actor.name)}</PageLink>;
}

interface ActorFormProps<R> {
  kind: ActorKind;
  actor?: Actor | undefined;
  submit: string;
  /** `tenant` is empty for the own one. */
  save: (draft: ActorDraft, tenant: string) => Promise<R>;
  onDone: (result: R) => void;
  onPicking: (isPicking: boolean) => void;
}

/** Creates a person or a service account, or edits one. */
export function ActorForm<R>({ kind, actor, submit, save, onDone, onPicking }: ActorFormProps<R>) {
  const t = useT();
  const session = useSession();
  const [draft, setDraft] = useState(() => actorDraft(actor));
  const [tenant, setTenant] = useState('');
  const [failure, setFailure] = useState<unknown>();
  const set = (change: Partial<ActorDraft>) => setDraft({ ...draft, ...change });
  const action = useAction(() => save(draft, tenant), { invalidates: [peopleKeys.all, keys.session, keys.limits], failed: setFailure, done: onDone });
  const isLocked = actor?.is_shared === true && !session.platform;
  const managed = actor?.provisioned ? t('people.scimField') : undefined;
  return (
    <form onSubmit={(event) => { event.preventDefault(); action.mutate(undefined); }}>
      <Stack>
        {isLocked && <Text c="dimmed">{t('people.sharedNote')}</Text>}
        <TextInput label={t('common.name')} description={managed} required maxLength={64} disabled={isLocked} value={draft.name} onChange={(event) => set({ name: event.currentTarget.value })} data-autofocus />
        {kind === 'person'
          ? <TextInput type="email" label={t('people.email')} description={managed ?? t('people.emailHelp')} maxLength={254} disabled={isLocked} value={draft.email} onChange={(event) => set({ email: event.currentTarget.value })} />
          : <Textarea label={t('people.purpose')} autosize minRows={1} maxRows={6} maxLength={1000} value={draft.description} onChange={(event) => set({ description: event.currentTarget.value })} />}
        {kind === 'service_account' && !tenant && <ActorSelect label={t('people.responsible')} description={t('people.responsibleHelp')} value={draft.responsible} known={actor?.responsible} onChange={(responsible) => set({ responsible })} />}
        <RightsFields value={draft.rights} onChange={(rights) => set({ rights })} platform={kind === 'person'} onPicking={onPicking} />
        <RateField description={t('people.rateHelp')} value={draft.rate} onChange={(rate) => set({ rate })} />
        {!tenant && <GroupsField value={draft.groups} onChange={(groups) => set({ groups })} />}
        {!actor && session.platform && <TextInput label={t('tokens.tenant')} placeholder={session.tenant} value={tenant} onChange={(event) => setTenant(event.currentTarget.value)} />}
        {Boolean(failure) && <ErrorPanel error={failure} />}
        <Group justify="flex-end"><Button type="submit" loading={action.isPending}>{submit}</Button></Group>
      </Stack>
    </form>
  );
}

function TokenRow({ token, mayRotate, onMade }: { token: Token; mayRotate: boolean; onMade: (token: CreatedToken) => void }) {
  const t = useT();
  const ask = useAsk();
  const invalidates = [keys.tokens, peopleKeys.all];
  const rotate = useAction(() => actions.rotate(token.id, '10m'), { invalidates, done: onMade });
  const remove = useAction(() => actions.remove(token.id), { invalidates, done: () => notify(t('tokens.revoked')) });
  const askRotate = async () => { if (await ask({ title: t('tokens.rotateTitle', { name: token.name }), body: t('tokens.rotateHelp'), confirm: t('tokens.rotate') })) rotate.mutate(undefined); };
  const askRevoke = async () => { if (await ask({ title: t('tokens.revokeTitle', { name: token.name }), body: t('tokens.revokeBody'), confirm: t('tokens.revoke'), danger: true })) remove.mutate(undefined); };
  return (
    <Table.Tr>
      <Table.Td style={{ overflowWrap: 'anywhere' }}><PageLink to="/tokens" search={{ open: token.id }}>{visibleText(token.name)}</PageLink></Table.Td>
      <Table.Td>{t(`role.${token.role}`)}</Table.Td>
      <Table.Td><Time at={token.last_used_at} /></Table.Td>
      <Table.Td>{token.expires_at ? <Time at={token.expires_at} /> : <Text c="dimmed">{t('common.never')}</Text>}</Table.Td>
      <Table.Td>
        <Group gap={4} wrap="nowrap" justify="flex-end">
          {mayRotate && <Tooltip label={t('tokens.rotate')}><ActionIcon size="sm" aria-label={`${t('tokens.rotate')}: ${token.name}`} loading={rotate.isPending} onClick={() => void askRotate()}><IconRefresh size={14} /></ActionIcon></Tooltip>}
          <Tooltip label={t('tokens.revoke')}><ActionIcon size="sm" aria-label={`${t('tokens.revoke')}: ${token.name}`} loading={remove.isPending} onClick={() => void askRevoke()}><IconTrash size={14} /></ActionIcon></Tooltip>
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}

/** The tokens of a person or a service account. */
export function ActorTokens({ actor }: { actor: Actor }) {
  const t = useT();
  const mayHold = mayHoldToken(actor, useSession());
  const [isCreating, setCreating] = useState(false);
  const [made, setMade] = useState<CreatedToken>();
  const { data: tokens, error, refetch } = useQuery(tokensOfQuery(actor.id));
  const add = <Button variant="default" size="compact-sm" leftSection={<IconPlus size={13} />} onClick={() => setCreating(true)}>{t('palette.newToken')}</Button>;
  return (
    <>
      <SectionTitle right={mayHold && add}>{t('nav.tokens')}</SectionTitle>
      {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : !tokens ? <Loading rows={2} /> : tokens.length === 0 ? <Text c="dimmed">{t(actor.kind === 'person' ? 'people.noTokens' : 'serviceAccounts.noTokens')}</Text> : (
        <Table.ScrollContainer minWidth={380}>
          <Table verticalSpacing={4}>
            <Table.Thead><Table.Tr><Table.Th>{t('common.name')}</Table.Th><Table.Th>{t('tokens.role')}</Table.Th><Table.Th>{t('tokens.lastUsed')}</Table.Th><Table.Th>{t('approvals.expires')}</Table.Th><Table.Th aria-label={t('common.more')} /></Table.Tr></Table.Thead>
            <Table.Tbody>{tokens.map((token) => <TokenRow key={token.id} token={token} mayRotate={mayHold} onMade={setMade} />)}</Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      <TokenDialog opened={isCreating} owner={actor} made={made} onMade={setMade} onClose={() => { setCreating(false); setMade(undefined); }} />
    </>
  );
}
