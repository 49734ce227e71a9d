/** What somebody has connected at other services, and what can be connected. */
import { Alert, Button, Group, Modal, Stack, Text } from '@mantine/core';
import { IconPlugConnected, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { accounts as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { accountsQuery } from '@/api/queries';
import { useMay, useSession } from '@/api/session';
import type { Connectable } from '@/api/types';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel } from '@/parts/basics';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { Content, Loading, Page } from '@/parts/page';
import { SecretField } from '@/parts/secret-field';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { Line, Lines } from './line';
import { Providers } from './providers';
import { requested, stateKey } from './state';

function ConnectForm({ item, isWaited, onDone }: { item: Connectable; isWaited: boolean; onDone: () => void }) {
  const t = useT();
  const [key, setKey] = useState('');
  const [failure, setFailure] = useState<unknown>();
  const options = { invalidates: [keys.accounts, keys.approvals, keys.calls], failed: setFailure };
  const save = useAction(() => actions.putKey(item.provider, key), { ...options, done: () => { notify(t('accounts.connected', { name: visibleText(item.display_name) })); onDone(); } });
  const login = useAction(() => actions.connect(item.provider), { ...options, done: ({ authorization_url: url }) => { window.location.assign(url); } });
  const isKey = item.kind === 'api_key';
  return (
    <form onSubmit={(event) => { event.preventDefault(); (isKey ? save : login).mutate(undefined); }}>
      <Stack>
        {isWaited && <Text>{t('accounts.connectHint')}</Text>}
        {item.help && <Text c="dimmed">{visibleText(item.help)}</Text>}
        {isKey ? <SecretField label={t('accounts.key')} value={key} onChange={setKey} required /> : <Text>{t('accounts.leave')}</Text>}
        {Boolean(failure) && <ErrorPanel error={failure} />}
        <Group justify="flex-end"><Button type="submit" loading={save.isPending || login.isPending}>{t('accounts.connect')}</Button></Group>
      </Stack>
    </form>
  );
}

function Row({ item, onConnect }: { item: Connectable; onConnect: () => void }) {
  const t = useT();
  const ask = useAsk();
  const name = visibleText(item.display_name);
  const revoke = useAction(() => actions.revoke(item.provider), { invalidates: [keys.accounts], done: () => notify(t('accounts.revoked')) });
  const askRevoke = async () => { if (await ask({ title: t('accounts.revokeTitle', { name }), body: t('accounts.revokeBody'), confirm: t('accounts.revoke'), danger: true })) revoke.mutate(undefined); };
  const { account } = item;
  return (
    <Line
      name={name}
      reference={visibleText(item.provider)}
      actions={(
        <>
          <Button size="compact-sm" variant={account ? 'default' : 'filled'} aria-label={`${t(account ? 'accounts.reconnect' : 'accounts.connect')} ${name}`} onClick={onConnect}>{t(account ? 'accounts.reconnect' : 'accounts.connect')}</Button>
          {account && <Button size="compact-sm" variant="default" leftSection={<IconTrash size={14} />} aria-label={`${t('accounts.revoke')} ${name}`} onClick={() => void askRevoke()}>{t('accounts.revoke')}</Button>}
        </>
      )}
    >
      <Text c={account?.state === 'expired' ? 'var(--haft-bad)' : undefined}>{t(stateKey(item))}</Text>
      {account?.scope && <Text size="xs" c="dimmed">{t('accounts.scope', { scope: visibleText(account.scope) })}</Text>}
      {account && <Text size="xs" c="dimmed">{account.last_used_at ? <>{t('accounts.lastUsed')}: <Time at={account.last_used_at} /></> : t('accounts.neverUsed')}</Text>}
    </Line>
  );
}

export function AccountsPage() {
  const t = useT();
  const session = useSession();
  const mayAdmin = useMay('admin');
  const [url, setUrl] = useUrlState();
  const { data, error, isPending, refetch } = useQuery(accountsQuery);
  const all = data ?? [];
  const asked = requested(all, url['connect']);
  const chosen = all.find((item) => item.provider === url['again']) ?? asked;
  const isUnknown = url['connect'] !== undefined && data !== undefined && !all.some((item) => item.provider === url['connect']);
  const close = () => setUrl({ connect: undefined, again: undefined, connected: undefined });
  return (
    <Page title={t('nav.accounts')} count={data?.length}>
      <Content narrow>
        {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : isPending ? <Loading /> : (
          <Stack gap="sm">
            <Text c="dimmed">{t('accounts.intro')}</Text>
            {session.actor === null && <Alert color="yellow" variant="outline">{t('accounts.noPerson')}</Alert>}
            {isUnknown && <Alert color="yellow" variant="outline">{t('accounts.unknown', { name: visibleText(url['connect'] ?? '') })}</Alert>}
            {all.length === 0 ? <EmptyState icon={IconPlugConnected} title={t('accounts.none')}>{t(mayAdmin ? 'accounts.noneAdminHint' : 'accounts.noneHint')}</EmptyState> : (
              <Lines label={t('nav.accounts')}>{all.map((item) => <Row key={item.provider} item={item} onConnect={() => setUrl({ again: item.provider })} />)}</Lines>
            )}
            {mayAdmin && <Providers />}
          </Stack>
        )}
      </Content>
      <Modal opened={chosen !== undefined} onClose={close} title={chosen && t('accounts.connectTitle', { name: visibleText(chosen.display_name) })}>
        {chosen && <ConnectForm key={chosen.provider} item={chosen} isWaited={chosen === asked} onDone={close} />}
      </Modal>
    </Page>
  );
}
