/** One file: shown as what it is, edited where it is text, downloaded, deleted. */
import { ActionIcon, Button, Group, Text, Tooltip } from '@mantine/core';
import { IconArrowLeft, IconDownload, IconTrash } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import type { FileEntry } from '@/api/types';
import { fileQuery, fileUrl, workspaceKeys, workspaces } from '@/api/workspaces';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { CopyButton, EmptyState } from '@/parts/basics';
import { notify, useAction } from '@/parts/feedback';
import { bytes, visibleText } from '@/parts/format';
import { FileEditor } from '@/parts/render/file-editor';
import { FileImage } from '@/parts/render/file-image';
import { imageType } from '@/parts/render/plan';
import classes from './workspace.module.css';

const DOCUMENT = /\.(?:md|markdown)$/i;
const MAX_SHOWN = 20 * 1024 * 1024;

function Content({ workspace, file, manifest }: { workspace: string; file: FileEntry; manifest: string | undefined }) {
  const t = useT();
  const size = file.size ?? 0;
  if (file.kind === 'link') return <Text c="dimmed">{t('workspaces.link', { target: visibleText(file.target ?? '') })}</Text>;
  if (size > MAX_SHOWN) return <Text c="dimmed">{t('workspaces.tooLarge', { size: bytes(size) })}</Text>;
  if (imageType(file.path)) return <FileImage workspace={workspace} path={file.path} manifest={manifest} alt={file.path} maxHeight="70dvh" />;
  return <FileEditor key={`${file.path} ${manifest ?? ''}`} workspace={workspace} path={file.path} manifest={manifest} isDocument={DOCUMENT.test(file.path)} isEditable maxHeight="calc(100dvh - 15rem)" />;
}

interface PaneProps {
  workspace: string;
  path: string;
  file: FileEntry | undefined;
  manifest: string | undefined;
  onClose: () => void;
  /** Takes the place of the tree, so that there is a way back at every width. */
  isAlone?: boolean;
}

export function FilePane({ workspace, path, file, manifest, onClose, isAlone = false }: PaneProps) {
  const t = useT();
  const queries = useQueryClient();
  const mayWrite = useMay('caller') && !manifest;
  const invalidates = [workspaceKeys.all];
  const revive = useAction((content: Uint8Array) => workspaces.put(workspace, path, new Blob([content.slice()])), { invalidates, done: () => notify(t('files.saved', { path })) });
  const remove = useAction(async () => {
    // Kept for the undo.
    const { bytes: content } = await queries.fetchQuery(fileQuery(workspace, path));
    await workspaces.remove(workspace, path);
    return content;
  }, { invalidates, done: (content) => { onClose(); notify(t('workspaces.deleted', { path }), { label: t('common.undo'), run: () => revive.mutate(content) }); } });
  const back = <span className={isAlone ? undefined : classes.back}><ActionIcon aria-label={t('common.back')} onClick={onClose}><IconArrowLeft size={16} /></ActionIcon></span>;
  if (!file) return <>{back}<EmptyState title={t('workspaces.gone')} action={<Button variant="default" onClick={onClose}>{t('common.close')}</Button>}>{visibleText(path)}</EmptyState></>;
  return (
    <div>
      <div className={classes.fileHead}>
        {back}
        <h2 className={classes.fileName} style={{ margin: 0, fontSize: 'var(--mantine-font-size-md)' }}>{visibleText(path)} <CopyButton text={path} /></h2>
        <Text size="xs" c="dimmed" visibleFrom="sm">{file.kind === 'link' ? '' : bytes(file.size ?? 0)}{file.executable && ` · ${t('workspaces.executable')}`}</Text>
        <Group gap={4} wrap="nowrap">
          <Tooltip label={t('files.download')}><ActionIcon component="a" href={fileUrl(workspace, path, manifest)} download={path.split('/').at(-1)} aria-label={t('files.download')}><IconDownload size={16} /></ActionIcon></Tooltip>
          {mayWrite && <Tooltip label={t('common.delete')}><ActionIcon aria-label={t('common.delete')} loading={remove.isPending} onClick={() => remove.mutate(undefined)}><IconTrash size={16} /></ActionIcon></Tooltip>}
        </Group>
      </div>
      <Content workspace={workspace} file={file} manifest={manifest} />
    </div>
  );
}
