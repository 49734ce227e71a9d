/**
 * The one live stream of the page: each event says which data to read again. Where a proxy does not let the stream
 * through, the page polls.
 */
import type { QueryClient } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { agentKeys } from './agents';
import { artifactKeys } from './artifacts';
import { chatKeys } from './chats';
import { connection } from './connection';
import { keys } from './keys';
import { peopleKeys } from './people';
import { pipelineKeys } from './retrieval';
import { runKeys } from './runs';
import type { LiveTopic } from './types';
import { toolsetKeys } from './toolsets';
import { workspaceKeys } from './workspaces';

const TOPICS: LiveTopic[] = ['tool', 'bundle', 'call', 'approval', 'server', 'agent', 'run', 'chat', 'pipeline', 'document', 'artifact', 'member', 'reset'];
/** What is read again while the stream cannot be opened. */
const POLLED = [keys.calls, keys.approvals, keys.servers, runKeys.all, chatKeys.all, agentKeys.all, pipelineKeys.all, artifactKeys.all, peopleKeys.all];
const POLL_MS = 4_000;
const BATCH_MS = 250;
/** Lists are read again at most this often, however many calls arrive. */
const MIN_GAP_MS = 1_500;

/** What the cache has to read again after an event; `id` is what it is about. */
export function affectedKeys(topic: LiveTopic, id?: string): readonly (readonly unknown[])[] {
  switch (topic) {
    case 'ready':
      return [];
    case 'tool':
      return [keys.tools, keys.stats];
    case 'bundle':
      return [keys.bundles, keys.tools, toolsetKeys.all];
    case 'call':
      return [keys.calls, keys.stats, workspaceKeys.all, runKeys.all];
    case 'approval':
      return [keys.approvals, keys.calls, keys.stats, runKeys.all];
    case 'server':
      return [keys.servers, keys.tools, keys.stats];
    case 'agent':
      return [agentKeys.all];
    case 'run':
      return [runKeys.all];
    case 'chat':
      // Only this one: a reader of another chat may look at a branch of their own choice. Its runs go with it.
      return id === undefined ? [chatKeys.all, runKeys.all] : [chatKeys.lists, chatKeys.one(id), runKeys.all];
    case 'pipeline':
    case 'document':
      return [pipelineKeys.all];
    case 'artifact':
      return [artifactKeys.all];
    case 'member':
      return [peopleKeys.all, keys.tokens];
    case 'reset':
      return [[]];
  }
}

/** The id in the data of an event, if there is one. */
function idOf(event: Event): string | undefined {
  try {
    const { id } = JSON.parse((event as MessageEvent<string>).data) as { id?: unknown };
    return typeof id === 'string' ? id : undefined;
  } catch {
    return undefined;
  }
}

let mode: 'connecting' | 'live' | 'polling' = 'connecting';
const modeListeners = new Set<() => void>();

function setMode(next: typeof mode) {
  mode = next;
  for (const listener of modeListeners) listener();
}

/** How the page learns of changes: by the stream, or by polling. */
export function useLiveMode(): typeof mode {
  return useSyncExternalStore(
    (listener) => {
      modeListeners.add(listener);
      return () => void modeListeners.delete(listener);
    },
    () => mode,
  );
}

/** Opens the stream; returns how to close it. */
export function startLiveUpdates(queries: QueryClient): () => void {
  let source: EventSource | undefined;
  let poll: ReturnType<typeof setInterval> | undefined;
  let batch: ReturnType<typeof setTimeout> | undefined;
  const pending = new Map<string, readonly unknown[]>();

  let flushed = 0;
  const flush = () => {
    batch = undefined;
    flushed = Date.now();
    for (const key of pending.values()) void queries.invalidateQueries({ queryKey: key });
    pending.clear();
  };
  const receive = (topic: LiveTopic, id: string | undefined) => {
    for (const key of affectedKeys(topic, id)) pending.set(JSON.stringify(key), key);
    if (pending.size > 0) batch ??= setTimeout(flush, Math.max(BATCH_MS, flushed + MIN_GAP_MS - Date.now()));
  };
  const startPolling = () => {
    if (poll !== undefined) return;
    setMode('polling');
    poll = setInterval(() => {
      if (document.hidden) return;
      for (const queryKey of POLLED) void queries.invalidateQueries({ queryKey });
      if (connection.get() === 'lost') void queries.invalidateQueries({ queryKey: keys.session });
      if (connection.get() !== 'expired' && source?.readyState === EventSource.CLOSED) open();
    }, POLL_MS);
  };

  const open = () => {
    source = new EventSource('/api/events');
    source.addEventListener('open', () => {
      const wasLost = connection.get() === 'lost';
      connection.report('ok');
      setMode('live');
      clearInterval(poll);
      poll = undefined;
      if (wasLost) void queries.invalidateQueries();
    });
    for (const topic of TOPICS) {
      source.addEventListener(topic, (event) => receive(topic, idOf(event)));
    }
    source.addEventListener('error', () => {
      // The browser gives up after an answer other than 200: a gateway error, or no session. Otherwise it reconnects.
      if (source?.readyState === EventSource.CLOSED) startPolling();
      else void queries.invalidateQueries({ queryKey: keys.session });
    });
  };
  open();

  return () => {
    source?.close();
    clearInterval(poll);
    clearTimeout(batch);
  };
}
