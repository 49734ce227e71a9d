/**
 * Parts of the page that load when they are needed. A part that cannot be loaded, because the server is gone, says so and
 * loads when the server is back; `React.lazy` would fail for good.
 */
import { Stack } from '@mantine/core';
import { use, useEffect, useState, type ComponentType, type ReactNode } from 'react';
import { connection, useConnection } from '@/api/connection';
import { ApiError } from '@/api/error';
import { useT } from '@/i18n';
import { ErrorPanel } from './basics';

type Loaded<P> = { part: ComponentType<P> } | { error: Error };
export type LazyPart<P> = ((props: P) => ReactNode) & { preload: () => Promise<void> };

const RELOADED = 'haft.reloaded';
const RELOAD_GAP_MS = 30_000;

/** Whether the page may load itself anew: a page that fails at once again would do it for ever. */
export function mayReload(now: number, store: Pick<Storage, 'getItem' | 'setItem'>): boolean {
  const last = Number(store.getItem(RELOADED) ?? 0);
  if (now - last < RELOAD_GAP_MS) return false;
  store.setItem(RELOADED, String(now));
  return true;
}

/** After a failure: is the server gone, or has it another version of the page? */
async function diagnose(cause: unknown): Promise<Error> {
  const isUp = await fetch('/healthz', { cache: 'no-store' }).then((answer) => answer.ok, () => false);
  if (!isUp) {
    connection.report('lost');
    return new ApiError(0, undefined, cause instanceof Error ? cause.message : String(cause));
  }
  return cause instanceof Error ? cause : new Error(String(cause));
}

function LoadFailed({ error, onRetry }: { error: Error; onRetry: () => void }) {
  const t = useT();
  const state = useConnection();
  useEffect(() => {
    if (error instanceof ApiError) {
      if (state === 'ok') onRetry();
      return;
    }
    // The server runs: it has a newer page, or the browser remembers the failure for as long as the document lives.
    if (mayReload(Date.now(), sessionStorage)) window.location.reload();
  }, [state, error, onRetry]);
  return <Stack p="xl"><ErrorPanel error={error} title={t('error.load')} onRetry={onRetry} /></Stack>;
}

export function lazyPart<P extends object>(load: () => Promise<ComponentType<P>>): LazyPart<P> {
  let attempt: Promise<Loaded<P>> | undefined;
  const start = () => {
    if (attempt) return attempt;
    const started: Promise<Loaded<P>> = load().then((part) => ({ part }), async (error: unknown) => ({ error: await diagnose(error) }));
    // With this mark, React renders a part that has been loaded before without waiting for it.
    void started.then((value) => Object.assign(started, { status: 'fulfilled', value }));
    attempt = started;
    return started;
  };
  function Part(props: P) {
    const [, setTries] = useState(0);
    const result = use(start());
    if ('error' in result) {
      const retry = () => {
        attempt = undefined;
        setTries((tries) => tries + 1);
      };
      return <LoadFailed error={result.error} onRetry={retry} />;
    }
    const Content = result.part;
    return <Content {...props} />;
  }
  // A failed attempt is forgotten, so that the next one tries again.
  Part.preload = async () => {
    if ('error' in (await start())) attempt = undefined;
  };
  return Part;
}
