/** Unsaved edits, kept across a reload, a lost session and a restart of the server. */
import { useCallback, useState } from 'react';

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
  const [restored, setRestored] = useState(draft !== undefined);
  const set = useCallback((value: T) => {
    const next = { at: Date.now(), value };
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
    setDraft(undefined);
    setRestored(false);
  }, [key]);
  return { value: draft?.value ?? initial, isDirty: draft !== undefined, restoredAt: restored ? draft?.at : undefined, set, clear };
}
