import { Card, Group, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { healthQuery } from '@/api/queries';
import { useT } from '@/i18n';
import { ErrorPanel, SectionTitle } from '@/parts/basics';
import { Content, Loading, Page } from '@/parts/page';
import { StatusBadge } from '@/parts/status';

export function HealthPage() {
  const t = useT();
  const { data, error, refetch } = useQuery(healthQuery);
  return (
    <Page title={t('nav.health')}>
      <Content narrow>
        {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : !data ? <Loading /> : (
          <Stack>
            <SimpleGrid cols={{ base: 2, sm: 4 }}>
              {([[t('health.status'), <StatusBadge key="s" status={data.ready.status === 'ready' ? 'ok' : 'error'} label={data.ready.status} />], [t('common.version'), data.version], [t('health.mode'), data.ready.mode], [t('nav.tools'), data.ready.tools]] as const).map(([label, value]) => <Card key={label}><Text size="xs" c="dimmed">{label}</Text><Text fw={600} component="div">{value}</Text></Card>)}
            </SimpleGrid>
            <SectionTitle>{t('health.checks')}</SectionTitle>
            <Table verticalSpacing={6}><Table.Tbody>{Object.entries(data.ready.checks).map(([name, state]) => <Table.Tr key={name}><Table.Td>{name}</Table.Td><Table.Td><StatusBadge status={state === 'ok' ? 'ok' : 'error'} label={state} /></Table.Td></Table.Tr>)}</Table.Tbody></Table>
            <SectionTitle right={<Text c="dimmed">{data.ready.sandbox.engine} · {data.ready.sandbox.limits}</Text>}>{t('health.sandbox')}</SectionTitle>
            <Table verticalSpacing={6}><Table.Tbody>{data.ready.sandbox.probes.map((probe) => <Table.Tr key={probe.name}><Table.Td>{probe.name}</Table.Td><Table.Td><Group gap="sm"><StatusBadge status={probe.ok ? 'ok' : 'error'} />{probe.failure && <Text c="var(--haft-bad)">{probe.failure}</Text>}</Group></Table.Td></Table.Tr>)}</Table.Tbody></Table>
          </Stack>
        )}
      </Content>
    </Page>
  );
}
