/** The trace: one row per span, its place in time, its cost; a row opens to show the step. */
import { Text } from '@mantine/core';
import { IconArrowsMinimize, IconHandStop, IconSparkles, IconTool, type Icon } from '@tabler/icons-react';
import { useMemo, useState } from 'react';
import { isFinal, type Run, type RunStep } from '@/api/run-types';
import { useI18n, useT, type Translate } from '@/i18n';
import { duration, visibleText } from '@/parts/format';
import { shortName } from '@/parts/links';
import { StatusBadge } from '@/parts/status';
import { useNow } from '@/parts/time';
import { cost } from '@/parts/usage';
import classes from './runs.module.css';
import { StepDetail } from './step-detail';
import { layoutTrace, type Span, type SpanKind } from './trace';

const ICONS: Record<SpanKind, Icon> = { model: IconSparkles, tool: IconTool, wait: IconHandStop, note: IconArrowsMinimize };
const BAD = new Set(['error', 'denied', 'interrupted', 'expired']);
const LIVE_MS = 500;
const STILL_MS = 60_000;

function label(span: Span, t: Translate): string {
  if (span.status === 'running' && span.step === undefined) return t('runs.now');
  if (span.kind === 'note') return t(span.name === 'shortened' ? 'runs.shortenedName' : 'runs.correctionName');
  return visibleText(span.kind === 'model' ? span.name : shortName(span.name));
}

function stepUsage(step: RunStep | undefined) {
  return step && 'usage' in step.body ? step.body.usage : undefined;
}

function Row({ span, isOpen, onToggle }: { span: Span; isOpen: boolean; onToggle: () => void }) {
  const { t, language } = useI18n();
  const Shape = ICONS[span.kind];
  const usage = stepUsage(span.step);
  const tokens = usage ? usage.input_tokens + usage.output_tokens : 0;
  const money = tokens > 0 && usage ? cost(usage, language) : undefined;
  return (
    <button type="button" className={classes.row} aria-expanded={span.step ? isOpen : undefined} data-still={span.step === undefined} disabled={span.step === undefined} onClick={onToggle}>
      <StatusBadge status={span.status} iconOnly />
      <span className={classes.name} style={{ paddingLeft: span.depth * 14 }}><Shape size={14} aria-hidden /><span title={span.name}>{label(span, t)}</span></span>
      <span className={classes.track} aria-hidden><span className={classes.bar} data-kind={span.kind} data-bad={BAD.has(span.status)} style={{ left: `${span.start * 100}%`, width: `${span.width * 100}%` }} /></span>
      <span className={`${classes.number} ${classes.tokens}`}>{tokens > 0 ? t('usage.tokens', { n: tokens }) : ''}{money && <><br />{money}</>}</span>
      <span className={classes.number}>{duration(span.to - span.from)}</span>
    </button>
  );
}

export function TraceView({ run, steps, children }: { run: Run; steps: readonly RunStep[]; children: readonly Run[] }) {
  const t = useT();
  const isOpenRun = !isFinal(run.status);
  const now = useNow(isOpenRun ? LIVE_MS : STILL_MS);
  const [open, setOpen] = useState<string>();
  const since = run.status === 'running' ? Date.parse(run.started_at ?? run.created_at) : undefined;
  const trace = useMemo(() => layoutTrace(steps, isOpenRun ? now : Date.parse(run.finished_at ?? run.created_at), since), [steps, isOpenRun, now, since, run.finished_at, run.created_at]);
  if (trace.spans.length === 0) return <Text c="dimmed">{t('runs.noSteps')}</Text>;
  return (
    <div>
      <div className={classes.legend} aria-hidden>
        {(['model', 'tool', 'wait'] as const).map((kind) => <span key={kind}><span className={classes.swatch}><span className={classes.bar} data-kind={kind} style={{ left: 0, width: '100%' }} /></span>{t(`runs.kind.${kind}`)}</span>)}
      </div>
      <div role="list" aria-label={t('runs.trace')}>
        {trace.spans.map((span) => (
          <div key={span.key} role="listitem">
            <Row span={span} isOpen={open === span.key} onToggle={() => setOpen(open === span.key ? undefined : span.key)} />
            {open === span.key && span.step && <div className={classes.detail}><StepDetail step={span.step}>{children.filter((child) => span.step?.body.type === 'result' && child.parent_call_id !== undefined && child.parent_call_id === span.step.body.call_id)}</StepDetail></div>}
          </div>
        ))}
      </div>
      {trace.cutMs > 0 && <Text size="xs" c="dimmed" mt={4}>{t('runs.cut', { time: duration(trace.cutMs) })}</Text>}
    </div>
  );
}
