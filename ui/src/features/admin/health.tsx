import { Button, Card, Group, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { IconRefresh } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { doctorQuery, healthQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { CodeBlock, ErrorPanel, SectionTitle } from '@/parts/basics';
import { visibleText } from '@/parts/format';
import { Content, Loading, Page } from '@/parts/page';
import { StatusBadge } from '@/parts/status';

const RANK = { error: 0, warning: 1, ok: 2 } as const;

/** What `haft doctor` reports; problems first. */
function Doctor() {
  const t = useT();
  const { data, error, refetch, isFetching } = useQuery(doctorQuery);
  const checks = [...(data?.checks ?? [])].toSorted((a, b) => RANK[a.status] - RANK[b.status]);
  const problems = checks.filter((check) => check.status !== 'ok').length;
  return (
    <div>
      <SectionTitle right={<Button variant="subtle" size="compact-xs" leftSection={<IconRefresh size={13} />} loading={isFetching} onClick={() => void refetch()}>{t('health.again')}</Button>}>{t('health.doctor')}</SectionTitle>
      {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : !data ? <Loading rows={4} /> : (
        <Stack gap="sm">
          <StatusBadge status={problems === 0 ? 'ok' : 'warning'} label={problems === 0 ? t('health.noProblems') : t('health.problems', { n: problems })} />
          <Table verticalSpacing={6} layout="fixed">
            <Table.Tbody>{checks.map((check) => (
              <Table.Tr key={check.name + check.message}>
                <Table.Td w="30%" style={{ overflowWrap: 'anywhere' }}>{visibleText(check.name)}</Table.Td>
                <Table.Td>
                  <Group gap="sm" align="flex-start" wrap="nowrap"><StatusBadge status={check.status} iconOnly /><Text style={{ overflowWrap: 'anywhere' }}>{visibleText(check.message)}</Text></Group>
                  {check.fix && <Text size="xs" c="dimmed" mt={4} ml={23}>{visibleText(check.fix)}</Text>}
                </Table.Td>
              </Table.Tr>
            ))}</Table.Tbody>
          </Table>
        </Stack>
      )}
    </div>
  );
}

export function HealthPage() {
  const t = useT();
  const mayAdmin = useMay('admin');
  const { data, error, refetch } = useQuery(healthQuery);
  return (
    <Page title={t('nav.health')}>
      <Content narrow>
        {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : !data ? <Loading /> : (
          <Stack>
            <SimpleGrid cols={{ base: 2, sm: 4 }}>
              {([[t('health.status'), <StatusBadge key="s" status={data.ready.status === 'ready' ? 'ok' : 'error'} label={data.ready.status === 'ready' ? t('status.ready') : data.ready.status} />], [t('common.version'), data.version], [t('health.mode'), data.ready.mode], [t('nav.tools'), data.ready.tools.toLocaleString()]] as const).map(([label, value]) => <Card key={label}><Text size="xs" c="dimmed">{label}</Text><Text fw={600} component="div">{value}</Text></Card>)}
            </SimpleGrid>
            <div>
              <SectionTitle>{t('health.checks')}</SectionTitle>
              <Table verticalSpacing={6} layout="fixed"><Table.Tbody>{Object.entries(data.ready.checks).map(([name, state]) => <Table.Tr key={name}><Table.Td w="30%">{name}</Table.Td><Table.Td><StatusBadge status={state === 'ok' ? 'ok' : 'error'} label={state === 'ok' ? t('status.ok') : state} /></Table.Td></Table.Tr>)}</Table.Tbody></Table>
            </div>
            {mayAdmin && <Doctor />}
            <div>
              <SectionTitle right={<Text c="dimmed">{data.ready.sandbox.engine} · {data.ready.sandbox.limits}</Text>}>{t('health.sandbox')}</SectionTitle>
              <Table verticalSpacing={6} layout="fixed"><Table.Tbody>{data.ready.sandbox.probes.map((probe) => <Table.Tr key={probe.name}><Table.Td w="60%">{probe.name}</Table.Td><Table.Td><StatusBadge status={probe.ok ? 'ok' : 'error'} />{probe.failure && <Text c="var(--haft-bad)">{visibleText(probe.failure)}</Text>}</Table.Td></Table.Tr>)}</Table.Tbody></Table>
            </div>
            <div><SectionTitle>{t('health.commandLine')}</SectionTitle><CodeBlock text="haft doctor" /></div>
          </Stack>
        )}
      </Content>
    </Page>
  );
}
