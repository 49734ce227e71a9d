import { Alert, Group, Stack, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Fragment, useMemo, useState } from 'react';
import { callListQuery, definitionQuery, histogramQuery, toolRef, usageQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import type { Problem, Tool } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { messages } from '@/i18n/messages';
import { Chip, CodeBlock, ErrorPanel, Facts, Mono, SectionTitle } from '@/parts/basics';
import { percentile } from '@/parts/buckets';
import { Histogram } from '@/parts/charts';
import { bytes, duration, visibleText } from '@/parts/format';
import { JsonView } from '@/parts/json-view';
import { ToolLink } from '@/parts/links';
import { Markdown } from '@/parts/markdown';
import type { Schema } from '@/parts/schema';
import { SchemaTable } from '@/parts/schema-table';
import { StatusBadge } from '@/parts/status';
import { DateOnly, Time } from '@/parts/time';
import { UsedBy } from '@/parts/used-by';

/** How many calls the latency is measured from. */
const SAMPLE = 100;
const DAY_MS = 24 * 3600 * 1000;

export function Warnings({ warnings }: { warnings: Problem[] | undefined }) {
  const t = useT();
  if (!warnings || warnings.length === 0) return null;
  return (
    <Stack gap="sm">
      {warnings.map((warning) => {
        const fix = `fix.${warning.code}`;
        return (
          <Alert key={warning.code + warning.field + warning.message} color="yellow" variant="light" icon={<IconAlertTriangle size={16} />} p="md">
            <Text>{visibleText(warning.message)}</Text>
            {fix in messages && <Text c="dimmed" size="xs">{t(fix as MessageKey)}</Text>}
            <Text c="dimmed" size="xs"><Mono>{warning.field}</Mono>{warning.line !== undefined && ` · ${t('tools.line', { n: warning.line })}`}</Text>
          </Alert>
        );
      })}
    </Stack>
  );
}

const isCode = (value: unknown): value is string => typeof value === 'string' && (value.includes('\n') || value.length > 120);

/** Code as code, short values as a list, and the rest as JSON. */
function Implementation({ fields }: { fields: Record<string, unknown> }) {
  const t = useT();
  const entries = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined && !(typeof value === 'object' && Object.keys(value).length === 0));
  if (entries.length === 0) return <Text c="dimmed">{t('common.none')}</Text>;
  const rest = Object.fromEntries(entries.filter(([, value]) => typeof value === 'object'));
  return (
    <Stack gap="sm">
      <Facts rows={entries.filter(([, value]) => typeof value !== 'object' && !isCode(value)).map(([key, value]) => [key, <Mono key={key}>{visibleText(String(value))}</Mono>])} />
      {entries.map(([key, value]) => isCode(value) && <div key={key}><Text size="xs" c="dimmed" mb={4}>{key}</Text><CodeBlock text={visibleText(value.trimEnd())} maxHeight="20rem" /></div>)}
      {Object.keys(rest).length > 0 && <JsonView value={rest} maxHeight={260} />}
    </Stack>
  );
}

function Latency({ tool }: { tool: Tool }) {
  const t = useT();
  const calls = useInfiniteQuery(callListQuery({ tool: toolRef(tool), status: 'success' }, SAMPLE)).data?.pages[0]?.calls ?? [];
  const times = calls.flatMap((call) => call.duration_ms ?? []);
  const [middle, high] = [percentile(times, 0.5), percentile(times, 0.95)];
  if (middle === undefined || high === undefined) return null;
  return <Text size="xs" c="dimmed">{t('tools.latency', { n: times.length, middle: duration(middle), high: duration(high) })}</Text>;
}

function Usage({ tool }: { tool: Tool }) {
  const t = useT();
  const [to] = useState(() => Date.now());
  const from = to - 7 * DAY_MS;
  const { data } = useQuery(histogramQuery({ tool: toolRef(tool) }, from, to, 56));
  const mayEdit = useMay('editor');
  const usage = useQuery({ ...usageQuery(toolRef(tool)), enabled: mayEdit });
  return (
    <>
      <SectionTitle>{t('tools.usage')}</SectionTitle>
      {tool.usage.call_count === 0 ? <Text c="dimmed">{t('tools.neverCalled')}</Text> : data && <Histogram buckets={data.buckets} from={from} to={to} label={t('tools.usage')} />}
      {tool.usage.call_count > 0 && <Latency tool={tool} />}
      {mayEdit && <><SectionTitle>{t('usage.title')}</SectionTitle><UsedBy usage={usage.data} /></>}
    </>
  );
}

