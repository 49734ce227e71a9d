/** The message that says which tool a person ran in a chat, and what came back: for the model as text, for people as a card. */
import type { RunResult } from '@/api/invoke';
import type { JsonObject } from '@/api/types';

/** The most of a result that the model reads; the call has all of it. */
const MAX_RESULT = 8_000;

function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value ?? null, null, 2) ?? '');
  return text.length > MAX_RESULT ? `${text.slice(0, MAX_RESULT)}\n… (${text.length - MAX_RESULT} more characters)` : text;
}

/** A fence that the text cannot close. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

/** `undefined` where the server took no call. */
export function toolMessage(tool: { name: string }, args: JsonObject, result: RunResult): unknown {
  if (result.kind === 'rejected') return undefined;
  const asked = `I ran the tool ${tool.name} with these arguments:\n${fenced(shown(args))}`;
  if (result.kind === 'waiting') {
    return [
      { type: 'text', text: `${asked}\nIt waits for approval.` },
      { type: 'tool_use', id: result.callId, name: tool.name, args, status: 'awaiting_approval', call_id: result.callId, approval_id: result.approvalId },
    ];
  }
  const { call } = result;
  const outcome = call.error ? `It failed: ${call.error.message}` : `Its result:\n${fenced(shown(call.value ?? call.content))}`;
  return [
    { type: 'text', text: `${asked}\n${outcome}` },
    { type: 'tool_use', id: call.id, name: tool.name, tool: call.tool, args, status: call.status, call_id: call.id, ...(call.duration_ms === undefined ? {} : { duration_ms: call.duration_ms }) },
  ];
}
