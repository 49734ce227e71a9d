import { QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiError } from '@/api/error';

/** Whether a failure says nothing about the data itself: no server, no session, too many requests, a defect. */
function isPassing(error: Error): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status === 401 || error.status === 429 || error.status >= 500);
}

/**
 * A page keeps what it shows, and the edits in it, if reading its data again fails: the banner says so, and the data stays
 * marked for another read. What is gone or forbidden meanwhile is shown as an error.
 */
const cache = new QueryCache({
  onError: (error, query) => {
    if (query.state.data !== undefined && isPassing(error)) query.setState({ status: 'success', error: null });
  },
});

export const queries = new QueryClient({
  queryCache: cache,
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // A request that the server rejected fails again; only an unreachable server is worth another try.
      retry: (count, error) => error instanceof ApiError && (error.status === 0 || error.status >= 502) && count < 2,
      refetchOnWindowFocus: true,
      // Without a network, requests fail and the banner says so, instead of waiting silently.
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
});
