import { Alert, Progress, Stack, Table, Text } from '@mantine/core';
import { IconGauge } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { limitsQuery } from '@/api/queries';
import { useSession } from '@/api/session';
import type { LimitUse } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { messages } from '@/i18n/messages';
import { EmptyState, ErrorPanel, Mono, SectionTitle } from '@/parts/basics';
import { bytes, visibleText } from '@/parts/format';
import { PageLink, ToolLink } from '@/parts/links';
import { Content, Loading, Page } from '@/parts/page';
import { groupLimits, usedShare, type LimitScope } from './groups';

function Amount({ limit }: { limit: LimitUse }) {
  const t = useT();
  const show = (value: number) => (limit.name.endsWith('_bytes') ? bytes(value) : value.toLocaleString());
  const value = `${show(limit.value)}${limit.per ? ` / ${limit.per}` : ''}`;
  if (limit.used === undefined) return <Text>{t('limits.perSession', { value })}</Text>;
  const share = usedShare(limit);
  return (
    <>
      <Text style={{ fontVariantNumeric: 'tabular-nums' }}>{t('limits.of', { used: show(limit.used), value })}</Text>
      <Progress value={share} color={share > 90 ? 'red' : share > 70 ? 'yellow' : 'indigo'} size="sm" aria-label={limit.name} />
    </>
  );
}

function Subject({ limit, scope }: { limit: LimitUse; scope: LimitScope }) {
  const t = useT();
  const key = `limit.${limit.name}`;
  const label = <><Text fw={500}>{key in messages ? t(key as MessageKey) : limit.name}</Text><Text size="xs" c="dimmed" visibleFrom="sm"><Mono>{limit.name}</Mono></Text></>;
  if (!limit.subject) return label;
  return <><Text>{scope === 'tool' ? <ToolLink tool={limit.subject}>{visibleText(limit.subject)}</ToolLink> : scope === 'token' ? <PageLink to="/tokens">{visibleText(limit.subject)}</PageLink> : visibleText(limit.subject)}</Text><Text size="xs" c="dimmed">{key in messages ? t(key as MessageKey) : limit.name}</Text></>;
}

export function LimitsPage() {
  const t = useT();
  const session = useSession();
  const { data, error, isPending, refetch } = useQuery(limitsQuery);
  return (
    <Page title={t('nav.limits')} count={data?.limits.length}>
      <Content narrow>
        {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : isPending ? <Loading /> : data.limits.length === 0 ? <EmptyState icon={IconGauge} title={t('limits.none')}>{t('limits.noneHint')}</EmptyState> : (
          <Stack gap="sm">
            <Text c="dimmed">{t('limits.intro')} {t(data.shared ? 'limits.shared' : 'limits.thisNode')}</Text>
            {session.platform && <Text c="dimmed">{t('limits.change')} <PageLink to="/tenants" search={{ open: data.tenant }}>{t('nav.tenants')}</PageLink></Text>}
            {groupLimits(data.limits).map(({ scope, limits }) => (
              <div key={scope}>
                <SectionTitle>{t(`limits.scope.${scope}`)}</SectionTitle>
                <Table verticalSpacing={8} layout="fixed">
                  <Table.Tbody>{limits.map((limit) => (
                    <Table.Tr key={`${limit.name}${limit.subject ?? ''}`}>
                      <Table.Td style={{ overflowWrap: 'anywhere' }}><Subject limit={limit} scope={scope} /></Table.Td>
                      <Table.Td w="50%"><Amount limit={limit} />{Boolean(limit.reset_seconds) && <Text c="dimmed" size="xs">{t('limits.resetsIn', { n: limit.reset_seconds ?? 0 })}</Text>}</Table.Td>
                    </Table.Tr>
                  ))}</Table.Tbody>
                </Table>
              </div>
            ))}
            {data.omitted > 0 && <Alert variant="light" color="gray">{t('limits.omitted', { n: data.omitted })}</Alert>}
          </Stack>
        )}
      </Content>
    </Page>
  );
}
