import { Button, Group, Modal, Stack, Text, Title } from '@mantine/core';
import { IconGauge, IconPlus, IconRefresh, IconTicket, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { tokens as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { peopleKeys } from '@/api/people';
import { tokensQuery } from '@/api/queries';
import { isPerson, useMay, useSession } from '@/api/session';
import type { CreatedToken, RateLimit, Token } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, Facts, Mono, PermissionNote } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { FilterInput } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { PageLink } from '@/parts/links';
import { Content, Drawer, Loading, Page, Split, Toolbar } from '@/parts/page';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { mayHoldToken } from './actor-draft';
import { ActorLink } from './actor-parts';
import { RightsChips, rightsRows } from './rights';
import { RateField, rateText, TokenDialog } from './token-form';

function LimitForm({ token, onDone }: { token: Token; onDone: () => void }) {
  const t = useT();
  const [rate, setRate] = useState<RateLimit | null>(token.rate_limit);
  const save = useAction(() => actions.limit(token.id, rate), { invalidates: [keys.tokens, keys.limits], done: () => { notify(t('common.saved')); onDone(); } });
  return (
    <form onSubmit={(event) => { event.preventDefault(); save.mutate(undefined); }}>
      <Stack><RateField value={rate} onChange={setRate} /><Group justify="flex-end"><Button variant="default" onClick={onDone}>{t('common.cancel')}</Button><Button type="submit" loading={save.isPending}>{t('common.save')}</Button></Group></Stack>
    </form>
  );
}

function Detail({ token, onMade, onClose }: { token: Token; onMade: (token: CreatedToken) => void; onClose: () => void }) {
  const t = useT();
  const ask = useAsk();
  const mayAdmin = useMay('admin');
  const mayRotate = mayHoldToken(token.actor, useSession());
  const [limiting, setLimiting] = useState(false);
  const rotate = useAction(() => actions.rotate(token.id, '10m'), { invalidates: [keys.tokens], done: onMade });
  const remove = useAction(() => actions.remove(token.id), { invalidates: [keys.tokens, peopleKeys.all], done: () => { onClose(); notify(t('tokens.revoked')); } });
  const askRevoke = async () => { if (await ask({ title: t('tokens.revokeTitle', { name: token.name }), body: t('tokens.revokeBody'), confirm: t('tokens.revoke'), danger: true })) remove.mutate(undefined); };
  return (
    <Drawer label={token.name} onClose={onClose} title={<div><Title order={2}>{visibleText(token.name)}</Title><RightsChips rights={token} /></div>}>
      <Stack gap="sm">
        <Group gap="sm">
          {mayAdmin && <Button variant="default" leftSection={<IconGauge size={14} />} onClick={() => setLimiting(true)}>{t('tokens.setLimit')}</Button>}
          {mayRotate && <Button variant="default" leftSection={<IconRefresh size={14} />} loading={rotate.isPending} onClick={() => rotate.mutate(undefined)}>{t('tokens.rotate')}</Button>}
          <Button variant="default" leftSection={<IconTrash size={14} />} onClick={() => void askRevoke()}>{t('tokens.revoke')}</Button>
        </Group>
        <Text size="xs" c="dimmed">{t(mayRotate ? 'tokens.rotateHelp' : 'tokens.rotateOwnOnly')}</Text>
        <Facts rows={[
          [t('tokens.owner'), mayAdmin && (token.actor ? <ActorLink key="owner" actor={token.actor} /> : t('tokens.nobody'))],
          ...rightsRows(token, t),
          [t('tokens.rateLimit'), rateText(token.rate_limit, t)],
          [t('tokens.tenant'), token.tenant],
          [t('tokens.lastUsed'), <Time key="used" at={token.last_used_at} />],
          [t('common.created'), <Time key="created" at={token.created_at} />],
          [t('approvals.expires'), token.expires_at ? <Time key="expires" at={token.expires_at} /> : t('common.never')],
          [t('tokens.oldValue'), token.previous_expires_at && <Time key="old" at={token.previous_expires_at} />],
          [t('nav.calls'), <PageLink key="calls" to="/calls" search={{ caller: token.actor?.name ?? token.name, since: '30d' }}>{t('common.showAll')}</PageLink>],
          ['ID', <Mono key="id">{token.id}</Mono>],
        ]} />
      </Stack>
      <Modal opened={limiting} onClose={() => setLimiting(false)} title={t('tokens.limitTitle', { name: token.name })}><LimitForm key={token.id} token={token} onDone={() => setLimiting(false)} /></Modal>
    </Drawer>
  );
}

/** All tokens of the tenant, for admins; for other people, their own ones. */
export function TokensPage() {
  const t = useT();
  const session = useSession();
  const mayAdmin = useMay('admin');
  const maySee = mayAdmin || isPerson(session);
  const title = t(mayAdmin || !maySee ? 'nav.tokens' : 'nav.myTokens');
  const [url, setUrl] = useUrlState();
  const [made, setMade] = useState<CreatedToken>();
  const { data: all, error, isPending, refetch } = useQuery({ ...tokensQuery, enabled: maySee });
  const q = (url['q'] ?? '').toLowerCase();
  const rows = (all ?? []).filter((token) => `${token.name} ${token.actor?.name ?? ''} ${token.tenant} ${token.role}`.toLowerCase().includes(q));
  const open = all?.find((token) => token.id === url['open']);
  const columns = useMemo<Column<Token>[]>(() => [
    { key: 'name', header: t('common.name'), width: 'minmax(8rem, 1.2fr)', render: (row) => visibleText(row.name) },
    ...(mayAdmin ? [{ key: 'owner', header: t('tokens.owner'), width: 'minmax(6rem, 1fr)', render: (row: Token) => (row.actor ? visibleText(row.actor.name) : <Text c="dimmed">—</Text>) }] : []),
    { key: 'role', header: t('tokens.role'), width: 'minmax(8rem, 1fr)', render: (row) => <RightsChips rights={row} /> },
    { key: 'tools', header: t('tokens.tools'), width: 'minmax(6rem, 1.4fr)', secondary: true, render: (row) => (row.tools ? visibleText(row.tools.join(', ')) : <Text c="dimmed">{t('common.all')}</Text>) },
    ...(mayAdmin ? [{ key: 'tenant', header: t('tokens.tenant'), width: '8rem', secondary: true, render: (row: Token) => <Text c="dimmed" truncate>{row.tenant}</Text> }] : []),
    { key: 'rate', header: t('tokens.rateLimit'), width: '8rem', secondary: true, render: (row) => <Text c={row.rate_limit ? undefined : 'dimmed'}>{rateText(row.rate_limit, t)}</Text> },
    { key: 'used', header: t('tokens.lastUsed'), width: '8rem', render: (row) => <Time at={row.last_used_at} /> },
    { key: 'expires', header: t('approvals.expires'), width: '8rem', render: (row) => (row.expires_at ? <Time at={row.expires_at} /> : <Text c="dimmed">{t('common.never')}</Text>) },
  ], [t, mayAdmin]);
  const close = () => { setMade(undefined); setUrl({ new: undefined }); };
  if (!maySee) return <Page title={title}><Content><PermissionNote needs="admin" /></Content></Page>;
  return (
    <Page title={title} count={all?.length} primary={<Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ new: '1' })}>{t('palette.newToken')}</Button>}>
      {!mayAdmin && <Text c="dimmed" px={{ base: 'lg', sm: 'xl' }} pb="sm">{t('tokens.mineIntro')}</Text>}
      {all && all.length > 0 && <Toolbar><FilterInput value={url['q'] ?? ''} onChange={(next) => setUrl({ q: next || undefined })} label={t('common.filter')} /></Toolbar>}
      <Split drawer={open && <Detail key={open.id} token={open} onMade={setMade} onClose={() => setUrl({ open: undefined })} />}>
        {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : (
          <DataTable label={title} rows={rows} columns={columns} rowKey={(row) => row.id} rowName={(row) => row.name} openKey={url['open']} onOpen={(row) => setUrl({ open: row.id }, { push: true })}
            empty={<EmptyState icon={IconTicket} title={t(all.length === 0 ? 'tokens.empty' : 'tokens.noneFound')}>{all.length === 0 && t(mayAdmin ? 'tokens.emptyHint' : 'tokens.mineEmptyHint')}</EmptyState>}
            phone={(row) => <div><Group gap={6} wrap="nowrap"><Text truncate flex={1}>{visibleText(row.name)}</Text><Chip>{t(`role.${row.role}`)}</Chip></Group><Text size="xs" c="dimmed" truncate>{row.actor && mayAdmin && `${visibleText(row.actor.name)} · `}{t('tokens.lastUsed')}: <Time at={row.last_used_at} /></Text></div>} />
        )}
      </Split>
      <TokenDialog opened={url['new'] !== undefined} made={made} onMade={setMade} onClose={close} />
    </Page>
  );
}
