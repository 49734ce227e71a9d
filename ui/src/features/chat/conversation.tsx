/** One chat: the branch that is shown, the answer that is being written, and the composer. */
import { Button, Stack } from '@mantine/core';
import { IconArrowDown, IconMessages } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { chatKeys, chats, messagesQuery } from '@/api/chats';
import { isFinal, type Chat, type ChatMessage } from '@/api/run-types';
import { relatedRunsQuery } from '@/api/runs';
import { useMay } from '@/api/session';
import { workspaceKeys } from '@/api/workspaces';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel, PermissionNote } from '@/parts/basics';
import { useDraft } from '@/parts/draft';
import { notifyError, useAction } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { Loading } from '@/parts/page';
import { branch, leafOf } from './branch';
import classes from './chat.module.css';
import { ChatComposer, EMPTY_DRAFT, type Draft } from './composer';
import { takeFirst } from './first';
import { AnswerItems, MessageView } from './message';
import { useIsMine } from './rights';
import { useAnswer } from './use-answer';

const NEAR_PX = 80;
/** In case that the event of another node is missing. */
const FALLBACK_MS = 15_000;

/** Keeps the end in sight while it grows, unless the reader has scrolled away from it. */
function useFollow(content: unknown) {
  const box = useRef<HTMLDivElement>(null);
  const [isAway, setAway] = useState(false);
  const away = useRef(false);
  const onScroll = useCallback(() => {
    const element = box.current;
    if (!element) return;
    away.current = element.scrollHeight - element.scrollTop - element.clientHeight > NEAR_PX;
    setAway(away.current);
  }, []);
  const toEnd = useCallback(() => {
    const element = box.current;
    if (element) element.scrollTop = element.scrollHeight;
    away.current = false;
    setAway(false);
  }, []);
  useLayoutEffect(() => {
    if (!away.current) toEnd();
    // With each change of the content.
    // oxlint-disable-next-line react/exhaustive-effect-dependencies
  }, [content, toEnd]);
  // Results and images load later and push the end down.
  useEffect(() => {
    const inner = box.current?.firstElementChild;
    if (!inner || typeof ResizeObserver === 'undefined') return;
    const observer = new ResizeObserver(() => { if (!away.current) toEnd(); });
    observer.observe(inner);
    return () => observer.disconnect();
  }, [toEnd]);
  return { box, isAway, onScroll, toEnd };
}

/** What is sent: the text, and the files that were added with it. */
function messageContent(draft: Draft): unknown {
  const text = draft.text.trim();
  return draft.files.length === 0 ? text : [{ type: 'text', text }, ...draft.files.map((path) => ({ type: 'file', path }))];
}

