/** The revisions of an agent, a pipeline or an artifact: compared, and restored. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import { request } from '@/api/client';
import { resourcePath, type Resource, type ResourceKind } from '@/api/resources';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { ErrorPanel } from './basics';
import { notify, useAction } from './feedback';
import { Loading } from './page';
import { Revisions, type RevisionRow } from './revisions';

/** A revision as the server lists it; those of artifacts are called versions. */
interface Revision {
  number?: number;
  version?: number;
  created_at: string;
  created_by: string | null;
  published?: boolean;
}

interface HistoryProps<R> {
  kind: ResourceKind;
  resource: Resource;
  requests: { restore: (ref: string, n: number) => Promise<{ revision: number }> };
  /** The text of a revision, which is compared. */
  text: (revision: R) => string;
  oneText: string;
  /** Other cache keys to invalidate. */
  invalidates?: readonly (readonly unknown[])[];
}

export function ResourceHistory<R>({ kind, resource, requests, text, oneText, invalidates = [] }: HistoryProps<R>) {
  const t = useT();
  const queries = useQueryClient();
  const mayEdit = useMay('editor') && !resource.path;
  const word = kind.path === 'code-artifacts' ? 'version' : 'revision';
  const key = [...kind.one(resource.id), 'history'];
  const { data, error, refetch } = useQuery({
    queryKey: [...key, resource.revision], retry: false,
    queryFn: ({ signal }) => request<{ revisions?: Revision[]; versions?: Revision[] }>(resourcePath(kind.path, resource.id, `/${word}s?page_size=500`), { signal }),
  });
  const rows = useMemo(() => (data?.revisions ?? data?.versions ?? []).map((each): RevisionRow => {
    const number = each.number ?? each.version ?? 0;
    return { number, created_at: each.created_at, created_by: each.created_by, published: each.published ?? number === resource.published_revision };
  }), [data, resource.published_revision]);
  const one = (n: number) => ({
    queryKey: [...key, 'one', n], staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }: { signal: AbortSignal }) => request<R>(resourcePath(kind.path, resource.id, `/${word}s/${n}`), { signal }),
  });
  const textQuery = (n: number) => ({ queryKey: one(n).queryKey, queryFn: async () => text(await queries.fetchQuery(one(n))) });
  const restore = useAction((n: number) => requests.restore(resource.id, n), { invalidates: [kind.all, ...invalidates], done: (next, n) => notify(word === 'version' ? t('artifacts.saved', { n: next.revision }) : t('tools.restored', { n })) });
  if (error) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading />;
  return <Revisions word={word} rows={rows} current={resource.revision} oneText={oneText} textQuery={textQuery} onRestore={mayEdit ? restore.mutate : undefined} />;
}
