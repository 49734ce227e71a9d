import { Button, Card, Group, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import { IconChefHat, IconCircleCheck, IconCode, IconPlayerPlay } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { approvalsQuery, callListQuery, histogramQuery, serversQuery, statsQuery, toolListQuery, toolRef, type ToolRow } from '@/api/queries';
import type { Stats } from '@/api/types';
import { useMay } from '@/api/session';
import type { Call } from '@/api/types';
import { useT } from '@/i18n';
import { CodeBlock, ErrorPanel, Mono, SectionTitle } from '@/parts/basics';
import { Sparkline } from '@/parts/charts';
import { ConnectClient } from '@/parts/connect-client';
import { oneLine, visibleText } from '@/parts/format';
import { CallLink, PageLink, shortName, ToolLink } from '@/parts/links';
import { Content, Loading, Page } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Duration, Time, useNow } from '@/parts/time';

const DAY_MS = 24 * 3600 * 1000;
const BUCKETS = 48;
const TICK_MS = 30_000;
const MAX_FAILING = 8;
const MAX_WARNED = 5;

const perMinute = (value: number) => value.toLocaleString(undefined, { maximumFractionDigits: value < 10 ? 1 : 0 });

function Step({ n, title, done, children }: { n: number; title: string; done: boolean; children: ReactNode }) {
  return (
    <Card>
      <Group gap="sm" mb="sm" wrap="nowrap">{done ? <IconCircleCheck size={20} color="var(--haft-good)" aria-hidden /> : <Text fw={700} c="dimmed" w={20} ta="center">{n}</Text>}<Title order={2}>{title}</Title></Group>
      <Stack gap="sm">{children}</Stack>
    </Card>
  );
}

function GuidedStart({ own, calls }: { own: ToolRow[]; calls: Call[] }) {
  const t = useT();
  const mayEdit = useMay('editor');
  const mayCall = useMay('caller');
  const first = own.find((row) => row.tool_type === 'custom') ?? own[0];
  return (
    <Stack maw="60rem">
      <Text>{t('home.intro')}</Text>
      <Step n={1} title={t('home.create')} done={own.length > 0}>
        <Text c="dimmed">{t('home.createHint')}</Text>
        {mayEdit && <Group gap="sm"><Button component={Link} to="/recipes" leftSection={<IconChefHat size={15} />}>{t('home.recipe')}</Button><Button variant="default" component={Link} to="/import" leftSection={<IconCode size={15} />}>{t('home.curl')}</Button></Group>}
        <CodeBlock text={'haft tool add greet.skill'} />
      </Step>
      <Step n={2} title={t('home.try')} done={calls.length > 0}>
        <Text c="dimmed">{t('home.tryHint')}</Text>
        {mayCall && <Group><Button component={Link} to="/tools/$ref" params={{ ref: first ? toolRef(first) : 'datetime_utils' } as never} search={{ tab: 'try' } as never} leftSection={<IconPlayerPlay size={15} />}>{t('home.tryButton', { name: first?.name ?? 'datetime_utils' })}</Button></Group>}
        <CodeBlock text={`haft tool call ${first ? toolRef(first) : 'datetime_utils -a operation=now'}`} />
      </Step>
      <Step n={3} title={t('home.connect')} done={calls.some((call) => call.surface === 'mcp')}>
        <Text c="dimmed">{t('home.connectHint')}</Text>
        <ConnectClient />
      </Step>
    </Stack>
  );
}

function Stat({ label, value, to, search, children }: { label: string; value: string; to: string; search?: Record<string, string>; children?: ReactNode }) {
  return (
    <Card>
      <Group justify="space-between" align="baseline"><PageLink to={to} {...(search ? { search } : {})}>{label}</PageLink><Text fw={600} size="xl" style={{ fontVariantNumeric: 'tabular-nums' }}>{value}</Text></Group>
      {children}
    </Card>
  );
}

function Attention({ rows, stats }: { rows: ToolRow[]; stats: Stats | undefined }) {
  const t = useT();
  const servers = useQuery(serversQuery).data ?? [];
  const broken = servers.filter((server) => server.enabled && !['connected', 'connecting', 'starting'].includes(server.state.phase));
  const changed = servers.filter((server) => (server.state.refused?.length ?? 0) > 0);
  const failing = rows.filter((row) => row.enabled && !row.ready);
  const warned = rows.filter((row) => row.enabled && row.ready && row.warning_count > 0);
  // The rows are the first page only; the counts are of all tools.
  const moreFailing = Math.max(0, (stats?.tools.failed ?? failing.length) - Math.min(failing.length, MAX_FAILING));
  const moreWarned = Math.max(0, (stats?.tools.warnings ?? warned.length) - Math.min(warned.length, MAX_WARNED));
  const isQuiet = failing.length + broken.length + changed.length + warned.length + moreFailing + moreWarned === 0;
  return (
    <div>
      <SectionTitle>{t('home.attention')}</SectionTitle>
      {isQuiet && <StatusBadge status="ok" label={t('home.allGood')} />}
      <Stack gap={6}>
        {broken.map((server) => <Group key={server.id} gap="sm" wrap="nowrap"><StatusBadge status={server.state.phase} iconOnly /><PageLink to="/servers" search={{ open: server.id }}>{visibleText(server.id)}</PageLink><Text c="dimmed" truncate flex={1}>{oneLine(server.state.error ?? t(`status.${server.state.phase}`), 120)}</Text></Group>)}
        {changed.map((server) => <Group key={`c${server.id}`} gap="sm" wrap="nowrap"><StatusBadge status="warning" iconOnly /><PageLink to="/servers" search={{ open: server.id }}>{visibleText(server.id)}</PageLink><Text c="dimmed" truncate flex={1}>{t('home.changedTools', { n: server.state.refused?.length ?? 0 })}</Text></Group>)}
        {failing.slice(0, MAX_FAILING).map((row) => <Group key={toolRef(row)} gap="sm" wrap="nowrap"><StatusBadge status="not_ready" iconOnly /><ToolLink tool={toolRef(row)} /><Text c="dimmed" truncate flex={1}>{oneLine(row.error ?? '', 120)}</Text></Group>)}
        {moreFailing > 0 && <PageLink to="/tools" search={{ health: 'failed' }}>{t('home.moreFailing', { n: moreFailing })}</PageLink>}
        {warned.slice(0, MAX_WARNED).map((row) => <Group key={toolRef(row)} gap="sm" wrap="nowrap"><StatusBadge status="warning" iconOnly /><ToolLink tool={toolRef(row)} /><Text c="dimmed" truncate flex={1}>{t('tools.withWarnings', { n: row.warning_count })}</Text></Group>)}
        {moreWarned > 0 && <PageLink to="/tools" search={{ health: 'warnings' }}>{t('home.moreWarned', { n: moreWarned })}</PageLink>}
      </Stack>
    </div>
  );
}

