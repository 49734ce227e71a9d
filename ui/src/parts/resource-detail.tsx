/** The details of an agent, a pipeline or an artifact, next to the list or on its own page, with menu and history. */
import { ActionIcon, Menu, Skeleton, Title } from '@mantine/core';
import { IconArchive, IconDots, IconPlayerPause, IconPlayerPlay, IconRocket, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useEffect, type ReactNode } from 'react';
import type { Resource, ResourceKind } from '@/api/resources';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { ErrorPanel, Mono } from './basics';
import { useDelete } from './delete-resource';
import { notify, useAction, useAsk } from './feedback';
import { visibleText } from './format';
import { Drawer, Loading } from './page';
import classes from './parts.module.css';
import { useUrlState } from './url-state';

/** The parts that a kind provides for one of its resources. */
export interface ResourceParts<T extends Resource> {
  kind: ResourceKind;
  read: (ref: string, context: { signal: AbortSignal }) => Promise<T>;
  heading: (resource: T, isPage: boolean) => ReactNode;
  actions: (resource: T, onDeleted: () => void) => ReactNode;
  body: (resource: T) => ReactNode;
}

const oneQuery = <T extends Resource>({ kind, read }: ResourceParts<T>, ref: string) => ({ queryKey: kind.one(ref), queryFn: (context: { signal: AbortSignal }) => read(ref, context), retry: false });

const nameOf = (resource: Resource) => resource.name || resource.slug;

/** A resource next to the list. */
export function ResourceDrawer<T extends Resource>({ parts, target, onClose }: { parts: ResourceParts<T>; target: string; onClose: () => void }) {
  const navigate = useNavigate();
  const [url] = useUrlState();
  const { data: resource, error, refetch } = useQuery(oneQuery(parts, target));
  const expand = () => void navigate({ to: `${parts.kind.page}/$ref` as never, params: { ref: target } as never, search: (url['tab'] ? { tab: url['tab'] } : {}) as never });
  return (
    <Drawer label={resource ? nameOf(resource) : target} title={resource ? parts.heading(resource, false) : <Skeleton h={22} w={200} />} onClose={onClose} onExpand={expand} actions={resource && parts.actions(resource, onClose)}>
      {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : resource ? parts.body(resource) : <Loading />}
    </Drawer>
  );
}

/** A resource on its own page. */
export function ResourcePage<T extends Resource>({ parts }: { parts: ResourceParts<T> }) {
  const navigate = useNavigate();
  const { ref: target = '' }: { ref?: string } = useParams({ strict: false });
  const { data: resource, error, refetch } = useQuery(oneQuery(parts, target));
  useEffect(() => {
    if (resource) document.title = document.title.replace(/^((?:\(\d+\) )?).*$/, `$1${nameOf(resource)} · haft`);
  }, [resource]);
  return (
    <div className={classes.page}>
      <header className={classes.pageHeader}>
        <div className={classes.pageHeading}>{resource ? parts.heading(resource, true) : <Title order={1}><Mono>{visibleText(target)}</Mono></Title>}</div>
        {resource && parts.actions(resource, () => void navigate({ to: parts.kind.page as never }))}
      </header>
      <div className={classes.scroll}>{error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : resource ? parts.body(resource) : <Loading />}</div>
    </div>
  );
}

/** The requests behind the menu. */
export interface LifeCycle {
  enable: (ref: string, enabled: boolean) => Promise<unknown>;
  publish: (ref: string) => Promise<unknown>;
  deprecate: (ref: string) => Promise<unknown>;
  remove: (ref: string, force: boolean) => Promise<unknown>;
  undelete: (ref: string) => Promise<unknown>;
}

interface MenuProps {
  kind: ResourceKind;
  requests: LifeCycle;
  resource: Resource;
  /** Other cache keys to invalidate. */
  invalidates?: readonly (readonly unknown[])[];
  /** The text of the publish confirmation, or a custom dialog. */
  publish: string | (() => void);
  /** The consequences of deleting. */
  deleteBody: string;
  /** The text to type to confirm the deletion. */
  typed?: string | undefined;
  onDeleted: () => void;
  /** Further items. */
  children?: ReactNode;
}

/** Publish, deprecate, enable, delete. */
export function ResourceMenu({ kind, requests, resource, invalidates = [], publish, deleteBody, typed, onDeleted, children }: MenuProps) {
  const t = useT();
  const ask = useAsk();
  const mayEdit = useMay('editor');
  const { id, status, enabled } = resource;
  const name = nameOf(resource);
  const affected = [kind.all, ...invalidates];
  const publishNow = useAction(() => requests.publish(id), { invalidates: affected, done: () => notify(t('tools.publishedOne', { name })) });
  const deprecate = useAction(() => requests.deprecate(id), { invalidates: affected, done: () => notify(t('agents.deprecatedNotice', { name })) });
  const enable = useAction((next: boolean) => requests.enable(id, next), {
    invalidates: affected,
    done: (_, next) => notify(t(next ? 'agents.enabledNotice' : 'agents.disabledNotice', { name }), { label: t('common.undo'), run: () => enable.mutate(!next) }),
  });
  const askRemove = useDelete(requests, { id, name, body: deleteBody, typed }, { invalidates: affected, key: kind.one(resource.slug), onDeleted });
  if (!mayEdit) return null;
  const askPublish = async () => {
    if (typeof publish !== 'string') publish();
    else if (await ask({ title: t('retrieval.publishTitle', { name }), body: publish, confirm: t('tools.publish') })) publishNow.mutate(undefined);
  };
  const askDeprecate = async () => { if (await ask({ title: t('tools.deprecateTitle', { name }), body: t('resources.deprecateBody'), confirm: t('tools.deprecate') })) deprecate.mutate(undefined); };
  return (
    <Menu position="bottom-end" width={220}>
      <Menu.Target><ActionIcon aria-label={t('common.more')}><IconDots size={16} /></ActionIcon></Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<IconRocket size={15} />} onClick={() => void askPublish()}>{t('tools.publishMenu')}</Menu.Item>
        {status !== 'deprecated' && <Menu.Item leftSection={<IconArchive size={15} />} onClick={() => void askDeprecate()}>{t('tools.deprecateMenu')}</Menu.Item>}
        <Menu.Item leftSection={enabled ? <IconPlayerPause size={15} /> : <IconPlayerPlay size={15} />} onClick={() => enable.mutate(!enabled)}>{t(enabled ? 'common.disable' : 'common.enable')}</Menu.Item>
        {children}
        {!resource.path && <><Menu.Divider /><Menu.Item color="red" leftSection={<IconTrash size={15} />} onClick={() => void askRemove()}>{t('common.delete')}…</Menu.Item></>}
      </Menu.Dropdown>
    </Menu>
  );
}
