/** Every state of a workspace: what made it, what changed, a look at it, and the way back to it. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { IconEye, IconRestore } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { FileChange, Manifest } from '@/api/types';
import { fileQuery, manifestsQuery, workspaceDiffQuery, workspaceKeys, workspaces } from '@/api/workspaces';
import { useMay } from '@/api/session';
import { useT, type MessageKey } from '@/i18n';
import { messages } from '@/i18n/messages';
import { EmptyState, ErrorPanel } from '@/parts/basics';
import { ChangeMark } from '@/parts/change-mark';
import { DiffView } from '@/parts/diff-view';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { bytes, visibleText } from '@/parts/format';
import { CallLink } from '@/parts/links';
import { Loading } from '@/parts/page';
import { decodeText } from '@/parts/render/plan';
import { Time } from '@/parts/time';
import classes from '@/parts/workspace/workspace.module.css';

const MAX_CHANGES = 300;

export function useRestore(workspace: string, current: string | null | undefined, onRestored: () => void) {
  const t = useT();
  const ask = useAsk();
  const restore = useAction((manifest: string) => workspaces.restore(workspace, manifest), {
    invalidates: [workspaceKeys.all],
    done: () => {
      onRestored();
      notify(t('workspaces.restored'), current ? { label: t('common.undo'), run: () => restore.mutate(current) } : undefined);
    },
  });
  return {
    isPending: restore.isPending,
    run: async (manifest: string) => { if (await ask({ title: t('workspaces.restoreTitle'), body: t('workspaces.restoreBody'), confirm: t('workspaces.restore') })) restore.mutate(manifest); },
  };
}

/** The text of a file before and after. */
function FileDiff({ workspace, path, before, after }: { workspace: string; path: string; before: string | null; after: string | null }) {
  const t = useT();
  const left = useQuery({ ...fileQuery(workspace, path, before), enabled: before !== null });
  const right = useQuery({ ...fileQuery(workspace, path, after), enabled: after !== null });
  const error = left.error ?? right.error;
  if (error) return <ErrorPanel error={error} />;
  if ((before !== null && !left.data) || (after !== null && !right.data)) return <Loading rows={3} />;
  const texts = [left.data, right.data].map((content) => (content ? decodeText(content.bytes) : ''));
  if (texts.includes(undefined)) return <Text c="dimmed">{t('files.binary', { size: bytes(right.data?.bytes.length ?? left.data?.bytes.length ?? 0) })}</Text>;
  return <DiffView before={texts[0] ?? ''} after={texts[1] ?? ''} />;
}

export function ChangeList({ workspace, changes, before, after }: { workspace: string; changes: FileChange[]; before: string | null; after: string | null }) {
  const t = useT();
  const [open, setOpen] = useState<string>();
  if (changes.length === 0) return <Text c="dimmed">{t('workspaces.nothingChanged')}</Text>;
  return (
    <Stack gap={2}>
      {changes.slice(0, MAX_CHANGES).map((change) => (
        <div key={change.path}>
          <button type="button" className={classes.changed} aria-expanded={open === change.path} onClick={() => setOpen(open === change.path ? undefined : change.path)}><ChangeMark change={change.change} />{visibleText(change.path)}</button>
          {open === change.path && <FileDiff workspace={workspace} path={change.path} before={change.change === 'added' ? null : before} after={change.change === 'removed' ? null : after} />}
        </div>
      ))}
      {changes.length > MAX_CHANGES && <Text size="xs" c="dimmed">{t('json.moreItems', { n: changes.length - MAX_CHANGES })}</Text>}
    </Stack>
  );
}

function Source({ manifest }: { manifest: Manifest }) {
  const t = useT();
  const key = `workspaces.source.${manifest.source}`;
  return <>{key in messages ? t(key as MessageKey) : visibleText(manifest.source)}</>;
}

function Entry({ workspace, manifest, isCurrent, isOpen, onToggle, onLook, onRestore }: { workspace: string; manifest: Manifest; isCurrent: boolean; isOpen: boolean; onToggle: () => void; onLook: () => void; onRestore: () => void }) {
  const t = useT();
  const mayWrite = useMay('caller');
  const diff = useQuery({ ...workspaceDiffQuery(workspace, manifest.parent_id, manifest.id), enabled: isOpen });
  return (
    <div role="listitem">
      <button type="button" className={classes.manifest} aria-expanded={isOpen} onClick={onToggle}>
        <span className={classes.point} data-current={isCurrent} aria-hidden />
        <span><Text span fw={isCurrent ? 600 : undefined}><Source manifest={manifest} /></Text>{isCurrent && <Text span c="dimmed" size="xs"> · {t('workspaces.current')}</Text>}<Text c="dimmed" size="xs" component="span" display="block">{t('workspaces.fileCount', { n: manifest.files })} · {bytes(manifest.bytes)}</Text></span>
        <Text c="dimmed" size="xs" component="span"><Time at={manifest.created_at} /></Text>
      </button>
      {isOpen && (
        <div className={classes.manifestBody}>
          <Group gap="sm" mb="sm">
            {!isCurrent && <Button variant="default" size="compact-xs" leftSection={<IconEye size={13} />} onClick={onLook}>{t('workspaces.look')}</Button>}
            {!isCurrent && mayWrite && <Button variant="default" size="compact-xs" leftSection={<IconRestore size={13} />} onClick={onRestore}>{t('workspaces.restore')}</Button>}
            {manifest.source === 'tool_run' && manifest.source_ref && <CallLink id={manifest.source_ref}>{t('workspaces.openCall')}</CallLink>}
          </Group>
          {diff.error ? <ErrorPanel error={diff.error} onRetry={() => void diff.refetch()} /> : !diff.data ? <Loading rows={2} /> : <ChangeList workspace={workspace} changes={diff.data} before={manifest.parent_id} after={manifest.id} />}
        </div>
      )}
    </div>
  );
}

export function Timeline({ workspace, current, opened, onOpen, onLook, onRestored }: { workspace: string; current: string | null | undefined; opened: string | undefined; onOpen: (id: string | undefined) => void; onLook: (id: string) => void; onRestored: () => void }) {
  const t = useT();
  const { data: manifests, error, refetch } = useQuery(manifestsQuery(workspace));
  const restore = useRestore(workspace, current, onRestored);
  if (error) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (!manifests) return <Loading />;
  if (manifests.length === 0) return <EmptyState title={t('workspaces.noStates')}>{t('workspaces.noStatesHint')}</EmptyState>;
  return (
    <div role="list" aria-label={t('workspaces.timeline')}>
      {manifests.map((manifest) => <Entry key={manifest.id} workspace={workspace} manifest={manifest} isCurrent={manifest.id === current} isOpen={manifest.id === opened} onToggle={() => onOpen(manifest.id === opened ? undefined : manifest.id)} onLook={() => onLook(manifest.id)} onRestore={() => void restore.run(manifest.id)} />)}
    </div>
  );
}
