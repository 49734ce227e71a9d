/** What an answer shows: built from the events of its run, or from the blocks of the stored message. */
import { isFinal, type RunEvent, type RunStatus, type RunUsage, type StepError } from '@/api/run-types';

export interface ToolItem {
  kind: 'tool';
  key: string;
  /** The id that the model gave the call. */
  id: string;
  name: string;
  tool: string | undefined;
  args: unknown;
  status: string;
  callId: string | undefined;
  output: unknown;
  error: StepError | undefined;
  durationMs: number | undefined;
  approvalId: string | undefined;
  expiresAt: string | undefined;
}

export type NoteKind = 'shortened' | 'correction' | 'stopped' | 'error' | 'text';

export type Item =
  | { kind: 'text'; key: string; text: string; isOpen: boolean }
  | { kind: 'reasoning'; key: string; text: string; isOpen: boolean }
  | { kind: 'image'; key: string; source: unknown }
  | { kind: 'file'; key: string; path: string }
  | { kind: 'note'; key: string; note: NoteKind; text: string; isBad?: boolean }
  | ToolItem;

export interface Answer {
  runId: string | undefined;
  status: RunStatus;
  items: Item[];
  usage: RunUsage | undefined;
}

export const emptyAnswer = (runId?: string): Answer => ({ runId, status: 'pending', items: [], usage: undefined });

const isText = (value: unknown): value is string => typeof value === 'string';
const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

function appendText(items: Item[], kind: 'text' | 'reasoning', text: string): Item[] {
  const last = items.at(-1);
  if (last?.kind === kind && last.isOpen) return [...items.slice(0, -1), { ...last, text: last.text + text }];
  return [...items, { kind, key: `live-${items.length}`, text, isOpen: true }];
}

/** Replaces the pieces of an answer that have arrived by the stored answer. */
function completeAnswer(items: Item[], event: Extract<RunEvent, { type: 'answer' }>): Item[] {
  const kept = items.filter((item) => !((item.kind === 'text' || item.kind === 'reasoning') && item.isOpen) && !item.key.startsWith(`${event.step}-`));
  const added: Item[] = [];
  if (event.reasoning) added.push({ kind: 'reasoning', key: `${event.step}-reasoning`, text: event.reasoning, isOpen: false });
  if (event.text.trim() !== '') added.push({ kind: 'text', key: `${event.step}-text`, text: event.text, isOpen: false });
  // Its calls may have started before: the text stands above them.
  const at = kept.findIndex((item) => item.kind === 'tool' && item.key.startsWith(`${event.step}:`));
  return at < 0 ? [...kept, ...added] : [...kept.slice(0, at), ...added, ...kept.slice(at)];
}

const ENDED = new Set(['success', 'error', 'cancelled', 'denied', 'expired', 'interrupted']);

function updateTool(items: Item[], matches: (item: ToolItem) => boolean, change: Partial<ToolItem>, fresh?: ToolItem): Item[] {
  const at = items.findLastIndex((item) => item.kind === 'tool' && matches(item));
  const known = items[at];
  if (known?.kind !== 'tool') return fresh ? [...items, fresh] : items;
  return items.with(at, { ...known, ...change });
}

function putTool(items: Item[], event: Extract<RunEvent, { type: 'tool_use' }>): Item[] {
  const key = `${event.answer}:${event.index}`;
  const change: Partial<ToolItem> = {
    status: event.status,
    args: event.args,
    ...(event.tool ? { tool: event.tool } : {}),
    ...(event.call_id ? { callId: event.call_id } : {}),
    ...(event.output === undefined ? {} : { output: event.output }),
    ...(event.error ? { error: event.error } : {}),
    ...(isNumber(event.duration_ms) ? { durationMs: event.duration_ms } : {}),
  };
  const fresh: ToolItem = { kind: 'tool', key, id: event.id, name: event.name, tool: undefined, args: event.args, status: event.status, callId: undefined, output: undefined, error: undefined, durationMs: undefined, approvalId: undefined, expiresAt: undefined, ...change };
  // A call that has ended stays so: events of other nodes may arrive late.
  return updateTool(items, (item) => item.key === key, items.some((item) => item.kind === 'tool' && item.key === key && ENDED.has(item.status) && !ENDED.has(event.status)) ? {} : change, fresh);
}

const isNumber = (value: unknown): value is number => typeof value === 'number';

function close(items: Item[]): Item[] {
  return items.map((item) => ((item.kind === 'text' || item.kind === 'reasoning') && item.isOpen ? { ...item, isOpen: false } : item));
}

function endNote(event: Extract<RunEvent, { type: 'end' }>): Item[] {
  if (event.status === 'cancelled') return [{ kind: 'note', key: 'end', note: 'stopped', text: '' }];
  if (event.status === 'error') return [{ kind: 'note', key: 'end', note: 'error', text: event.error?.message ?? '' }];
  return [];
}

