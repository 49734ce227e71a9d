/** Code artifacts: stored source with declared inputs. */
import { queryOptions } from '@tanstack/react-query';
import type { ArtifactBody, ArtifactPage, ArtifactVersionPage, CodeArtifact } from './artifact-types';
import { client, data, request } from './client';
import { keys } from './keys';
import { lifeCycle, type ResourceKind } from './resources';
import type { JsonObject, Tool } from './types';

export const artifactKeys = {
  all: ['artifacts'] as const,
  one: (id: string) => ['artifacts', 'one', id] as const,
};

export const ARTIFACTS: ResourceKind = { path: 'code-artifacts', page: '/artifacts', ...artifactKeys };

const path = (id: string, rest = '') => `/api/code-artifacts/${encodeURIComponent(id)}${rest}`;

const artifactPage = {
  queryKey: ['artifacts', 'list'],
  queryFn: ({ signal }: { signal: AbortSignal }) => request<ArtifactPage>('/api/code-artifacts?page_size=500', { signal }),
  retry: false,
} as const;

export const artifactsQuery = queryOptions({ ...artifactPage, select: (page: ArtifactPage) => page.artifacts });

/** Files with errors. */
export const brokenArtifactFilesQuery = queryOptions({ ...artifactPage, select: (page: ArtifactPage) => page.broken_files });

export const artifactQuery = (id: string) => queryOptions({ queryKey: artifactKeys.one(id), queryFn: ({ signal }) => request<CodeArtifact>(path(id), { signal }), retry: false });

export const artifactVersionsQuery = (id: string) =>
  queryOptions({
    queryKey: [...artifactKeys.one(id), 'versions'],
    queryFn: async ({ signal }) => (await request<ArtifactVersionPage>(path(id, '/versions?page_size=500'), { signal })).versions,
    retry: false,
  });

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
  ...lifeCycle<CodeArtifact>('code-artifacts'),
};
