/** One run: its trace, its answer, what belongs to it. In a drawer, or as a page. */
import { Button, Group, Skeleton, Stack, Text, Title } from '@mantine/core';
import { IconPlayerStop } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { isFinal, type Run } from '@/api/run-types';
import { relatedRunsQuery, runKeys, runQuery, runs, stepsQuery } from '@/api/runs';
import { useMay } from '@/api/session';
import { useI18n, useT } from '@/i18n';
import { CodeBlock, CopyButton, ErrorPanel, Facts, Mono, SectionTitle } from '@/parts/basics';
import { notify, useAction } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { JsonView } from '@/parts/json-view';
import { CallLink, PageLink, shortName } from '@/parts/links';
import { Markdown } from '@/parts/markdown';
import { Content, Drawer, Loading, Page } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Duration, Time } from '@/parts/time';
import { cost, Usage } from '@/parts/usage';
import { Surface } from './surface';
import { TraceView } from './trace-view';

function Cancel({ run }: { run: Run }) {
  const t = useT();
  const mayCall = useMay('caller');
  const cancel = useAction(() => runs.cancel(run.id), { invalidates: [runKeys.all], done: () => notify(t('calls.cancelRequested')) });
  if (!mayCall || isFinal(run.status)) return null;
  return <Button variant="default" leftSection={<IconPlayerStop size={14} />} loading={cancel.isPending} onClick={() => cancel.mutate(undefined)}>{t('runs.cancel')}</Button>;
}

function Steps({ run, children }: { run: Run; children: readonly Run[] }) {
  const queries = useQueryClient();
  const { data: steps, error, refetch } = useQuery(stepsQuery(run.id, queries, !isFinal(run.status)));
  if (error) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  return steps ? <TraceView run={run} steps={steps}>{children}</TraceView> : <Loading rows={4} />;
}

function Waiting({ run }: { run: Run }) {
  const t = useT();
  if (run.status !== 'awaiting_approval' || !run.waiting || run.waiting.length === 0) return null;
  return (
    <>
      <SectionTitle>{t('runs.waitsFor')}</SectionTitle>
      <Stack gap={4}>{run.waiting.map((call) => <Group key={call.approval_id} gap="sm"><StatusBadge status="waiting" iconOnly /><PageLink to="/approvals" search={{ open: call.approval_id }}><Mono>{visibleText(shortName(call.tool ?? ''))}</Mono></PageLink></Group>)}</Stack>
    </>
  );
}

function Output({ run }: { run: Run }) {
  const t = useT();
  return (
    <>
      {run.error && <><SectionTitle>{t('calls.error')}</SectionTitle><CodeBlock text={visibleText(`${run.error.code}: ${run.error.message}`)} wrap maxHeight="14rem" /></>}
      {run.output !== undefined && run.output !== null && <><SectionTitle right={<CopyButton text={typeof run.output === 'string' ? run.output : JSON.stringify(run.output, null, 2)} />}>{t('runs.output')}</SectionTitle>{typeof run.output === 'string' ? <Markdown text={run.output} /> : <JsonView value={run.output} maxHeight={360} />}</>}
    </>
  );
}

function Body({ run }: { run: Run }) {
  const { t, language } = useI18n();
  const children = useQuery(relatedRunsQuery({ parent_id: run.id })).data ?? [];
  return (
    <Stack gap="sm">
      <Group gap="xs"><Cancel run={run} /></Group>
      <Waiting run={run} />
      <SectionTitle>{t('runs.trace')}</SectionTitle>
      <Steps run={run}>{children}</Steps>
      <Output run={run} />
      {children.length > 0 && (
        <>
          <SectionTitle>{t('runs.children', { n: children.length })}</SectionTitle>
          <Stack gap={4}>{children.map((child) => <Group key={child.id} gap="sm" wrap="nowrap"><StatusBadge status={child.status} iconOnly /><PageLink to={`/runs/${child.id}`}>{visibleText(child.agent)}</PageLink><Text c="dimmed" flex={1}><Usage usage={child.usage} /></Text><Text c="dimmed"><Duration ms={child.usage.active_ms} /></Text></Group>)}</Stack>
        </>
      )}
      <SectionTitle>{t('tools.about')}</SectionTitle>
      <Facts rows={[
        [t('runs.agent'), <Group key="agent" gap="sm"><PageLink to={`/agents/${encodeURIComponent(run.agent)}`}>{visibleText(run.agent)}</PageLink><span>{t('tools.revisionN', { n: run.agent_revision })}</span></Group>],
        [t('calls.chat'), run.chat_id && <PageLink key="chat" to={`/chat/${run.chat_id}`}>{t('runs.openChat')}</PageLink>],
        [t('runs.parent'), run.parent_run_id && <PageLink key="parent" to={`/runs/${run.parent_run_id}`}><Mono>{run.parent_run_id.slice(-8)}</Mono></PageLink>],
        [t('calls.parent'), run.parent_call_id && <CallLink key="call" id={run.parent_call_id} />],
        [t('runs.requestedBy'), visibleText(run.requested_by)],
        [t('calls.surface'), <Surface key="surface" name={run.surface} />],
        [t('runs.answers'), run.usage.answers.toLocaleString(language)],
        [t('runs.calls'), run.usage.calls.toLocaleString(language)],
        [t('runs.tokens'), t('usage.detail', { input: run.usage.input_tokens, output: run.usage.output_tokens, cached: run.usage.cached_tokens })],
        [t('runs.cost'), cost(run.usage, language)],
        [t('runs.active'), <Duration key="active" ms={run.usage.active_ms} />],
        [t('calls.started'), <Time key="started" at={run.started_at ?? run.created_at} absolute />],
        [t('calls.finished'), run.finished_at && <Time key="finished" at={run.finished_at} absolute />],
        ['ID', <Group key="id" gap={4}><Mono>{run.id}</Mono><CopyButton text={run.id} /></Group>],
      ]} />
    </Stack>
  );
}

function Summary({ run }: { run: Run }) {
  return <Group gap="md"><StatusBadge status={run.status} /><Text c="dimmed"><Duration ms={run.usage.active_ms} /></Text><Usage usage={run.usage} /><Text c="dimmed"><Time at={run.created_at} /></Text></Group>;
}

export function RunDrawer({ id, onClose }: { id: string; onClose: () => void }) {
  const navigate = useNavigate();
  const { data: run, error, refetch } = useQuery(runQuery(id));
  const title = run ? <div><Title order={2}>{visibleText(run.agent)}</Title><Summary run={run} /></div> : <Skeleton h={22} w={200} />;
  return (
    <Drawer label={run ? visibleText(run.agent) : id} title={title} onClose={onClose} onExpand={() => void navigate({ to: '/runs/$id', params: { id } as never })}>
      {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : run ? <Body key={id} run={run} /> : <Loading />}
    </Drawer>
  );
}

export function RunPage() {
  const t = useT();
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const { data: run, error, refetch } = useQuery(runQuery(id));
  return (
    <Page title={run ? t('runs.of', { agent: visibleText(run.agent) }) : t('runs.one')} primary={run && <Summary run={run} />}>
      <Content>{error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : run ? <Body key={id} run={run} /> : <Loading />}</Content>
    </Page>
  );
}
