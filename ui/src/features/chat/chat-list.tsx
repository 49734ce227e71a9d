/** The chats beside the conversation: search, own ones, shared ones. */
import { Button, Group, SegmentedControl, Text } from '@mantine/core';
import { IconShare2 } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { chatListQuery } from '@/api/chats';
import { useMay, useSession } from '@/api/session';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel } from '@/parts/basics';
import { FilterInput } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { Loading } from '@/parts/page';
import { Time } from '@/parts/time';
import type { SetUrlState, UrlState } from '@/parts/url-state';
import classes from './chat.module.css';

export function ChatList({ open, url, setUrl }: { open: string | undefined; url: UrlState; setUrl: SetUrlState }) {
  const t = useT();
  const session = useSession();
  // Admins see every chat of the tenant.
  const isAdmin = useMay('admin');
  const isShared = url['shared'] === '1';
  const q = url['q'] ?? '';
  const { data, error, isPending, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(chatListQuery({ ...(q ? { q } : {}), ...(isShared ? { shared: 'true' } : {}) }));
  const chats = data?.pages.flatMap((page) => page.chats) ?? [];
  const kept = { ...(q ? { q } : {}), ...(isShared ? { shared: '1' } : {}), ...(url['files'] ? { files: '1' } : {}) };
  return (
    <div className={classes.side}>
      <div className={classes.sideHead} role="search">
        <FilterInput value={q} onChange={(next) => setUrl({ q: next || undefined })} label={t('chat.search')} />
        <SegmentedControl fullWidth aria-label={t('chat.which')} value={isShared ? 'shared' : 'mine'} onChange={(next) => setUrl({ shared: next === 'shared' ? '1' : undefined })} data={[{ value: 'mine', label: t(isAdmin ? 'common.all' : 'chat.mine') }, { value: 'shared', label: t('chat.sharedOnes') }]} />
      </div>
      {error ? <div style={{ padding: 8 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : chats.length === 0 ? (
        <EmptyState title={t(q ? 'chat.noneFound' : isShared ? 'chat.noShared' : 'chat.none')}>{t(q ? 'chat.noneFoundHint' : isShared ? 'chat.noSharedHint' : 'chat.noneHint')}</EmptyState>
      ) : (
        <ul className={classes.list} aria-label={t('nav.chat')}>
          {chats.map((chat) => (
            <li key={chat.id}>
              <Link to="/chat/$id" params={{ id: chat.id } as never} search={kept as never} className={classes.entry} data-active={chat.id === open} aria-current={chat.id === open ? 'page' : undefined}>
                <Group gap={6} wrap="nowrap"><Text truncate flex={1} fw={chat.id === open ? 600 : undefined}>{visibleText(chat.title) || t('chat.untitled')}</Text>{chat.shared && <IconShare2 size={13} role="img" aria-label={t('chat.isShared')} />}</Group>
                <Text size="xs" c="dimmed" truncate>{[chat.owner_id !== session.owner_id && visibleText(chat.owner_name), chat.agent && visibleText(chat.agent)].flatMap((part) => (part ? [part, ' · '] : [])).join('')}<Time at={chat.modified_at} /></Text>
              </Link>
            </li>
          ))}
          {hasNextPage && <li><Button variant="subtle" fullWidth loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>{t('common.loadMore')}</Button></li>}
        </ul>
      )}
    </div>
  );
}
