/** Publish, deprecate, enable, delete: the menu of a tool. */
import { ActionIcon, Button, Group, Menu, Modal, Stack, Text, TextInput } from '@mantine/core';
import { IconArchive, IconCopy, IconDots, IconDownload, IconPlayerPause, IconPlayerPlay, IconRocket, IconTag, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { tools } from '@/api/actions';
import { keys } from '@/api/keys';
import { revisionDiffQuery, sourceQuery, toolRef, toRow, usageQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import type { ToolUsage } from '@/api/shapes';
import type { JsonObject, SourceForm, Tool } from '@/api/types';
import { useT } from '@/i18n';
import { Loading } from '@/parts/page';
import { DiffView } from '@/parts/diff-view';
import { notify, notifyError, useAction, useAsk } from '@/parts/feedback';
import { useEnable } from './hooks';

export function UsedBy({ usage }: { usage: ToolUsage | null | undefined }) {
  const t = useT();
  if (!usage) return null;
  const parts = [
    usage.callers && usage.callers.length > 0 && t('tools.usedByCallers', { names: usage.callers.map((caller) => `${caller.name} (${caller.calls})`).join(', ') }),
    usage.tokens && usage.tokens.length > 0 && t('tools.usedByTokens', { names: usage.tokens.map((token) => token.name).join(', ') }),
    usage.rules && usage.rules.length > 0 && t('tools.usedByRules', { names: usage.rules.map((rule) => rule.name).join(', ') }),
    usage.tools && usage.tools.length > 0 && t('tools.usedByTools', { names: usage.tools.map((tool) => tool.name).join(', ') }),
  ].filter(Boolean);
  if (parts.length === 0) return <Text c="dimmed">{t('tools.usedByNobody')}</Text>;
  return <Stack gap={2}>{parts.map((part) => <Text key={String(part)}>{part}</Text>)}</Stack>;
}

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
        <UsedBy usage={usage.data} />
        <Group justify="flex-end"><Button variant="default" onClick={onClose}>{t('common.cancel')}</Button><Button loading={publish.isPending} onClick={() => publish.mutate(undefined)}>{t('tools.publish')}</Button></Group>
      </Stack>
    </Modal>
  );
}

function DeprecateDialog({ tool, opened, onClose }: { tool: Tool; opened: boolean; onClose: () => void }) {
  const t = useT();
  const [replacement, setReplacement] = useState('');
  const [date, setDate] = useState('');
  const [message, setMessage] = useState('');
  const deprecate = useAction((json: JsonObject) => tools.deprecate(toolRef(tool), json), { invalidates: [keys.tools], done: () => { onClose(); notify(t('tools.deprecatedNotice', { name: tool.name })); } });
  const submit = () => deprecate.mutate({ ...(replacement ? { replaced_by: replacement } : {}), ...(date ? { removal_date: date } : {}), ...(message ? { message } : {}) });
  return (
    <Modal opened={opened} onClose={onClose} title={<Text fw={600} size="md">{t('tools.deprecateTitle', { name: tool.name })}</Text>}>
      <form onSubmit={(event) => { event.preventDefault(); submit(); }}>
        <Stack>
          <Text>{t('tools.deprecateBody')}</Text>
          <TextInput label={t('tools.replacedBy')} value={replacement} onChange={(event) => setReplacement(event.currentTarget.value)} />
          <TextInput type="date" label={t('tools.removalDate')} value={date} onChange={(event) => setDate(event.currentTarget.value)} />
          <TextInput label={t('tools.deprecateMessage')} value={message} onChange={(event) => setMessage(event.currentTarget.value)} />
          <Group justify="flex-end"><Button variant="default" onClick={onClose}>{t('common.cancel')}</Button><Button type="submit" loading={deprecate.isPending}>{t('tools.deprecate')}</Button></Group>
        </Stack>
      </form>
    </Modal>
  );
}

export function ToolMenu({ tool, onDeleted }: { tool: Tool; onDeleted: () => void }) {
  const t = useT();
  const ask = useAsk();
  const navigate = useNavigate();
  const mayEdit = useMay('editor');
  const ref = toolRef(tool);
  const [dialog, setDialog] = useState<'publish' | 'deprecate' | 'version'>();
  const [version, setVersion] = useState(tool.version);
  const enable = useEnable();
  const source = useQuery({ ...sourceQuery(ref), enabled: false });
  const setLabel = useAction(() => tools.setVersion(ref, version), {
    invalidates: [keys.tools],
    done: (changed) => { setDialog(undefined); void navigate({ to: '/tools/$ref', params: { ref: toolRef(changed) } as never, replace: true }); },
  });
  const remove = useAction(async () => {
    const text = (await source.refetch()).data;
    await tools.remove(ref);
    return text;
  }, {
    invalidates: [keys.tools],
    done: (text) => {
      onDeleted();
      const undo = text && {
        label: t('common.undo'),
        run: () => void tools.create(text.text, text.form as SourceForm, tool.bundle).then(() => notify(t('common.saved')), (error: unknown) => notifyError(error, t('common.failed'))),
      };
      notify(t('tools.deletedOne', { name: tool.name }), undo || undefined);
    },
  });
  const askDelete = async () => {
    if (await ask({ title: t('tools.deleteTitle', { name: tool.name }), body: t('tools.deleteBody'), confirm: t('common.delete'), danger: true })) remove.mutate(undefined);
  };
  const download = async () => {
    const text = (await source.refetch()).data;
    if (!text) return;
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text.text], { type: 'text/plain' }));
    link.download = `${tool.name}.${text.form}`;
    link.click();
    URL.revokeObjectURL(link.href);
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
          <Menu.Item leftSection={tool.enabled ? <IconPlayerPause size={15} /> : <IconPlayerPlay size={15} />} onClick={() => enable.mutate({ rows: [toRow(tool)], enabled: !tool.enabled })}>
            {t(tool.enabled ? 'common.disable' : 'common.enable')}
          </Menu.Item>
          <Menu.Item leftSection={<IconCopy size={15} />} onClick={() => void navigate({ to: '/tools/new', search: { from: ref } as never })}>{t('tools.duplicate')}</Menu.Item>
          <Menu.Item leftSection={<IconDownload size={15} />} onClick={() => void download()}>{t('tools.download')}</Menu.Item>
          {!tool.built_in && <><Menu.Divider /><Menu.Item color="red" leftSection={<IconTrash size={15} />} onClick={() => void askDelete()}>{t('common.delete')}…</Menu.Item></>}
        </Menu.Dropdown>
      </Menu>
      <PublishDialog tool={tool} opened={dialog === 'publish'} onClose={() => setDialog(undefined)} />
      <DeprecateDialog tool={tool} opened={dialog === 'deprecate'} onClose={() => setDialog(undefined)} />
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
