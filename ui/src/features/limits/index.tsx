import { Progress, Stack, Table, Text } from '@mantine/core';
import { IconGauge } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { limitsQuery } from '@/api/queries';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel, Mono } from '@/parts/basics';
import { Content, Loading, Page } from '@/parts/page';

export function LimitsPage() {
  const t = useT();
  const { data, error, isPending, refetch } = useQuery({ ...limitsQuery, refetchInterval: 5000 });
  const rows = Array.isArray(data?.limits) ? data.limits : [];
  return (
    <Page title={t('nav.limits')}>
      <Content narrow>
        {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : isPending ? <Loading /> : data === null ? <EmptyState icon={IconGauge} title={t('nav.limits')}>{t('common.unavailable')}</EmptyState>
          : rows.length === 0 ? <EmptyState icon={IconGauge} title={t('limits.none')}>{t('limits.noneHint')}</EmptyState> : (
            <Stack>
              <Text c="dimmed">{t('limits.intro')}</Text>
              <Table verticalSpacing={8}>
                <Table.Thead><Table.Tr><Table.Th>{t('limits.limit')}</Table.Th><Table.Th>{t('limits.scope')}</Table.Th><Table.Th w="35%">{t('limits.use')}</Table.Th><Table.Th ta="right">{t('limits.resets')}</Table.Th></Table.Tr></Table.Thead>
                <Table.Tbody>{rows.map((row) => {
                  const part = row.value && row.used !== null ? Math.min(100, (row.used / row.value) * 100) : 0;
                  return (
                    <Table.Tr key={`${row.scope}${row.name}`}>
                      <Table.Td><Mono>{row.name}</Mono></Table.Td><Table.Td>{row.scope}</Table.Td>
                      <Table.Td><Text>{row.used ?? '—'} / {row.value ?? t('limits.unlimited')}</Text>{row.value !== null && <Progress value={part} color={part > 90 ? 'red' : part > 70 ? 'yellow' : 'indigo'} size="sm" aria-label={row.name} />}</Table.Td>
                      <Table.Td ta="right">{row.reset_seconds ? `${Math.ceil(row.reset_seconds)} s` : ''}</Table.Td>
                    </Table.Tr>
                  );
                })}</Table.Tbody>
              </Table>
            </Stack>
          )}
      </Content>
    </Page>
  );
}
