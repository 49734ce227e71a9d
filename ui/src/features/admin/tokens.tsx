import { ActionIcon, Button, Checkbox, Group, Menu, Modal, NumberInput, Select, Stack, Table, TagsInput, Text, TextInput } from '@mantine/core';
import { IconDots, IconPlus, IconTicket } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { tokens as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { tokensQuery } from '@/api/queries';
import { useMay, useSession } from '@/api/session';
import type { CreatedToken, RateLimit, Role, Token } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, PermissionNote } from '@/parts/basics';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { Content, Loading, Page } from '@/parts/page';
import { ShownOnce } from '@/parts/secret-field';
import { Time } from '@/parts/time';
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

function TokenForm({ onDone }: { onDone: (token: CreatedToken) => void }) {
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
        <TagsInput label={t('tokens.tools')} description={t('tokens.toolsHelp')} placeholder={tools.length === 0 ? t('connect.allTools') : ''} value={tools} onChange={setTools} />
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

export function TokensPage() {
  const t = useT();
  const ask = useAsk();
  const mayAdmin = useMay('admin');
  const [url, setUrl] = useUrlState();
  const [made, setMade] = useState<CreatedToken>();
  const [limited, setLimited] = useState<Token>();
  const { data, error, isPending, refetch } = useQuery({ ...tokensQuery, enabled: mayAdmin });
  const rotate = useAction((token: Token) => actions.rotate(token.id, '10m'), { invalidates: [keys.tokens], done: setMade });
  const remove = useAction((token: Token) => actions.remove(token.id), { invalidates: [keys.tokens], done: () => notify(t('tokens.revoked')) });
  const askRevoke = async (token: Token) => { if (await ask({ title: t('tokens.revokeTitle', { name: token.name }), body: t('tokens.revokeBody'), confirm: t('tokens.revoke'), danger: true })) remove.mutate(token); };
  const close = () => { setMade(undefined); setUrl({ new: undefined }); };
  if (!mayAdmin) return <Page title={t('nav.tokens')}><Content><PermissionNote needs="admin" /></Content></Page>;
  return (
    <Page title={t('nav.tokens')} count={data?.length} primary={<Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ new: '1' })}>{t('palette.newToken')}</Button>}>
      <Content>
        {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : isPending ? <Loading /> : data.length === 0 ? <EmptyState icon={IconTicket} title={t('tokens.empty')}>{t('tokens.emptyHint')}</EmptyState> : (
          <Table.ScrollContainer minWidth={760}><Table verticalSpacing={6}>
            <Table.Thead><Table.Tr><Table.Th>{t('common.name')}</Table.Th><Table.Th>{t('tokens.role')}</Table.Th><Table.Th>{t('tokens.tools')}</Table.Th><Table.Th>{t('tokens.rateLimit')}</Table.Th><Table.Th>{t('tokens.lastUsed')}</Table.Th><Table.Th>{t('approvals.expires')}</Table.Th><Table.Th /></Table.Tr></Table.Thead>
            <Table.Tbody>{data.map((token) => (
              <Table.Tr key={token.id}>
                <Table.Td><Text fw={500}>{visibleText(token.name)}</Text>{token.tenant !== 'default' && <Text size="xs" c="dimmed">{token.tenant}</Text>}</Table.Td>
                <Table.Td><Group gap={4}>{t(`role.${token.role}`)}{token.elevated && <Chip>{t('status.elevated')}</Chip>}{token.platform && <Chip>{t('account.platform')}</Chip>}</Group></Table.Td>
                <Table.Td>{token.tools ? <Group gap={4}>{token.tools.map((rule) => <Chip key={rule}>{rule}</Chip>)}</Group> : <Text c="dimmed">{t('common.all')}</Text>}</Table.Td>
                <Table.Td>{token.rate_limit ? `${token.rate_limit.calls.toLocaleString()} / ${token.rate_limit.per}` : <Text c="dimmed">{t('limits.unlimited')}</Text>}</Table.Td>
                <Table.Td><Time at={token.last_used_at} /></Table.Td><Table.Td>{token.expires_at ? <Time at={token.expires_at} /> : <Text c="dimmed">{t('common.never')}</Text>}</Table.Td>
                <Table.Td ta="right">
                  <Menu position="bottom-end"><Menu.Target><ActionIcon aria-label={`${t('common.more')}: ${token.name}`}><IconDots size={16} /></ActionIcon></Menu.Target>
                    <Menu.Dropdown><Menu.Item onClick={() => setLimited(token)}>{t('tokens.setLimit')}</Menu.Item><Menu.Item onClick={() => rotate.mutate(token)}>{t('tokens.rotate')}</Menu.Item><Menu.Item color="red" onClick={() => void askRevoke(token)}>{t('tokens.revoke')}…</Menu.Item></Menu.Dropdown></Menu>
                </Table.Td>
              </Table.Tr>
            ))}</Table.Tbody>
          </Table></Table.ScrollContainer>
        )}
      </Content>
      <Modal opened={url['new'] !== undefined || made !== undefined} onClose={close} title={t('palette.newToken')}>
        {made ? <Stack><Text fw={600}>{visibleText(made.name)}</Text><ShownOnce value={made.token} /><Group justify="flex-end"><Button onClick={close}>{t('common.close')}</Button></Group></Stack> : <TokenForm onDone={setMade} />}
      </Modal>
      <Modal opened={limited !== undefined} onClose={() => setLimited(undefined)} title={limited && t('tokens.limitTitle', { name: limited.name })}>{limited && <LimitForm key={limited.id} token={limited} onDone={() => setLimited(undefined)} />}</Modal>
    </Page>
  );
}
