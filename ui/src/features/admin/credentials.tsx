import { ActionIcon, Button, Group, Modal, Stack, Table, Text, TextInput } from '@mantine/core';
import { IconKey, IconPlus, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { credentials as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { credentialsQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel, Mono, PermissionNote } from '@/parts/basics';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { Content, Loading, Page } from '@/parts/page';
import { SecretField } from '@/parts/secret-field';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';

function CredentialForm({ name: known, onDone }: { name: string; onDone: () => void }) {
  const t = useT();
  const [name, setName] = useState(known);
  const [value, setValue] = useState('');
  const save = useAction(() => actions.put(name, value), { invalidates: [keys.credentials, keys.tools], done: () => { notify(t('common.saved')); onDone(); } });
  return (
    <form onSubmit={(event) => { event.preventDefault(); save.mutate(undefined); }}>
      <Stack>
        <TextInput label={t('common.name')} description={t('credentials.nameHelp', { name: name || 'NAME' })} required value={name} disabled={known !== ''} onChange={(event) => setName(event.currentTarget.value)} />
        <SecretField label={t('credentials.value')} value={value} onChange={setValue} stored={known !== ''} required />
        <Group justify="flex-end"><Button type="submit" loading={save.isPending}>{t('common.save')}</Button></Group>
      </Stack>
    </form>
  );
}

export function CredentialsPage() {
  const t = useT();
  const ask = useAsk();
  const mayAdmin = useMay('admin');
  const [url, setUrl] = useUrlState();
  const { data, error, isPending, refetch } = useQuery(credentialsQuery);
  const remove = useAction((name: string) => actions.remove(name), { invalidates: [keys.credentials, keys.tools], done: () => notify(t('common.deleted')) });
  const askDelete = async (name: string) => { if (await ask({ title: t('credentials.deleteTitle', { name }), body: t('credentials.deleteBody'), confirm: t('common.delete'), danger: true })) remove.mutate(name); };
  const add = mayAdmin && <Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ add: '1' })}>{t('credentials.new')}</Button>;
  return (
    <Page title={t('nav.credentials')} count={data?.length} primary={add}>
      <Content narrow>
        <Stack>
          <Text c="dimmed">{t('credentials.intro')}</Text>
          {!mayAdmin && <PermissionNote needs="admin" />}
          {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : isPending ? <Loading /> : data.length === 0 ? <EmptyState icon={IconKey} title={t('credentials.empty')} action={add}>{t('credentials.emptyHint')}</EmptyState> : (
            <Table verticalSpacing={6}>
              <Table.Thead><Table.Tr><Table.Th>{t('common.name')}</Table.Th><Table.Th>{t('credentials.value')}</Table.Th><Table.Th>{t('common.modified')}</Table.Th><Table.Th /></Table.Tr></Table.Thead>
              <Table.Tbody>{data.map((item) => (
                <Table.Tr key={item.name}>
                  <Table.Td><Mono>{visibleText(item.name)}</Mono>{item.error && <Text c="var(--haft-bad)" size="xs">{item.error}</Text>}</Table.Td><Table.Td><Mono>{item.value}</Mono></Table.Td><Table.Td><Time at={item.modified_at} /></Table.Td>
                  <Table.Td ta="right">{mayAdmin && <Group gap={4} justify="flex-end" wrap="nowrap"><Button variant="subtle" size="compact-xs" onClick={() => setUrl({ edit: item.name })}>{t('credentials.replace')}</Button><ActionIcon aria-label={`${t('common.delete')} ${item.name}`} onClick={() => void askDelete(item.name)}><IconTrash size={14} /></ActionIcon></Group>}</Table.Td>
                </Table.Tr>
              ))}</Table.Tbody>
            </Table>
          )}
        </Stack>
      </Content>
      <Modal opened={url['edit'] !== undefined || url['add'] !== undefined} onClose={() => setUrl({ edit: undefined, add: undefined })} title={t(url['edit'] ? 'credentials.replace' : 'credentials.new')}>
        <CredentialForm key={url['edit'] ?? ''} name={url['edit'] ?? ''} onDone={() => setUrl({ edit: undefined, add: undefined })} />
      </Modal>
    </Page>
  );
}
