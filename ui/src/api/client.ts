/** The one way to the server: typed by the OpenAPI document, cookies for the session, errors as `ApiError`. */
import createClient from 'openapi-fetch';
import { connection } from './connection';
import { ApiError } from './error';
import type { paths } from './schema';
import type { ErrorBody } from './types';

// The header tells the server that a page sends the request, also where a proxy removes `Sec-Fetch-Site`.
export const HEADERS = { 'X-Haft-Session': '1' };

async function send(target: Request | string | URL, init?: RequestInit): Promise<Response> {
  try {
    const response = await fetch(target, init);
    // A proxy in front of a stopped server answers 502 or 504 without a JSON body.
    const isGateway = response.status >= 502 && response.status <= 504;
    const isJson = response.headers.get('content-type')?.includes('json') ?? false;
    connection.report(isGateway && !isJson ? 'lost' : response.status === 401 ? 'expired' : 'ok');
    return response;
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    connection.report('lost');
    throw new ApiError(0, undefined, 'The server cannot be reached.');
  }
}

export const client = createClient<paths>({ baseUrl: '/api', headers: HEADERS, fetch: (target) => send(target) });

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Unwraps `{"status":"success","data":…}`. */
export async function data<T>(answer: Promise<Answer<{ data: T }>>): Promise<T> {
  return (await body(answer)).data;
}

/** The body itself, for routes without an envelope. */
export async function body<T>(answer: Promise<Answer<T>>): Promise<T> {
  const { data: value, error, response } = await answer;
  if (response.ok && value !== undefined) return value;
  throw new ApiError(response.status, error as Partial<ErrorBody> | undefined, `The server answered ${response.status}.`);
}

interface RawRequest {
  method?: string;
  json?: unknown;
  text?: string;
  contentType?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** A request that the OpenAPI document does not describe, or whose body is not JSON. */
export async function raw(path: string, options: RawRequest = {}): Promise<{ status: number; body: unknown; url: string }> {
  const headers: Record<string, string> = { ...HEADERS, ...options.headers };
  const init: RequestInit = { method: options.method ?? 'GET', headers, signal: options.signal ?? null };
  if (options.json !== undefined) {
    headers['Content-Type'] = 'application/json';
    init.body = JSON.stringify(options.json);
  } else if (options.text !== undefined) {
    headers['Content-Type'] = options.contentType ?? 'text/plain';
    init.body = options.text;
  }
  const response = await send(path, init);
  const text = await response.text();
  let parsed: unknown;
  try {
    parsed = text === '' ? undefined : JSON.parse(text);
  } catch {
    parsed = text;
  }
  // Where redirects have led.
  return { status: response.status, body: parsed, url: response.url };
}

/** As `raw`, and fails unless the answer is a success; unwraps `data` where there is one. */
export async function request<T>(path: string, options: RawRequest = {}): Promise<T> {
  const answer = await raw(path, options);
  if (answer.status >= 400) {
    throw new ApiError(answer.status, answer.body as Partial<ErrorBody> | undefined, `The server answered ${answer.status}.`);
  }
  const value = answer.body;
  return (typeof value === 'object' && value !== null && 'data' in value ? value.data : value) as T;
}

/** Sends bytes as they are. */
export async function upload<T>(path: string, options: { method: string; body?: Blob | string; headers?: Record<string, string> }): Promise<T> {
  const response = await send(path, { ...options, headers: { ...HEADERS, ...options.headers } });
  const text = await response.text();
  const answer = text === '' ? undefined : (JSON.parse(text) as { data?: T } & Partial<ErrorBody>);
  if (!response.ok) throw new ApiError(response.status, answer, `The server answered ${response.status}.`);
  return (answer?.data ?? answer) as T;
}

/** The bytes of a file, its type, and the mark of its version. */
export async function download(path: string, signal: AbortSignal): Promise<{ bytes: Uint8Array; etag: string | null; type: string }> {
  const response = await send(path, { headers: HEADERS, signal });
  if (!response.ok) throw new ApiError(response.status, (await response.json().catch(() => undefined)) as Partial<ErrorBody> | undefined, `The server answered ${response.status}.`);
  return { bytes: new Uint8Array(await response.arrayBuffer()), etag: response.headers.get('etag'), type: response.headers.get('content-type') ?? '' };
}

/** A request whose answer is a stream of events; the answer may be JSON where there is nothing to stream. */
export async function stream(path: string, options: { method?: string; json?: unknown; signal: AbortSignal }): Promise<Response> {
  const headers: Record<string, string> = { ...HEADERS, Accept: 'text/event-stream' };
  const init: RequestInit = { method: options.method ?? 'GET', headers, signal: options.signal };
  if (options.json !== undefined) {
    headers['Content-Type'] = 'application/json';
    init.body = JSON.stringify(options.json);
  }
  const response = await send(path, init);
  if (!response.ok) throw new ApiError(response.status, (await response.json().catch(() => undefined)) as Partial<ErrorBody> | undefined, `The server answered ${response.status}.`);
  return response;
}
