import { ActionIcon, Button, Group, Modal, SegmentedControl, SimpleGrid, Stack, Text, TextInput, Title } from '@mantine/core';
import { IconKey, IconPlus, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { credentials as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { credentialsQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import type { Credential } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { Facet, FilterInput } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { PageLink, ToolLink } from '@/parts/links';
import { Content, Drawer, Loading, Page, Split, Toolbar } from '@/parts/page';
import { SecretField } from '@/parts/secret-field';
import { Time } from '@/parts/time';
import { readList, useUrlState, writeList } from '@/parts/url-state';
import { credentialBody, type CredentialDraft, type CredentialField } from './credential-body';

const SERVER_PREFIX = 'MCP server ';

/** The tools and MCP servers that refer to a credential. */
function UsedBy({ names }: { names: string[] }) {
  const t = useT();
  if (names.length === 0) return <Text c="dimmed">{t('credentials.unused')}</Text>;
  return <Stack gap={2}>{names.map((name) => (name.startsWith(SERVER_PREFIX) ? <PageLink key={name} to="/servers" search={{ open: name.slice(SERVER_PREFIX.length) }}>{visibleText(name)}</PageLink> : <ToolLink key={name} tool={name}>{visibleText(name)}</ToolLink>))}</Stack>;
}

function CredentialForm({ known, onDone }: { known?: Credential | undefined; onDone: (name: string) => void }) {
  const t = useT();
  const [name, setName] = useState(known?.name ?? '');
  const [draft, setDraft] = useState<CredentialDraft>(() => ({
    kind: known?.payload ? 'fields' : 'value', value: '', fields: Object.keys(known?.payload ?? { api_key: '' }).map((field, id) => ({ id, name: field, value: '' })),
    category: known?.category ?? 'custom', provider: known?.provider_key ?? '', variant: known?.provider_variant ?? '', description: known?.description ?? '',
  }));
  const [failure, setFailure] = useState<unknown>();
  const set = (change: Partial<CredentialDraft>) => setDraft({ ...draft, ...change });
  const { fields } = draft;
  const save = useAction(() => actions.put(name, credentialBody(draft, known)), { invalidates: [keys.credentials, keys.tools], failed: setFailure, done: () => { notify(t('common.saved')); onDone(name); } });
  const patch = (id: number, change: Partial<CredentialField>) => set({ fields: fields.map((field) => (field.id === id ? { ...field, ...change } : field)) });
  const isStored = (field: string) => known?.payload !== undefined && known.payload !== null && field in known.payload;
  const keepsValue = known !== undefined && known.payload === null;
  return (
    <form onSubmit={(event) => { event.preventDefault(); save.mutate(undefined); }}>
      <Stack>
        <TextInput label={t('common.name')} description={t('credentials.nameHelp', { name: name || 'NAME' })} required value={name} disabled={known !== undefined} onChange={(event) => setName(event.currentTarget.value)} data-autofocus={known === undefined ? true : undefined} />
        <SegmentedControl aria-label={t('credentials.value')} value={draft.kind} onChange={(next) => set({ kind: next as 'value' | 'fields' })} data={[{ value: 'value', label: t('credentials.oneValue') }, { value: 'fields', label: t('credentials.fields') }]} style={{ alignSelf: 'flex-start' }} />
        {draft.kind === 'value' ? <SecretField label={t('credentials.value')} value={draft.value} onChange={(value) => set({ value })} stored={keepsValue} required={!keepsValue} /> : (
          <Stack gap={6}>
            <Text size="xs" c="dimmed">{t('credentials.fieldsHelp', { name: name || 'NAME' })}</Text>
            {fields.map((field) => (
              <Group key={field.id} gap="xs" wrap="nowrap" align="flex-end">
                <TextInput flex={1} label={t('schema.field')} value={field.name} required onChange={(event) => patch(field.id, { name: event.currentTarget.value })} />
                <div style={{ flex: 1.6 }}><SecretField label={t('credentials.value')} value={field.value} onChange={(next) => patch(field.id, { value: next })} stored={isStored(field.name)} required={!isStored(field.name)} /></div>
                <ActionIcon mb={4} aria-label={`${t('common.remove')} ${field.name}`} disabled={fields.length === 1} onClick={() => set({ fields: fields.filter((other) => other.id !== field.id) })}><IconTrash size={14} /></ActionIcon>
              </Group>
            ))}
            <Button variant="subtle" size="compact-xs" leftSection={<IconPlus size={13} />} style={{ alignSelf: 'flex-start' }} onClick={() => set({ fields: [...fields, { id: Math.max(...fields.map((field) => field.id)) + 1, name: '', value: '' }] })}>{t('credentials.addField')}</Button>
          </Stack>
        )}
        <SimpleGrid cols={{ base: 1, xs: 3 }}>
          <TextInput label={t('credentials.category')} value={draft.category} pattern="[a-z0-9_.\-]+" onChange={(event) => set({ category: event.currentTarget.value })} />
          <TextInput label={t('credentials.provider')} placeholder="web_search" value={draft.provider} onChange={(event) => set({ provider: event.currentTarget.value })} />
          <TextInput label={t('credentials.variant')} placeholder="serper" value={draft.variant} onChange={(event) => set({ variant: event.currentTarget.value })} />
        </SimpleGrid>
        <TextInput label={t('common.description')} value={draft.description} maxLength={500} onChange={(event) => set({ description: event.currentTarget.value })} />
        {Boolean(failure) && <ErrorPanel error={failure} />}
        <Group justify="flex-end"><Button type="submit" loading={save.isPending}>{t(known ? 'common.save' : 'credentials.store')}</Button></Group>
      </Stack>
    </form>
  );
}

function Detail({ item, onEdit, onClose }: { item: Credential; onEdit: () => void; onClose: () => void }) {
  const t = useT();
  const ask = useAsk();
  const mayAdmin = useMay('admin');
  const remove = useAction(() => actions.remove(item.name, item.used_by.length > 0), { invalidates: [keys.credentials, keys.tools], done: () => { onClose(); notify(t('common.deleted')); } });
  const body = <Stack gap="sm"><Text>{t(item.used_by.length > 0 ? 'credentials.deleteBody' : 'credentials.unused')}</Text>{item.used_by.length > 0 && <Stack gap={2}>{item.used_by.slice(0, 12).map((name) => <Mono key={name}>{visibleText(name)}</Mono>)}</Stack>}</Stack>;
  const askDelete = async () => { if (await ask({ title: t('credentials.deleteTitle', { name: item.name }), body, confirm: t('common.delete'), danger: true })) remove.mutate(undefined); };
  return (
    <Drawer label={item.name} onClose={onClose} title={<div><Title order={2}><Mono>{visibleText(item.name)}</Mono></Title><Chip>{item.category}</Chip></div>}>
      <Stack gap="sm">
        {item.error && <ErrorPanel error={new Error(item.error)} title={t('credentials.unreadable')} />}
        {item.description && <Text>{visibleText(item.description)}</Text>}
        {mayAdmin ? <Group gap="sm"><Button variant="default" onClick={onEdit}>{t('common.edit')}</Button><Button variant="default" leftSection={<IconTrash size={14} />} onClick={() => void askDelete()}>{t('common.delete')}</Button></Group> : <PermissionNote needs="admin" />}
        <SectionTitle>{t('credentials.usedBy', { n: item.used_by.length })}</SectionTitle>
        <UsedBy names={item.used_by} />
        <SectionTitle>{t('tools.about')}</SectionTitle>
        <Facts rows={[
          [t('credentials.reference'), <Mono key="r">{`\${${item.name}}`}</Mono>],
          [t('credentials.fields'), item.payload && <Group key="fields" gap={4}>{Object.keys(item.payload).map((field) => <Chip key={field}>{`\${${item.name}.${field}}`}</Chip>)}</Group>],
          [t('credentials.provider'), item.provider_key && visibleText([item.provider_key, item.provider_variant].filter(Boolean).join(' · '))],
          [t('common.created'), <Time key="c" at={item.created_at} />], [t('common.modified'), <Time key="m" at={item.modified_at} />],
        ]} />
      </Stack>
    </Drawer>
  );
}

export function CredentialsPage() {
  const t = useT();
  const mayEdit = useMay('editor');
  const mayAdmin = useMay('admin');
  const [url, setUrl] = useUrlState();
  const { data: all, error, isPending, refetch } = useQuery({ ...credentialsQuery, enabled: mayEdit });
  const q = (url['q'] ?? '').toLowerCase();
  const chosen = readList(url['category']);
  const rows = (all ?? []).filter((item) => `${item.name} ${item.description} ${item.provider_key ?? ''}`.toLowerCase().includes(q) && (chosen.length === 0 || chosen.includes(item.category)));
  const categories = [...new Set((all ?? []).map((item) => item.category))].toSorted().map((value) => ({ value, label: value }));
  const open = all?.find((item) => item.name === url['open']);
  const edited = all?.find((item) => item.name === url['edit']);
  const columns = useMemo<Column<Credential>[]>(() => [
    { key: 'name', header: t('common.name'), width: 'minmax(9rem, 1fr)', render: (row) => <Mono>{visibleText(row.name)}</Mono> },
    { key: 'category', header: t('credentials.category'), width: '8rem', render: (row) => <Chip>{row.category}</Chip> },
    { key: 'provider', header: t('credentials.provider'), width: 'minmax(6rem, 0.8fr)', secondary: true, render: (row) => visibleText([row.provider_key, row.provider_variant].filter(Boolean).join(' · ')) },
    { key: 'description', header: t('common.description'), width: 'minmax(6rem, 1.4fr)', secondary: true, render: (row) => <Text c={row.error ? 'var(--haft-bad)' : 'dimmed'} truncate>{visibleText(row.error ?? row.description)}</Text> },
    { key: 'used', header: t('credentials.used'), width: '6rem', align: 'end', render: (row) => (row.used_by.length > 0 ? row.used_by.length : <Text c="dimmed">—</Text>) },
    { key: 'modified', header: t('common.modified'), width: '8rem', align: 'end', render: (row) => <Time at={row.modified_at} /> },
  ], [t]);
  if (!mayEdit) return <Page title={t('nav.credentials')}><Content><PermissionNote needs="editor" /></Content></Page>;
  const add = mayAdmin && <Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ add: '1' })}>{t('credentials.new')}</Button>;
  const close = () => setUrl({ edit: undefined, add: undefined });
  return (
    <Page title={t('nav.credentials')} count={all?.length} primary={add}>
      <Text c="dimmed" px={{ base: 'lg', sm: 'xl' }} pb="sm">{t('credentials.intro')}</Text>
      {all && all.length > 0 && (
        <Toolbar>
          <FilterInput value={url['q'] ?? ''} onChange={(next) => setUrl({ q: next || undefined })} label={t('common.filter')} />
          {categories.length > 1 && <Facet label={t('credentials.category')} choices={categories} value={chosen} onChange={(next) => setUrl({ category: writeList(next) })} />}
        </Toolbar>
      )}
      <Split drawer={open && <Detail key={open.name} item={open} onEdit={() => setUrl({ edit: open.name })} onClose={() => setUrl({ open: undefined })} />}>
        {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : (
          <DataTable label={t('nav.credentials')} rows={rows} columns={columns} rowKey={(row) => row.name} rowName={(row) => row.name} openKey={url['open']} onOpen={(row) => setUrl({ open: row.name }, { push: true })}
            empty={all.length === 0 ? <EmptyState icon={IconKey} title={t('credentials.empty')} action={add}>{t('credentials.emptyHint')}</EmptyState> : <EmptyState icon={IconKey} title={t('credentials.noneFound')} />}
            phone={(row) => <div><Group gap={6} wrap="nowrap"><Text truncate flex={1}><Mono>{visibleText(row.name)}</Mono></Text><Chip>{row.category}</Chip></Group><Text size="xs" c="dimmed" truncate>{t('credentials.usedBy', { n: row.used_by.length })}{row.description && ` · ${visibleText(row.description)}`}</Text></div>} />
        )}
      </Split>
      <Modal opened={edited !== undefined || url['add'] !== undefined} onClose={close} title={edited ? t('credentials.editTitle', { name: edited.name }) : t('credentials.new')} size="lg">
        <CredentialForm key={edited?.name ?? ''} known={edited} onDone={(name) => setUrl({ edit: undefined, add: undefined, open: name })} />
      </Modal>
    </Page>
  );
}
