/** What one step of a run has: the words of the model, or a call with its result. */
import { Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { callQuery } from '@/api/queries';
import type { Run, RunStep, StepBody } from '@/api/run-types';
import { useI18n, useT } from '@/i18n';
import { CodeBlock, Facts, Mono, SectionTitle } from '@/parts/basics';
import { visibleText } from '@/parts/format';
import { JsonView } from '@/parts/json-view';
import { CallLink, PageLink, ToolLink } from '@/parts/links';
import { Markdown } from '@/parts/markdown';
import { Loading } from '@/parts/page';
import { ResultView } from '@/parts/result-view';
import { Time } from '@/parts/time';
import { cost } from '@/parts/usage';
import { answerParts } from './parts';

function Answer({ body }: { body: Extract<StepBody, { type: 'answer' }> }) {
  const { t, language } = useI18n();
  const { text, reasoning, calls, other } = answerParts(body.content);
  return (
    <Stack gap={4}>
      {reasoning !== '' && <><SectionTitle>{t('chat.reasoning')}</SectionTitle><Text c="dimmed" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>{visibleText(reasoning)}</Text></>}
      {text !== '' && <><SectionTitle>{t('runs.text')}</SectionTitle><Markdown text={text} /></>}
      {calls.length > 0 && <SectionTitle>{t('runs.asked', { n: calls.length })}</SectionTitle>}
      {calls.map((call, index) => <Stack key={index} gap={2}><Mono>{visibleText(call.name)}</Mono><JsonView value={call.args} maxHeight={200} /></Stack>)}
      {other.length > 0 && <JsonView value={other} maxHeight={200} />}
      <SectionTitle>{t('tools.about')}</SectionTitle>
      <Facts rows={[
        [t('runs.model'), <Mono key="m">{visibleText(body.model)}</Mono>], [t('runs.finish'), visibleText(body.finish_reason)],
        [t('runs.tokens'), t('usage.detail', { input: body.usage.input_tokens, output: body.usage.output_tokens, cached: body.usage.cached_tokens })], [t('runs.cost'), cost(body.usage, language)],
      ]} />
    </Stack>
  );
}

function Result({ body, children }: { body: Extract<StepBody, { type: 'result' }>; children: readonly Run[] }) {
  const t = useT();
  const { data: call, isLoading } = useQuery({ ...callQuery(body.call_id ?? ''), enabled: Boolean(body.call_id) });
  return (
    <Stack gap={4}>
      <Group gap="md">{body.tool && <ToolLink tool={body.tool}>{visibleText(body.tool)}</ToolLink>}{body.call_id && <CallLink id={body.call_id}>{t('workspaces.openCall')}</CallLink>}{children.map((child) => <PageLink key={child.id} to={`/runs/${child.id}`}>{t('runs.childOf', { agent: visibleText(child.agent) })}</PageLink>)}</Group>
      <SectionTitle>{t('calls.arguments')}</SectionTitle>
      <JsonView value={body.args} maxHeight={220} />
      <SectionTitle>{t('calls.outcome')}</SectionTitle>
      {call ? <ResultView call={call} /> : isLoading ? <Loading rows={3} /> : body.error ? <CodeBlock text={visibleText(body.error.message)} wrap maxHeight="16rem" /> : <JsonView value={body.value ?? null} maxHeight={260} />}
      <SectionTitle>{t('runs.read')}</SectionTitle>
      <CodeBlock text={visibleText(body.text.slice(0, 20_000))} wrap maxHeight="14rem" />
    </Stack>
  );
}

export function StepDetail({ step, children }: { step: RunStep; children: readonly Run[] }) {
  const t = useT();
  const { body } = step;
  switch (body.type) {
    case 'answer': return <Answer body={body} />;
    case 'result': return <Result body={body}>{children}</Result>;
    case 'waiting': return <Stack gap={4}><Group gap="md"><PageLink to="/approvals" search={{ open: body.approval_id, status: 'all' }}>{t('calls.approval')}</PageLink><CallLink id={body.call_id}>{t('workspaces.openCall')}</CallLink></Group>{body.expires_at && <Text c="dimmed">{t('approvals.expires')}: <Time at={body.expires_at} /></Text>}<SectionTitle>{t('calls.arguments')}</SectionTitle><JsonView value={body.args} maxHeight={220} /></Stack>;
    case 'shortened': return <Stack gap={4}><Text>{t('runs.shortened', { results: body.results?.length ?? 0, messages: body.replaced_messages ?? 0 })}</Text>{body.summary && <Markdown text={body.summary} />}</Stack>;
    case 'correction': return <CodeBlock text={visibleText(body.text)} wrap maxHeight="16rem" />;
    case 'decided': return null;
  }
}
