import { expect, it } from 'vitest';
import type { RunEvent } from '@/api/run-types';
import { emptyAnswer, imageAddress, isAnswering, readContent, reduceAnswer, textOf, type Answer, type ToolItem } from './answer';

const usage = { cost: 0.5, currency: 'EUR', answers: 1, calls: 0, input_tokens: 10, output_tokens: 5, cached_tokens: 0, active_ms: 3 };
const play = (events: RunEvent[], from: Answer = emptyAnswer()) => events.reduce(reduceAnswer, from);
const call = (change: Partial<Extract<RunEvent, { type: 'tool_use' }>> = {}): RunEvent => ({ type: 'tool_use', answer: 1, index: 0, id: 'c1', name: 'weather', tool: 'demo:weather@1', args: { city: 'Oslo' }, status: 'running', ...change });
const asks: RunEvent = { type: 'approval_request', approval_id: 'p1', call_id: 'k1', id: 'c1', tool: 'demo:weather@1', args: {}, expires_at: '2026-01-01T00:00:00Z' };
const tools = (answer: Answer) => answer.items.filter((item): item is ToolItem => item.kind === 'tool');

it('pieces become the stored answer, whatever arrived of them', () => {
  const answer = play([
    { type: 'start', run_id: 'r', agent: 'a' }, { type: 'reasoning_delta', text: 'hm' }, { type: 'text_delta', text: 'Hel' }, { type: 'text_delta', text: 'lo' },
  ]);
  expect(answer.items.map((item) => [item.kind, item.kind === 'text' ? item.text : ''])).toEqual([['reasoning', ''], ['text', 'Hello']]);
  const done = play([{ type: 'answer', step: 1, model: 'm', text: 'Hello!', reasoning: 'hmm', usage }], answer);
  expect(textOf(done.items)).toBe('Hello!');
  expect(done.items.map((item) => item.kind)).toEqual(['reasoning', 'text']);
  // Read again from the stored steps, it is the same.
  expect(play([{ type: 'answer', step: 1, model: 'm', text: 'Hello!', reasoning: 'hmm', usage }]).items).toEqual(done.items);
});

it('a call has one card from its start to its end; late events do not bring it back', () => {
  const answer = play([call(), call({ status: 'success', call_id: 'k1', output: 21, duration_ms: 12 }), call()]);
  expect(tools(answer)).toHaveLength(1);
  expect(tools(answer)[0]).toMatchObject({ status: 'success', callId: 'k1', output: 21, durationMs: 12, tool: 'demo:weather@1' });
});

it('two calls with one id stay two cards', () => {
  expect(tools(play([call(), call({ index: 1 }), call({ index: 1, status: 'error', error: { code: 'x', message: 'no' } })])).map((item) => item.status)).toEqual(['running', 'error']);
});

it('the text of an answer stands above its calls', () => {
  const answer = play([call(), { type: 'answer', step: 1, model: 'm', text: 'I look it up.', usage }]);
  expect(answer.items.map((item) => item.kind)).toEqual(['text', 'tool']);
});

it('a call waits, is decided, and goes on', () => {
  const waiting = play([call({ status: 'awaiting_approval', call_id: 'k1' }), asks, { type: 'end', run_id: 'r', status: 'awaiting_approval', usage }]);
  expect(tools(waiting)[0]).toMatchObject({ status: 'awaiting_approval', approvalId: 'p1', callId: 'k1' });
  expect(isAnswering(waiting)).toBe(false);
  expect(tools(play([{ type: 'approval_decided', approval_id: 'p1', call_id: 'k1', approved: true }], waiting))[0]?.status).toBe('running');
  expect(tools(play([{ type: 'approval_decided', approval_id: 'p1', call_id: 'k1', approved: false }], waiting))[0]?.status).toBe('denied');
  // Without a card before: one is made.
  expect(tools(play([asks]))[0]).toMatchObject({ status: 'awaiting_approval', approvalId: 'p1' });
});

it('says how it ended', () => {
  const stopped = play([{ type: 'text_delta', text: 'half' }, { type: 'end', run_id: 'r', status: 'cancelled', usage }]);
  expect(stopped.items.map((item) => (item.kind === 'note' ? item.note : item.kind))).toEqual(['text', 'stopped']);
  expect(stopped.items.some((item) => item.kind === 'text' && item.isOpen)).toBe(false);
  const failed = play([{ type: 'end', run_id: 'r', status: 'error', error: { code: 'auth', message: 'no key' }, usage }]);
  expect(failed.items).toEqual([{ kind: 'note', key: 'end', note: 'error', text: 'no key' }]);
  expect(failed.usage).toBe(usage);
});

it('leaves out what it does not know', () => {
  const before = play([{ type: 'start', run_id: 'r', agent: 'a' }]);
  expect(reduceAnswer(before, { type: 'something_new' } as never)).toBe(before);
});

it('reads stored messages: texts, blocks, and what is neither', () => {
  expect(readContent('hi')).toMatchObject([{ kind: 'text', text: 'hi' }]);
  expect(readContent('')).toEqual([]);
  expect(readContent(null)).toEqual([]);
  const items = readContent([{ type: 'text', text: 'a' }, { type: 'tool_use', id: 'c', name: 'n', args: { x: 1 }, status: 'denied', call_id: 'k', duration_ms: 2 }, { type: 'note', text: 'stopped' }, { type: 'other', x: 1 }, 7, { type: 'file', path: 'a.csv' }]);
  expect(items.map((item) => item.kind)).toEqual(['text', 'tool', 'note', 'text', 'text', 'file']);
  expect(items[1]).toMatchObject({ status: 'denied', callId: 'k', durationMs: 2 });
});

it('shows bytes of images and no other address', () => {
  expect(imageAddress({ type: 'base64', media_type: 'image/png', data: 'aGk=' })).toBe('data:image/png;base64,aGk=');
  expect(imageAddress({ type: 'url', url: 'https://example.com/a.png' })).toBeUndefined();
  expect(imageAddress({ media_type: 'text/html', data: 'aGk=' })).toBeUndefined();
});
