/**
 * The one live stream of the page. Events patch or invalidate the query cache.
 * A server without `/api/events` is polled instead.
 */
import type { QueryClient } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { connection } from './connection';
import { keys } from './keys';
import type { LiveEvent, LiveTopic } from './shapes';

const TOPICS: LiveTopic[] = ['tool', 'bundle', 'call', 'approval', 'server', 'reset'];
const POLL_MS = 4_000;
const BATCH_MS = 250;

/** What the cache has to read again after an event. */
export function affectedKeys(event: LiveEvent): readonly (readonly unknown[])[] {
  switch (event.topic) {
    case 'tool':
      return [keys.tools];
    case 'bundle':
      return [keys.bundles, keys.tools];
    case 'call':
      return [keys.calls];
    case 'approval':
      return [keys.approvals, keys.calls];
    case 'server':
      return [keys.servers, keys.tools];
    case 'reset':
      return [[]];
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

export function readEvent(topic: LiveTopic, text: string): LiveEvent {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? { ...parsed, topic } : { topic };
  } catch {
    return { topic };
  }
}

/** Opens the stream; returns how to close it. */
export function startLiveUpdates(queries: QueryClient): () => void {
  let source: EventSource | undefined;
  let poll: ReturnType<typeof setInterval> | undefined;
  let batch: ReturnType<typeof setTimeout> | undefined;
  const pending = new Map<string, readonly unknown[]>();

  const flush = () => {
    batch = undefined;
    for (const key of pending.values()) void queries.invalidateQueries({ queryKey: key });
    pending.clear();
  };
  const receive = (event: LiveEvent) => {
    for (const key of affectedKeys(event)) pending.set(JSON.stringify(key), key);
    batch ??= setTimeout(flush, BATCH_MS);
  };
  const startPolling = () => {
    if (poll !== undefined) return;
    setMode('polling');
    poll = setInterval(() => {
      if (document.hidden) return;
      void queries.invalidateQueries({ queryKey: keys.calls });
      void queries.invalidateQueries({ queryKey: keys.approvals });
      void queries.invalidateQueries({ queryKey: keys.servers });
      if (connection.get() === 'lost') void queries.invalidateQueries({ queryKey: keys.session });
    }, POLL_MS);
  };

  const open = () => {
    source = new EventSource('/api/events');
    source.addEventListener('open', () => {
      const wasLost = connection.get() === 'lost';
      connection.report('ok');
      setMode('live');
      if (wasLost) void queries.invalidateQueries();
    });
    for (const topic of TOPICS) {
      source.addEventListener(topic, (message) => receive(readEvent(topic, (message as MessageEvent<string>).data)));
    }
    source.addEventListener('error', () => {
      // The browser gives up after an answer other than 200: no such route, or no session. Otherwise it reconnects.
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