export function Overview({ tool }: { tool: Tool }) {
  const t = useT();
  const { deprecation } = tool;
  const tokens = useQuery(definitionQuery(toolRef(tool), 'openai')).data?.tokens;
  const implementation = useMemo(() => {
    const { type: _, ...rest } = (tool.implementation ?? {}) as Record<string, unknown>;
    return rest;
  }, [tool.implementation]);
  const { execution } = tool;
  return (
    <Stack gap="md">
      {tool.error && <ErrorPanel error={new Error(tool.error)} title={t('tools.notReady')} />}
      {deprecation && (
        <Alert color="yellow" variant="light" icon={<IconAlertTriangle size={16} />}>
          <Text>{t('tools.isDeprecated')} {visibleText(deprecation.message ?? '')}</Text>
          {deprecation.replaced_by && <Text>{t('tools.replacedBy')}: <ToolLink tool={deprecation.replaced_by} /></Text>}
          {deprecation.removal_date && <Text>{t('tools.removalDate')}: <DateOnly at={deprecation.removal_date} /></Text>}
        </Alert>
      )}
      <Warnings warnings={tool.warnings} />
      <Markdown text={tool.description} />
      {tool.tags.length > 0 && <Group gap={4}>{tool.tags.map((tag) => <Chip key={tag}>{visibleText(tag)}</Chip>)}</Group>}
      <div>
        <SectionTitle>{t('tools.arguments')}</SectionTitle>
        <SchemaTable schema={tool.input_schema as Schema | null} empty={t('schema.none')} />
        <SectionTitle>{t('tools.resultSchema')}</SectionTitle>
        <SchemaTable schema={tool.output_schema as Schema | null} empty={t('schema.any')} />
        <SectionTitle>{t('tools.implementation')}</SectionTitle>
        <Implementation fields={implementation} />
        <SectionTitle>{t('tools.execution')}</SectionTitle>
        <Facts rows={[
          [t('tools.policy'), <StatusBadge key="p" status={tool.policy} />],
          [t('tools.confirmation'), tool.requires_confirmation ? t('common.yes') : t('common.no')],
          [t('tools.sandbox'), tool.sandbox ? t('tools.sandboxOn') : t('tools.sandboxOff')],
          [t('tools.network'), tool.network ? t('common.yes') : t('common.no')],
          [t('tools.timeout'), execution?.timeout_ms ? duration(execution.timeout_ms) : t('tools.defaultTimeout')],
          [t('tools.retry'), execution?.retry ? t('tools.retryTimes', { n: execution.retry.attempts }) : null],
          [t('tools.rateLimit'), execution?.rate_limit ? `${execution.rate_limit.calls} / ${execution.rate_limit.per}` : null],
          [t('tools.pure'), execution?.is_pure ? t('common.yes') : null],
          [t('tools.responseLimit'), execution ? bytes(execution.limits.max_response_bytes) : null],
          [t('tools.tokenCost'), tokens === undefined ? null : t('tools.tokens', { n: tokens })],
        ]} />
        <Usage tool={tool} />
        <SectionTitle>{t('tools.about')}</SectionTitle>
        <Facts rows={[
          [t('tools.bundle'), visibleText(tool.bundle)],
          [t('tools.file'), tool.path && <Mono key="file">{tool.path}</Mono>],
          ['ID', tool.id && <Mono key="value">{tool.id}</Mono>],
          [t('common.created'), tool.created_at && <><Time at={tool.created_at} />{tool.created_by && ` · ${visibleText(tool.created_by)}`}</>],
          [t('common.modified'), <Fragment key="m"><Time at={tool.modified_at} />{tool.modified_by && ` · ${visibleText(tool.modified_by)}`}</Fragment>],
          [t('tools.published'), tool.published_at && <><Time at={tool.published_at} />{tool.published_by && ` · ${tool.published_by}`} · {t('tools.revisionN', { n: tool.published_revision ?? 0 })}</>],
          [t('tools.lastCall'), tool.usage.last_called_at && <Time key="lastCall" at={tool.usage.last_called_at} />],
        ]} />
      </div>
    </Stack>
  );
}
