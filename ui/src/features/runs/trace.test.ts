import { expect, it } from 'vitest';
import type { RunStep, StepBody } from '@/api/run-types';
import { layoutTrace } from './trace';

const usage = { cost: 0.5, currency: 'EUR', answers: 1, calls: 0, input_tokens: 1, output_tokens: 1, cached_tokens: 0, active_ms: 0 };
const answer: StepBody = { type: 'answer', model: 'm', content: [], finish_reason: 'stop', usage };
const result = (call: string, index = 0): StepBody => ({ type: 'result', answer: 1, index, id: 'c', name: 'deploy', tool: 'b:deploy@1', args: {}, call_id: call, status: 'success', text: '' });
const waiting: StepBody = { type: 'waiting', answer: 1, index: 0, id: 'c', name: 'deploy', args: {}, call_id: 'k', approval_id: 'p' };
const step = (number: number, body: StepBody, from: number, ms: number): RunStep => ({ number, body, started_at: new Date(from).toISOString(), duration_ms: ms });
const rounded = (value: number) => Math.round(value * 1000) / 1000;

it('lays out models and tools over the time that they took', () => {
  const { spans, totalMs, cutMs } = layoutTrace([step(1, answer, 1000, 100), step(2, result('k'), 1100, 300), step(3, answer, 1400, 100)], 9999);
  expect(spans.map(({ kind, start, width, depth }) => [kind, rounded(start), rounded(width), depth])).toEqual([['model', 0, 0.2, 0], ['tool', 0.2, 0.6, 1], ['model', 0.8, 0.2, 0]]);
  expect([totalMs, cutMs]).toEqual([500, 0]);
  expect(spans[1]?.name).toBe('b:deploy@1');
});

it('parallel calls overlap', () => {
  const { spans } = layoutTrace([step(1, result('a'), 0, 100), step(2, result('b', 1), 0, 50)], 0);
  expect(spans.map(({ start, width }) => [start, width])).toEqual([[0, 1], [0, 0.5]]);
});

it('cuts the hours for which a person was awaited', () => {
  const hour = 3_600_000;
  const steps = [step(1, answer, 0, 100), step(2, waiting, 100, 0), step(3, { type: 'decided', approval_id: 'p', call_id: 'k', approved: true }, hour, 0), step(4, result('k'), hour, 100)];
  const { spans, totalMs, cutMs } = layoutTrace(steps, hour);
  expect(totalMs).toBe(hour + 100);
  expect(cutMs).toBeGreaterThan(hour * 0.99);
  const [model, wait, tool] = spans;
  expect(wait).toMatchObject({ kind: 'wait', status: 'approved' });
  // What ran is still to be seen.
  expect(model?.width).toBeGreaterThan(0.3);
  expect(tool?.width).toBeGreaterThan(0.3);
  expect(rounded((tool?.start ?? 0) + (tool?.width ?? 0))).toBe(1);
});

it('a wait goes on until somebody decides; a denial is one', () => {
  const open = layoutTrace([step(1, answer, 0, 100), step(2, waiting, 100, 0)], 200).spans[1];
  expect(open).toMatchObject({ status: 'awaiting_approval', to: 200 });
  const denied = layoutTrace([step(1, waiting, 0, 0), step(2, { type: 'decided', approval_id: 'p', call_id: 'k', approved: false }, 50, 0)], 99).spans[0];
  expect(denied).toMatchObject({ status: 'denied', to: 50 });
});

it('shows what runs now, and nothing for no steps', () => {
  expect(layoutTrace([], 0)).toEqual({ spans: [], totalMs: 0, cutMs: 0 });
  const { spans } = layoutTrace([step(1, answer, 0, 100)], 200, 0);
  expect(spans.at(-1)).toMatchObject({ status: 'running', from: 100, to: 200 });
  expect(layoutTrace([], 50, 10).spans[0]).toMatchObject({ from: 10, to: 50, start: 0, width: 1 });
});
