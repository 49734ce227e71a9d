/** One tool call of an answer: what was asked, how it went, what came back. */
import { Group, Stack, Text } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { callQuery } from '@/api/queries';
import type { Call } from '@/api/types';
import { useT } from '@/i18n';
import { CodeBlock, ErrorPanel, Mono, SectionTitle } from '@/parts/basics';
import { oneLine, visibleText } from '@/parts/format';
import { JsonView } from '@/parts/json-view';
import { CallLink, shortName } from '@/parts/links';
import { Loading } from '@/parts/page';
import { Planned, ResultView } from '@/parts/result-view';
import { StatusBadge } from '@/parts/status';
import { Duration } from '@/parts/time';
import type { ToolItem } from './answer';
import { ApprovalCard } from './approval-card';
import classes from './chat.module.css';

const ENDED = new Set(['success', 'error', 'cancelled', 'denied', 'expired', 'interrupted']);

/** What the record of the call shows; without one, what the model read. */
function Outcome({ item, call }: { item: ToolItem; call: Call | undefined }) {
  const t = useT();
  if (call && ENDED.has(call.status)) return <ResultView call={call} />;
  if (item.error) return <CodeBlock text={visibleText(item.error.message.slice(0, 20_000))} wrap maxHeight="16rem" />;
  if (item.output !== undefined) return <JsonView value={item.output} maxHeight={320} />;
  return <Text c="dimmed">{t(item.status === 'running' ? 'result.running' : 'chat.noResult')}</Text>;
}

/** `isRecent`: the result is loaded at once, and shown if it has a renderer. */
export function ToolCard({ item, isRecent }: { item: ToolItem; isRecent: boolean }) {
  const t = useT();
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const hasEnded = ENDED.has(item.status);
  const query = useQuery({ ...callQuery(item.callId ?? ''), enabled: item.callId !== undefined && hasEnded && (isOpen || isRecent) });
  const call = query.data && ENDED.has(query.data.status) ? query.data : undefined;
  const isWaiting = item.approvalId !== undefined && !hasEnded;
  const name = visibleText(item.tool ? shortName(item.tool) : item.name);
  const plan = call?.render_plan && !call.render_plan.error ? call.render_plan : undefined;
  return (
    <section className={classes.card} data-waiting={isWaiting} aria-label={name}>
      <button type="button" className={classes.cardHead} aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
        {isOpen ? <IconChevronDown size={14} aria-hidden /> : <IconChevronRight size={14} aria-hidden />}
        <StatusBadge status={item.status} iconOnly />
        <Mono>{name}</Mono>
        <span className={classes.cardArgs}>{item.error && !isOpen ? oneLine(item.error.message, 120) : oneLine(item.args, 120)}</span>
        <Text span c="dimmed" size="xs"><Duration ms={item.durationMs} /></Text>
      </button>
      {isWaiting && item.approvalId && <div className={classes.cardResult}><ApprovalCard id={item.approvalId} args={item.args} /></div>}
      {plan && call && !isOpen && <div className={classes.cardResult}><Planned call={call} value={call.content && call.content.length > 0 ? call.content : call.value} /></div>}
      <div id={id} hidden={!isOpen}>
        {isOpen && (
          <Stack gap={4} className={classes.cardBody}>
            <SectionTitle>{t('calls.arguments')}</SectionTitle>
            <JsonView value={item.args} maxHeight={240} />
            <SectionTitle right={item.callId && <CallLink id={item.callId}>{t('workspaces.openCall')}</CallLink>}>{t('calls.outcome')}</SectionTitle>
            {query.error ? <ErrorPanel error={query.error} onRetry={() => void query.refetch()} /> : query.isLoading ? <Loading rows={3} /> : <Outcome item={item} call={call} />}
            {item.tool && <Group gap="sm"><Text size="xs" c="dimmed"><Mono>{visibleText(item.tool)}</Mono></Text></Group>}
          </Stack>
        )}
      </div>
    </section>
  );
}
