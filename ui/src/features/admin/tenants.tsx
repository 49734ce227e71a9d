import { Button, Group, Modal, NumberInput, Stack, Switch, Text, TextInput, Title } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { tenants as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { tenantsQuery } from '@/api/queries';
import { useSession } from '@/api/session';
import type { Tenant, TenantPatch } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { ErrorPanel, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { bytes, visibleText } from '@/parts/format';
import { Content, Drawer, Loading, Page, Split } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';

const LIMITS = ['calls_per_minute', 'max_parallel', 'max_tools', 'max_agents', 'max_pipelines', 'max_artifacts', 'max_queued_calls', 'max_stored_bytes', 'max_runs', 'max_parallel_runs', 'max_chats', 'max_messages_per_chat', 'max_workspaces', 'max_documents'] as const;

function Limits({ tenant }: { tenant: Tenant }) {
  const t = useT();
  const set = LIMITS.filter((key) => typeof tenant.limits[key] === 'number');
  if (set.length === 0) return <Text c="dimmed">{t('limits.unlimited')}</Text>;
  return <Text c="dimmed" truncate>{set.map((key) => `${t(`tenants.limit.${key}` as MessageKey)}: ${key === 'max_stored_bytes' ? bytes(tenant.limits[key] ?? 0) : (tenant.limits[key] ?? 0).toLocaleString()}`).join(' · ')}</Text>;
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
        {LIMITS.map((key) => <NumberInput key={key} label={t(`tenants.limit.${key}` as MessageKey)} placeholder={t('limits.unlimited')} min={1} value={limits[key] ?? ''} onChange={(next) => setLimits({ ...limits, [key]: typeof next === 'number' ? next : null })} />)}
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
  const { data: rows, error, isPending, refetch } = useQuery({ ...tenantsQuery, enabled: session.platform });
  const open = rows?.find((tenant) => tenant.id === url['open']);
  const columns = useMemo<Column<Tenant>[]>(() => [
    { key: 'state', header: '', width: '16px', render: (row) => <StatusBadge status={row.enabled ? 'enabled' : 'disabled'} iconOnly /> },
    { key: 'id', header: 'ID', width: 'minmax(6rem, 0.8fr)', render: (row) => <Mono>{visibleText(row.id)}</Mono> },
    { key: 'name', header: t('common.name'), width: 'minmax(6rem, 1fr)', render: (row) => visibleText(row.name) },
    { key: 'limits', header: t('nav.limits'), width: 'minmax(10rem, 2.4fr)', secondary: true, render: (row) => <Limits tenant={row} /> },
    { key: 'created', header: t('common.created'), width: '8rem', render: (row) => <Time at={row.created_at} /> },
  ], [t]);
  if (!session.platform) return <Page title={t('nav.tenants')}><Content><PermissionNote needs="admin" platform /></Content></Page>;
  return (
    <Page title={t('nav.tenants')} count={rows?.length} primary={<Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ new: '1' })}>{t('tenants.new')}</Button>}>
      <Text c="dimmed" px={{ base: 'lg', sm: 'xl' }} pb="md">{t('tenants.intro')}</Text>
      <Split drawer={open && (
        <Drawer key={open.id} label={open.id} title={<div><Title order={2}>{visibleText(open.name)}</Title><Group gap="sm"><StatusBadge status={open.enabled ? 'enabled' : 'disabled'} /><Mono>{visibleText(open.id)}</Mono></Group></div>} onClose={() => setUrl({ open: undefined })}>
          <EditTenant key={open.modified_at} tenant={open} onDone={() => setUrl({ open: undefined })} />
        </Drawer>
      )}>
        {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : (
          <DataTable label={t('nav.tenants')} rows={rows} columns={columns} rowKey={(row) => row.id} rowName={(row) => row.id} openKey={url['open']} onOpen={(row) => setUrl({ open: row.id }, { push: true })}
            phone={(row) => <div><Group gap={6} wrap="nowrap"><StatusBadge status={row.enabled ? 'enabled' : 'disabled'} iconOnly /><Text truncate flex={1}>{visibleText(row.name)}</Text><Mono>{visibleText(row.id)}</Mono></Group><Limits tenant={row} /></div>} />
        )}
      </Split>
      <Modal opened={url['new'] !== undefined} onClose={() => setUrl({ new: undefined })} title={t('tenants.new')}><NewTenantForm onDone={() => setUrl({ new: undefined })} /></Modal>
    </Page>
  );
}
