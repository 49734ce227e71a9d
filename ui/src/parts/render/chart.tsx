/** Bars, lines and pies without a library. The same figures can be shown as a table. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useMemo, useState } from 'react';
import { useI18n } from '@/i18n';
import { visibleText } from '../format';
import classes from '../parts.module.css';
import { axisTicks, pieSlices, type ChartData } from './chart-data';
import { TableView } from './table';

const HEIGHT = 280;
const MARGIN = { top: 8, right: 12, bottom: 26, left: 52 };
const LABEL_WIDTH = 70;
const color = (index: number) => `var(--haft-series-${index % 8})`;

function Legend({ items }: { items: { label: string; note?: string }[] }) {
  return (
    <Group gap="md" component="ul" className={classes.legend}>
      {items.map((item, index) => <li key={index}><span className={classes.swatch} style={{ background: color(index) }} aria-hidden /><Text span size="xs">{visibleText(item.label)}</Text>{item.note && <Text span size="xs" c="dimmed"> {item.note}</Text>}</li>)}
    </Group>
  );
}

function Axes({ data, width }: { data: ChartData; width: number }) {
  const { language } = useI18n();
  const inner = { width: Math.max(60, width - MARGIN.left - MARGIN.right), height: HEIGHT - MARGIN.top - MARGIN.bottom };
  const ticks = axisTicks(data.series.flatMap((series) => series.values), data.kind);
  const [low, high] = [ticks[0] ?? 0, ticks.at(-1) ?? 1];
  const y = (value: number) => MARGIN.top + inner.height * (1 - (value - low) / (high - low));
  const count = Math.max(1, data.labels.length);
  const band = inner.width / count;
  const middle = (index: number) => MARGIN.left + band * (index + 0.5);
  const every = Math.max(1, Math.ceil(count / Math.max(1, Math.floor(inner.width / LABEL_WIDTH))));
  const format = new Intl.NumberFormat(language, { maximumSignificantDigits: 6, ...(Math.max(Math.abs(low), Math.abs(high)) >= 1e5 ? { notation: 'compact' as const } : {}) });
  const bar = (band * 0.72) / data.series.length;
  return (
    <>
      {ticks.map((tick) => (
        <g key={tick}>
          <line x1={MARGIN.left} x2={MARGIN.left + inner.width} y1={y(tick)} y2={y(tick)} className={tick === 0 ? classes.axisZero : classes.axisLine} />
          <text x={MARGIN.left - 8} y={y(tick)} className={classes.axisText} textAnchor="end" dominantBaseline="middle">{format.format(tick)}</text>
        </g>
      ))}
      {data.labels.map((label, index) => index % every === 0 && <text key={index} x={middle(index)} y={HEIGHT - 8} className={classes.axisText} textAnchor="middle">{visibleText(label.length > 12 ? `${label.slice(0, 11)}…` : label)}</text>)}
      {data.series.map((series, at) => (data.kind === 'bar' ? (
        <g key={at} fill={color(at)}>
          {series.values.map((value, index) => value !== null && (
            <rect key={index} x={middle(index) - (bar * data.series.length) / 2 + bar * at} width={Math.max(1, bar - 1)} y={Math.min(y(value), y(Math.max(low, 0)))} height={Math.max(1, Math.abs(y(value) - y(Math.max(low, 0))))}>
              <title>{`${visibleText(data.labels[index] ?? '')} · ${visibleText(series.name)}: ${value.toLocaleString(language)}`}</title>
            </rect>
          ))}
        </g>
      ) : (
        <g key={at} stroke={color(at)} fill="none">
          <path strokeWidth={2} strokeLinejoin="round" d={linePath(series.values, middle, y)} />
          {count <= 60 && series.values.map((value, index) => value !== null && <circle key={index} cx={middle(index)} cy={y(value)} r={3} fill={color(at)} stroke="none"><title>{`${visibleText(data.labels[index] ?? '')} · ${visibleText(series.name)}: ${value.toLocaleString(language)}`}</title></circle>)}
        </g>
      )))}
    </>
  );
}

/** A gap where a value is missing. */
export function linePath(values: readonly (number | null)[], x: (index: number) => number, y: (value: number) => number): string {
  let isOpen = false;
  return values.map((value, index) => {
    if (value === null) {
      isOpen = false;
      return '';
    }
    const command = `${isOpen ? 'L' : 'M'}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    isOpen = true;
    return command;
  }).filter(Boolean).join(' ');
}

function Pie({ data }: { data: ChartData }) {
  const { language } = useI18n();
  const slices = pieSlices(data);
  const percent = new Intl.NumberFormat(language, { style: 'percent', maximumFractionDigits: 1 });
  return (
    <Group gap="xl" align="center">
      <svg viewBox="-1.02 -1.02 2.04 2.04" width={220} height={220} role="img" aria-label={data.series[0]?.name}>
        {slices.map((slice, index) => <path key={index} d={slice.path} fill={color(index)} className={classes.slice}><title>{`${visibleText(slice.label)}: ${slice.value.toLocaleString(language)} (${percent.format(slice.share)})`}</title></path>)}
      </svg>
      <Legend items={slices.map((slice) => ({ label: slice.label, note: `${slice.value.toLocaleString(language)} · ${percent.format(slice.share)}` }))} />
    </Group>
  );
}

export function ChartView({ data, title }: { data: ChartData; title: string }) {
  const { t } = useI18n();
  const { ref, width } = useElementSize();
  const [isTable, setTable] = useState(false);
  const table = useMemo(() => ({
    columns: [{ key: 'label', label: t('render.category') }, ...data.series.map((series, index) => ({ key: `s${index}`, label: series.name }))],
    rows: data.labels.map((label, index) => ({ label, ...Object.fromEntries(data.series.map((series, at) => [`s${at}`, series.values[index]])) })),
  }), [data, t]);
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Text fw={600}>{visibleText(title)}</Text>
        <Button variant="subtle" size="compact-xs" onClick={() => setTable(!isTable)}>{t(isTable ? 'render.asChart' : 'render.asTable')}</Button>
      </Group>
      {isTable ? <TableView data={table} name={title || 'chart'} /> : data.kind === 'pie' ? <Pie data={data} /> : (
        <>
          <div ref={ref} style={{ width: '100%' }}>
            <svg width="100%" height={HEIGHT} role="img" aria-label={`${title} ${data.series.map((series) => series.name).join(', ')}`.trim()}>{width > 0 && <Axes data={data} width={width} />}</svg>
          </div>
          {data.series.length > 1 && <Legend items={data.series.map((series) => ({ label: series.name }))} />}
        </>
      )}
      {data.left > 0 && <Text size="xs" c="dimmed">{t('json.moreItems', { n: data.left })}</Text>}
    </Stack>
  );
}
