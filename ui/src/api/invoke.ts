/** Runs a tool through the queue and follows its events: the live tester and "run again". */
import { data, client, raw } from './client';
import { ApiError, missingAccount } from './error';
import type { Call, ErrorBody, Json, JsonObject } from './types';

export interface OutputLine {
  stream: 'stdout' | 'stderr';
  text: string;
}

export interface RunProgress {
  callId?: string;
  status: string;
  lines: OutputLine[];
  progress?: { progress?: number; total?: number; message?: string };
}

export interface RunRequest {
  ref: string;
  args: JsonObject;
  timeoutMs?: number;
  /** Run as an editor's test, which skips the approval that the tool itself asks for. */
  asTest?: boolean;
  /** The chat that the call belongs to; it works in the workspace of that chat. */
  chatId?: string;
  onProgress: (progress: RunProgress) => void;
  signal: AbortSignal;
}

/** What a run ended with: a recorded call, or a request that the server rejected. */
export type RunResult =
  | { kind: 'call'; call: Call }
  | { kind: 'waiting'; callId: string; approvalId: string; message: string; provider: string | undefined }
  | { kind: 'rejected'; error: ApiError };

const MAX_LINES = 20_000;

function toLine(payload: Json): OutputLine {
  if (typeof payload === 'object' && payload !== null && !Array.isArray(payload)) {
    const text = payload['line'] ?? payload['text'] ?? payload['data'];
    const stream = payload['stream'] === 'stderr' ? 'stderr' : 'stdout';
    return { stream, text: typeof text === 'string' ? text : JSON.stringify(payload) };
  }
  return { stream: 'stdout', text: typeof payload === 'string' ? payload : JSON.stringify(payload) };
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

const FINAL = new Set(['success', 'error', 'cancelled', 'denied', 'expired', 'interrupted', 'awaiting_approval']);

function follow(callId: string, state: RunProgress, request: RunRequest): Promise<void> {
  return new Promise((resolve) => {
    const source = new EventSource(`/api/calls/${callId}/events`);
    const finish = () => {
      source.close();
      resolve();
    };
    const publish = (change: Partial<RunProgress>) => {
      Object.assign(state, change);
      request.onProgress({ ...state });
    };
    request.signal.addEventListener('abort', () => void cancelCall(callId).catch(() => undefined), { once: true });
    source.addEventListener('status', (message) => {
      const payload = parse((message as MessageEvent<string>).data);
      const status = typeof payload === 'object' && payload !== null && 'status' in payload ? String(payload['status']) : '';
      publish({ status });
      if (FINAL.has(status)) finish();
    });
    source.addEventListener('output', (message) => {
      if (state.lines.length < MAX_LINES) {
        publish({ lines: [...state.lines, toLine(parse((message as MessageEvent<string>).data))] });
      }
    });
    source.addEventListener('progress', (message) => {
      const payload = parse((message as MessageEvent<string>).data);
      if (typeof payload === 'object' && payload !== null) publish({ progress: payload as RunProgress['progress'] & object });
    });
    source.addEventListener('error', () => {
      if (source.readyState === EventSource.CLOSED) finish();
    });
  });
}

export async function runTool(request: RunRequest): Promise<RunResult> {
  const state: RunProgress = { status: 'pending', lines: [] };
  request.onProgress({ ...state });
  if (request.asTest === true) {
    const answer = await raw(`/api/tools/${encodeURIComponent(request.ref)}/test`, {
      method: 'POST', json: { parameters: request.args }, signal: request.signal,
    });
    const result = answer.body as Partial<ErrorBody> & { data?: { call_id: string } };
    if (answer.status >= 400 || result.data === undefined) {
      return { kind: 'rejected', error: new ApiError(answer.status, result, `The server answered ${answer.status}.`) };
    }
    return { kind: 'call', call: await getCall(result.data.call_id) };
  }
  const json = { args: request.args, ...(request.timeoutMs === undefined ? {} : { timeout_ms: request.timeoutMs }), ...(request.chatId === undefined ? {} : { chat_id: request.chatId }) };
  const answer = await raw(`/api/tools/${encodeURIComponent(request.ref)}/invoke?async=true&mode=debug`, {
    method: 'POST',
    json,
  });
  const body = answer.body as Partial<ErrorBody> & { call_id?: string };
  if (answer.status === 202 && body.approval_id !== undefined && body.call_id) {
    return { kind: 'waiting', callId: body.call_id, approvalId: body.approval_id, message: body.error?.message ?? '', provider: body.error && missingAccount(body.error) };
  }
  if (answer.status >= 400 || body.call_id === undefined || body.call_id === null) {
    return { kind: 'rejected', error: new ApiError(answer.status, body, `The server answered ${answer.status}.`) };
  }
  const callId = body.call_id;
  state.callId = callId;
  await follow(callId, state, request);
  return { kind: 'call', call: await getCall(callId) };
}

export function getCall(id: string): Promise<Call> {
  return data(client.GET('/calls/{id}', { params: { path: { id } } }));
}

export async function cancelCall(id: string): Promise<void> {
  await data(client.POST('/calls/{id}/cancel', { params: { path: { id } } }));
}
