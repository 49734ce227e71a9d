/** Where the content of a renderer comes from: a file of the workspace, or the plan itself. */
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { Call } from '@/api/types';
import { fileQuery } from '@/api/workspaces';
import { decodeText, type ReadyPlan } from './plan';

export interface Source {
  text: string | undefined;
  isLoading: boolean;
  error: unknown;
  refetch: () => void;
}

const asText = (value: unknown) => (value === undefined || value === null ? undefined : typeof value === 'string' ? value : JSON.stringify(value, null, 2));

/** The text of `file` in the state that the call left, or of `content`. */
export function useText(plan: ReadyPlan, call: Call, key = 'content'): Source {
  const { file } = plan;
  const isFile = file !== undefined && Boolean(call.workspace);
  const query = useQuery({ ...fileQuery(call.workspace ?? '', file ?? '', call.workspace_use?.post_manifest), enabled: isFile });
  const text = useMemo(() => (isFile ? query.data && decodeText(query.data.bytes) : asText(plan.config[key])), [isFile, query.data, plan.config, key]);
  return { text, isLoading: isFile && query.isPending, error: isFile ? query.error : null, refetch: () => void query.refetch() };
}
