/** The answer that is being written: streamed after a message, or followed again after a reload. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { chatKeys, chats, type AnswerEvent, type NewMessage } from '@/api/chats';
import { keys } from '@/api/keys';
import { isFinal, type Chat, type ChatMessage } from '@/api/run-types';
import { runKeys, runQuery, runs } from '@/api/runs';
import { workspaceKeys } from '@/api/workspaces';
import { emptyAnswer, isAnswering, reduceAnswer, type Answer } from './answer';

const PUBLISH_MS = 50;
const RECONNECT_MS = 1_500;

const isAbort = (error: unknown) => error instanceof DOMException && error.name === 'AbortError';

/** Shows the state of an answer at most every 50 ms, however many pieces arrive. */
function usePublished() {
  const [shown, setShown] = useState<Answer>();
  const latest = useRef<Answer>(undefined);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const publish = useCallback((next: Answer | undefined, isUrgent = false) => {
    latest.current = next;
    if (isUrgent) {
      clearTimeout(timer.current);
      timer.current = undefined;
      setShown(next);
    } else {
      timer.current ??= setTimeout(() => {
        timer.current = undefined;
        setShown(latest.current);
      }, PUBLISH_MS);
    }
  }, []);
  return { shown, publish };
}

export function useAnswer(chatId: string, leaf: ChatMessage | undefined) {
  const queries = useQueryClient();
  const { shown, publish } = usePublished();
  const control = useRef<AbortController>(undefined);
  const [isStreaming, setStreaming] = useState(false);
  const [isSending, setSending] = useState(false);
  const [error, setError] = useState<unknown>();
  const attachedAt = useRef(0);
  useEffect(() => () => control.current?.abort(), []);

  const refresh = useCallback(() => {
    for (const queryKey of [chatKeys.one(chatId), chatKeys.lists, runKeys.all]) void queries.invalidateQueries({ queryKey });
  }, [queries, chatId]);

  /** Runs one stream at a time; its events build an answer from the beginning. */
  const follow = useCallback(async (open: (signal: AbortSignal, onEvent: (event: AnswerEvent) => void) => Promise<void>, runId: string | undefined, onMessage?: (message: ChatMessage) => void) => {
    control.current?.abort();
    const abort = new AbortController();
    control.current = abort;
    let answer = emptyAnswer(runId);
    setStreaming(true);
    try {
      await open(abort.signal, (event) => {
        if (abort.signal.aborted) return;
        if (event.type === 'message') {
          onMessage?.(event.message);
          return;
        }
        answer = reduceAnswer(answer, event);
        publish(answer, event.type === 'end');
        // It ended as it should: what comes next is a new beginning.
        if (event.type === 'end') attachedAt.current = 0;
        if (event.type === 'start') refresh();
        if (event.type === 'tool_use' && event.status !== 'running') void queries.invalidateQueries({ queryKey: workspaceKeys.all });
        if (event.type === 'approval_request' || event.type === 'approval_decided') void queries.invalidateQueries({ queryKey: keys.approvals });
      });
    } finally {
      if (control.current === abort) {
        control.current = undefined;
        setStreaming(false);
        refresh();
      }
    }
  }, [publish, refresh, queries]);

  // The run of the last message: after a reload, in another tab, or after somebody has decided.
  const runId = leaf?.role === 'assistant' ? (leaf.run_id ?? undefined) : undefined;
  const { data: run, error: runError } = useQuery({ ...runQuery(runId ?? ''), enabled: runId !== undefined });
  const known = shown?.runId === runId ? shown : undefined;
  const isDone = known !== undefined && isFinal(known.status);
  const isWaiting = run?.status === 'awaiting_approval' && known?.status === 'awaiting_approval';
  const attach = run !== undefined && !isFinal(run.status) && !isDone && !isWaiting && !isStreaming && !isSending ? run.id : undefined;
  useEffect(() => {
    if (attach === undefined) return;
    // A server that closes the stream at once is not asked again at once.
    const timer = setTimeout(() => {
      attachedAt.current = Date.now();
      void follow((signal, onEvent) => runs.follow(attach, signal, onEvent), attach).catch(() => undefined);
    }, Math.max(0, attachedAt.current + RECONNECT_MS - Date.now()));
    return () => clearTimeout(timer);
  }, [attach, follow]);

  // It went on, and ended, while nobody followed it.
  const isEmpty = Array.isArray(leaf?.content) && leaf.content.length === 0;
  const isMissed = run !== undefined && isFinal(run.status) && !isStreaming && !isDone && (known !== undefined || isEmpty);
  useEffect(() => { if (isMissed) refresh(); }, [isMissed, refresh]);

  const store = useCallback((message: ChatMessage) => {
    setSending(false);
    queries.setQueryData<ChatMessage[]>(chatKeys.messages(chatId), (all) => (all === undefined || all.some((each) => each.id === message.id) ? all : [...all, message]));
    queries.setQueryData<Chat>(chatKeys.one(chatId), (chat) => chat && { ...chat, active_leaf: message.id });
  }, [queries, chatId]);

  const start = useCallback(async (open: (signal: AbortSignal, onEvent: (event: AnswerEvent) => void) => Promise<void>, onStored?: () => void): Promise<boolean> => {
    setError(undefined);
    setSending(true);
    publish(undefined, true);
    let isStored = false;
    try {
      await follow(open, undefined, (message) => { isStored = true; store(message); onStored?.(); });
      return true;
    } catch (failure) {
      // An answer that has begun goes on without this connection, and is followed again.
      if (!isStored && !isAbort(failure)) setError(failure);
      return isStored;
    } finally {
      setSending(false);
    }
  }, [follow, publish, store]);

  const send = useCallback((message: NewMessage, onStored: () => void) => start((signal, onEvent) => chats.send(chatId, message, signal, onEvent), onStored), [start, chatId]);
  const retry = useCallback((question: string) => {
    queries.setQueryData<Chat>(chatKeys.one(chatId), (chat) => chat && { ...chat, active_leaf: question });
    return start((signal, onEvent) => chats.retry(chatId, question, signal, onEvent));
  }, [start, queries, chatId]);
  const stop = useCallback(async () => {
    setError(undefined);
    try {
      await chats.stop(chatId);
    } catch (failure) {
      setError(failure);
    } finally {
      refresh();
    }
  }, [chatId, refresh]);
  const clearError = useCallback(() => setError(undefined), []);

  const isBusy = isSending || isStreaming || isAnswering(known) || (run !== undefined && !isFinal(run.status) && !isDone);
  return useMemo(() => ({
    live: isMissed ? undefined : shown, run, isBusy, isSending, isWaiting: run?.status === 'awaiting_approval' && !isStreaming, error, clearError, send, retry, stop,
    // Without the right to read the run, its answer is known from the message alone.
    isHidden: runError !== null && runId !== undefined,
  }), [shown, isMissed, run, isBusy, isSending, isStreaming, error, clearError, send, retry, stop, runError, runId]);
}
