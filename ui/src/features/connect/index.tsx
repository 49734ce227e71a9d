import { Card, Group, Radio, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { bundlesQuery, definitionsQuery, tokensQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import type { Bundle } from '@/api/types';
import { useT } from '@/i18n';
import { ErrorPanel, Mono, SectionTitle } from '@/parts/basics';
import { ConnectClient } from '@/parts/connect-client';
import { visibleText } from '@/parts/format';
import { Content, Guided, Page } from '@/parts/page';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';

const COMPACT_TOOLS = 100;
const COMPACT_TOKENS = 32_000;

function View({ bundle }: { bundle: string | undefined }) {
  const t = useT();
  const { data, error } = useQuery(definitionsQuery('mcp', bundle));
  if (error) return <ErrorPanel error={error} />;
  if (!data) return null;
  const costs = Object.entries((data.tokens_by_name ?? {}) as Record<string, number>).toSorted((a, b) => b[1] - a[1]);
  const isCompact = data.data.length > COMPACT_TOOLS || data.tokens > COMPACT_TOKENS;
  return (
    <Card>
      <Group justify="space-between"><Text fw={600}>{bundle ?? t('connect.allTools')}</Text><Mono>{`/mcp${bundle ? `/bundles/${bundle}` : ''}`}</Mono></Group>
      <Text>{t('connect.cost', { tools: data.data.length, tokens: data.tokens })}</Text>
      <Text c="dimmed" size="xs">{t(isCompact ? 'connect.compact' : 'connect.full')}</Text>
      {costs.length > 0 && (
        <Table mt="sm" verticalSpacing={3}><Table.Thead><Table.Tr><Table.Th>{t('connect.expensive')}</Table.Th><Table.Th ta="right">{t('connect.tokens')}</Table.Th></Table.Tr></Table.Thead><Table.Tbody>{costs.slice(0, 8).map(([name, cost]) => <Table.Tr key={name}><Table.Td><Mono>{visibleText(name)}</Mono></Table.Td><Table.Td ta="right">{cost.toLocaleString()}</Table.Td></Table.Tr>)}</Table.Tbody></Table>
      )}
    </Card>
  );
}

/** All views: the endpoint of all tools, and one per bundle. */
function Views({ bundles, chosen, onChoose }: { bundles: Bundle[]; chosen: string | undefined; onChoose: (bundle: string | undefined) => void }) {
  const t = useT();
  const all = bundles.filter((bundle) => bundle.enabled).reduce((sum, bundle) => sum + bundle.tool_count, 0);
  const rows: [string | undefined, string, string, number][] = [[undefined, t('connect.allTools'), '/mcp', all], ...bundles.filter((bundle) => bundle.enabled && bundle.tool_count > 0).map((bundle): [string, string, string, number] => [bundle.slug, bundle.display_name || bundle.slug, `/mcp/bundles/${bundle.slug}`, bundle.tool_count])];
  return (
    <Radio.Group label={t('connect.view')} value={chosen ?? ''} onChange={(next) => onChoose(next || undefined)}>
      <Table verticalSpacing={4} mt={4} layout="fixed"><Table.Tbody>{rows.map(([slug, name, path, count]) => (
        <Table.Tr key={path}><Table.Td><Radio value={slug ?? ''} label={visibleText(name)} /></Table.Td><Table.Td><Text c="dimmed" truncate><Mono>{path}</Mono></Text></Table.Td><Table.Td w={90} ta="right"><Text c="dimmed">{t('connect.toolCount', { n: count })}</Text></Table.Td></Table.Tr>
      ))}</Table.Tbody></Table>
    </Radio.Group>
  );
}

function Clients() {
  const t = useT();
  const tokens = (useQuery(tokensQuery).data ?? []).filter((token) => token.last_used_at).toSorted((a, b) => (b.last_used_at ?? '').localeCompare(a.last_used_at ?? ''));
  if (tokens.length === 0) return <Text c="dimmed">{t('connect.nobody')}</Text>;
  return <Table verticalSpacing={4}><Table.Tbody>{tokens.slice(0, 10).map((token) => <Table.Tr key={token.id}><Table.Td>{visibleText(token.name)}</Table.Td><Table.Td>{t(`role.${token.role}`)}</Table.Td><Table.Td ta="right"><Time at={token.last_used_at} /></Table.Td></Table.Tr>)}</Table.Tbody></Table>;
}

export function ConnectPage() {
  const t = useT();
  const mayAdmin = useMay('admin');
  const [url, setUrl] = useUrlState();
  const bundles = useQuery(bundlesQuery).data ?? [];
  return (
    <Page title={t('nav.connect')}>
      <Content>
        <Guided preview={<Stack><SectionTitle>{t('connect.sees')}</SectionTitle><View bundle={url['bundle']} />{mayAdmin && <><SectionTitle>{t('connect.who')}</SectionTitle><Clients /></>}</Stack>}>
          <Stack>
            <Text c="dimmed">{t('connect.intro')}</Text>
            <Views bundles={bundles} chosen={url['bundle']} onChoose={(next) => setUrl({ bundle: next })} />
            <ConnectClient bundle={url['bundle']} choosesTools />
          </Stack>
        </Guided>
      </Content>
    </Page>
  );
}
