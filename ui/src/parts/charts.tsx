/** Small charts without a library: sparkline, histogram over time, waterfall. */
import { Group, Text, Tooltip } from '@mantine/core';
import { useRef, useState } from 'react';
import { useI18n } from '@/i18n';
import { duration } from './format';
import classes from './parts.module.css';
import { placeBuckets, type Bucket } from './buckets';
import type { WaterfallRow } from './waterfall';

export function Sparkline({ values, label, bad = false, height = 36 }: { values: number[]; label: string; bad?: boolean; height?: number }) {
  const max = Math.max(1, ...values);
  const width = 100 / Math.max(1, values.length);
  return (
    <svg viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" width="100%" height={height} role="img" aria-label={label}>
      {values.map((value, index) => {
        const size = value === 0 ? 0.6 : Math.max(2, (value / max) * (height - 2));
        return <rect key={index} className={value === 0 ? classes.barOther : bad ? classes.barBad : classes.bar} x={index * width + width * 0.12} width={width * 0.76} y={height - size} height={size} />;
      })}
    </svg>
  );
}


interface HistogramProps {
  buckets: Bucket[];
  from: number;
  to: number;
  label: string;
  onRange?: (from: number, to: number) => void;
}

/** Calls over time; dragging selects a range. */
export function Histogram({ buckets, from, to, label, onRange }: HistogramProps) {
  const { t, language } = useI18n();
  const box = useRef<SVGSVGElement>(null);
  const [drag, setDrag] = useState<[number, number]>();
  const height = 56;
  const max = Math.max(1, ...buckets.map((bucket) => bucket.success + bucket.error + bucket.other));
  const place = placeBuckets(buckets, from, to);
  const at = (clientX: number) => {
    const bounds = box.current?.getBoundingClientRect();
    return bounds ? Math.max(0, Math.min(100, ((clientX - bounds.left) / bounds.width) * 100)) : 0;
  };
  const timeLabel = (time: number) => new Date(time).toLocaleString(language, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' });
  return (
    <div>
      <svg ref={box} viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" width="100%" height={height} role="img" aria-label={label}
        style={{ cursor: onRange ? 'crosshair' : undefined, touchAction: 'pan-y' }}
        onPointerDown={(event) => { if (onRange) { event.currentTarget.setPointerCapture(event.pointerId); const x = at(event.clientX); setDrag([x, x]); } }}
        onPointerMove={(event) => setDrag((current) => (current ? [current[0], at(event.clientX)] : undefined))}
        onPointerUp={() => {
          if (drag && onRange && Math.abs(drag[0] - drag[1]) > 1) {
            const [a, b] = [Math.min(...drag), Math.max(...drag)];
            onRange(from + ((to - from) * a) / 100, from + ((to - from) * b) / 100);
          }
          setDrag(undefined);
        }}>
        {buckets.map((bucket, index) => {
          const parts: [number, string | undefined][] = [[bucket.success, classes.bar], [bucket.other, classes.barOther], [bucket.error, classes.barBad]];
          let y = height;
          const { x, width } = place[index] ?? { x: 0, width: 0 };
          return (
            <g key={bucket.at}>
              <title>{t('chart.bucket', { time: timeLabel(Date.parse(bucket.at)), n: bucket.success + bucket.other + bucket.error, failed: bucket.error })}</title>
              <rect x={x} width={width} y={0} height={height} fill="transparent" />
              {parts.map(([value, name], part) => {
                const size = (value / max) * (height - 4);
                y -= size;
                return value > 0 ? <rect key={part} className={name} x={x + width * 0.1} width={width * 0.8} y={y} height={size} /> : null;
              })}
            </g>
          );
        })}
        <rect x={0} y={height - 0.7} width={100} height={0.7} className={classes.barOther} />
        {drag && <rect x={Math.min(...drag)} width={Math.abs(drag[0] - drag[1])} y={0} height={height} fill="currentColor" opacity={0.15} />}
      </svg>
      <Group justify="space-between"><Text size="xs" c="dimmed">{timeLabel(from)}</Text><Text size="xs" c="dimmed">{timeLabel(to)}</Text></Group>
    </div>
  );
}

export function Waterfall({ rows, total }: { rows: WaterfallRow[]; total: number }) {
  return (
    <div role="list">
      {rows.map((row) => (
        <div key={row.name} className={classes.waterRow} role="listitem">
          <Tooltip label={row.hint}><span>{row.label}</span></Tooltip>
          <div className={classes.waterTrack}>
            <div className={classes.waterBar} style={{ left: `${row.start * 100}%`, width: `${row.width * 100}%` }} />
          </div>
          <Text ta="right" c="dimmed" style={{ fontVariantNumeric: 'tabular-nums' }}>{duration(row.ms)}</Text>
        </div>
      ))}
      <div className={classes.waterRow} role="listitem"><strong>Σ</strong><span /><Text ta="right" fw={600}>{duration(total)}</Text></div>
    </div>
  );
}
