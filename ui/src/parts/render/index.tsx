/** The result of a call as its render plan says: one component per renderer. */
import { Alert, Group, Image, Stack, Text } from '@mantine/core';
import { useMemo, useState, type ReactNode } from 'react';
import type { Call, RenderPlan } from '@/api/types';
import { useT } from '@/i18n';
import { terminalLines } from '../ansi';
import { Chip, CopyButton, ErrorPanel } from '../basics';
import { DiffRows, DiffView } from '../diff-view';
import { Editor } from '../editor';
import { visibleText } from '../format';
import { JsonView } from '../json-view';
import { PageLink, shortName } from '../links';
import { Markdown } from '../markdown';
import { Loading } from '../page';
import classes from '../parts.module.css';
import { OutputView, TextView } from '../text-view';
import { ChartView } from './chart';
import { toChart } from './chart-data';
import { HostFrame, HtmlFrame } from './embed';
import { FileEditor } from './file-editor';
import { FileImage } from './file-image';
import { detectLanguage } from './language';
import { useWholePlan } from './large';
import { imageSource, readPlan, type ReadyPlan } from './plan';
import { isPatch, parsePatch } from './patch';
import { useText } from './source';
import { TableView } from './table';
import { toTable } from './table-data';

interface RendererProps {
  plan: ReadyPlan;
  call: Call;
}

const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
const name = ({ plan, call }: RendererProps) => plan.file?.split('/').at(-1) ?? shortName(call.tool);

/** Loads the text of a renderer, and shows why it cannot. */
function WithText({ plan, call, children, field = 'content' }: RendererProps & { children: (value: string) => ReactNode; field?: string }) {
  const t = useT();
  const source = useText(plan, call, field);
  if (source.error) return <ErrorPanel error={source.error} onRetry={source.refetch} />;
  if (source.isLoading) return <Loading rows={4} />;
  if (source.text === undefined) return <Text c="dimmed">{t(plan.file && !call.workspace ? 'render.noWorkspace' : 'render.noContent')}</Text>;
  return <>{children(source.text)}</>;
}

/** A bound file is edited as it is now; what the call left is shown otherwise. */
function BoundFile({ plan, call, isDocument = false }: RendererProps & { isDocument?: boolean }) {
  const manifest = plan.isEditable ? undefined : call.workspace_use?.post_manifest;
  return <FileEditor workspace={call.workspace ?? ''} path={plan.file ?? ''} manifest={manifest} language={text(plan.config['language'])} isDocument={isDocument} isEditable={plan.isEditable} />;
}

function CodeRenderer(props: RendererProps) {
  const { plan, call } = props;
  if (plan.file && call.workspace) return <BoundFile {...props} />;
  return <WithText {...props}>{(value) => <Editor value={value} readOnly language={detectLanguage(text(plan.config['language']), plan.file, value)} label={name(props)} minHeight="4rem" />}</WithText>;
}

function DocumentRenderer(props: RendererProps) {
  if (props.plan.file && props.call.workspace) return <BoundFile {...props} isDocument />;
  return <WithText {...props}>{(value) => <div className={classes.document}><Markdown text={value} /></div>}</WithText>;
}

/** Where a plan has its values. */
const FIELDS = ['data', 'rows', 'value', 'content'];

