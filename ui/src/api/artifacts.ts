/** Code artifacts: stored source with declared inputs. */
import { queryOptions } from '@tanstack/react-query';
import type { ArtifactBody, ArtifactPage, ArtifactVersion, ArtifactVersionPage, CodeArtifact } from './artifact-types';
import { client, data, request } from './client';
import { keys } from './keys';
import type { JsonObject, Tool } from './types';

export const artifactKeys = {
  all: ['artifacts'] as const,
  one: (id: string) => ['artifacts', 'one', id] as const,
};

const path = (id: string, rest = '') => `/api/code-artifacts/${encodeURIComponent(id)}${rest}`;

export const artifactsQuery = queryOptions({
  queryKey: ['artifacts', 'list'],
  queryFn: async ({ signal }) => (await request<ArtifactPage>('/api/code-artifacts?page_size=500', { signal })).artifacts,
  retry: false,
});

export const artifactQuery = (id: string) => queryOptions({ queryKey: artifactKeys.one(id), queryFn: ({ signal }) => request<CodeArtifact>(path(id), { signal }), retry: false });

export const artifactVersionsQuery = (id: string) =>
  queryOptions({
    queryKey: [...artifactKeys.one(id), 'versions'],
    queryFn: async ({ signal }) => (await request<ArtifactVersionPage>(path(id, '/versions?page_size=500'), { signal })).versions,
    retry: false,
  });

export const artifactVersionQuery = (id: string, n: number) =>
  queryOptions({ queryKey: [...artifactKeys.one(id), 'versions', n], queryFn: ({ signal }) => request<ArtifactVersion>(path(id, `/versions/${n}`), { signal }), staleTime: Number.POSITIVE_INFINITY, retry: false });

/** The tools that run an artifact, with the version that each has pinned. */
export const artifactUsersQuery = ({ id, slug }: Pick<CodeArtifact, 'id' | 'slug'>) =>
  queryOptions({
    queryKey: [...keys.tools, 'of-artifact', id],
    queryFn: async ({ signal }) => {
      const page = await data(client.GET('/tools', { params: { query: { implementation_type: 'artifact', include_disabled: true, page_size: 500 } }, signal }));
      return (page.tools as Tool[]).flatMap((tool) => {
        const fields = (tool.implementation ?? {}) as JsonObject;
        if (fields['artifact_id'] !== id && fields['artifact_id'] !== slug) return [];
        return [{ tool, version: typeof fields['artifact_version'] === 'string' ? fields['artifact_version'] : undefined }];
      });
    },
    retry: false,
  });

export const artifacts = {
  create: (fields: ArtifactBody) => request<CodeArtifact>('/api/code-artifacts', { method: 'POST', json: fields }),
  update: (id: string, fields: ArtifactBody) => request<CodeArtifact>(path(id), { method: 'PUT', json: fields }),
  publish: (id: string) => request<CodeArtifact>(path(id, '/publish'), { method: 'POST' }),
  /** `force` deletes it although tools use it. */
  remove: (id: string, force: boolean) => request<unknown>(path(id, force ? '?force=true' : ''), { method: 'DELETE' }),
};
