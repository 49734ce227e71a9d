import { Button, Checkbox, Group, Modal, NumberInput, Select, Stack, Text, TextInput, Title } from '@mantine/core';
import { IconGauge, IconPlus, IconRefresh, IconTicket, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { tokens as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { tokensQuery } from '@/api/queries';
import { useMay, useSession } from '@/api/session';
import type { CreatedToken, RateLimit, Role, Token } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, Facts, Mono, PermissionNote } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { FilterInput } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { PageLink } from '@/parts/links';
import { Content, Drawer, Loading, Page, Split, Toolbar } from '@/parts/page';
import { ShownOnce } from '@/parts/secret-field';
import { Time } from '@/parts/time';
import { ToolPicker } from '@/parts/tool-picker';
import { useUrlState } from '@/parts/url-state';

const ROLES: Role[] = ['viewer', 'caller', 'editor', 'admin'];

function RateField({ value, onChange }: { value: RateLimit | null; onChange: (value: RateLimit | null) => void }) {
  const t = useT();
  return (
    <Group align="flex-end" gap="xs" wrap="nowrap">
      <NumberInput flex={1} label={t('tokens.rateLimit')} placeholder={t('limits.unlimited')} min={1} value={value?.calls ?? ''} onChange={(next) => onChange(typeof next === 'number' ? { calls: next, per: value?.per ?? '1m' } : null)} />
      <Select w={130} aria-label={t('tokens.period')} data={[{ value: '1s', label: t('tokens.perSecond') }, { value: '1m', label: t('tokens.perMinute') }, { value: '1h', label: t('tokens.perHour') }, { value: '1d', label: t('tokens.perDay') }, ...(value && !['1s', '1m', '1h', '1d'].includes(value.per) ? [{ value: value.per, label: value.per }] : [])]}
        value={value?.per ?? '1m'} disabled={value === null} allowDeselect={false} onChange={(next) => { if (value) onChange({ ...value, per: next ?? '1m' }); }} />
    </Group>
  );
}

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

function TokenForm({ onDone, onPicking }: { onDone: (token: CreatedToken) => void; onPicking: (isPicking: boolean) => void }) {
  const t = useT();
  const session = useSession();
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('caller');
  const [tools, setTools] = useState<string[]>([]);
  const [lifetime, setLifetime] = useState<string | null>(null);
  const [elevated, setElevated] = useState(false);
  const [platform, setPlatform] = useState(false);
  const [rate, setRate] = useState<RateLimit | null>(null);
  const [tenant, setTenant] = useState('');
  const create = useAction(() => actions.create({ name, role, elevated, platform, ...(rate ? { rate_limit: rate } : {}), ...(tools.length > 0 ? { tools } : {}), ...(lifetime ? { expires_in: lifetime } : {}), ...(tenant ? { tenant } : {}) }), { invalidates: [keys.tokens], done: onDone });
  return (
    <form onSubmit={(event) => { event.preventDefault(); create.mutate(undefined); }}>
      <Stack>
        <TextInput label={t('common.name')} description={t('tokens.nameHelp')} required value={name} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
        <Select label={t('tokens.role')} data={ROLES.map((value) => ({ value, label: `${t(`role.${value}`)}: ${t(`role.${value}.may`)}` }))} value={role} allowDeselect={false} onChange={(next) => setRole((next ?? 'caller') as Role)} />
        <ToolPicker label={t('tokens.tools')} description={t('tokens.toolsHelp')} emptyText={t('connect.allTools')} value={tools} onChange={setTools} onOpened={onPicking} />
        <Select label={t('tokens.lifetime')} placeholder={t('tokens.noExpiry')} clearable data={['12h', '7d', '30d', '90d', '365d']} value={lifetime} onChange={setLifetime} />
        {session.platform && <TextInput label={t('tokens.tenant')} placeholder={session.tenant} value={tenant} onChange={(event) => setTenant(event.currentTarget.value)} />}
        <RateField value={rate} onChange={setRate} />
        {session.platform && role === 'admin' && <Checkbox label={t('account.platform')} description={t('tokens.platformHelp')} checked={platform} onChange={(event) => setPlatform(event.currentTarget.checked)} />}
        <Checkbox label={t('account.elevated')} checked={elevated} onChange={(event) => setElevated(event.currentTarget.checked)} />
        <Group justify="flex-end"><Button type="submit" loading={create.isPending}>{t('palette.newToken')}</Button></Group>
      </Stack>
    </form>
  );
}

function Detail({ token, onMade, onClose }: { token: Token; onMade: (token: CreatedToken) => void; onClose: () => void }) {
  const t = useT();
  const ask = useAsk();
  const [limiting, setLimiting] = useState(false);
  const rotate = useAction(() => actions.rotate(token.id, '10m'), { invalidates: [keys.tokens], done: onMade });
  const remove = useAction(() => actions.remove(token.id), { invalidates: [keys.tokens], done: () => { onClose(); notify(t('tokens.revoked')); } });
  const askRevoke = async () => { if (await ask({ title: t('tokens.revokeTitle', { name: token.name }), body: t('tokens.revokeBody'), confirm: t('tokens.revoke'), danger: true })) remove.mutate(undefined); };
  return (
    <Drawer label={token.name} onClose={onClose} title={<div><Title order={2}>{visibleText(token.name)}</Title><Group gap={4}><Chip>{t(`role.${token.role}`)}</Chip>{token.elevated && <Chip>{t('status.elevated')}</Chip>}{token.platform && <Chip>{t('account.platform')}</Chip>}</Group></div>}>
      <Stack gap="sm">
        <Group gap="sm">
          <Button variant="default" leftSection={<IconGauge size={14} />} onClick={() => setLimiting(true)}>{t('tokens.setLimit')}</Button>
          <Button variant="default" leftSection={<IconRefresh size={14} />} loading={rotate.isPending} onClick={() => rotate.mutate(undefined)}>{t('tokens.rotate')}</Button>
          <Button variant="default" leftSection={<IconTrash size={14} />} onClick={() => void askRevoke()}>{t('tokens.revoke')}</Button>
        </Group>
        <Text size="xs" c="dimmed">{t('tokens.rotateHelp')}</Text>
        <Facts rows={[
          [t('tokens.role'), `${t(`role.${token.role}`)}: ${t(`role.${token.role}.may`)}`],
          [t('tokens.tools'), token.tools ? <Group key="tools" gap={4}>{token.tools.map((rule) => <Chip key={rule}>{visibleText(rule)}</Chip>)}</Group> : t('connect.allTools')],
          [t('tokens.rateLimit'), token.rate_limit ? `${token.rate_limit.calls.toLocaleString()} / ${token.rate_limit.per}` : t('limits.unlimited')],
          [t('tokens.tenant'), token.tenant],
          [t('tokens.lastUsed'), <Time key="used" at={token.last_used_at} />],
          [t('common.created'), <Time key="created" at={token.created_at} />],
          [t('approvals.expires'), token.expires_at ? <Time key="expires" at={token.expires_at} /> : t('common.never')],
          [t('tokens.oldValue'), token.previous_expires_at && <Time key="old" at={token.previous_expires_at} />],
          [t('nav.calls'), <PageLink key="calls" to="/calls" search={{ caller: token.name, since: '30d' }}>{t('common.showAll')}</PageLink>],
          ['ID', <Mono key="id">{token.id}</Mono>],
        ]} />
      </Stack>
      <Modal opened={limiting} onClose={() => setLimiting(false)} title={t('tokens.limitTitle', { name: token.name })}><LimitForm key={token.id} token={token} onDone={() => setLimiting(false)} /></Modal>
    </Drawer>
  );
}

export function TokensPage() {
  const t = useT();
  const mayAdmin = useMay('admin');
  const [url, setUrl] = useUrlState();
  const [made, setMade] = useState<CreatedToken>();
  const [isPicking, setPicking] = useState(false);
  const { data: all, error, isPending, refetch } = useQuery({ ...tokensQuery, enabled: mayAdmin });
  const q = (url['q'] ?? '').toLowerCase();
  const rows = (all ?? []).filter((token) => `${token.name} ${token.tenant} ${token.role}`.toLowerCase().includes(q));
  const open = all?.find((token) => token.id === url['open']);
  const columns = useMemo<Column<Token>[]>(() => [
    { key: 'name', header: t('common.name'), width: 'minmax(8rem, 1.2fr)', render: (row) => visibleText(row.name) },
    { key: 'role', header: t('tokens.role'), width: 'minmax(8rem, 1fr)', render: (row) => <Group gap={4} wrap="nowrap">{t(`role.${row.role}`)}{row.elevated && <Chip>{t('status.elevated')}</Chip>}{row.platform && <Chip>{t('account.platform')}</Chip>}</Group> },
    { key: 'tools', header: t('tokens.tools'), width: 'minmax(6rem, 1.4fr)', secondary: true, render: (row) => (row.tools ? visibleText(row.tools.join(', ')) : <Text c="dimmed">{t('common.all')}</Text>) },
    { key: 'tenant', header: t('tokens.tenant'), width: '8rem', secondary: true, render: (row) => <Text c="dimmed" truncate>{row.tenant}</Text> },
    { key: 'rate', header: t('tokens.rateLimit'), width: '8rem', secondary: true, render: (row) => (row.rate_limit ? `${row.rate_limit.calls.toLocaleString()} / ${row.rate_limit.per}` : <Text c="dimmed">{t('limits.unlimited')}</Text>) },
    { key: 'used', header: t('tokens.lastUsed'), width: '8rem', render: (row) => <Time at={row.last_used_at} /> },
    { key: 'expires', header: t('approvals.expires'), width: '8rem', render: (row) => (row.expires_at ? <Time at={row.expires_at} /> : <Text c="dimmed">{t('common.never')}</Text>) },
  ], [t]);
  const close = () => { setMade(undefined); setUrl({ new: undefined }); };
  if (!mayAdmin) return <Page title={t('nav.tokens')}><Content><PermissionNote needs="admin" /></Content></Page>;
  return (
    <Page title={t('nav.tokens')} count={all?.length} primary={<Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ new: '1' })}>{t('palette.newToken')}</Button>}>
      {all && all.length > 0 && <Toolbar><FilterInput value={url['q'] ?? ''} onChange={(next) => setUrl({ q: next || undefined })} label={t('common.filter')} /></Toolbar>}
      <Split drawer={open && <Detail key={open.id} token={open} onMade={setMade} onClose={() => setUrl({ open: undefined })} />}>
        {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : (
          <DataTable label={t('nav.tokens')} rows={rows} columns={columns} rowKey={(row) => row.id} rowName={(row) => row.name} openKey={url['open']} onOpen={(row) => setUrl({ open: row.id }, { push: true })}
            empty={<EmptyState icon={IconTicket} title={t(all.length === 0 ? 'tokens.empty' : 'tokens.noneFound')}>{all.length === 0 && t('tokens.emptyHint')}</EmptyState>}
            phone={(row) => <div><Group gap={6} wrap="nowrap"><Text truncate flex={1}>{visibleText(row.name)}</Text><Chip>{t(`role.${row.role}`)}</Chip></Group><Text size="xs" c="dimmed" truncate>{t('tokens.lastUsed')}: <Time at={row.last_used_at} /></Text></div>} />
        )}
      </Split>
      <Modal opened={url['new'] !== undefined || made !== undefined} onClose={close} closeOnEscape={!isPicking} title={t(made ? 'tokens.made' : 'palette.newToken')}>
        {made ? <Stack><Text fw={600}>{visibleText(made.name)}</Text><ShownOnce value={made.token} /><Group justify="flex-end"><Button onClick={close}>{t('common.close')}</Button></Group></Stack> : <TokenForm onDone={setMade} onPicking={setPicking} />}
      </Modal>
    </Page>
  );
}
