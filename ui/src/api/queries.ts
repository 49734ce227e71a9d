/** Reads: one `queryOptions` per resource. Components call `useQuery(toolQuery(ref))`. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { body, client, data } from './client';
import { ApiError } from './error';
import { getCall } from './invoke';
import { keys } from './keys';
import type { ToolSummary, ToolSummaryList } from './types';

/** A tool without its schemas and implementation: what a list of 10,000 rows keeps in memory. */
export type ToolRow = ToolSummary;

/** The reference under which a tool is found whatever else has its name. */
export function toolRef(tool: { id?: string | null; bundle: string; name: string; version: string }): string {
  return `${tool.bundle}:${tool.name}@${tool.version}`;
}

const PAGE_SIZE = 5000;

export interface ToolPage {
  tools: ToolRow[];
  total: number;
  failed: number;
  next: string | null;
}

async function toolPage(token: string | null, signal: AbortSignal): Promise<ToolPage> {
  const query = { fields: 'summary', include_disabled: true, page_size: PAGE_SIZE, ...(token === null ? {} : { page_token: token }) };
  const page = (await data(client.GET('/tools', { params: { query }, signal }))) as ToolSummaryList;
  return { tools: page.tools, total: page.total, failed: page.failed, next: page.next_page_token };
}

/** All tools, page after page; the list shows the first page while the others load. */
export const toolListQuery = infiniteQueryOptions({
  queryKey: keys.toolList,
  queryFn: ({ pageParam, signal }) => toolPage(pageParam, signal),
  initialPageParam: null as string | null,
  getNextPageParam: (page: ToolPage) => page.next,
  // Comparing 10,000 rows with the former ones takes longer than rendering the visible ones.
  structuralSharing: false,
  staleTime: 30_000,
});

/** The tools of a bundle. */
export const bundleToolsQuery = (slug: string) =>
  queryOptions({
    queryKey: [...keys.tools, 'of', slug],
    queryFn: async () =>
      (await data(client.GET('/tools', { params: { query: { fields: 'summary', bundle_ids: slug as never, include_disabled: true, page_size: 500 } } }))) as ToolSummaryList,
    retry: false,
  });

export const sessionQuery = queryOptions({
  queryKey: keys.session,
  queryFn: () => data(client.GET('/session')),
  staleTime: 60_000,
  retry: false,
});

const ref = (value: string) => ({ params: { path: { ref: value } } });

export const toolQuery = (id: string) =>
  queryOptions({ queryKey: keys.tool(id), queryFn: () => data(client.GET('/tools/{ref}', ref(id))), retry: false });

export const sourceQuery = (id: string, format?: string) =>
  queryOptions({
    queryKey: keys.toolPart(id, 'source', format),
    queryFn: () =>
      data(client.GET('/tools/{ref}/source', { params: { path: { ref: id }, query: format ? { format: format as never } : {} } })),
    retry: false,
  });

export const revisionsQuery = (id: string) =>
  queryOptions({
    queryKey: keys.toolPart(id, 'revisions'),
    queryFn: () => data(client.GET('/tools/{ref}/revisions', ref(id))),
  });

export const revisionDiffQuery = (id: string, from: number, to: number) =>
  queryOptions({
    queryKey: keys.toolPart(id, 'diff', [from, to]),
    queryFn: () => data(client.GET('/tools/{ref}/diff', { params: { path: { ref: id }, query: { from, to } } })),
    enabled: from !== to,
  });

export const definitionQuery = (id: string, format: string) =>
  queryOptions({
    queryKey: keys.toolPart(id, 'definition', format),
    queryFn: () => body(client.GET('/tools/{ref}/definition', { params: { path: { ref: id }, query: { format: format as never } } })),
  });

export const definitionsQuery = (format: string, bundle?: string) =>
  queryOptions({
    queryKey: ['tools', 'definitions', format, bundle],
    queryFn: () =>
      body(client.GET('/tools/definitions/all', { params: { query: { format: format as never, ...(bundle ? { bundle } : {}) } } })),
    staleTime: 60_000,
  });

