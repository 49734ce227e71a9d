/** One message of the branch that is shown, with what can be done with it. */
import { ActionIcon, Button, Group, Loader, Stack, Textarea, Tooltip } from '@mantine/core';
import { IconChevronLeft, IconChevronRight, IconPencil, IconRefresh, IconTimeline } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { memo, useEffect, useMemo, useRef, useState } from 'react';
import type { ChatMessage, Run } from '@/api/run-types';
import { useT } from '@/i18n';
import { CopyButton } from '@/parts/basics';
import { Time } from '@/parts/time';
import { Usage } from '@/parts/usage';
import { markFailure, readContent, textOf, type Answer, type Item } from './answer';
import type { Place } from './branch';
import classes from './chat.module.css';
import { Items } from './items';

interface Actions {
  onSwitch: (sibling: string) => void;
  onEdit: (message: ChatMessage, text: string) => void;
  onRetry: (message: ChatMessage) => void;
}

function Switcher({ place, onSwitch }: { place: Place; onSwitch: (sibling: string) => void }) {
  const t = useT();
  const { at, siblings } = place;
  if (siblings.length < 2) return null;
  const [before, after] = [siblings[at - 2], siblings[at]];
  return (
    <span className={classes.switcher} role="group" aria-label={t('chat.branches')}>
      <ActionIcon size="sm" aria-label={t('chat.branchBefore')} disabled={!before} onClick={() => before && onSwitch(before.id)}><IconChevronLeft size={14} /></ActionIcon>
      <span>{at}/{siblings.length}</span>
      <ActionIcon size="sm" aria-label={t('chat.branchAfter')} disabled={!after} onClick={() => after && onSwitch(after.id)}><IconChevronRight size={14} /></ActionIcon>
    </span>
  );
}

function Edit({ text, onSave, onCancel }: { text: string; onSave: (text: string) => void; onCancel: () => void }) {
  const t = useT();
  const [value, setValue] = useState(text);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  return (
    <form className={classes.editing} onSubmit={(event) => { event.preventDefault(); if (value.trim() !== '') onSave(value); }}>
      <Stack gap="sm">
        <Textarea aria-label={t('chat.edit')} value={value} onChange={(event) => setValue(event.currentTarget.value)} autosize minRows={2} maxRows={16} ref={field}
          onKeyDown={(event) => { if (event.key === 'Escape') onCancel(); if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit(); }} />
        <Group gap="sm" justify="flex-end"><Button variant="default" onClick={onCancel}>{t('common.cancel')}</Button><Button type="submit" disabled={value.trim() === ''}>{t('chat.sendEdited')}</Button></Group>
      </Stack>
    </form>
  );
}

interface MessageProps extends Actions {
  chatId: string;
  place: Place;
  name: string;
  /** What is known of the answer beyond the stored message. */
  live: Answer | undefined;
  run: Run | undefined;
  isLast: boolean;
  mayWrite: boolean;
  isBusy: boolean;
}

export function Working({ isFirst }: { isFirst: boolean }) {
  const t = useT();
  return <span className={classes.working} role="status"><Loader size={14} aria-hidden />{t(isFirst ? 'chat.answering' : 'chat.working')}</span>;
}

export function AnswerItems({ chatId, items, isRecent, isWorking }: { chatId: string; items: Item[]; isRecent: boolean; isWorking: boolean }) {
  const last = items.at(-1);
  const isWriting = last?.kind === 'text' && last.isOpen;
  return <div className={classes.answer}><Items items={items} isRecent={isRecent} chatId={chatId} />{isWorking && !isWriting && <Working isFirst={items.length === 0} />}</div>;
}

export const MessageView = memo(function MessageView({ chatId, place, name, live, run, isLast, mayWrite, isBusy, onSwitch, onEdit, onRetry }: MessageProps) {
  const t = useT();
  const { message } = place;
  const [isEditing, setEditing] = useState(false);
  const stored = useMemo(() => readContent(message.content), [message.content]);
  const isUser = message.role === 'user';
  // A tool that a person ran: the card says it all; the text beside it is for the model.
  const hasTool = isUser && stored.some((item) => item.kind === 'tool');
  const own = hasTool ? stored.filter((item) => item.kind !== 'text') : stored;
  const items = live?.items ?? (run?.status === 'error' ? markFailure(own) : own);
  const text = textOf(items);
  const usage = run?.usage ?? live?.usage;
  const isWorking = isLast && isBusy && !isUser && live?.status !== 'awaiting_approval';
  if (isEditing) return <article className={classes.message} aria-label={t('chat.you')}><Edit text={text} onCancel={() => setEditing(false)} onSave={(next) => { setEditing(false); onEdit(message, next); }} /></article>;
  return (
    <article className={classes.message} aria-label={isUser ? t('chat.you') : name} data-last={isLast}>
      {isUser && !hasTool ? <div className={classes.user}><Items items={items} isRecent={isLast} chatId={chatId} /></div> : <AnswerItems chatId={chatId} items={items} isRecent={isLast} isWorking={isWorking} />}
      <div className={classes.actions} data-end={isUser && !hasTool}>
        <Switcher place={place} onSwitch={onSwitch} />
        {text !== '' && <CopyButton text={text} />}
        {mayWrite && isUser && !hasTool && !isBusy && <Tooltip label={t('chat.edit')}><ActionIcon size="sm" aria-label={t('chat.edit')} onClick={() => setEditing(true)}><IconPencil size={14} /></ActionIcon></Tooltip>}
        {mayWrite && message.role === 'assistant' && message.parent_id && !isBusy && <Tooltip label={t('chat.retry')}><ActionIcon size="sm" aria-label={t('chat.retry')} onClick={() => onRetry(message)}><IconRefresh size={14} /></ActionIcon></Tooltip>}
        {message.run_id && <Tooltip label={t('chat.openRun')}><ActionIcon size="sm" component={Link} to="/runs/$id" params={{ id: message.run_id } as never} aria-label={t('chat.openRun')}><IconTimeline size={14} /></ActionIcon></Tooltip>}
        {usage && usage.input_tokens + usage.output_tokens > 0 && <Usage usage={usage} />}
        <span style={{ fontSize: 'var(--mantine-font-size-xs)', color: 'var(--mantine-color-dimmed)', marginLeft: 6 }}><Time at={message.created_at} /></span>
      </div>
    </article>
  );
});
