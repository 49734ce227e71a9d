/** Unsaved edits, kept across a reload, a lost session and a restart of the server. */
import { useCallback, useRef, useState } from 'react';

interface Stored<T> {
  at: number;
  value: T;
}

const PREFIX = 'haft.draft.';
const MAX_AGE_MS = 7 * 24 * 3600 * 1000;

function read<T>(key: string): Stored<T> | undefined {
  try {
    const stored = JSON.parse(localStorage.getItem(PREFIX + key) ?? 'null') as Stored<T> | null;
    return stored !== null && Date.now() - stored.at < MAX_AGE_MS ? stored : undefined;
  } catch {
    return undefined;
  }
}

export function useDraft<T>(key: string, initial: T) {
  const [draft, setDraft] = useState<Stored<T> | undefined>(() => read<T>(key));
  const latest = useRef(draft);
  const [restored, setRestored] = useState(draft !== undefined);
  const set = useCallback((value: T) => {
    const next = { at: Date.now(), value };
    latest.current = next;
    setDraft(next);
    // At once: the page may be closed, or read its data again, before a timer ends.
    try {
      localStorage.setItem(PREFIX + key, JSON.stringify(next));
    } catch {
      // The store of the browser is full or switched off: the edit itself is not affected.
    }
  }, [key]);
  const clear = useCallback(() => {
    localStorage.removeItem(PREFIX + key);
    latest.current = undefined;
    setDraft(undefined);
    setRestored(false);
  }, [key]);
  /** Changes a draft that is there; `undefined` ends it. */
  const update = useCallback((change: (value: T) => T | undefined) => {
    const next = latest.current && change(latest.current.value);
    if (next !== undefined) set(next);
    else clear();
  }, [set, clear]);
  return { value: draft?.value ?? initial, isDirty: draft !== undefined, restoredAt: restored ? draft?.at : undefined, set, update, clear };
}