function parseRows(value: string): unknown {
  try {
    return /^\s*[[{]/.test(value) ? (JSON.parse(value) as unknown) : value;
  } catch {
    return value;
  }
}

function Rows({ rows, ...props }: RendererProps & { rows: unknown }) {
  const t = useT();
  const data = useMemo(() => toTable(rows, props.plan.config['columns']), [rows, props.plan.config]);
  return data && data.columns.length > 0 ? <TableView data={data} name={name(props)} /> : <Text c="dimmed">{t('render.noRows')}</Text>;
}

function TableRenderer(props: RendererProps) {
  const { config, file } = props.plan;
  const field = FIELDS.find((each) => config[each] !== undefined) ?? 'content';
  if (file === undefined && typeof config[field] !== 'string') return <Rows {...props} rows={config[field]} />;
  return <WithText {...props} field={field}>{(value) => <Rows {...props} rows={parseRows(value)} />}</WithText>;
}

function Chart({ config, title }: { config: Record<string, unknown>; title: string }) {
  const t = useT();
  const data = useMemo(() => toChart(config), [config]);
  return data ? <ChartView data={data} title={title} /> : <Text c="dimmed">{t('render.noRows')}</Text>;
}

function LoadedChart({ value, config, title }: { value: string; config: Record<string, unknown>; title: string }) {
  const full = useMemo(() => ({ ...config, rows: parseRows(value) }), [config, value]);
  return <Chart config={full} title={title} />;
}

function ChartRenderer(props: RendererProps) {
  const { config, file } = props.plan;
  const title = text(config['title']) ?? '';
  return file === undefined ? <Chart config={config} title={title} /> : <WithText {...props}>{(value) => <LoadedChart value={value} config={config} title={title} />}</WithText>;
}

function ImageRenderer(props: RendererProps) {
  const { plan, call } = props;
  const t = useT();
  const [isBroken, setBroken] = useState(false);
  const alt = text(plan.config['alt']) ?? name(props);
  if (plan.file && call.workspace) return <FileImage workspace={call.workspace} path={plan.file} manifest={call.workspace_use?.post_manifest} alt={alt} maxHeight={560} />;
  const source = imageSource(plan.config);
  if (!source || isBroken) return <Text c="dimmed">{t('render.noImage')}</Text>;
  return <Image src={source} alt={alt} fit="contain" mah={560} onError={() => setBroken(true)} />;
}

function Patch({ value }: { value: string }) {
  const t = useT();
  const files = useMemo(() => (isPatch(value) ? parsePatch(value) : []), [value]);
  if (files.length === 0) return <TextView text={value} label={t('render.kind.diff')} />;
  return <Stack>{files.map((file, index) => <DiffRows key={index} rows={file.rows} beforeLabel={visibleText(file.from)} afterLabel={visibleText(file.to)} />)}</Stack>;
}

function DiffRenderer(props: RendererProps) {
  const { config } = props.plan;
  const [before, after] = [text(config['before']), text(config['after'])];
  if (before !== undefined || after !== undefined) return <DiffView before={before ?? ''} after={after ?? ''} />;
  return <WithText {...props} field={config['patch'] === undefined ? 'content' : 'patch'}>{(value) => <Patch value={value} />}</WithText>;
}

function Terminal({ value, label }: { value: string; label: string }) {
  const lines = useMemo(() => terminalLines(value).map((line) => ({ stream: 'stdout' as const, ...line })), [value]);
  return <div className={classes.blockWrap}><OutputView lines={lines} label={label} maxHeight={480} /><span className={classes.blockCopy}><CopyButton text={() => value} /></span></div>;
}

function TerminalRenderer(props: RendererProps) {
  return <WithText {...props}>{(value) => <Terminal value={value} label={name(props)} />}</WithText>;
}

function ParsedJson({ value }: { value: string }) {
  const t = useT();
  const parsed = useMemo((): { value: unknown } | { message: string } => {
    try {
      return { value: JSON.parse(value) as unknown };
    } catch (error) {
      return { message: error instanceof Error ? error.message : String(error) };
    }
  }, [value]);
  if ('value' in parsed) return <JsonView value={parsed.value} maxHeight={520} />;
  return <Stack gap="sm"><Text c="var(--haft-warn)">{t('json.invalid', { message: parsed.message })}</Text><TextView text={value} label={t('result.raw')} /></Stack>;
}

function JsonRenderer(props: RendererProps) {
  const { config, file } = props.plan;
  const field = FIELDS.find((each) => config[each] !== undefined) ?? 'content';
  if (file === undefined && typeof config[field] !== 'string') return <JsonView value={config[field]} maxHeight={520} />;
  return <WithText {...props} field={field}>{(content) => <ParsedJson value={content} />}</WithText>;
}

function Renderer(props: RendererProps) {
  const { plan, call } = props;
  switch (plan.renderer) {
    case 'code': return <CodeRenderer {...props} />;
    case 'document': return <DocumentRenderer {...props} />;
    case 'html': return <HtmlFrame call={call.id} height={plan.config['height']} title={name(props)} />;
    case 'frame': return <HostFrame url={plan.config['url']} height={plan.config['height']} />;
    case 'table': return <TableRenderer {...props} />;
    case 'chart': return <ChartRenderer {...props} />;
    case 'image': return <ImageRenderer {...props} />;
    case 'diff': return <DiffRenderer {...props} />;
    case 'terminal': return <TerminalRenderer {...props} />;
    case 'json': return <JsonRenderer {...props} />;
  }
}

/** Loads the large parts of a result first. */
function WholeRenderer({ plan, call }: RendererProps) {
  const whole = useWholePlan(plan, call.id);
  if (whole.error) return <ErrorPanel error={whole.error} onRetry={whole.refetch} />;
  return whole.isLoading ? <Loading rows={4} /> : <Renderer plan={whole.plan} call={call} />;
}

/** `fallback` is the result without a plan; it is shown below the reason where a plan cannot be used. */
export default function RenderedResult({ call, plan, fallback }: { call: Call; plan: RenderPlan; fallback: ReactNode }) {
  const t = useT();
  const read = useMemo(() => readPlan(plan), [plan]);
  if ('error' in read) {
    return (
      <Stack gap="sm">
        <Alert color="yellow" variant="light" role="alert" title={t(read.error === 'failed' ? 'render.failed' : 'render.unknown')}><Text style={{ overflowWrap: 'anywhere' }}>{visibleText(read.message.slice(0, 2000))}</Text></Alert>
        {fallback}
      </Stack>
    );
  }
  return (
    <Stack gap="sm">
      {read.file && (
        <Group gap="sm">
          <Chip>{visibleText(read.file)}</Chip>
          {call.workspace && <PageLink to={`/workspaces/${encodeURIComponent(call.workspace)}`} search={{ file: read.file }}>{t('render.openInWorkspace')}</PageLink>}
        </Group>
      )}
      <WholeRenderer key={call.id} plan={read} call={call} />
    </Stack>
  );
}