function InUse({ rows, total, calls }: { rows: ToolRow[]; total: number; calls: Call[] }) {
  const t = useT();
  const now = useNow(TICK_MS);
  const { data: histogram } = useQuery(histogramQuery({}, now - DAY_MS, now, BUCKETS));
  const { data: stats } = useQuery({ ...statsQuery, refetchInterval: TICK_MS });
  const waiting = useQuery(approvalsQuery('waiting')).data?.total ?? 0;
  const buckets = histogram?.buckets ?? [];
  const all = buckets.map((bucket) => bucket.success + bucket.error + bucket.other);
  const bad = buckets.map((bucket) => bucket.error);
  const day = stats?.calls_24h ?? 0;
  const failures = stats?.failures_24h ?? 0;
  return (
    <Stack gap="lg">
      <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }} spacing="md">
        <Stat label={t('home.perMinute')} value={stats ? perMinute(stats.calls_per_minute) : '–'} to="/calls"><Sparkline values={all} label={t('home.callsDay', { n: day })} /><Text size="xs" c="dimmed">{t('home.callsDay', { n: day })}</Text></Stat>
        <Stat label={t('home.failures')} value={failures.toLocaleString()} to="/calls" search={{ status: 'error' }}><Sparkline values={bad} bad label={t('home.failures')} /><Text size="xs" c="dimmed">{t('home.failureRate', { n: day === 0 ? 0 : Math.round((failures / day) * 100) })}</Text></Stat>
        <Stat label={t('home.waiting')} value={String(waiting)} to="/approvals"><Text size="xs" c="dimmed">{t(waiting === 0 ? 'approvals.empty' : 'home.waitingHint')}</Text></Stat>
        <Stat label={t('nav.tools')} value={(stats?.tools.total ?? total).toLocaleString()} to="/tools">
          {stats && <Text size="xs" c="dimmed">{t('home.ready', { n: stats.tools.ready })}{stats.tools.disabled > 0 && ` · ${t('home.disabled', { n: stats.tools.disabled })}`}</Text>}
          {stats && stats.servers.total > 0 && <Text size="xs" c="dimmed">{t('home.servers', { n: stats.servers.ready, total: stats.servers.total })}</Text>}
        </Stat>
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="xl">
        <Attention rows={rows} stats={stats} />
        <div>
          <SectionTitle right={<PageLink to="/calls">{t('common.showAll')}</PageLink>}>{t('home.latest')}</SectionTitle>
          <Stack gap={6}>
            {calls.slice(0, 12).map((call) => (
              <Group key={call.id} gap="sm" wrap="nowrap"><StatusBadge status={call.status} iconOnly /><CallLink id={call.id}><Mono>{visibleText(shortName(call.tool))}</Mono></CallLink><Text c="dimmed" truncate flex={1}>{oneLine(call.args, 80)}</Text><Text c="dimmed" size="xs"><Duration ms={call.duration_ms} /></Text><Text c="dimmed" size="xs" w={80} ta="right"><Time at={call.started_at} /></Text></Group>
            ))}
          </Stack>
        </div>
      </SimpleGrid>
    </Stack>
  );
}

export function HomePage() {
  const t = useT();
  const tools = useInfiniteQuery(toolListQuery);
  const recent = useInfiniteQuery(callListQuery({}, 20));
  const [guide, setGuide] = useState(false);
  const mayEdit = useMay('editor');
  const error = tools.error ?? recent.error;
  const rows = tools.data?.pages.flatMap((page) => page.tools) ?? [];
  const calls = recent.data?.pages[0]?.calls ?? [];
  const own = rows.filter((row) => !row.built_in);
  // Viewers and callers see only their own calls, so that none of them means nothing.
  const isNew = own.length === 0 || (mayEdit && calls.length < 3);
  return (
    <Page title={t('nav.home')} primary={!isNew && <Button variant="subtle" color="gray" onClick={() => setGuide(!guide)}>{t(guide ? 'home.hideGuide' : 'home.showGuide')}</Button>}>
      <Content>
        {error ? <ErrorPanel error={error} onRetry={() => { void tools.refetch(); void recent.refetch(); }} /> : tools.isPending || recent.isPending ? <Loading /> : isNew || guide ? <GuidedStart own={own} calls={calls} /> : <InUse rows={rows} total={tools.data?.pages[0]?.total ?? rows.length} calls={calls} />}
      </Content>
    </Page>
  );
}
