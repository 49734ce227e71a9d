/** Connected applications: reads and writes. */
import { queryOptions } from '@tanstack/react-query';
import { client, data } from './client';
import type { NewApplicationClient } from './types';

export const applicationKeys = {
  all: ['applications'] as const,
  clients: ['applications', 'clients'] as const,
  of: (actor: string) => ['applications', 'of', actor] as const,
};

/** Those of the tenant for admins, the own ones for everybody else. */
export const applicationsQuery = queryOptions({
  queryKey: applicationKeys.all,
  queryFn: async () => (await data(client.GET('/applications', { params: { query: { page_size: 500 } } }))).applications,
});

/** Those of one person: an id, or `me`. */
export const applicationsOfQuery = (actor: string) =>
  queryOptions({
    queryKey: applicationKeys.of(actor),
    queryFn: async () => (await data(client.GET('/applications', { params: { query: { actor, page_size: 500 } } }))).applications,
  });

/** The applications that admins have registered, connected or not. */
export const applicationClientsQuery = queryOptions({
  queryKey: applicationKeys.clients,
  queryFn: async () => (await data(client.GET('/application-clients'))).clients,
});

export const applications = {
  createClient: (application: NewApplicationClient) => data(client.POST('/application-clients', { body: application })),
  /** Disconnects it from everybody, too. */
  removeClient: (id: string) => data(client.DELETE('/application-clients/{id}', { params: { path: { id } } })),
  disconnect: (application: string) => data(client.DELETE('/applications/{id}', { params: { path: { id: application } } })),
};