export function reduceAnswer(answer: Answer, event: RunEvent): Answer {
  const { items } = answer;
  switch (event.type) {
    case 'start':
      return { ...answer, runId: event.run_id, status: 'running' };
    case 'text_delta':
      return { ...answer, status: 'running', items: appendText(items, 'text', event.text) };
    case 'reasoning_delta':
      return { ...answer, status: 'running', items: appendText(items, 'reasoning', event.text) };
    case 'answer':
      return { ...answer, status: 'running', items: completeAnswer(items, event) };
    case 'tool_use':
      return { ...answer, items: putTool(items, event) };
    case 'approval_request': {
      const asks = { approvalId: event.approval_id, callId: event.call_id, expiresAt: event.expires_at ?? undefined };
      const fresh: ToolItem = { kind: 'tool', key: `approval-${event.approval_id}`, id: event.id, name: event.tool, tool: event.tool, args: event.args, status: 'awaiting_approval', output: undefined, error: undefined, durationMs: undefined, ...asks };
      const matches = (item: ToolItem) => (item.callId === undefined ? item.id === event.id : item.callId === event.call_id);
      const ended = items.some((item) => item.kind === 'tool' && matches(item) && ENDED.has(item.status));
      return { ...answer, items: updateTool(items, matches, { ...asks, ...(ended ? {} : { status: 'awaiting_approval' }) }, fresh) };
    }
    case 'approval_decided':
      return { ...answer, status: 'running', items: updateTool(items, (item) => item.callId === event.call_id && !ENDED.has(item.status), { status: event.approved ? 'running' : 'denied' }) };
    case 'shortened':
      return { ...answer, items: [...items, { kind: 'note', key: `shortened-${items.length}`, note: 'shortened', text: '' }] };
    case 'correction':
      return { ...answer, items: [...close(items), { kind: 'note', key: `correction-${items.length}`, note: 'correction', text: event.text }] };
    case 'end':
      return { ...answer, runId: event.run_id, status: event.status, usage: event.usage, items: [...close(items), ...endNote(event)] };
    default:
      // A newer server may send others.
      return answer;
  }
}

function readTool(block: Record<string, unknown>, key: string): ToolItem {
  const text = (name: string) => (isText(block[name]) ? block[name] : undefined);
  const error = block['error'];
  return {
    kind: 'tool', key, id: text('id') ?? key, name: text('name') ?? text('tool') ?? '', tool: text('tool'), args: block['args'] ?? block['input'] ?? {}, status: text('status') ?? 'success', callId: text('call_id'),
    output: block['output'], error: isObject(error) && isText(error['message']) ? { code: isText(error['code']) ? error['code'] : '', message: error['message'] } : undefined,
    durationMs: isNumber(block['duration_ms']) ? block['duration_ms'] : undefined, approvalId: text('approval_id'), expiresAt: undefined,
  };
}

/** The items of a stored message: a text, or blocks. A block of an unknown type is shown as it is. */
export function readContent(content: unknown): Item[] {
  if (isText(content)) return content === '' ? [] : [{ kind: 'text', key: '0', text: content, isOpen: false }];
  const blocks = Array.isArray(content) ? (content as unknown[]) : content === null || content === undefined ? [] : [content];
  return blocks.map((block, index): Item => {
    const key = String(index);
    if (isText(block)) return { kind: 'text', key, text: block, isOpen: false };
    if (isObject(block)) {
      const { type, text } = block;
      if (type === 'text' && isText(text)) return { kind: 'text', key, text, isOpen: false };
      if (type === 'reasoning' && isText(text)) return { kind: 'reasoning', key, text, isOpen: false };
      if (type === 'note' && isText(text)) return { kind: 'note', key, note: 'text', text };
      if (type === 'tool_use') return readTool(block, key);
      if (type === 'file' && isText(block['path'])) return { kind: 'file', key, path: block['path'] };
      if (type === 'image') return { kind: 'image', key, source: block['source'] ?? block['image'] ?? block };
    }
    return { kind: 'text', key, text: `\`\`\`json\n${JSON.stringify(block, null, 2)}\n\`\`\``, isOpen: false };
  });
}

/** The address of an image that a message has; only bytes of an image type, never another host. */
export function imageAddress(source: unknown): string | undefined {
  if (!isObject(source)) return undefined;
  const { media_type: type, data, url } = source;
  if (isText(type) && isText(data) && /^image\/(?:png|jpeg|gif|webp)$/.test(type) && /^[A-Za-z0-9+/=\s]+$/.test(data)) return `data:${type};base64,${data}`;
  return isText(url) && /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+$/.test(url) ? url : undefined;
}

/** The last note of an answer that failed says why. */
export function markFailure(items: Item[]): Item[] {
  const last = items.at(-1);
  return last?.kind === 'note' ? items.with(items.length - 1, { ...last, isBad: true }) : items;
}

/** The text of a message: what somebody copies or edits. */
export function textOf(items: readonly Item[]): string {
  return items.flatMap((item) => (item.kind === 'text' ? [item.text] : [])).join('\n\n');
}

/** Whether more of the answer will arrive without a decision. */
export const isAnswering = (answer: Answer | undefined): boolean => answer !== undefined && !isFinal(answer.status) && answer.status !== 'awaiting_approval';
