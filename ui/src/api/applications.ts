/** Connected applications: reads and writes. */
import { queryOptions } from '@tanstack/react-query';
import { client, data } from './client';

export const applicationKeys = {
  all: ['applications'] as const,
};

/** Those of the tenant for admins, the own ones for everybody else. */
export const applicationsQuery = queryOptions({
  queryKey: applicationKeys.all,
  queryFn: async () => (await data(client.GET('/applications', { params: { query: { page_size: 500 } } }))).applications,
});

export const applications = {
  disconnect: (application: string) => data(client.DELETE('/applications/{id}', { params: { path: { id: application } } })),
};
