/** Where people can connect accounts: the list for admins, and the form that defines a provider. */
import { Alert, Autocomplete, Button, Group, List, Modal, SegmentedControl, SimpleGrid, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { IconPencil, IconPlus, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { accountProviders as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { accountProvidersQuery, accountsAtQuery, credentialsQuery } from '@/api/queries';
import type { AccountProvider } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, CodeBlock, ErrorPanel, SectionTitle } from '@/parts/basics';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { Loading } from '@/parts/page';
import { useUrlState } from '@/parts/url-state';
import { Line, Lines } from './line';
import { providerBody, providerDraft, revokesAccounts, type ProviderDraft } from './provider-draft';

const SHOWN_NAMES = 12;

/** Whose accounts end. */
function AffectedPeople({ name }: { name: string }) {
  const t = useT();
  const { data, error } = useQuery(accountsAtQuery(name));
  if (error) return <ErrorPanel error={error} />;
  if (!data) return <Loading rows={1} />;
  if (data.total === 0) return <Text c="dimmed">{t('providers.affectedNobody')}</Text>;
  const shown = data.actors.slice(0, SHOWN_NAMES);
  return (
    <Stack gap={4}>
      <Text>{t('providers.affected', { n: data.total })}</Text>
      <List>{shown.map((actor) => <List.Item key={actor.id}>{visibleText(actor.name)}</List.Item>)}</List>
      {data.total > shown.length && <Text c="dimmed">{t('providers.affectedMore', { n: data.total - shown.length })}</Text>}
    </Stack>
  );
}

function OAuthFields({ draft, set, secrets, redirect }: { draft: ProviderDraft; set: (change: Partial<ProviderDraft>) => void; secrets: string[]; redirect: string }) {
  const t = useT();
  return (
    <>
      <div>
        <Text size="sm" fw={500}>{t('providers.redirect')}</Text>
        <Text size="xs" c="dimmed" mb={4}>{t('providers.redirectHelp')}</Text>
        <CodeBlock text={redirect} wrap />
      </div>
      <SegmentedControl aria-label={t('providers.endpoints')} value={draft.endpoints} onChange={(next) => set({ endpoints: next as ProviderDraft['endpoints'] })} data={[{ value: 'issuer', label: t('providers.byIssuer') }, { value: 'urls', label: t('providers.byUrls') }]} style={{ alignSelf: 'flex-start' }} />
      {draft.endpoints === 'issuer'
        ? <TextInput type="url" required label={t('providers.issuer')} description={t('providers.issuerHelp')} placeholder="https://login.example.com" value={draft.issuer} onChange={(event) => set({ issuer: event.currentTarget.value })} />
        : (
          <>
            <TextInput type="url" required label={t('providers.authorization')} placeholder="https://login.example.com/authorize" value={draft.authorizationEndpoint} onChange={(event) => set({ authorizationEndpoint: event.currentTarget.value })} />
            <TextInput type="url" required label={t('providers.token')} placeholder="https://login.example.com/token" value={draft.tokenEndpoint} onChange={(event) => set({ tokenEndpoint: event.currentTarget.value })} />
          </>
        )}
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <TextInput required label={t('providers.clientId')} value={draft.clientId} autoComplete="off" onChange={(event) => set({ clientId: event.currentTarget.value })} />
        <Autocomplete label={t('providers.clientSecret')} placeholder="${NAME}" data={secrets} value={draft.clientSecret} onChange={(clientSecret) => set({ clientSecret })} />
      </SimpleGrid>
      <Text size="xs" c="dimmed">{t('providers.secretHelp')}</Text>
      <TextInput label={t('providers.scopes')} description={t('providers.scopesHelp')} placeholder="calendar.read calendar.write" value={draft.scopes} onChange={(event) => set({ scopes: event.currentTarget.value })} />
    </>
  );
}

function ProviderForm({ known, taken, redirect, onDone }: { known?: AccountProvider | undefined; taken: string[]; redirect: string; onDone: () => void }) {
  const t = useT();
  const [draft, setDraft] = useState(() => providerDraft(known));
  const [failure, setFailure] = useState<unknown>();
  const { data: credentials } = useQuery(credentialsQuery);
  const secrets = (credentials ?? []).map((credential) => `\${${credential.name}}`);
  const set = (change: Partial<ProviderDraft>) => setDraft({ ...draft, ...change });
  const body = providerBody(draft, known);
  const save = useAction(() => actions.put(draft.name.trim(), body), { invalidates: [keys.accounts, keys.approvals], failed: setFailure, done: () => { notify(t('common.saved')); onDone(); } });
  // A new provider must not replace another one unnoticed.
  const isTaken = known === undefined && taken.includes(draft.name.trim());
  return (
    <form onSubmit={(event) => { event.preventDefault(); if (!isTaken) save.mutate(undefined); }}>
      <Stack>
        <TextInput required label={t('common.name')} description={t('providers.nameHelp', { name: draft.name.trim() || 'github' })} placeholder="github" disabled={known !== undefined} error={isTaken && t('providers.taken')} value={draft.name} onChange={(event) => set({ name: event.currentTarget.value })} data-autofocus={known === undefined ? true : undefined} />
        <TextInput label={t('providers.displayName')} placeholder="GitHub" maxLength={100} value={draft.displayName} onChange={(event) => set({ displayName: event.currentTarget.value })} data-autofocus={known ? true : undefined} />
        <Textarea label={t('providers.help')} description={t('providers.helpHelp')} autosize minRows={1} maxRows={6} maxLength={2000} value={draft.help} onChange={(event) => set({ help: event.currentTarget.value })} />
        <SegmentedControl aria-label={t('providers.kind')} value={draft.kind} onChange={(next) => set({ kind: next as ProviderDraft['kind'] })} data={[{ value: 'api_key', label: t('providers.kind.api_key') }, { value: 'oauth', label: t('providers.kind.oauth') }]} style={{ alignSelf: 'flex-start' }} />
        {draft.kind === 'oauth' && <OAuthFields draft={draft} set={set} secrets={secrets} redirect={redirect} />}
        <Autocomplete label={t('providers.shared')} description={t('providers.sharedHelp')} placeholder="${NAME}" data={secrets} value={draft.shared} onChange={(shared) => set({ shared })} />
        {known && revokesAccounts(body, known) && <Alert color="yellow" variant="light"><Text fw={600}>{t('providers.revokes')}</Text><AffectedPeople name={known.name} /></Alert>}
        {Boolean(failure) && <ErrorPanel error={failure} />}
        <Group justify="flex-end"><Button type="submit" loading={save.isPending}>{t(known ? 'common.save' : 'providers.create')}</Button></Group>
      </Stack>
    </form>
  );
}

function Row({ provider, onEdit }: { provider: AccountProvider; onEdit: () => void }) {
  const t = useT();
  const ask = useAsk();
  const name = visibleText(provider.display_name || provider.name);
  const remove = useAction(() => actions.remove(provider.name), { invalidates: [keys.accounts, keys.approvals, keys.calls], done: () => notify(t('common.deleted')) });
  const body = <Stack gap="sm"><Text>{t('providers.deleteBody', { name: provider.name })}</Text><AffectedPeople name={provider.name} /></Stack>;
  const askDelete = async () => { if (await ask({ title: t('providers.deleteTitle', { name }), body, confirm: t('common.delete'), danger: true })) remove.mutate(undefined); };
  return (
    <Line
      name={name}
      reference={`\${account:${provider.name}}`}
      actions={(
        <>
          <Button size="compact-sm" variant="default" leftSection={<IconPencil size={14} />} aria-label={`${t('common.edit')} ${name}`} onClick={onEdit}>{t('common.edit')}</Button>
          <Button size="compact-sm" variant="default" leftSection={<IconTrash size={14} />} aria-label={`${t('common.delete')} ${name}`} loading={remove.isPending} onClick={() => void askDelete()}>{t('common.delete')}</Button>
        </>
      )}
    >
      <Chip>{t(provider.oauth ? 'providers.kind.oauth' : 'providers.kind.api_key')}</Chip>
      {provider.oauth && <Text size="xs" c="dimmed">{visibleText(provider.oauth.issuer ?? provider.oauth.authorization_endpoint ?? '')}</Text>}
      {provider.shared && <Text size="xs" c="dimmed">{t('providers.sharedWith', { name: provider.shared })}</Text>}
    </Line>
  );
}

/** For admins. */
export function Providers() {
  const t = useT();
  const [url, setUrl] = useUrlState();
  const { data, error, refetch } = useQuery(accountProvidersQuery);
  const all = data?.providers ?? [];
  const edited = all.find((provider) => provider.name === url['edit']);
  const close = () => setUrl({ edit: undefined, new: undefined });
  return (
    <>
      <SectionTitle right={<Button size="compact-sm" variant="default" leftSection={<IconPlus size={13} />} onClick={() => setUrl({ new: '1' })}>{t('providers.new')}</Button>}>{t('providers.title')}</SectionTitle>
      <Text c="dimmed">{t('providers.intro')}</Text>
      {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : !data ? <Loading rows={2} /> : all.length === 0 ? <Text c="dimmed">{t('providers.none')}</Text> : (
        <Lines label={t('providers.title')}>{all.map((provider) => <Row key={provider.name} provider={provider} onEdit={() => setUrl({ edit: provider.name })} />)}</Lines>
      )}
      <Modal opened={data !== undefined && (edited !== undefined || url['new'] !== undefined)} onClose={close} size="lg" title={edited ? t('providers.editTitle', { name: visibleText(edited.display_name || edited.name) }) : t('providers.new')}>
        <ProviderForm key={edited?.name ?? ''} known={edited} taken={all.map((provider) => provider.name)} redirect={data?.redirect_uri ?? ''} onDone={close} />
      </Modal>
    </>
  );
}