export const usageQuery = (id: string) =>
  queryOptions({
    queryKey: keys.toolPart(id, 'usage'),
    queryFn: () => data(client.GET('/tools/{ref}/usage', ref(id))),
  });

export const examplesQuery = (id: string) =>
  queryOptions({
    queryKey: keys.toolPart(id, 'examples'),
    queryFn: async () => (await data(client.GET('/tools/{ref}/examples', ref(id)))).examples,
    staleTime: 60_000,
    retry: false,
  });

export const limitsQuery = queryOptions({
  queryKey: keys.limits,
  queryFn: () => data(client.GET('/limits')),
  refetchInterval: 5_000,
});

export const bundlesQuery = queryOptions({
  queryKey: keys.bundles,
  queryFn: async () =>
    (await data(client.GET('/tools/bundles', { params: { query: { include_disabled: true, page_size: 500 } } }))).bundles,
  staleTime: 30_000,
});

export interface CallFilters {
  tool?: string;
  status?: string;
  caller?: string;
  actor?: string;
  error_code?: string;
  since?: string;
  until?: string;
  q?: string;
  surface?: string;
  parent_id?: string;
  text?: string;
}

export const callListQuery = (filters: CallFilters, pageSize = 100) =>
  infiniteQueryOptions({
    queryKey: keys.callList({ ...filters, pageSize }),
    queryFn: ({ pageParam, signal }) =>
      data(
        client.GET('/calls', {
          params: { query: { ...(filters as object), page_size: pageSize, ...(pageParam === null ? {} : { page_token: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_page_token,
    placeholderData: keepPreviousData,
  });

export const callQuery = (id: string) => queryOptions({ queryKey: keys.call(id), queryFn: () => getCall(id), retry: false });

/** Counts of calls over time. */
export const histogramQuery = (filters: CallFilters, from: number, to: number, buckets: number) =>
  queryOptions({
    queryKey: ['calls', 'histogram', filters, Math.round(from / 60_000), Math.round(to / 60_000), buckets],
    queryFn: ({ signal }) => {
      const query = { ...filters, since: new Date(from).toISOString(), until: new Date(to).toISOString(), buckets };
      return data(client.GET('/calls/histogram', { params: { query: query as never }, signal }));
    },
    placeholderData: keepPreviousData,
    retry: false,
  });

export const statsQuery = queryOptions({ queryKey: keys.stats, queryFn: () => data(client.GET('/stats')), retry: false });

export const approvalsQuery = (status: string) =>
  queryOptions({
    queryKey: keys.approvalList(status),
    queryFn: () =>
      data(client.GET('/approvals', { params: { query: { page_size: 100, ...(status === 'all' ? {} : { status: status as never }) } } })),
    placeholderData: keepPreviousData,
  });

/** One approval, with all of its arguments. */
export const approvalQuery = (id: string) =>
  queryOptions({ queryKey: [...keys.approvals, 'one', id], queryFn: () => data(client.GET('/approvals/{id}', { params: { path: { id } } })), retry: false });

/** Remembered approvals: calls that they cover ask nobody. */
export const approvalGrantsQuery = queryOptions({
  queryKey: keys.approvalGrants,
  queryFn: async () => (await data(client.GET('/approval-grants', { params: { query: { page_size: 500 } } }))).grants,
  retry: false,
});

export const serversQuery = queryOptions({
  queryKey: keys.servers,
  queryFn: async () => (await data(client.GET('/mcp-servers', { params: { query: { page_size: 500 } } }))).mcp_servers,
});

export const serverChangesQuery = (id: string) =>
  queryOptions({
    queryKey: keys.serverChanges(id),
    queryFn: () => data(client.GET('/mcp-servers/{id}/changes', { params: { path: { id } } })),
  });

export const serverFindingsQuery = (id: string) =>
  queryOptions({
    queryKey: keys.serverFindings(id),
    queryFn: () => data(client.GET('/mcp-servers/{id}/findings', { params: { path: { id } } })),
  });

export const policyQuery = (scope: 'tenant' | 'platform') =>
  queryOptions({
    queryKey: keys.policy(scope),
    queryFn: () => data(client.GET('/policy', { params: { query: scope === 'platform' ? { scope: 'platform' as never } : {} } })),
  });

export const credentialsQuery = queryOptions({
  queryKey: keys.credentials,
  queryFn: async () => (await data(client.GET('/credentials', { params: { query: { page_size: 500 } } }))).credentials,
});

export const accountsQuery = queryOptions({
  queryKey: keys.accounts,
  queryFn: async () => (await data(client.GET('/accounts'))).accounts,
});

/** What a person has connected, for admins. */
export const accountsOfQuery = (person: string) =>
  queryOptions({
    queryKey: keys.accountsOf(person),
    queryFn: async () => (await data(client.GET('/accounts', { params: { query: { person } } }))).accounts,
  });

/** The open sessions of a person, or the own ones. */
export const openSessionsQuery = (person?: string) =>
  queryOptions({
    queryKey: keys.sessionsOf(person ?? 'me'),
    queryFn: async () => (await data(client.GET('/sessions', { params: { query: person ? { person } : {} } }))).sessions,
  });

/** The providers that admins have defined, and where they send browsers back to. */
export const accountProvidersQuery = queryOptions({
  queryKey: keys.accountProviders,
  queryFn: () => data(client.GET('/account-providers')),
});

/** Who has an account at a provider. */
export const accountsAtQuery = (name: string) =>
  queryOptions({
    queryKey: keys.accountsAt(name),
    queryFn: () => data(client.GET('/account-providers/{name}/accounts', { params: { path: { name } } })),
  });

export const tokensQuery = queryOptions({
  queryKey: keys.tokens,
  queryFn: async () => (await data(client.GET('/tokens', { params: { query: { page_size: 500 } } }))).tokens,
});

export const webhooksQuery = queryOptions({
  queryKey: keys.webhooks,
  queryFn: async () => (await data(client.GET('/webhooks', { params: { query: { page_size: 500 } } }))).webhooks,
});

export const deliveriesQuery = (id: string, status: string) =>
  queryOptions({
    queryKey: keys.deliveries(id, status),
    queryFn: () =>
      data(client.GET('/webhooks/{id}/deliveries', { params: { path: { id }, query: { page_size: 50, ...(status ? { status: status as never } : {}) } } })),
    refetchInterval: 5_000,
    placeholderData: keepPreviousData,
  });

export const settingsQuery = queryOptions({
  queryKey: keys.settings,
  queryFn: async () => (await data(client.GET('/settings'))).settings,
  retry: false,
});

export const doctorQuery = queryOptions({
  queryKey: keys.doctor,
  queryFn: () => data(client.GET('/doctor')),
  retry: false,
  refetchOnWindowFocus: false,
});

export const tenantsQuery = queryOptions({
  queryKey: keys.tenants,
  queryFn: async () => (await data(client.GET('/tenants', { params: { query: { page_size: 500 } } }))).tenants,
});

export interface AuditFilters {
  action?: string;
  target?: string;
  actor?: string;
  kind?: string;
  decision?: string;
  rule?: string;
  since?: string;
}

export const auditQuery = (filters: AuditFilters) =>
  infiniteQueryOptions({
    queryKey: keys.audit(filters),
    queryFn: ({ pageParam }) =>
      data(
        client.GET('/audit', {
          params: { query: { ...filters, page_size: 100, ...(pageParam === null ? {} : { page_token: pageParam }) } as never },
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_page_token,
    placeholderData: keepPreviousData,
  });

export const healthQuery = queryOptions({
  queryKey: keys.health,
  queryFn: async () => {
    const [ready, health] = await Promise.all([
      fetch('/readyz').then((response) => response.json() as Promise<import('./types').Readiness>),
      fetch('/healthz').then((response) => response.json() as Promise<{ status: string; version: string }>),
    ]).catch(() => {
      throw new ApiError(0, undefined, 'The server cannot be reached.');
    });
    return { ready, version: health.version };
  },
  refetchInterval: 15_000,
});
