/** Publish, deprecate, enable, delete: the menu of a tool. */
import { ActionIcon, Autocomplete, Button, Group, Menu, Modal, Stack, Text, TextInput } from '@mantine/core';
import { IconArchive, IconCopy, IconDots, IconDownload, IconPlayerPause, IconPlayerPlay, IconRocket, IconTag, IconTrash } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { tools } from '@/api/actions';
import { keys } from '@/api/keys';
import { revisionDiffQuery, sourceQuery, toolListQuery, toolRef, usageQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import type { DeprecateBody, Tool } from '@/api/types';
import { useT } from '@/i18n';
import { ErrorPanel, SectionTitle } from '@/parts/basics';
import { DiffView } from '@/parts/diff-view';
import { saveFile } from '@/parts/download';
import { notify, useAction } from '@/parts/feedback';
import { Loading } from '@/parts/page';
import { UsedBy } from '@/parts/used-by';
import { useEnable, useRemove } from './hooks';

function show(value: unknown): string {
  return value === null || value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

export function PublishDialog({ tool, opened, onClose }: { tool: Tool; opened: boolean; onClose: () => void }) {
  const t = useT();
  const ref = toolRef(tool);
  const from = tool.published_revision ?? 0;
  const diff = useQuery({ ...revisionDiffQuery(ref, from, tool.revision), enabled: opened && from > 0 && from !== tool.revision });
  const usage = useQuery({ ...usageQuery(ref), enabled: opened });
  const publish = useAction(() => tools.publish(ref), { invalidates: [keys.tools], done: () => { onClose(); notify(t('tools.publishedOne', { name: tool.name })); } });
  return (
    <Modal opened={opened} onClose={onClose} size="xl" title={<Text fw={600} size="md">{t('tools.publishTitle', { name: tool.name, n: tool.revision })}</Text>}>
      <Stack>
        <Text>{from === 0 ? t('tools.publishFirst') : from === tool.revision ? t('tools.publishSame') : t('tools.publishDiff', { from, to: tool.revision })}</Text>
        {diff.isFetching && <Loading rows={3} />}
        {diff.data?.changes.map((change) => (
          <div key={change.field}><Text fw={500} mb={4}>{change.field}</Text><DiffView before={show(change.before)} after={show(change.after)} /></div>
        ))}
        <SectionTitle>{t('usage.title')}</SectionTitle>
        <UsedBy usage={usage.data} />
        <Group justify="flex-end"><Button variant="default" onClick={onClose}>{t('common.cancel')}</Button><Button loading={publish.isPending} onClick={() => publish.mutate(undefined)}>{t('tools.publish')}</Button></Group>
      </Stack>
    </Modal>
  );
}

function DeprecateForm({ tool, onClose }: { tool: Tool; onClose: () => void }) {
  const t = useT();
  const ref = toolRef(tool);
  const [replacement, setReplacement] = useState(tool.deprecation?.replaced_by ?? '');
  const [date, setDate] = useState((tool.deprecation?.removal_date ?? '').slice(0, 10));
  const [message, setMessage] = useState(tool.deprecation?.message ?? '');
  const [failure, setFailure] = useState<unknown>();
  const [today] = useState(() => new Date().toISOString().slice(0, 10));
  const others = (useInfiniteQuery(toolListQuery).data?.pages.flatMap((page) => page.tools) ?? []).map(toolRef).filter((other) => other !== ref);
  const usage = useQuery(usageQuery(ref));
  const deprecate = useAction((options: Partial<DeprecateBody>) => tools.deprecate(ref, options), { invalidates: [keys.tools], failed: setFailure, done: () => { onClose(); notify(t('tools.deprecatedNotice', { name: tool.name })); } });
  const submit = () => deprecate.mutate({ ...(replacement ? { replaced_by: replacement } : {}), ...(date ? { removal_date: date } : {}), ...(message ? { message } : {}) });
  return (
    <form onSubmit={(event) => { event.preventDefault(); submit(); }}>
      <Stack>
        <Text>{t('tools.deprecateBody')}</Text>
        <Autocomplete label={t('tools.replacedBy')} data={[...new Set(others)]} limit={12} value={replacement} onChange={setReplacement} />
        <TextInput type="date" label={t('tools.removalDate')} min={today} value={date} onChange={(event) => setDate(event.currentTarget.value)} />
        <TextInput label={t('tools.deprecateMessage')} value={message} onChange={(event) => setMessage(event.currentTarget.value)} />
        <div><SectionTitle>{t('usage.title')}</SectionTitle><UsedBy usage={usage.data} /></div>
        {Boolean(failure) && <ErrorPanel error={failure} />}
        <Group justify="flex-end"><Button variant="default" onClick={onClose}>{t('common.cancel')}</Button><Button type="submit" loading={deprecate.isPending}>{t('tools.deprecate')}</Button></Group>
      </Stack>
    </form>
  );
}

function DeleteForm({ tool, isPending, onDelete, onClose }: { tool: Tool; isPending: boolean; onDelete: () => void; onClose: () => void }) {
  const t = useT();
  const usage = useQuery(usageQuery(toolRef(tool)));
  return (
    <form onSubmit={(event) => { event.preventDefault(); onDelete(); }}>
      <Stack>
        <Text>{t('tools.deleteBody')}</Text>
        <div><SectionTitle>{t('usage.title')}</SectionTitle>{usage.isPending ? <Loading rows={2} /> : <UsedBy usage={usage.data} />}</div>
        <Group justify="flex-end"><Button variant="default" onClick={onClose}>{t('common.cancel')}</Button><Button type="submit" color="red.8" loading={isPending} data-autofocus>{t('common.delete')}</Button></Group>
      </Stack>
    </form>
  );
}

export function ToolMenu({ tool, onDeleted }: { tool: Tool; onDeleted: () => void }) {
  const t = useT();
  const navigate = useNavigate();
  const mayEdit = useMay('editor');
  const ref = toolRef(tool);
  const [dialog, setDialog] = useState<'publish' | 'deprecate' | 'version' | 'delete'>();
  const [version, setVersion] = useState(tool.version);
  const enable = useEnable();
  const source = useQuery({ ...sourceQuery(ref), enabled: false });
  const setLabel = useAction(() => tools.setVersion(ref, version), {
    invalidates: [keys.tools],
    done: (changed) => { setDialog(undefined); void navigate({ to: '/tools/$ref', params: { ref: toolRef(changed) } as never, replace: true }); },
  });
  const remove = useRemove(() => { setDialog(undefined); onDeleted(); });
  const download = async () => {
    const text = (await source.refetch()).data;
    if (!text) return;
    saveFile(`${tool.name}.${text.form}`, 'text/plain', text.text);
  };
  if (!mayEdit) return null;
  return (
    <>
      <Menu position="bottom-end" width={220}>
        <Menu.Target><ActionIcon aria-label={t('common.more')}><IconDots size={16} /></ActionIcon></Menu.Target>
        <Menu.Dropdown>
          {!tool.built_in && <Menu.Item leftSection={<IconRocket size={15} />} onClick={() => setDialog('publish')}>{t('tools.publishMenu')}</Menu.Item>}
          {!tool.built_in && <Menu.Item leftSection={<IconTag size={15} />} onClick={() => setDialog('version')}>{t('tools.setVersion')}</Menu.Item>}
          {!tool.built_in && <Menu.Item leftSection={<IconArchive size={15} />} onClick={() => setDialog('deprecate')}>{t('tools.deprecateMenu')}</Menu.Item>}
          <Menu.Item leftSection={tool.enabled ? <IconPlayerPause size={15} /> : <IconPlayerPlay size={15} />} onClick={() => enable.mutate({ rows: [tool], enabled: !tool.enabled })}>
            {t(tool.enabled ? 'common.disable' : 'common.enable')}
          </Menu.Item>
          <Menu.Item leftSection={<IconCopy size={15} />} onClick={() => void navigate({ to: '/tools/new', search: { from: ref } as never })}>{t('tools.duplicate')}</Menu.Item>
          <Menu.Item leftSection={<IconDownload size={15} />} onClick={() => void download()}>{t('tools.download')}</Menu.Item>
          {!tool.built_in && <><Menu.Divider /><Menu.Item color="red" leftSection={<IconTrash size={15} />} onClick={() => setDialog('delete')}>{t('common.delete')}…</Menu.Item></>}
        </Menu.Dropdown>
      </Menu>
      <PublishDialog tool={tool} opened={dialog === 'publish'} onClose={() => setDialog(undefined)} />
      <Modal opened={dialog === 'deprecate'} onClose={() => setDialog(undefined)} size="lg" title={<Text fw={600} size="md">{t('tools.deprecateTitle', { name: tool.name })}</Text>}>{dialog === 'deprecate' && <DeprecateForm tool={tool} onClose={() => setDialog(undefined)} />}</Modal>
      <Modal opened={dialog === 'delete'} onClose={() => setDialog(undefined)} size="lg" title={<Text fw={600} size="md">{t('tools.deleteTitle', { name: tool.name })}</Text>}>{dialog === 'delete' && <DeleteForm tool={tool} isPending={remove.isPending} onDelete={() => remove.mutate([tool])} onClose={() => setDialog(undefined)} />}</Modal>
      <Modal opened={dialog === 'version'} onClose={() => setDialog(undefined)} title={t('tools.setVersion')}>
        <form onSubmit={(event) => { event.preventDefault(); setLabel.mutate(undefined); }}>
          <Stack>
            <TextInput label={t('common.version')} description="X.Y.Z" value={version} onChange={(event) => setVersion(event.currentTarget.value)} data-autofocus />
            <Group justify="flex-end"><Button variant="default" onClick={() => setDialog(undefined)}>{t('common.cancel')}</Button><Button type="submit" loading={setLabel.isPending}>{t('common.save')}</Button></Group>
          </Stack>
        </form>
      </Modal>
    </>
  );
}
