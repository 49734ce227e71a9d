/** Groups: rights that several people and service accounts have in common. */
import { Button, Group, Modal, Stack, Text, TextInput, Textarea, Title } from '@mantine/core';
import { IconPencil, IconPlus, IconTrash, IconUsersGroup } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { keys } from '@/api/keys';
import { groups as actions, groupsQuery, peopleKeys } from '@/api/people';
import { useMay } from '@/api/session';
import type { GroupOfActors } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { FilterInput } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { Content, Drawer, Loading, Page, Split, Toolbar } from '@/parts/page';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { changedGroup, groupDraft, newGroup, type GroupDraft } from './actor-draft';
import { ActorLink } from './actor-parts';
import { MembersField } from './actor-select';
import { RightsChips, RightsFields, rightsRows } from './rights';

function GroupForm({ group, onDone, onPicking }: { group?: GroupOfActors; onDone: (group: GroupOfActors) => void; onPicking: (isPicking: boolean) => void }) {
  const t = useT();
  const [draft, setDraft] = useState(() => groupDraft(group));
  const [failure, setFailure] = useState<unknown>();
  const set = (change: Partial<GroupDraft>) => setDraft({ ...draft, ...change });
  const save = useAction(() => (group ? actions.patch(group.id, changedGroup(group, draft)) : actions.create(newGroup(draft))), { invalidates: [peopleKeys.all, keys.session], failed: setFailure, done: onDone });
  return (
    <form onSubmit={(event) => { event.preventDefault(); save.mutate(undefined); }}>
      <Stack>
        <TextInput label={t('common.name')} description={t('groups.nameHelp')} required maxLength={64} value={draft.name} onChange={(event) => set({ name: event.currentTarget.value })} data-autofocus />
        <Textarea label={t('people.purpose')} autosize minRows={1} maxRows={6} maxLength={1000} value={draft.description} onChange={(event) => set({ description: event.currentTarget.value })} />
        <MembersField value={draft.members} onChange={(members) => set({ members })} known={group?.members ?? []} />
        <Text c="dimmed">{t('groups.rightsHelp')}</Text>
        <RightsFields value={draft.rights} onChange={(rights) => set({ rights })} onPicking={onPicking} />
        {Boolean(failure) && <ErrorPanel error={failure} />}
        <Group justify="flex-end"><Button type="submit" loading={save.isPending}>{t(group ? 'common.save' : 'groups.create')}</Button></Group>
      </Stack>
    </form>
  );
}

