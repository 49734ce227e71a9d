import { QueryClient } from '@tanstack/react-query';
import { ApiError } from '@/api/error';

export const queries = new QueryClient({
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
