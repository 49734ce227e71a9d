import { Button, Group, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { callListQuery, toolRef } from '@/api/queries';
import type { Tool } from '@/api/types';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel } from '@/parts/basics';
import { oneLine } from '@/parts/format';
import { CallLink } from '@/parts/links';
import { Loading } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Duration, Time } from '@/parts/time';

export function ToolCalls({ tool }: { tool: Tool }) {
  const t = useT();
  const navigate = useNavigate();
  const query = useInfiniteQuery(callListQuery({ tool: toolRef(tool) }, 30));
  const calls = query.data?.pages.flatMap((page) => page.calls) ?? [];
  if (query.error) return <ErrorPanel error={query.error} onRetry={() => void query.refetch()} />;
  if (query.isPending) return <Loading />;
  if (calls.length === 0) return <EmptyState title={t('tools.neverCalled')}>{t('tools.neverCalledHint')}</EmptyState>;
  return (
    <Stack>
      <Table verticalSpacing={6} highlightOnHover layout="fixed">
        <Table.Thead><Table.Tr><Table.Th w={90}>{t('calls.time')}</Table.Th><Table.Th w={110}>{t('common.status')}</Table.Th><Table.Th>{t('calls.arguments')}</Table.Th><Table.Th w={75} ta="right">{t('calls.duration')}</Table.Th></Table.Tr></Table.Thead>
        <Table.Tbody>
          {calls.map((call) => (
            <Table.Tr key={call.id}>
              <Table.Td><CallLink id={call.id}><Time at={call.started_at} /></CallLink></Table.Td>
              <Table.Td style={{ overflow: 'hidden' }}><StatusBadge status={call.status} /></Table.Td>
              <Table.Td><Text truncate c="dimmed">{call.error ? oneLine(call.error.message, 120) : oneLine(call.args, 120)}</Text></Table.Td>
              <Table.Td ta="right"><Duration ms={call.duration_ms} /></Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <Group>
        {query.hasNextPage && <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>{t('common.loadMore')}</Button>}
        <Button variant="subtle" onClick={() => void navigate({ to: '/calls', search: { tool: toolRef(tool) } as never })}>{t('tools.allCalls')}</Button>
      </Group>
    </Stack>
  );
}