function Detail({ group, onClose }: { group: GroupOfActors; onClose: () => void }) {
  const t = useT();
  const ask = useAsk();
  const [isEditing, setEditing] = useState(false);
  const [isPicking, setPicking] = useState(false);
  const name = visibleText(group.name);
  const remove = useAction(() => actions.remove(group.id), { invalidates: [peopleKeys.all, keys.session], done: () => { onClose(); notify(t('common.deleted')); } });
  const askDelete = async () => { if (await ask({ title: t('groups.deleteTitle', { name }), body: t('groups.deleteBody', { n: group.members.length }), confirm: t('common.delete'), danger: true })) remove.mutate(undefined); };
  return (
    <Drawer label={group.name} onClose={onClose} title={<div><Title order={2}>{name}</Title><Group gap="sm"><Text c="dimmed">{t('groups.memberCount', { n: group.members.length })}</Text>{group.is_provisioned && <Chip>{t('people.scim')}</Chip>}</Group></div>}>
      <Stack gap="sm">
        {group.description && <Text style={{ overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' }}>{visibleText(group.description)}</Text>}
        <Group gap="sm">
          <Button variant="default" leftSection={<IconPencil size={14} />} onClick={() => setEditing(true)}>{t('common.edit')}</Button>
          <Button variant="default" leftSection={<IconTrash size={14} />} loading={remove.isPending} onClick={() => void askDelete()}>{t('common.delete')}</Button>
        </Group>
        <SectionTitle>{t('groups.gives')}</SectionTitle>
        <Facts rows={rightsRows(group.rights, t)} />
        <SectionTitle>{t('groups.members')}</SectionTitle>
        {group.members.length === 0 ? <Text c="dimmed">{t('groups.noMembers')}</Text> : (
          <Stack gap={4}>{group.members.map((member) => <Group key={member.id} gap="sm"><ActorLink actor={member} />{member.kind === 'service_account' && <Chip>{t('people.serviceAccount')}</Chip>}</Group>)}</Stack>
        )}
        <SectionTitle>{t('tools.about')}</SectionTitle>
        <Facts rows={[[t('tokens.tenant'), group.tenant], [t('common.created'), <Time key="created" at={group.created_at} />], [t('common.modified'), <Time key="modified" at={group.modified_at} />], ['ID', <Mono key="id">{group.id}</Mono>]]} />
      </Stack>
      <Modal opened={isEditing} onClose={() => setEditing(false)} closeOnEscape={!isPicking} title={t('people.editTitle', { name })} size="lg">
        <GroupForm key={group.modified_at} group={group} onDone={() => { setEditing(false); notify(t('common.saved')); }} onPicking={setPicking} />
      </Modal>
    </Drawer>
  );
}

export function GroupsPage() {
  const t = useT();
  const mayAdmin = useMay('admin');
  const [url, setUrl] = useUrlState();
  const [isPicking, setPicking] = useState(false);
  const { data: all, error, isPending, refetch } = useQuery({ ...groupsQuery, enabled: mayAdmin });
  const q = (url['q'] ?? '').toLowerCase();
  const rows = (all ?? []).filter((group) => `${group.name} ${group.description}`.toLowerCase().includes(q));
  const open = all?.find((group) => group.id === url['open']);
  const columns = useMemo<Column<GroupOfActors>[]>(() => [
    { key: 'name', header: t('common.name'), width: 'minmax(8rem, 1fr)', render: (row) => visibleText(row.name) },
    { key: 'purpose', header: t('people.purpose'), width: 'minmax(8rem, 1.6fr)', secondary: true, render: (row) => <Text c="dimmed" truncate>{visibleText(row.description)}</Text> },
    { key: 'role', header: t('tokens.role'), width: 'minmax(8rem, 1fr)', render: (row) => <RightsChips rights={row.rights} /> },
    { key: 'tools', header: t('tokens.tools'), width: 'minmax(6rem, 1.2fr)', secondary: true, render: (row) => <Text c="dimmed" truncate>{row.rights.tools === null ? t('connect.allTools') : visibleText(row.rights.tools.join(', ')) || t('people.noTools')}</Text> },
    { key: 'members', header: t('groups.members'), width: '7rem', align: 'end', render: (row) => row.members.length.toLocaleString() },
    { key: 'modified', header: t('common.modified'), width: '8rem', align: 'end', render: (row) => <Time at={row.modified_at} /> },
  ], [t]);
  if (!mayAdmin) return <Page title={t('nav.groups')}><Content><PermissionNote needs="admin" /></Content></Page>;
  const add = <Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ new: '1' })}>{t('groups.new')}</Button>;
  return (
    <Page title={t('nav.groups')} count={all?.length} primary={add}>
      {all && all.length > 0 && <Toolbar><FilterInput value={url['q'] ?? ''} onChange={(next) => setUrl({ q: next || undefined })} label={t('common.filter')} /></Toolbar>}
      <Split drawer={open && <Detail key={open.id} group={open} onClose={() => setUrl({ open: undefined })} />}>
        {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : (
          <DataTable label={t('nav.groups')} rows={rows} columns={columns} rowKey={(row) => row.id} rowName={(row) => row.name} openKey={url['open']} onOpen={(row) => setUrl({ open: row.id }, { push: true })}
            empty={all.length === 0 ? <EmptyState icon={IconUsersGroup} title={t('groups.empty')} action={add}>{t('groups.emptyHint')}</EmptyState> : <EmptyState icon={IconUsersGroup} title={t('groups.noneFound')} />}
            phone={(row) => <div><Group gap={6} wrap="nowrap"><Text truncate flex={1}>{visibleText(row.name)}</Text><Chip>{t(`role.${row.rights.role}`)}</Chip></Group><Text size="xs" c="dimmed" truncate>{t('groups.memberCount', { n: row.members.length })}</Text></div>} />
        )}
      </Split>
      <Modal opened={url['new'] !== undefined} onClose={() => setUrl({ new: undefined })} closeOnEscape={!isPicking} title={t('groups.new')} size="lg">
        <GroupForm onDone={(group) => setUrl({ new: undefined, open: group.id })} onPicking={setPicking} />
      </Modal>
    </Page>
  );
}