export function Conversation({ chat }: { chat: Chat }) {
  const t = useT();
  const queries = useQueryClient();
  const isMine = useIsMine(chat);
  const mayWrite = useMay('caller') && isMine;
  const messages = useQuery(messagesQuery(chat.id));
  const runs = useQuery(relatedRunsQuery({ chat_id: chat.id })).data;
  const draft = useDraft<Draft>(`chat.${chat.id}`, EMPTY_DRAFT);
  const all = messages.data;
  const places = useMemo(() => branch(all ?? [], chat.active_leaf), [all, chat.active_leaf]);
  const leaf = places.at(-1)?.message;
  const answer = useAnswer(chat.id, leaf);
  const { live, isBusy, send, retry, stop } = answer;

  // Somebody else's answer: seen when it is complete.
  const isUnfinished = leaf?.role === 'assistant' && Boolean(leaf.run_id) && Array.isArray(leaf.content) && leaf.content.length === 0 && answer.isHidden;
  useEffect(() => {
    if (!isUnfinished) return;
    const timer = setInterval(() => void queries.invalidateQueries({ queryKey: chatKeys.messages(chat.id) }), FALLBACK_MS);
    return () => clearInterval(timer);
  }, [isUnfinished, queries, chat.id]);

  const { box, isAway, onScroll, toEnd } = useFollow(live ?? all);
  // What somebody just wrote is to be seen.
  const written = leaf?.role === 'user' ? leaf.id : undefined;
  useEffect(() => { if (written !== undefined) toEnd(); }, [written, toEnd]);
  const { clear, value } = draft;
  const submit = useCallback(() => {
    toEnd();
    void send({ content: messageContent(value) }, clear);
  }, [send, value, clear, toEnd]);
  // A new chat starts with the message that was written before it existed.
  const { set } = draft;
  useEffect(() => {
    const timer = setTimeout(() => {
      const first = takeFirst(chat.id);
      if (first === undefined) return;
      // Kept as a draft until it is stored.
      set({ text: first, files: [] });
      void send({ content: first }, clear);
    });
    return () => clearTimeout(timer);
  }, [chat.id, send, set, clear]);

  const move = useAction((target: string) => chats.patch(chat.id, { active_leaf: target }), { invalidates: [chatKeys.one(chat.id), workspaceKeys.all] });
  const { mutate: moveTo } = move;
  const onSwitch = useCallback((sibling: string) => {
    const target = leafOf(queries.getQueryData<ChatMessage[]>(chatKeys.messages(chat.id)) ?? [], sibling);
    // Shown at once; the owner's choice is stored.
    queries.setQueryData<Chat>(chatKeys.one(chat.id), (known) => known && { ...known, active_leaf: target });
    if (mayWrite) moveTo(target);
  }, [queries, chat.id, mayWrite, moveTo]);
  const onEdit = useCallback((message: ChatMessage, text: string) => {
    // `null` is the start of the chat; without a parent, the message would follow the last one.
    void send({ content: text, parent_id: message.parent_id }, () => undefined);
  }, [send]);
  const onRetry = useCallback((message: ChatMessage) => { if (message.parent_id) void retry(message.parent_id); }, [retry]);
  const onStop = useCallback(() => { void stop().catch((error: unknown) => notifyError(error, t('common.failed'))); }, [stop, t]);

  if (messages.error) return <Stack p="xl"><ErrorPanel error={messages.error} onRetry={() => void messages.refetch()} /></Stack>;
  if (!all) return <Loading />;
  const name = chat.agent ? visibleText(chat.agent) : t('chat.assistant');
  const isShown = live !== undefined && places.some(({ message }) => message.run_id !== undefined && message.run_id === live.runId);
  const liveFor = (message: ChatMessage) => (live && message.run_id && live.runId === message.run_id && (!isFinal(live.status) || (Array.isArray(message.content) && message.content.length === 0)) ? live : undefined);
  return (
    <>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the box scrolls */}
      <div ref={box} className={classes.log} role="log" aria-label={t('chat.conversation')} aria-busy={isBusy} tabIndex={0} onScroll={onScroll}>
        <div className={classes.column}>
          {places.length === 0 && !isBusy && <EmptyState icon={IconMessages} title={t('chat.emptyTitle')}>{t(mayWrite ? 'chat.emptyHint' : 'chat.emptyRead')}</EmptyState>}
          {places.map((place, index) => (
            <MessageView key={place.message.id} chatId={chat.id} place={place} name={name} live={liveFor(place.message)} run={runs?.find((run) => run.id === place.message.run_id)} isLast={index === places.length - 1} mayWrite={mayWrite} isBusy={isBusy} onSwitch={onSwitch} onEdit={onEdit} onRetry={onRetry} />
          ))}
          {/* The stored message of the answer is not read yet. */}
          {isBusy && !isShown && leaf?.role !== 'assistant' && !answer.isSending && <article className={classes.message} aria-label={name}><AnswerItems chatId={chat.id} items={live?.items ?? []} isRecent isWorking={live?.status !== 'awaiting_approval'} /></article>}
        </div>
      </div>
      <div className={classes.composer}>
        {isAway && <Button className={classes.jump} variant="default" size="compact-xs" leftSection={<IconArrowDown size={13} />} onClick={toEnd}>{t('chat.toEnd')}</Button>}
        <div className={classes.composerInner}>
          {Boolean(answer.error) && <ErrorPanel error={answer.error} title={t('chat.notSent')} onRetry={answer.clearError} />}
          {mayWrite ? <ChatComposer chatId={chat.id} draft={value} onDraft={draft.set} onSend={submit} isSending={answer.isSending} onStop={isBusy && !answer.isSending ? onStop : undefined} placeholder={t(chat.agent ? 'chat.placeholder' : 'chat.placeholderNote', { name })} />
            : isMine ? <PermissionNote needs="caller" /> : <span style={{ color: 'var(--mantine-color-dimmed)', fontSize: 'var(--mantine-font-size-sm)' }}>{t('chat.readOnly', { name: visibleText(chat.owner_name) })}</span>}
        </div>
      </div>
    </>
  );
}
