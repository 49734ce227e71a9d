import { Button, Group, Modal, NumberInput, Stack, Switch, Table, Text, TextInput } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { tenants as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { tenantsQuery } from '@/api/queries';
import { useSession } from '@/api/session';
import type { Tenant, TenantPatch } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { Chip, ErrorPanel, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { bytes, visibleText } from '@/parts/format';
import { Content, Loading, Page } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';

const LIMITS = ['calls_per_minute', 'max_parallel', 'max_tools', 'max_queued_calls', 'max_stored_bytes'] as const;

function Limits({ tenant }: { tenant: Tenant }) {
  const t = useT();
  const set = LIMITS.filter((key) => typeof tenant.limits[key] === 'number');
  if (set.length === 0) return <Text c="dimmed">{t('limits.unlimited')}</Text>;
  return <Group gap={4}>{set.map((key) => <Chip key={key}>{t(`tenants.limit.${key}` as MessageKey)}: {key === 'max_stored_bytes' ? bytes(tenant.limits[key] ?? 0) : (tenant.limits[key] ?? 0).toLocaleString()}</Chip>)}</Group>;
}

function NewTenantForm({ onDone }: { onDone: () => void }) {
  const t = useT();
  const [id, setId] = useState('');
  const [name, setName] = useState('');
  const create = useAction(() => actions.create(id, name), { invalidates: [keys.tenants], done: () => { notify(t('common.saved')); onDone(); } });
  return (
    <form onSubmit={(event) => { event.preventDefault(); create.mutate(undefined); }}>
      <Stack><TextInput label="ID" required value={id} onChange={(event) => setId(event.currentTarget.value)} data-autofocus /><TextInput label={t('common.name')} value={name} onChange={(event) => setName(event.currentTarget.value)} /><Group justify="flex-end"><Button type="submit" loading={create.isPending}>{t('tenants.new')}</Button></Group></Stack>
    </form>
  );
}

function EditTenant({ tenant, onDone }: { tenant: Tenant; onDone: () => void }) {
  const t = useT();
  const ask = useAsk();
  const [name, setName] = useState(tenant.name);
  const [enabled, setEnabled] = useState(tenant.enabled);
  const [limits, setLimits] = useState<Record<string, number | null | undefined>>(tenant.limits as Record<string, number | null | undefined>);
  const save = useAction(() => actions.patch(tenant.id, { name, ...(tenant.id === 'default' ? {} : { enabled }), limits } as TenantPatch), { invalidates: [keys.tenants], done: () => { notify(t('common.saved')); onDone(); } });
  const remove = useAction(() => actions.remove(tenant.id), { invalidates: [keys.tenants], done: () => { notify(t('common.deleted')); onDone(); } });
  const askDelete = async () => { if (await ask({ title: t('tenants.deleteTitle', { name: tenant.id }), body: t('tenants.deleteBody'), confirm: t('common.delete'), danger: true, typed: tenant.id })) remove.mutate(undefined); };
  return (
    <form onSubmit={(event) => { event.preventDefault(); save.mutate(undefined); }}>
      <Stack>
        <TextInput label={t('common.name')} value={name} onChange={(event) => setName(event.currentTarget.value)} />
        {tenant.id !== 'default' && <Switch label={t('common.enabled')} checked={enabled} onChange={(event) => setEnabled(event.currentTarget.checked)} />}
        <SectionTitle>{t('nav.limits')}</SectionTitle>
        {LIMITS.map((key) => <NumberInput key={key} label={t(`tenants.limit.${key}` as MessageKey)} placeholder={t('limits.unlimited')} min={0} value={limits[key] ?? ''} onChange={(next) => setLimits({ ...limits, [key]: typeof next === 'number' ? next : null })} />)}
        {(tenant.environment.length > 0 || tenant.file_roots.length > 0) && <Facts rows={[
          [t('tenants.environment'), tenant.environment.length > 0 && <Mono key="environment">{tenant.environment.join(', ')}</Mono>],
          [t('tenants.fileRoots'), tenant.file_roots.length > 0 && <Mono key="fileRoots">{tenant.file_roots.map((root) => root.name).join(', ')}</Mono>],
        ]} />}
        <Group justify="space-between">{tenant.id === 'default' ? <span /> : <Button variant="subtle" color="red" onClick={() => void askDelete()}>{t('common.delete')}…</Button>}<Button type="submit" loading={save.isPending}>{t('common.save')}</Button></Group>
      </Stack>
    </form>
  );
}

export function TenantsPage() {
  const t = useT();
  const session = useSession();
  const [url, setUrl] = useUrlState();
  const { data, error, isPending, refetch } = useQuery({ ...tenantsQuery, enabled: session.platform });
  const open = data?.find((tenant) => tenant.id === url['open']);
  if (!session.platform) return <Page title={t('nav.tenants')}><Content><PermissionNote needs="admin" platform /></Content></Page>;
  return (
    <Page title={t('nav.tenants')} count={data?.length} primary={<Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ new: '1' })}>{t('tenants.new')}</Button>}>
      <Content>
        <Text c="dimmed" mb="md">{t('tenants.intro')}</Text>
        {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : isPending ? <Loading /> : (
          <Table.ScrollContainer minWidth={640}><Table verticalSpacing={6}>
            <Table.Thead><Table.Tr><Table.Th>ID</Table.Th><Table.Th>{t('common.name')}</Table.Th><Table.Th>{t('common.status')}</Table.Th><Table.Th>{t('nav.limits')}</Table.Th><Table.Th>{t('common.created')}</Table.Th><Table.Th /></Table.Tr></Table.Thead>
            <Table.Tbody>{data.map((tenant) => <Table.Tr key={tenant.id}><Table.Td><Mono>{tenant.id}</Mono></Table.Td><Table.Td>{visibleText(tenant.name)}</Table.Td><Table.Td><StatusBadge status={tenant.enabled ? 'enabled' : 'disabled'} /></Table.Td><Table.Td><Limits tenant={tenant} /></Table.Td><Table.Td><Time at={tenant.created_at} /></Table.Td><Table.Td ta="right"><Button variant="subtle" size="compact-xs" onClick={() => setUrl({ open: tenant.id })}>{t('common.edit')}</Button></Table.Td></Table.Tr>)}</Table.Tbody>
          </Table></Table.ScrollContainer>
        )}
      </Content>
      <Modal opened={url['new'] !== undefined} onClose={() => setUrl({ new: undefined })} title={t('tenants.new')}><NewTenantForm onDone={() => setUrl({ new: undefined })} /></Modal>
      <Modal opened={open !== undefined} onClose={() => setUrl({ open: undefined })} title={open?.id}>{open && <EditTenant key={open.id} tenant={open} onDone={() => setUrl({ open: undefined })} />}</Modal>
    </Page>
  );
}
