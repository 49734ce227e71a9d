/**
 * Shapes of routes that the OpenAPI document does not describe yet (see `API-NEEDS.md`).
 * Remove each one when the generated types have it.
 */
import type { Json } from './types';

/** Fields of a tool that newer servers send. */
export interface ToolLifecycle {
  published_by?: string | null;
  created_by?: string | null;
  modified_by?: string | null;
  callable?: boolean;
  deprecation?: { replaced_by?: string | null; removal_date?: string | null; message?: string | null } | null;
}

/** `GET /tools/{ref}/usage`. */
export interface ToolUsage {
  tokens?: { id: string; name: string }[];
  rules?: { name: string }[];
  tools?: { name: string; bundle?: string; id?: string }[];
  callers?: { name: string; calls: number; last_called_at: string | null }[];
}

/** One row of `GET /api/limits`. */
export interface LimitUse {
  name: string;
  scope: string;
  value: number | null;
  used: number | null;
  reset_seconds?: number | null;
}

/** One row of `GET /tools/{ref}/examples`. */
export interface ToolExample {
  id: string;
  name: string;
  args: { [key: string]: Json };
}

/** `GET /api/calls/histogram`. */
export interface CallHistogram {
  from: string;
  to: string;
  bucket_seconds: number;
  buckets: { at: string; success: number; error: number; other: number }[];
}

export type LiveTopic = 'tool' | 'bundle' | 'call' | 'approval' | 'server' | 'reset';

/** One event of `GET /api/events`. */
export interface LiveEvent {
  topic: LiveTopic;
  id?: string;
  name?: string;
  tool?: string;
  status?: string;
  change?: string;
}
