/** What the definitions of tools cost in every request to a model. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { body, client, data } from '@/api/client';
import { keys } from '@/api/keys';
import { toolRef } from '@/api/queries';
import type { ToolSummary } from '@/api/types';

/** Of more tools, clients get search instead of definitions. */
export const MAX_COUNTED = 500;
/** As many references as an address carries. */
const CHUNK = 100;

export const isCounted = (tool: ToolSummary) => tool.callable && tool.enabled && tool.ready;

export function costQuery(tools: readonly ToolSummary[]) {
  const refs = tools.filter(isCounted).map(toolRef).toSorted();
  return queryOptions({
    queryKey: [...keys.tools, 'cost', refs],
    queryFn: async ({ signal }) => {
      let tokens = 0;
      for (let at = 0; at < refs.length; at += CHUNK) {
        const names = refs.slice(at, at + CHUNK).join(',');
        tokens += (await body(client.GET('/tools/definitions/all', { params: { query: { format: 'mcp', names } }, signal }))).tokens;
      }
      return tokens;
    },
    enabled: refs.length > 0 && refs.length <= MAX_COUNTED,
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    retry: false,
  });
}

/** The renderer of each tool of some bundles, by its reference. The summaries of the list do not have it. */
export function renderersQuery(bundles: readonly string[]) {
  return queryOptions({
    queryKey: [...keys.tools, 'renderers', bundles],
    queryFn: async ({ signal }) => {
      const page = await data(client.GET('/tools', { params: { query: { bundle_ids: bundles.join(','), include_disabled: true, page_size: 500 } }, signal }));
      return new Map(page.tools.flatMap((tool) => {
        const first = 'renderers' in tool ? tool.renderers.toSorted((a, b) => b.priority - a.priority)[0] : undefined;
        return first ? [[toolRef(tool), first.renderer] as const] : [];
      }));
    },
    enabled: bundles.length > 0,
    staleTime: 60_000,
    structuralSharing: false,
    retry: false,
  });
}
