/** A file of a workspace: shown, edited, and saved back unless somebody else changed it in the meantime. */
import { Alert, Button, Group, SegmentedControl, Stack, Text } from '@mantine/core';
import { IconDeviceFloppy } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { ApiError } from '@/api/error';
import { useMay } from '@/api/session';
import { fileQuery, fileUrl, workspaceKeys, workspaces, type FileContent } from '@/api/workspaces';
import { useT } from '@/i18n';
import { ErrorPanel } from '../basics';
import { useDraft } from '../draft';
import { Editor, MAX_CHARACTERS } from '../editor';
import { notify, useAction } from '../feedback';
import { bytes } from '../format';
import { Markdown } from '../markdown';
import { Loading } from '../page';
import classes from '../parts.module.css';
import { TextView } from '../text-view';
import { detectLanguage } from './language';
import { decodeText } from './plan';

export interface FileEditorProps {
  workspace: string;
  path: string;
  /** A past state, which can be read only. */
  manifest?: string | null | undefined;
  language?: string | undefined;
  isDocument?: boolean;
  isEditable?: boolean;
  maxHeight?: string;
}

type Mode = 'view' | 'edit';

interface Edit {
  text: string;
  etag: string | null;
}

function isConflict(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 409 || error.status === 412);
}

function LoadedEditor({ content, text, onReload, ...props }: FileEditorProps & { content: FileContent; text: string; onReload: () => Promise<string | null> }) {
  const t = useT();
  const { workspace, path, isDocument = false, maxHeight = '32rem' } = props;
  const mayWrite = useMay('caller');
  const isEditable = props.isEditable === true && mayWrite && !props.manifest && text.length <= MAX_CHARACTERS;
  // The mark of the version that the edit began with: the file may change while it is edited, and be read again.
  const draft = useDraft<Edit>(`file.${workspace}.${path}`, { text, etag: content.etag });
  const [mode, setMode] = useState<Mode>(isDocument && !draft.isDirty ? 'view' : 'edit');
  const [failure, setFailure] = useState<unknown>();
  const language = useMemo(() => detectLanguage(props.language, path, text), [props.language, path, text]);
  const isDirty = draft.isDirty && draft.value.text !== text;
  const shown = isEditable ? draft.value.text : text;
  const save = useAction((edit: Edit) => workspaces.put(workspace, path, edit.text, edit.etag), {
    invalidates: [workspaceKeys.all], failed: setFailure,
    // The edit is shown until the saved file has been read, so that the former text does not flash up. What was typed
    // meanwhile goes on from the saved version.
    done: (_, { text: saved }) => { setFailure(undefined); notify(t('files.saved', { path })); void onReload().then((etag) => draft.update((edit) => (edit.text === saved ? undefined : { ...edit, etag }))); },
  });
  const run = () => { if (isDirty && !save.isPending) save.mutate(draft.value); };
  const discard = () => { setFailure(undefined); draft.clear(); void onReload(); };
  const editor = text.length > MAX_CHARACTERS
    ? <TextView text={text} label={path} />
    : <Editor value={shown} language={language} label={path} readOnly={!isEditable} maxHeight={maxHeight} minHeight="6rem" {...(isEditable ? { onChange: (next: string) => draft.set({ text: next, etag: draft.value.etag }), onSave: run } : {})} />;
  const preview = <div className={classes.document}><Markdown text={shown} /></div>;
  return (
    <Stack gap="sm">
      {(isDocument || isEditable) && (
        <Group gap="sm">
          {isDocument && <SegmentedControl size="xs" aria-label={t('files.mode')} value={mode} onChange={(next) => setMode(next as Mode)} data={[{ value: 'view', label: t('files.read') }, { value: 'edit', label: t(isEditable ? 'common.edit' : 'files.source') }]} />}
          <span className={classes.spacer} />
          {isDirty && <Text size="xs" c="var(--haft-warn)">{t('files.unsaved')}</Text>}
          {isDirty && <Button variant="subtle" color="gray" onClick={discard}>{t('common.discard')}</Button>}
          {isEditable && (mode === 'edit' || isDirty) && <Button leftSection={<IconDeviceFloppy size={14} />} disabled={!isDirty} loading={save.isPending} onClick={run}>{t('common.save')}</Button>}
        </Group>
      )}
      {failure !== undefined && (isConflict(failure)
        ? <Alert color="yellow" variant="light" role="alert" title={t('files.conflict')}><Text mb="sm">{t('files.conflictHint')}</Text><Group gap="sm"><Button variant="default" onClick={discard}>{t('files.loadCurrent')}</Button><Button variant="default" loading={save.isPending} onClick={() => save.mutate({ text: draft.value.text, etag: null })}>{t('files.overwrite')}</Button></Group></Alert>
        : <ErrorPanel error={failure} />)}
      {isDocument && mode === 'view' ? preview : isDocument && isEditable ? <div className={classes.steps}>{editor}{preview}</div> : editor}
    </Stack>
  );
}

export function FileEditor(props: FileEditorProps) {
  const t = useT();
  const { workspace, path, manifest } = props;
  const query = useQuery(fileQuery(workspace, path, manifest));
  const text = useMemo(() => query.data && decodeText(query.data.bytes), [query.data]);
  if (query.error) return <ErrorPanel error={query.error} onRetry={() => void query.refetch()} />;
  if (!query.data) return <Loading rows={4} />;
  if (text === undefined) return <Text c="dimmed">{t('files.binary', { size: bytes(query.data.bytes.length) })} <a href={fileUrl(workspace, path, manifest)} download={path.split('/').at(-1)}>{t('files.download')}</a></Text>;
  return <LoadedEditor key={`${workspace}/${path}`} {...props} content={query.data} text={text} onReload={async () => (await query.refetch()).data?.etag ?? null} />;
}
