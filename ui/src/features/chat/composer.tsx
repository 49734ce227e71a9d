/** Where a message is written: text, files for the workspace, tools. What was typed stays until the server has it. */
import { ActionIcon, Button, FileButton, Pill, Text, Textarea, Tooltip } from '@mantine/core';
import { IconPaperclip, IconPlayerStop, IconPlus, IconSend2 } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState, type DragEvent, type ReactNode } from 'react';
import { chatWorkspace } from '@/api/chats';
import { filesQuery } from '@/api/workspaces';
import { useT } from '@/i18n';
import { visibleText } from '@/parts/format';
import { chosenFiles, droppedFiles } from '@/parts/workspace/upload';
import { useUpload } from '@/parts/workspace/use-upload';
import classes from './chat.module.css';
import { ToolPalette } from './tool-palette';

export interface Draft {
  text: string;
  files: string[];
}

export const EMPTY_DRAFT: Draft = { text: '', files: [] };

interface ComposerProps {
  draft: Draft;
  onDraft: (draft: Draft) => void;
  onSend: () => void;
  isSending: boolean;
  /** Undefined where nothing can be stopped. */
  onStop?: (() => void) | undefined;
  placeholder: string;
  before?: ReactNode;
  children?: ReactNode;
}

/** The text field and the button to send; the chat adds what belongs to a chat. */
export function Composer({ draft, onDraft, onSend, isSending, onStop, placeholder, before, children }: ComposerProps) {
  const t = useT();
  const canSend = draft.text.trim() !== '' && !isSending && onStop === undefined;
  return (
    <div className={classes.box}>
      {before}
      <Textarea variant="unstyled" aria-label={t('chat.message')} placeholder={placeholder} value={draft.text} autosize minRows={1} maxRows={10} px={6} size="sm" disabled={isSending} data-composer
        onChange={(event) => onDraft({ ...draft, text: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          if (canSend) onSend();
        }} />
      <div className={classes.tools}>
        {children}
        <span className={classes.spacer} />
        <Text size="xs" c="dimmed" visibleFrom="sm" mr={4} className={classes.hint}>{t('chat.keys')}</Text>
        {onStop
          ? <Button color="red.8" leftSection={<IconPlayerStop size={14} />} onClick={onStop}>{t('chat.stop')}</Button>
          : <Button leftSection={<IconSend2 size={14} />} disabled={!canSend} loading={isSending} onClick={onSend}>{t('chat.send')}</Button>}
      </div>
    </div>
  );
}

type ChatComposerProps = Omit<ComposerProps, 'children' | 'before'> & { chatId: string };

export function ChatComposer({ chatId, ...props }: ChatComposerProps) {
  const t = useT();
  const { draft, onDraft } = props;
  const workspace = chatWorkspace(chatId);
  const list = useQuery(filesQuery(workspace)).data;
  const [over, setOver] = useState(false);
  const [isChoosing, setChoosing] = useState(false);
  const uploads = useUpload(workspace, list, (paths) => onDraft({ ...draft, files: [...new Set([...draft.files, ...paths])] }));
  const drop = (event: DragEvent) => { event.preventDefault(); setOver(false); void droppedFiles(event.dataTransfer, '').then(uploads.start); };
  const files = draft.files.length > 0 && (
    <div className={classes.files} role="list" aria-label={t('chat.files')}>
      {draft.files.map((path) => <Pill key={path} role="listitem" withRemoveButton removeButtonProps={{ 'aria-label': t('chat.leaveOut', { name: path }), 'aria-hidden': false, tabIndex: 0 }} onRemove={() => onDraft({ ...draft, files: draft.files.filter((each) => each !== path) })}>{visibleText(path)}</Pill>)}
    </div>
  );
  return (
    <div data-over={over} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={drop}>
      <Composer {...props} before={<>{over && <Text size="xs" c="dimmed" px={6}>{t('chat.drop')}</Text>}{files}</>}>
        <Tooltip label={t('chat.runATool')}><ActionIcon aria-label={t('chat.runATool')} onClick={() => setChoosing(true)}><IconPlus size={16} /></ActionIcon></Tooltip>
        <FileButton multiple onChange={(chosen) => void uploads.start(chosenFiles(chosen, ''))}>
          {(button) => <Tooltip label={t('chat.upload')}><ActionIcon aria-label={t('chat.upload')} loading={uploads.isPending} {...button}><IconPaperclip size={16} /></ActionIcon></Tooltip>}
        </FileButton>
      </Composer>
      {isChoosing && <ToolPalette chatId={chatId} onClose={() => setChoosing(false)} />}
    </div>
  );
}
