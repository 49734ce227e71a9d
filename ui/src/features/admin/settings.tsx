import { SegmentedControl, Stack, Table, Text, useMantineColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { request } from '@/api/client';
import { isMissingRoute } from '@/api/error';
import { useSession } from '@/api/session';
import { useI18n, type Language } from '@/i18n';
import { Facts, Mono, SectionTitle } from '@/parts/basics';
import { Content, Page } from '@/parts/page';
import { Time } from '@/parts/time';

interface Setting {
  key: string;
  value: unknown;
  source: string;
}

/** The effective configuration; servers without the route say so. */
function Configuration() {
  const { t } = useI18n();
  const { data, error } = useQuery({ queryKey: ['settings'], queryFn: () => request<{ settings: Setting[] }>('/api/settings'), retry: false });
  if (isMissingRoute(error)) return <Text c="dimmed">{t('common.unavailable')} {t('settings.doctor')}</Text>;
  if (!data || !Array.isArray(data.settings)) return null;
  return (
    <Table verticalSpacing={4}>
      <Table.Thead><Table.Tr><Table.Th>{t('common.name')}</Table.Th><Table.Th>{t('credentials.value')}</Table.Th><Table.Th>{t('settings.source')}</Table.Th></Table.Tr></Table.Thead>
      <Table.Tbody>{data.settings.map((setting) => <Table.Tr key={setting.key}><Table.Td><Mono>{setting.key}</Mono></Table.Td><Table.Td><Mono>{JSON.stringify(setting.value)}</Mono></Table.Td><Table.Td>{setting.source}</Table.Td></Table.Tr>)}</Table.Tbody>
    </Table>
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
          <Facts rows={[[t('common.name'), session.name], [t('tokens.role'), t(`role.${session.role}`)], [t('tokens.tenant'), session.tenant], [t('tokens.tools'), session.tools?.join(', ') ?? t('common.all')], [t('approvals.expires'), session.expires_at && <Time at={session.expires_at} />]]} />
          <SectionTitle>{t('settings.configuration')}</SectionTitle>
          <Configuration />
        </Stack>
      </Content>
    </Page>
  );
}
