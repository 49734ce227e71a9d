/** The chat workbench: the chats, one conversation, its workspace. */
import { ActionIcon, Button, Group, Menu, Modal, Stack, Switch, Text, TextInput, Tooltip } from '@mantine/core';
import { IconArrowLeft, IconDownload, IconFolders, IconPencil, IconPlus, IconShare2, IconTimeline, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { chatKeys, chatQuery, chats } from '@/api/chats';
import type { Chat } from '@/api/run-types';
import { relatedRunsQuery } from '@/api/runs';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { CopyButton, ErrorPanel } from '@/parts/basics';
import { notify, notifyError, useAction, useAsk } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { Loading, Page } from '@/parts/page';
import { useUrlState } from '@/parts/url-state';
import { addUsage, Usage } from '@/parts/usage';
import { ChatList } from './chat-list';
import classes from './chat.module.css';
import { Conversation } from './conversation';
import { NewChat } from './new-chat';
import { useIsMine } from './rights';
import { WorkspaceSide } from './workspace-side';

const MAX_TITLE = 200;

function Rename({ chat, onClose }: { chat: Chat; onClose: () => void }) {
  const t = useT();
  const [title, setTitle] = useState(chat.title);
  const rename = useAction(() => chats.patch(chat.id, { title: title.trim() }), { invalidates: [chatKeys.all], done: onClose });
  return (
    <Modal opened onClose={onClose} title={t('chat.rename')}>
      <form onSubmit={(event) => { event.preventDefault(); rename.mutate(undefined); }}>
        <Stack>
          <TextInput label={t('chat.title')} value={title} maxLength={MAX_TITLE} onChange={(event) => setTitle(event.currentTarget.value)} data-autofocus />
          <Group justify="flex-end"><Button variant="default" onClick={onClose}>{t('common.cancel')}</Button><Button type="submit" loading={rename.isPending} disabled={title.trim() === ''}>{t('common.save')}</Button></Group>
        </Stack>
      </form>
    </Modal>
  );
}

function Share({ chat, onClose }: { chat: Chat; onClose: () => void }) {
  const t = useT();
  // Shown at once; taken back if the server does not agree.
  const [isShared, setShared] = useState(chat.shared === true);
  const share = useAction((next: boolean) => chats.patch(chat.id, { shared: next }), {
    invalidates: [chatKeys.all],
    done: (_, next) => notify(t(next ? 'chat.sharedNow' : 'chat.notShared')),
    failed: (error) => { setShared(!isShared); notifyError(error, t('common.failed')); },
  });
  const address = `${window.location.origin}/ui/chat/${chat.id}`;
  return (
    <Modal opened onClose={onClose} title={t('chat.share')}>
      <Stack>
        <Switch label={t('chat.shareLabel')} description={t('chat.shareHelp')} checked={isShared} onChange={(event) => { setShared(event.currentTarget.checked); share.mutate(event.currentTarget.checked); }} />
        {isShared && <Group gap="sm" wrap="nowrap"><TextInput readOnly flex={1} aria-label={t('chat.link')} value={address} /><CopyButton text={address} compact={false} /></Group>}
      </Stack>
    </Modal>
  );
}

function useChatMenu(chat: Chat | undefined) {
  const t = useT();
  const ask = useAsk();
  const navigate = useNavigate();
  const isOwn = useIsMine(chat);
  const isMine = useMay('caller') && isOwn;
  const [dialog, setDialog] = useState<'rename' | 'share'>();
  const remove = useAction((id: string) => chats.remove(id), { invalidates: [chatKeys.lists], done: () => { notify(t('chat.deleted')); void navigate({ to: '/chat' }); } });
  if (!chat) return {};
  const askAndRemove = async () => {
    if (await ask({ title: t('chat.deleteTitle', { title: visibleText(chat.title) || t('chat.untitled') }), body: t('chat.deleteBody'), confirm: t('chat.delete'), danger: true })) remove.mutate(chat.id);
  };
  const close = () => setDialog(undefined);
  return {
    menu: (
      <>
        {isMine && <Menu.Item leftSection={<IconPencil size={15} />} onClick={() => setDialog('rename')}>{t('chat.rename')}</Menu.Item>}
        {isMine && <Menu.Item leftSection={<IconShare2 size={15} />} onClick={() => setDialog('share')}>{t('chat.share')}</Menu.Item>}
        <Menu.Item component="a" href={chats.exportUrl(chat.id, 'markdown')} download leftSection={<IconDownload size={15} />}>{t('chat.exportMarkdown')}</Menu.Item>
        <Menu.Item component="a" href={chats.exportUrl(chat.id, 'json')} download leftSection={<IconDownload size={15} />}>{t('chat.exportJson')}</Menu.Item>
        <Menu.Item component={Link} to="/runs" search={{ chat_id: chat.id } as never} leftSection={<IconTimeline size={15} />}>{t('chat.runs')}</Menu.Item>
        {isMine && <Menu.Divider />}
        {isMine && <Menu.Item color="red" leftSection={<IconTrash size={15} />} onClick={() => void askAndRemove()}>{t('chat.delete')}</Menu.Item>}
      </>
    ),
    dialog: dialog === 'rename' ? <Rename chat={chat} onClose={close} /> : dialog === 'share' ? <Share chat={chat} onClose={close} /> : null,
  };
}

function TotalUsage({ chat }: { chat: string }) {
  const { data: runs } = useQuery(relatedRunsQuery({ chat_id: chat }));
  const total = useMemo(() => addUsage((runs ?? []).map((run) => run.usage)), [runs]);
  return total.input_tokens + total.output_tokens > 0 ? <Usage usage={total} /> : null;
}

export function ChatPage() {
  const t = useT();
  const { id } = useParams({ strict: false }) as { id?: string };
  const [url, setUrl] = useUrlState();
  const mayCall = useMay('caller');
  const chat = useQuery({ ...chatQuery(id ?? ''), enabled: id !== undefined });
  const { menu, dialog } = useChatMenu(id === undefined ? undefined : chat.data);
  const hasFiles = id !== undefined && chat.data !== undefined && url['files'] === '1';
  const title = id === undefined ? t('nav.chat') : chat.data ? visibleText(chat.data.title) || t('chat.untitled') : t('nav.chat');
  const primary = (
    <Group gap="sm" wrap="nowrap">
      {id !== undefined && <TotalUsage chat={id} />}
      {id !== undefined && <Tooltip label={t(hasFiles ? 'chat.hideWorkspace' : 'chat.showWorkspace')}><ActionIcon variant={hasFiles ? 'light' : 'default'} size={30} aria-label={t('chat.workspace')} aria-pressed={hasFiles} onClick={() => setUrl({ files: hasFiles ? undefined : '1', file: undefined })}><IconFolders size={16} /></ActionIcon></Tooltip>}
      {mayCall && <Button component={Link} to="/chat" search={{ new: '1' } as never} leftSection={<IconPlus size={15} />}>{t('chat.new')}</Button>}
    </Group>
  );
  return (
    <Page title={title} primary={primary} menu={menu}>
      <div className={classes.bench} data-view={id !== undefined || url['new'] === '1' || url['agent'] ? 'pane' : 'list'} data-workspace={hasFiles}>
        <ChatList open={id} url={url} setUrl={setUrl} />
        <div className={classes.main}>
          <div className={classes.back} style={{ padding: '4px 8px 0' }}><Button component={Link} to="/chat" variant="subtle" size="compact-sm" leftSection={<IconArrowLeft size={14} />}>{t('chat.all')}</Button></div>
          {chat.data?.shared && <div className={classes.notice}><IconShare2 size={14} aria-hidden /><Text span>{t('chat.sharedNote')}</Text></div>}
          {id === undefined ? <NewChat url={url} setUrl={setUrl} />
            : chat.error ? <Stack p="xl"><ErrorPanel error={chat.error} onRetry={() => void chat.refetch()} /></Stack>
              : chat.data ? <Conversation key={id} chat={chat.data} /> : <Loading />}
        </div>
        {hasFiles && id && <WorkspaceSide chatId={id} file={url['file']} onFile={(file) => setUrl({ file })} onClose={() => setUrl({ files: undefined, file: undefined })} />}
      </div>
      {dialog}
    </Page>
  );
}
