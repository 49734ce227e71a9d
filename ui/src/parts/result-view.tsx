/** The result of a call: rendered, raw, output of the process, time per step. */
import { Anchor, Badge, Group, Image, Stack, Table, Tabs, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Suspense, useMemo, useState, type ReactNode } from 'react';
import { missingAccount } from '@/api/error';
import type { OutputLine } from '@/api/invoke';
import { resultDownload, resultQuery } from '@/api/rendering';
import type { Call, StepTimes } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { toLines } from './ansi';
import { CodeBlock, Facts } from './basics';
import { ConnectAccount } from './connect-account';
import { Waterfall } from './charts';
import { bytes, visibleText } from './format';
import { JsonView } from './json-view';
import { lazyPart } from './lazy';
import { Markdown } from './markdown';
import { Loading } from './page';
import { resultKind } from './result';
import { OutputView, TextView } from './text-view';
import { layoutSteps } from './waterfall';

// Editor, table and charts load with the first result that has a render plan.
const RenderedResult = lazyPart(async () => (await import('./render')).default);

const MAX_ROWS = 200;
const LONG_TEXT = 4000;
/** Larger results are only described, and can be saved. */
const MAX_LOADED = 16 * 1024 * 1024;

function Rendered({ value }: { value: unknown }) {
  const t = useT();
  const kind = useMemo(() => resultKind(value), [value]);
  switch (kind.kind) {
    case 'none':
      return <Text c="dimmed">{t('result.nothing')}</Text>;
    case 'image':
      return <Image src={kind.src} alt={t('result.image')} fit="contain" mah={480} />;
    case 'text':
      return kind.text.length > LONG_TEXT || kind.text.includes('\u001B') ? <TextView text={kind.text} label={t('result.rendered')} /> : <Markdown text={kind.text} />;
    case 'table':
      return (
        <Table.ScrollContainer minWidth={400} mah={420}>
          <Table striped stickyHeader verticalSpacing={4}>
            <Table.Thead><Table.Tr>{kind.columns.map((column) => <Table.Th key={column}>{visibleText(column)}</Table.Th>)}</Table.Tr></Table.Thead>
            <Table.Tbody>
              {kind.rows.slice(0, MAX_ROWS).map((row, index) => (
                <Table.Tr key={index}>{kind.columns.map((column) => <Table.Td key={column}>{visibleText(String(row[column] ?? '').slice(0, 300))}</Table.Td>)}</Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
          {kind.rows.length > MAX_ROWS && <Text c="dimmed" size="xs">{t('json.moreItems', { n: kind.rows.length - MAX_ROWS })}</Text>}
        </Table.ScrollContainer>
      );
    case 'json':
      return <JsonView value={value} />;
  }
}

/** Says that the result is stored apart, and where to get it whole. */
function LargeNote({ call, size }: { call: string; size: number }) {
  const t = useT();
  return (
    <Group gap="sm">
      <Text c="dimmed">{t('result.large', { size: bytes(size) })}</Text>
      <Anchor href={resultDownload(call)} download>{t('result.download')}</Anchor>
    </Group>
  );
}

/** The value of a call; one that is stored apart is loaded first. */
function Whole({ call, value, children }: { call: Call; value: unknown; children: (value: unknown) => ReactNode }) {
  const isApart = call.stored_bytes !== undefined && call.stored_bytes <= MAX_LOADED;
  const { data, error, isPending } = useQuery({ ...resultQuery(call.id, ''), enabled: isApart });
  if (!isApart || error) return children(value);
  return isPending ? <Loading rows={4} /> : children(data);
}

/** The result as its render plan says; without a plan, as its value suggests. */
export function Planned({ call, value }: { call: Call; value: unknown }) {
  const plan = call.render_plan;
  const plain = <Whole call={call} value={value}>{(whole) => <Rendered value={whole} />}</Whole>;
  const shown = plan ? <Suspense fallback={<Loading rows={4} />}><RenderedResult call={call} plan={plan} fallback={plain} /></Suspense> : plain;
  return call.stored_bytes === undefined ? shown : <Stack gap="sm"><LargeNote call={call.id} size={call.stored_bytes} />{shown}</Stack>;
}

function Raw({ value }: { value: unknown }) {
  const t = useT();
  const text = useMemo(() => (typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '')), [value]);
  return text.length > LONG_TEXT * 5 ? <TextView text={text} label={t('result.raw')} /> : <CodeBlock text={text} wrap maxHeight="26rem" />;
}

export function Steps({ steps, total }: { steps: StepTimes; total: number }) {
  const t = useT();
  const rows = layoutSteps(steps, total, (name) => ({ label: t(`step.${name}` as MessageKey), hint: t(`step.${name}.hint` as MessageKey) }));
  return <Waterfall rows={rows} total={total} />;
}

function streamLines(stream: OutputLine['stream'], text: string | undefined): OutputLine[] {
  return text ? toLines(text.replace(/\n$/, '')).map((line) => ({ stream, text: line })) : [];
}

function processLines({ process }: Call): OutputLine[] {
  return [...streamLines('stdout', process?.stdout), ...streamLines('stderr', process?.stderr)];
}

interface ResultProps {
  call: Call | undefined;
  lines?: OutputLine[];
  isRunning?: boolean;
  header?: ReactNode;
}

export function ResultView({ call, lines = [], isRunning = false, header }: ResultProps) {
  const t = useT();
  const output = useMemo(() => (call && lines.length === 0 ? processLines(call) : lines), [call, lines]);
  const [chosen, setChosen] = useState<string>();
  const tab = chosen ?? (isRunning && output.length > 0 ? 'output' : 'rendered');
  const value = call?.content && call.content.length > 0 ? call.content : call?.value;
  return (
    <Tabs value={tab} onChange={(next) => setChosen(next ?? undefined)}>
      <Tabs.List mb="md">
        <Tabs.Tab value="rendered">{t('result.rendered')}</Tabs.Tab>
        <Tabs.Tab value="raw">{t('result.raw')}</Tabs.Tab>
        <Tabs.Tab value="output" rightSection={output.length > 0 ? <Badge size="xs" variant="default">{output.length}</Badge> : undefined}>{t('result.output')}</Tabs.Tab>
        <Tabs.Tab value="steps">{t('result.steps')}</Tabs.Tab>
        {header}
      </Tabs.List>
      <Tabs.Panel value="rendered">
        {call?.error && (
          <Stack gap="xs" mb="md">
            <Group gap="xs"><Badge color="red" variant="outline">{call.error.code}</Badge>{call.error.retryable && <Text size="xs" c="dimmed">{t('result.retryable')}</Text>}</Group>
            <CodeBlock text={visibleText(call.error.message.slice(0, 20_000))} wrap maxHeight="16rem" />
            {missingAccount(call.error) && <div><ConnectAccount provider={missingAccount(call.error) ?? ''} /></div>}
            {call.error.details && <JsonView value={call.error.details} />}
          </Stack>
        )}
        {call?.body_removed ? <Text c="dimmed">{t('result.removed')}</Text> : call && (!call.error || (call.render_plan && !call.render_plan.error)) && <Planned call={call} value={value} />}
        {!call && isRunning && <Text c="dimmed">{t('result.running')}</Text>}
      </Tabs.Panel>
      <Tabs.Panel value="raw">{call && <Whole call={call} value={call.error ?? value ?? null}>{(whole) => <Raw value={whole} />}</Whole>}</Tabs.Panel>
      <Tabs.Panel value="output">
        {output.length === 0 ? <Text c="dimmed">{t('result.noOutput')}</Text> : <OutputView lines={output} follow={isRunning} label={t('result.output')} />}
        {call?.process && <Group mt="sm"><Facts rows={[[t('result.exitCode'), call.process.exit_code], [t('result.signal'), call.process.signal], [t('result.limit'), call.process.limit]]} /></Group>}
      </Tabs.Panel>
      <Tabs.Panel value="steps">
        {call?.duration_ms === undefined ? <Text c="dimmed">{t('result.noSteps')}</Text> : <Steps steps={call.steps} total={call.duration_ms} />}
      </Tabs.Panel>
    </Tabs>
  );
}
