/** Whether the server answers and the session is valid; every request reports here, the banner reads it. */
import { useSyncExternalStore } from 'react';

export type ConnectionState = 'ok' | 'lost' | 'expired';

let state: ConnectionState = 'ok';
const listeners = new Set<() => void>();

export const connection = {
  get: (): ConnectionState => state,
  report(next: ConnectionState) {
    if (next === state) return;
    state = next;
    for (const listener of listeners) listener();
  },
  subscribe(listener: () => void) {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  },
};

export function useConnection(): ConnectionState {
  return useSyncExternalStore(connection.subscribe, connection.get);
}
