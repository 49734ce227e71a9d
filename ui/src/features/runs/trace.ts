/** The steps of a run as spans over time: models, tools, and waiting for people. */
import type { RunStep, StepBody } from '@/api/run-types';

export type SpanKind = 'model' | 'tool' | 'wait' | 'note';

export interface Span {
  key: string;
  kind: SpanKind;
  step: RunStep | undefined;
  /** The name of the tool or of the model. */
  name: string;
  depth: number;
  status: string;
  from: number;
  to: number;
  /** Fractions of the whole width. */
  start: number;
  width: number;
}

export interface Trace {
  spans: Span[];
  /** From the first step to the last, waiting included. */
  totalMs: number;
  /** Time without any activity that is drawn shorter than it was. */
  cutMs: number;
}

type Placed = Omit<Span, 'start' | 'width'>;

const nameOf = (body: { name: string; tool?: string | null | undefined }) => body.tool ?? body.name;

/** When a call that waited was decided, or went on. */
function decidedAt(steps: readonly RunStep[], wait: Extract<StepBody, { type: 'waiting' }>): number | undefined {
  const end = steps.find(({ body }) => (body.type === 'decided' && body.call_id === wait.call_id) || (body.type === 'result' && body.call_id === wait.call_id));
  return end && Date.parse(end.started_at);
}

function place(step: RunStep, steps: readonly RunStep[], now: number): Placed | undefined {
  const { body } = step;
  const from = Date.parse(step.started_at);
  const to = from + Math.max(0, step.duration_ms);
  const common = { key: String(step.number), step, from, to };
  switch (body.type) {
    case 'answer': return { ...common, kind: 'model', name: body.model, depth: 0, status: 'success' };
    case 'result': return { ...common, kind: 'tool', name: nameOf(body), depth: 1, status: body.status };
    case 'waiting': {
      const end = decidedAt(steps, body);
      return { ...common, kind: 'wait', name: nameOf(body), depth: 1, to: Math.max(from, end ?? now), status: end === undefined ? 'awaiting_approval' : 'approved' };
    }
    case 'shortened': return { ...common, kind: 'note', name: 'shortened', depth: 0, status: 'success' };
    case 'correction': return { ...common, kind: 'note', name: 'correction', depth: 0, status: 'warning' };
    case 'decided': return undefined;
  }
}

/** A denied wait is known from the decision. */
function withDecision(span: Placed, steps: readonly RunStep[]): Placed {
  const body = span.step?.body;
  if (body?.type !== 'waiting') return span;
  const decision = steps.find((step) => step.body.type === 'decided' && step.body.call_id === body.call_id)?.body;
  return decision?.type === 'decided' ? { ...span, status: decision.approved ? 'approved' : 'denied' } : span;
}

const GAP_SHARE = 0.15;
const MIN_GAP_MS = 20;

/** Positions on an axis on which long stretches without activity are cut short. */
function axis(spans: readonly Placed[]): { at: (time: number) => number; length: number; cutMs: number } {
  const active = spans.filter((span) => span.kind !== 'wait').map(({ from, to }) => ({ from, to })).toSorted((a, b) => a.from - b.from);
  const merged: { from: number; to: number }[] = [];
  for (const each of active) {
    const last = merged.at(-1);
    if (last && each.from <= last.to) last.to = Math.max(last.to, each.to);
    else merged.push({ ...each });
  }
  const first = Math.min(...spans.map((span) => span.from));
  const end = Math.max(...spans.map((span) => span.to));
  const busy = merged.reduce((sum, each) => sum + each.to - each.from, 0);
  const limit = Math.max(MIN_GAP_MS, busy * GAP_SHARE);
  const gaps: { from: number; to: number }[] = [];
  let at = first;
  for (const each of [...merged, { from: end, to: end }]) {
    if (each.from - at > limit) gaps.push({ from: at, to: each.from });
    at = Math.max(at, each.to);
  }
  const position = (time: number) => gaps.reduce((offset, gap) => {
    const inside = Math.max(0, Math.min(time, gap.to) - gap.from);
    return offset - inside * (1 - limit / (gap.to - gap.from));
  }, time - first);
  return { at: position, length: Math.max(0.001, position(end)), cutMs: gaps.reduce((sum, gap) => sum + gap.to - gap.from - limit, 0) };
}

/** `openSince`: something runs now that is not stored yet; it is shown from the last known time until `now`. */
export function layoutTrace(steps: readonly RunStep[], now: number, openSince?: number): Trace {
  const placed = steps.flatMap((step) => place(step, steps, now) ?? []).map((span) => withDecision(span, steps));
  if (openSince !== undefined) {
    const from = Math.max(openSince, ...placed.map((span) => span.to));
    placed.push({ key: 'now', kind: 'model', step: undefined, name: '', depth: 0, status: 'running', from: Math.min(from, now), to: now });
  }
  if (placed.length === 0) return { spans: [], totalMs: 0, cutMs: 0 };
  const { at, length, cutMs } = axis(placed);
  const spans = placed.map((span): Span => ({ ...span, start: at(span.from) / length, width: Math.max(0, at(span.to) - at(span.from)) / length }));
  return { spans, totalMs: Math.max(...placed.map((span) => span.to)) - Math.min(...placed.map((span) => span.from)), cutMs };
}
