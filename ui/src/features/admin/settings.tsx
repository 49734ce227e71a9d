import { Button, Group, SegmentedControl, Stack, Switch, Table, Text, useMantineColorScheme } from '@mantine/core';
import { IconLink } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { account } from '@/api/actions';
import { settingsQuery } from '@/api/queries';
import { useSession } from '@/api/session';
import { useI18n, type Language, type MessageKey } from '@/i18n';
import { messages } from '@/i18n/messages';
import { Chip, ErrorPanel, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { useAction } from '@/parts/feedback';
import { FilterInput } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { PageLink } from '@/parts/links';
import { Content, Loading, Page } from '@/parts/page';
import { ShownOnce } from '@/parts/secret-field';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { OpenSessions } from './actor-access';

function show(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The effective configuration of the server, and where each value comes from. */
function Configuration() {
  const { t } = useI18n();
  const session = useSession();
  const [url, setUrl] = useUrlState();
  const { data, error, refetch } = useQuery({ ...settingsQuery, enabled: session.platform });
  if (!session.platform) return <PermissionNote needs="admin" platform />;
  if (error) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading />;
  const q = (url['q'] ?? '').toLowerCase();
  const rows = data.filter((setting) => (url['changed'] === undefined || setting.source !== 'default') && `${setting.key} ${setting.description ?? ''} ${show(setting.value)}`.toLowerCase().includes(q));
  return (
    <>
      <Group mb="sm"><FilterInput value={url['q'] ?? ''} onChange={(next) => setUrl({ q: next || undefined })} label={t('common.filter')} /><Switch label={t('settings.changedOnly')} checked={url['changed'] !== undefined} onChange={(event) => setUrl({ changed: event.currentTarget.checked ? '1' : undefined })} /></Group>
      <Table.ScrollContainer minWidth={320}>
        <Table verticalSpacing={6}>
          <Table.Thead><Table.Tr><Table.Th>{t('common.name')}</Table.Th><Table.Th>{t('credentials.value')}</Table.Th><Table.Th visibleFrom="sm">{t('settings.source')}</Table.Th></Table.Tr></Table.Thead>
          <Table.Tbody>{rows.map((setting) => (
            <Table.Tr key={setting.key}>
              <Table.Td style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(setting.key)}</Mono>{setting.description && <Text size="xs" c="dimmed">{visibleText(setting.description)}</Text>}</Table.Td>
              <Table.Td style={{ overflowWrap: 'anywhere' }}>{setting.value === null || setting.value === '' ? <Text c="dimmed">—</Text> : <Mono>{visibleText(show(setting.value))}</Mono>}</Table.Td>
              <Table.Td visibleFrom="sm">{setting.source === 'default' ? <Text c="dimmed">{t('settings.source.default')}</Text> : <Chip>{`settings.source.${setting.source}` in messages ? t(`settings.source.${setting.source}` as MessageKey) : setting.source}</Chip>}</Table.Td>
            </Table.Tr>
          ))}</Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {rows.length === 0 && <Text c="dimmed">{t('settings.noneFound')}</Text>}
    </>
  );
}

/** A link that logs another browser in as the same person, such as a phone. */
function LoginLink() {
  const { t } = useI18n();
  const create = useAction(() => account.loginLink());
  return (
    <Stack gap="sm" align="flex-start">
      <Text c="dimmed">{t('account.loginLinkHelp')}</Text>
      <Button variant="default" leftSection={<IconLink size={14} />} loading={create.isPending} onClick={() => create.mutate(undefined)}>{t('account.createLoginLink')}</Button>
      {create.data && <ShownOnce value={create.data.url} note={t('account.loginLinkOnce')} />}
    </Stack>
  );
}

export function SettingsPage() {
  const { t, language, setLanguage } = useI18n();
  const session = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Page title={t('nav.settings')}>
      <Content narrow>
        <Stack>
          <SectionTitle>{t('settings.page')}</SectionTitle>
          <Facts rows={[
            [t('account.language'), <SegmentedControl key="l" aria-label={t('account.language')} value={language} onChange={(next) => setLanguage(next as Language)} data={[{ value: 'en', label: 'English' }, { value: 'de', label: 'Deutsch' }]} />],
            [t('settings.theme'), <SegmentedControl key="t" aria-label={t('settings.theme')} value={colorScheme} onChange={(next) => setColorScheme(next as 'auto')} data={[{ value: 'auto', label: t('settings.auto') }, { value: 'light', label: t('settings.light') }, { value: 'dark', label: t('settings.dark') }]} />],
          ]} />
          <SectionTitle>{t('settings.session')}</SectionTitle>
          <Facts rows={[[t('common.name'), visibleText(session.name)], [t('people.email'), visibleText(session.actor?.email ?? '')], [t('nav.groups'), visibleText(session.actor?.groups.join(', ') ?? '')], [t('tokens.role'), t(`role.${session.role}`)], [t('tokens.tenant'), session.tenant], [t('tokens.tools'), session.tools?.join(', ') ?? t('common.all')], [t('approvals.expires'), session.expires_at && <Time key="expires" at={session.expires_at} />]]} />
          <Group gap="lg"><PageLink to="/tokens">{t('settings.myTokens')}</PageLink><PageLink to="/accounts">{t('settings.myAccounts')}</PageLink><PageLink to="/applications">{t('settings.myApplications')}</PageLink></Group>
          <OpenSessions />
          <SectionTitle>{t('account.loginLink')}</SectionTitle>
          <LoginLink />
          <SectionTitle>{t('settings.configuration')}</SectionTitle>
          <Configuration />
        </Stack>
      </Content>
    </Page>
  );
}
