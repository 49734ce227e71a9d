/** Issuers of OpenID Connect, and what a login would get. */
import { queryOptions } from '@tanstack/react-query';
import { client, data } from './client';
import type { JsonObject } from './types';

export const issuersQuery = queryOptions({
  queryKey: ['sign-on'],
  queryFn: async ({ signal }) => (await data(client.GET('/sign-on', { signal }))).issuers,
});

export const signOn = {
  test: (issuer: string, claims: JsonObject) => data(client.POST('/sign-on/test', { body: { issuer, claims } })),
};
