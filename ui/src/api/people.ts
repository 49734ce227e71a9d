/** People, service accounts and groups: reads and writes. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { client, data } from './client';
import { keys } from './keys';
import type { ActorPatch, ActorStatus, GroupPatch, NewGroup, NewPerson, NewServiceAccount } from './types';

/** One word for all of them: a group changes the rights of its members, a new name shows in groups and responsibilities. */
export const peopleKeys = {
  all: ['people'] as const,
  list: (filters: unknown) => ['people', 'list', filters] as const,
  found: (q: string) => ['people', 'found', q] as const,
  one: (id: string) => ['people', 'one', id] as const,
  serviceAccounts: ['people', 'service-accounts'] as const,
  groups: ['people', 'groups'] as const,
};

const PAGE_SIZE = 100;
const FOUND_SIZE = 20;
const id = (value: string) => ({ params: { path: { id: value } } });

export interface PeopleFilters {
  q?: string;
  status?: ActorStatus;
}

export const peopleQuery = (filters: PeopleFilters) =>
  infiniteQueryOptions({
    queryKey: peopleKeys.list(filters),
    queryFn: ({ pageParam, signal }) =>
      data(client.GET('/people', { params: { query: { ...filters, page_size: PAGE_SIZE, ...(pageParam === null ? {} : { page_token: pageParam }) } }, signal })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_page_token,
    placeholderData: keepPreviousData,
  });

/** The first people that a text finds, to choose one of them. */
export const foundPeopleQuery = (q: string) =>
  queryOptions({
    queryKey: peopleKeys.found(q),
    queryFn: async ({ signal }) => (await data(client.GET('/people', { params: { query: { page_size: FOUND_SIZE, ...(q ? { q } : {}) } }, signal }))).people,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    retry: false,
  });

export const personQuery = (person: string) =>
  queryOptions({ queryKey: peopleKeys.one(person), queryFn: () => data(client.GET('/people/{id}', id(person))), retry: false });

export const serviceAccountsQuery = queryOptions({
  queryKey: peopleKeys.serviceAccounts,
  queryFn: async () => (await data(client.GET('/service-accounts', { params: { query: { page_size: 500 } } }))).service_accounts,
});

export const groupsQuery = queryOptions({
  queryKey: peopleKeys.groups,
  queryFn: async () => (await data(client.GET('/groups', { params: { query: { page_size: 500 } } }))).groups,
});

/** The tokens of a person or a service account. */
export const tokensOfQuery = (actor: string) =>
  queryOptions({
    queryKey: [...keys.tokens, 'of', actor],
    queryFn: async () => (await data(client.GET('/tokens', { params: { query: { actor, page_size: 500 } } }))).tokens,
  });

export const people = {
  invite: (person: NewPerson) => data(client.POST('/people', { body: person })),
  patch: (person: string, patch: ActorPatch) => data(client.PATCH('/people/{id}', { ...id(person), body: patch })),
  remove: (person: string) => data(client.DELETE('/people/{id}', id(person))),
  newLink: (person: string) => data(client.POST('/people/{id}/invitation', id(person))),
  handOver: (person: string, to: string) => data(client.POST('/people/{id}/hand-over', { ...id(person), body: { to } })),
};

export const serviceAccounts = {
  create: (account: NewServiceAccount) => data(client.POST('/service-accounts', { body: account })),
  patch: (account: string, patch: ActorPatch) => data(client.PATCH('/service-accounts/{id}', { ...id(account), body: patch })),
  remove: (account: string) => data(client.DELETE('/service-accounts/{id}', id(account))),
};

export const groups = {
  create: (group: NewGroup) => data(client.POST('/groups', { body: group })),
  patch: (group: string, patch: GroupPatch) => data(client.PATCH('/groups/{id}', { ...id(group), body: patch })),
  remove: (group: string) => data(client.DELETE('/groups/{id}', id(group))),
};
