/**
 * Shapes of routes that the OpenAPI document does not describe yet (see `API-NEEDS.md`).
 * Remove each one when the generated types have it.
 */
import type { Json, JsonObject, Outcome, Problem } from './types';

/** One row of `GET /tools/{ref}/examples`. */
export interface ToolExample {
  name: string;
  description?: string | null;
  args: { [key: string]: Json };
  expect?: Json;
}

/** One row of `POST /tools/{ref}/examples/run`. */
export interface ExampleResult {
  name: string;
  status: 'passed' | 'failed' | 'error';
  outcome?: Outcome;
  message?: string | null;
}

/** `GET /calls/histogram`. */
export interface CallHistogram {
  from: string;
  to: string;
  bucket_seconds: number;
  buckets: { at: string; success: number; error: number; other: number }[];
}

/** `GET /stats`. */
export interface Stats {
  calls_per_minute: number;
  calls_24h: number;
  failures_24h: number;
  approvals_waiting: number;
  tools: { total: number; ready: number; failed: number; warnings: number; disabled: number };
  servers: { total: number; ready: number; attention: number };
}

/** One row of `GET /settings`. */
export interface Setting {
  key: string;
  value: Json;
  source: string;
  description?: string | null;
}

/** `GET /doctor`. */
export interface DoctorReport {
  checks: { name: string; status: 'ok' | 'warning' | 'error'; message: string; fix?: string | null }[];
  version: string;
  sandbox_engine: string;
  store: string;
}

/** One item of an import of definitions, of a curl command or of MCP servers. */
export interface ImportItem {
  name: string;
  action: 'create' | 'replace' | 'skip' | 'error';
  warnings: Problem[];
  message?: string;
  definition?: JsonObject;
}

export interface ImportReport {
  dry_run: boolean;
  created: number;
  replaced: number;
  skipped: number;
  failed: number;
  items: ImportItem[];
}
