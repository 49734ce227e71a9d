/** The files of the chat beside the conversation. */
import { ActionIcon, Text, Tooltip } from '@mantine/core';
import { IconArrowsDiagonal, IconFolders, IconX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { chatWorkspace } from '@/api/chats';
import { filesQuery, lastCallQuery } from '@/api/workspaces';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel } from '@/parts/basics';
import { Loading } from '@/parts/page';
import { FilePane } from '@/parts/workspace/file-pane';
import { FileTree } from '@/parts/workspace/file-tree';
import classes from './chat.module.css';

export function WorkspaceSide({ chatId, file, onFile, onClose }: { chatId: string; file: string | undefined; onFile: (file: string | undefined) => void; onClose: () => void }) {
  const t = useT();
  const workspace = chatWorkspace(chatId);
  const { data: list, error, refetch } = useQuery(filesQuery(workspace));
  const changes = useQuery(lastCallQuery(workspace)).data?.changes ?? [];
  return (
    <aside className={classes.workspace} aria-label={t('chat.workspace')}>
      <div className={classes.workspaceHead}>
        <Text fw={600} flex={1}>{t('chat.workspace')}</Text>
        <Tooltip label={t('common.fullPage')}><ActionIcon component={Link} to="/workspaces/$name" params={{ name: workspace } as never} aria-label={t('common.fullPage')}><IconArrowsDiagonal size={16} /></ActionIcon></Tooltip>
        <ActionIcon aria-label={t('chat.hideWorkspace')} onClick={onClose}><IconX size={16} /></ActionIcon>
      </div>
      {error ? <div className={classes.workspaceFile}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : !list ? <Loading />
        : file ? <div className={classes.workspaceFile}><FilePane key={file} workspace={workspace} path={file} file={list.files.find((each) => each.path === file)} manifest={undefined} onClose={() => onFile(undefined)} isAlone /></div>
          : list.files.length === 0 ? <EmptyState icon={IconFolders} title={t('workspaces.noFiles')}>{t('chat.noFilesHint')}</EmptyState>
            : <FileTree files={list.files} changes={changes} filter="" selected={undefined} onSelect={onFile} />}
    </aside>
  );
}
