/** The browser of one workspace: tree, file, timeline. */
import { Button, FileButton, Group, Menu, Modal, Stack, Tabs, Text, TextInput } from '@mantine/core';
import { IconDownload, IconFilePlus, IconFolderPlus, IconHistory, IconUpload } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useState, type DragEvent } from 'react';
import type { FileList as WorkspaceFiles } from '@/api/types';
import { archiveUrl, filesQuery, lastCallQuery, manifestsQuery, workspaceKeys, workspaces } from '@/api/workspaces';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { CodeBlock, EmptyState, ErrorPanel, SectionTitle } from '@/parts/basics';
import { useAction } from '@/parts/feedback';
import { FilterInput } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { CallLink } from '@/parts/links';
import { Loading, Page } from '@/parts/page';
import { safePath } from '@/parts/render/plan';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { FilePane } from '@/parts/workspace/file-pane';
import { FileTree } from '@/parts/workspace/file-tree';
import { parents } from '@/parts/workspace/tree';
import { chosenFiles, droppedFiles } from '@/parts/workspace/upload';
import { useUpload } from '@/parts/workspace/use-upload';
import { ChangeList, Timeline, useRestore } from './timeline';
import classes from '@/parts/workspace/workspace.module.css';

function NewFile({ workspace, list, folder, onDone }: { workspace: string; list: WorkspaceFiles | undefined; folder: string; onDone: (path?: string) => void }) {
  const t = useT();
  const [text, setText] = useState(folder === '' ? '' : `${folder}/`);
  const path = safePath(text.trim());
  const exists = list?.files.some((file) => file.path === path) === true;
  const create = useAction((target: string) => workspaces.put(workspace, target, ''), { invalidates: [workspaceKeys.all], done: (_, target) => onDone(target) });
  return (
    <Modal opened onClose={() => onDone()} title={t('workspaces.newFile')}>
      <form onSubmit={(event) => { event.preventDefault(); if (path && !exists) create.mutate(path); }}>
        <Stack>
          <TextInput label={t('workspaces.newPath')} description={t('workspaces.newPathHelp')} value={text} onChange={(event) => setText(event.currentTarget.value)} error={exists ? t('workspaces.exists') : text.trim() !== '' && path === undefined ? t('workspaces.badPath') : undefined} data-autofocus />
          <Group justify="flex-end"><Button variant="default" onClick={() => onDone()}>{t('common.cancel')}</Button><Button type="submit" disabled={!path || exists || text.trim().endsWith('/')} loading={create.isPending}>{t('workspaces.create')}</Button></Group>
        </Stack>
      </form>
    </Modal>
  );
}

/** What the last call changed: the first thing to see where no file is chosen. */
function LastCall({ workspace }: { workspace: string }) {
  const t = useT();
  const { data: last } = useQuery(lastCallQuery(workspace));
  if (last === undefined) return null;
  if (last === null) return <Text c="dimmed">{t('workspaces.noCall')}</Text>;
  return (
    <div>
      <SectionTitle right={last.manifest.source_ref && <CallLink id={last.manifest.source_ref}>{t('workspaces.openCall')}</CallLink>}>{t('workspaces.lastCall')}</SectionTitle>
      <ChangeList workspace={workspace} changes={last.changes} before={last.manifest.parent_id} after={last.manifest.id} />
    </div>
  );
}

function PastBanner({ workspace, manifest, current, onLeave }: { workspace: string; manifest: string; current: string | null | undefined; onLeave: () => void }) {
  const t = useT();
  const mayWrite = useMay('caller');
  const at = useQuery(manifestsQuery(workspace)).data?.find((each) => each.id === manifest)?.created_at;
  const restore = useRestore(workspace, current, onLeave);
  return (
    <div className={classes.past} role="status">
      <span>{t('workspaces.past')} {at && <Time at={at} absolute />}</span>
      <span style={{ flex: 1 }} />
      {mayWrite && <Button size="compact-xs" variant="default" loading={restore.isPending} onClick={() => void restore.run(manifest)}>{t('workspaces.restore')}</Button>}
      <Button size="compact-xs" variant="default" onClick={onLeave}>{t('workspaces.toPresent')}</Button>
    </div>
  );
}

