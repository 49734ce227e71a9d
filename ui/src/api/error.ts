import type { ErrorBody } from './types';

/** A request that failed: the server's own words, or why there was no answer. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: Record<string, unknown>;
  readonly requestId: string | undefined;
  readonly body: Partial<ErrorBody> | undefined;

  constructor(status: number, body: Partial<ErrorBody> | undefined, fallback: string) {
    super(body?.error?.message ?? fallback);
    this.name = 'ApiError';
    this.status = status;
    this.code = body?.error?.code ?? (status === 0 ? 'unreachable' : 'unknown');
    this.details = (body?.error?.details as Record<string, unknown> | undefined) ?? {};
    this.requestId = body?.request_id;
    this.body = body;
  }
}

/** The provider that an error names, if somebody has to connect an account there. */
export function missingAccount(error: { code: string; details?: unknown }): string | undefined {
  if (error.code !== 'credential_required') return undefined;
  const provider = (error.details as { provider?: unknown } | null | undefined)?.provider;
  return typeof provider === 'string' && provider !== '' ? provider : undefined;
}
