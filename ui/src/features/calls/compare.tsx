import { Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { callQuery } from '@/api/queries';
import type { Call } from '@/api/types';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel, Mono, SectionTitle } from '@/parts/basics';
import { DiffView } from '@/parts/diff-view';
import { duration } from '@/parts/format';
import { CallLink, shortName } from '@/parts/links';
import { Content, Loading, Page } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';

const MAX = 200_000;
const show = (value: unknown) => (typeof value === 'string' ? value : (JSON.stringify(value ?? null, null, 2) ?? '')).slice(0, MAX);
const facts = (call: Call) => [`tool: ${call.tool}`, `revision: ${call.revision}`, `caller: ${call.caller}`, `surface: ${call.surface}`, `status: ${call.status}`, `duration: ${call.duration_ms === undefined ? '' : duration(call.duration_ms)}`].join('\n');

export function ComparePage() {
  const t = useT();
  const [url] = useUrlState();
  const left = useQuery({ ...callQuery(url['left'] ?? ''), enabled: Boolean(url['left']) });
  const right = useQuery({ ...callQuery(url['right'] ?? ''), enabled: Boolean(url['right']) });
  const error = left.error ?? right.error;
  const [a, b] = [left.data, right.data];
  return (
    <Page title={t('calls.compare')}>
      <Content>
        {!url['left'] || !url['right'] ? <EmptyState title={t('calls.compareTwo')} /> : error ? <ErrorPanel error={error} /> : !a || !b ? <Loading /> : (
          <Stack gap="sm">
            <Group grow>{[a, b].map((call) => <Group key={call.id} gap="sm"><CallLink id={call.id}><Mono>{shortName(call.tool)}</Mono></CallLink><StatusBadge status={call.status} /><Text c="dimmed"><Time at={call.started_at} /></Text></Group>)}</Group>
            <SectionTitle>{t('tools.about')}</SectionTitle><DiffView before={facts(a)} after={facts(b)} />
            <SectionTitle>{t('calls.arguments')}</SectionTitle><DiffView before={show(a.args)} after={show(b.args)} />
            <SectionTitle>{t('calls.outcome')}</SectionTitle><DiffView before={show(a.error ?? a.value)} after={show(b.error ?? b.value)} />
          </Stack>
        )}
      </Content>
    </Page>
  );
}