export function WorkspacePage() {
  const t = useT();
  const { name = '' } = useParams({ strict: false }) as { name?: string };
  const [url, setUrl] = useUrlState();
  const { file: path, manifest } = url;
  const isTimeline = url['tab'] === 'timeline';
  const mayWrite = useMay('caller') && !manifest;
  const [over, setOver] = useState(false);
  const [isCreating, setCreating] = useState(false);
  const query = useQuery(filesQuery(name, manifest));
  const list = query.data;
  const current = useQuery(filesQuery(name)).data?.manifest?.id;
  const changes = useQuery(lastCallQuery(name)).data?.changes ?? [];
  const uploads = useUpload(name, list);
  const folder = path ? (parents(path).at(-1) ?? '') : '';
  const drop = (event: DragEvent) => { event.preventDefault(); setOver(false); if (mayWrite) void droppedFiles(event.dataTransfer, folder).then(uploads.start); };
  const title = visibleText(name);
  if (query.error) return <Page title={title}><Stack p="xl"><ErrorPanel error={query.error} onRetry={() => void query.refetch()} /></Stack></Page>;
  const upload = mayWrite && (
    <FileButton multiple onChange={(files) => void uploads.start(chosenFiles(files, folder))}>
      {(props) => <Button leftSection={<IconUpload size={15} />} loading={uploads.isPending} {...props}>{t('workspaces.upload')}</Button>}
    </FileButton>
  );
  return (
    <Page title={title} count={list?.files.filter((file) => file.kind !== 'folder').length} primary={upload} menu={<>{mayWrite && <Menu.Item leftSection={<IconFilePlus size={15} />} onClick={() => setCreating(true)}>{t('workspaces.newFile')}</Menu.Item>}<Menu.Item leftSection={<IconHistory size={15} />} onClick={() => setUrl({ tab: 'timeline' })}>{t('workspaces.timeline')}</Menu.Item><Menu.Item component="a" href={archiveUrl(name, manifest)} download={`${name.replaceAll(':', '-')}.zip`} leftSection={<IconDownload size={15} />}>{t('workspaces.zip')}</Menu.Item></>}>
      {manifest && <PastBanner workspace={name} manifest={manifest} current={current} onLeave={() => setUrl({ manifest: undefined })} />}
      <div className={classes.bench} data-view={path || isTimeline ? 'pane' : 'tree'} onDragOver={(event) => { event.preventDefault(); if (mayWrite) setOver(true); }} onDragLeave={(event) => { if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false); }} onDrop={drop}>
        <div className={classes.side}>
          <div className={classes.sideHead}><FilterInput value={url['q'] ?? ''} onChange={(next) => setUrl({ q: next || undefined })} label={t('workspaces.filter')} /></div>
          {!list ? <Loading /> : list.files.length === 0 ? <EmptyState icon={IconFolderPlus} title={t('workspaces.noFiles')}>{t('workspaces.noFilesHint')}</EmptyState> : <FileTree key={`${name} ${manifest ?? ''}`} files={list.files} changes={manifest ? [] : changes} filter={url['q'] ?? ''} selected={path} onSelect={(next) => setUrl({ file: next, tab: undefined }, { push: true })} />}
        </div>
        <div className={classes.pane}>
          <Tabs value={isTimeline ? 'timeline' : 'file'} onChange={(next) => setUrl({ tab: next === 'timeline' ? next : undefined })}>
            <Tabs.List mb="md"><Tabs.Tab value="file">{t('workspaces.tab.file')}</Tabs.Tab><Tabs.Tab value="timeline">{t('workspaces.timeline')}</Tabs.Tab></Tabs.List>
            <Tabs.Panel value="file">
              {path ? list && <FilePane key={`${path} ${manifest ?? ''}`} workspace={name} path={path} file={list.files.find((each) => each.path === path)} manifest={manifest} onClose={() => setUrl({ file: undefined })} />
                : <Stack><LastCall workspace={name} />{mayWrite && <Text c="dimmed">{t('workspaces.dropHint')}</Text>}<div><Text c="dimmed" mb={4}>{t('workspaces.useHint')}</Text><CodeBlock text={`haft tool call TOOL --workspace ${name}`} /></div></Stack>}
            </Tabs.Panel>
            <Tabs.Panel value="timeline"><Timeline workspace={name} current={current} opened={url['state']} onOpen={(state) => setUrl({ state })} onLook={(id) => setUrl({ manifest: id, tab: undefined })} onRestored={() => setUrl({ manifest: undefined })} /></Tabs.Panel>
          </Tabs>
        </div>
        {isCreating && <NewFile workspace={name} list={list} folder={folder} onDone={(created) => { setCreating(false); if (created) setUrl({ file: created, tab: undefined }, { push: true }); }} />}
        {over && <div className={classes.drop}>{t('workspaces.drop', { folder: folder || '/' })}</div>}
        {uploads.progress && <div className={classes.drop} role="status">{t('workspaces.uploading', { n: uploads.progress.count + 1, total: uploads.progress.total })}</div>}
      </div>
    </Page>
  );
}
