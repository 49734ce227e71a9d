/** Sign-on: the issuers of OpenID Connect, and what a login would get. */
import { Alert, Button, Group, Select, Stack, Table, Text, Textarea, Title } from '@mantine/core';
import { IconAlertTriangle, IconLogin2 } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSession } from '@/api/session';
import { issuersQuery, signOn } from '@/api/sign-on';
import type { Issuer, SignOnTest } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, CopyButton, EmptyState, ErrorPanel, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { useAction } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { Content, Loading, Page } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { RightsChips, ToolRules } from './rights';
import { EXAMPLE_CLAIMS, readClaims } from './sign-on-claims';

const list = (values: string[]) => values.length > 0 && <Mono>{visibleText(values.join(' '))}</Mono>;

function IssuerDetails({ issuer }: { issuer: Issuer }) {
  const t = useT();
  return (
    <section aria-label={issuer.name}>
      <Group gap="sm" mb="xs"><Title order={2}>{visibleText(issuer.name)}</Title><StatusBadge status={issuer.is_ready ? 'enabled' : 'error'} label={t(issuer.is_ready ? 'signOn.ready' : 'signOn.unavailable')} /></Group>
      {issuer.error && <Alert color="red" icon={<IconAlertTriangle size={16} />} mb="sm"><Text style={{ overflowWrap: 'anywhere' }}>{visibleText(issuer.error)}</Text></Alert>}
      <Facts rows={[
        [t('signOn.callback'), <Group key="callback" gap={4} wrap="nowrap"><span style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(issuer.callback_url)}</Mono></span><CopyButton text={issuer.callback_url} label={t('signOn.copyCallback')} /></Group>],
        [t('signOn.issuer'), <span key="issuer" style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(issuer.issuer)}</Mono></span>],
        [t('signOn.client'), <Mono key="client">{visibleText(issuer.client_id)}</Mono>],
        [t('signOn.scopes'), list(issuer.scopes)],
        [t('signOn.audiences'), list(issuer.audiences) || t('signOn.noBearer')],
        [t('signOn.byEmail'), t(issuer.link_by_email ? 'common.yes' : 'common.no')],
      ]} />
      <SectionTitle>{t('signOn.rules')}</SectionTitle>
      {issuer.rules.length === 0 ? <Text c="dimmed">{t('signOn.noRules')}</Text> : (
        <Table.ScrollContainer minWidth={520}>
          <Table verticalSpacing={6}>
            <Table.Thead><Table.Tr><Table.Th>{t('signOn.when')}</Table.Th><Table.Th>{t('tokens.tenant')}</Table.Th><Table.Th>{t('tokens.role')}</Table.Th><Table.Th>{t('tokens.tools')}</Table.Th><Table.Th>{t('nav.groups')}</Table.Th></Table.Tr></Table.Thead>
            <Table.Tbody>{issuer.rules.map((rule, index) => (
              <Table.Tr key={index}>
                <Table.Td style={{ overflowWrap: 'anywhere' }}>{rule.when === null ? t('signOn.always') : <Mono>{visibleText(rule.when)}</Mono>}</Table.Td>
                <Table.Td>{visibleText(rule.tenant)}</Table.Td>
                <Table.Td><RightsChips rights={rule.rights} /></Table.Td>
                <Table.Td><ToolRules tools={rule.rights.tools} /></Table.Td>
                <Table.Td><Group gap={4}>{rule.groups.map((name) => <Chip key={name}>{visibleText(name)}</Chip>)}{rule.groups_claim && <Mono>{`claims.${visibleText(rule.groups_claim)}`}</Mono>}</Group></Table.Td>
              </Table.Tr>
            ))}</Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
    </section>
  );
}

function TestResult({ result }: { result: SignOnTest }) {
  const t = useT();
  const { person } = result;
  const isRejected = person.outcome === 'disabled' || person.outcome === 'nothing_assigned';
  const name = [person.name, person.email && `<${person.email}>`].filter(Boolean).join(' ');
  return (
    <Stack gap="sm" aria-live="polite">
      <Group gap="sm"><StatusBadge status={isRejected ? 'error' : 'success'} label={t(`signOn.outcome.${person.outcome}`)} /></Group>
      <Facts rows={[[t('signOn.person'), visibleText(name)], [t('signOn.subject'), <Mono key="subject">{visibleText(result.subject)}</Mono>]]} />
      {result.warnings.map((warning) => <Alert key={warning} color="yellow" icon={<IconAlertTriangle size={16} />}>{visibleText(warning)}</Alert>)}
      {result.tenants.length > 0 && (
        <Table.ScrollContainer minWidth={420}>
          <Table verticalSpacing={6}>
            <Table.Thead><Table.Tr><Table.Th>{t('tokens.tenant')}</Table.Th><Table.Th>{t('tokens.role')}</Table.Th><Table.Th>{t('tokens.tools')}</Table.Th><Table.Th>{t('nav.groups')}</Table.Th></Table.Tr></Table.Thead>
            <Table.Tbody>{result.tenants.map((one) => (
              <Table.Tr key={one.tenant}>
                <Table.Td>{visibleText(one.tenant)}</Table.Td><Table.Td><RightsChips rights={one.rights} /></Table.Td><Table.Td><ToolRules tools={one.rights.tools} /></Table.Td>
                <Table.Td><Group gap={4}>{one.groups.map((group) => <Chip key={group}>{visibleText(group)}</Chip>)}</Group></Table.Td>
              </Table.Tr>
            ))}</Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      {result.rules.length > 0 && (
        <Table.ScrollContainer minWidth={420}>
          <Table verticalSpacing={6}>
            <Table.Thead><Table.Tr><Table.Th>{t('signOn.rule')}</Table.Th><Table.Th>{t('signOn.when')}</Table.Th><Table.Th>{t('signOn.matched')}</Table.Th></Table.Tr></Table.Thead>
            <Table.Tbody>{result.rules.map((rule) => (
              <Table.Tr key={rule.number}>
                <Table.Td>{rule.number}</Table.Td>
                <Table.Td style={{ overflowWrap: 'anywhere' }}>{rule.when === null ? t('signOn.always') : <Mono>{visibleText(rule.when)}</Mono>}</Table.Td>
                <Table.Td>{rule.error === null ? t(rule.matched ? 'common.yes' : 'common.no') : visibleText(rule.error)}</Table.Td>
              </Table.Tr>
            ))}</Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
    </Stack>
  );
}

function TestForm({ issuers }: { issuers: Issuer[] }) {
  const t = useT();
  const [issuer, setIssuer] = useState(issuers[0]?.id ?? '');
  const [text, setText] = useState(EXAMPLE_CLAIMS);
  const [result, setResult] = useState<SignOnTest>();
  const [failure, setFailure] = useState<unknown>();
  const claims = readClaims(text);
  const test = useAction(() => signOn.test(issuer, claims ?? {}), { failed: setFailure, done: (found: SignOnTest) => { setFailure(undefined); setResult(found); } });
  return (
    <section aria-label={t('signOn.test')}>
      <SectionTitle>{t('signOn.test')}</SectionTitle>
      <Text c="dimmed" mb="sm">{t('signOn.testHelp')}</Text>
      <form onSubmit={(event) => { event.preventDefault(); test.mutate(undefined); }}>
        <Stack gap="sm">
          {issuers.length > 1 && <Select label={t('signOn.issuer')} data={issuers.map((one) => ({ value: one.id, label: visibleText(one.name) }))} value={issuer} allowDeselect={false} onChange={(next) => { if (next) setIssuer(next); }} />}
          <Textarea label={t('signOn.claims')} autosize minRows={6} maxRows={20} value={text} onChange={(event) => setText(event.currentTarget.value)} error={claims ? undefined : t('signOn.claimsInvalid')} styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }} spellCheck={false} />
          <Group><Button type="submit" loading={test.isPending} disabled={!claims}>{t('signOn.try')}</Button></Group>
        </Stack>
      </form>
      {Boolean(failure) && <ErrorPanel error={failure} />}
      {result && !failure && <div style={{ marginTop: 16 }}><TestResult result={result} /></div>}
    </section>
  );
}

export function SignOnPage() {
  const t = useT();
  const session = useSession();
  const { data: issuers, error, isPending, refetch } = useQuery({ ...issuersQuery, enabled: session.platform });
  if (!session.platform) return <Page title={t('nav.signOn')}><Content><PermissionNote needs="admin" platform /></Content></Page>;
  return (
    <Page title={t('nav.signOn')} count={issuers?.length}>
      <Content narrow>
        {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : isPending ? <Loading /> : issuers.length === 0 ? (
          <EmptyState icon={IconLogin2} title={t('signOn.empty')}>{t('signOn.emptyHint')} <Mono>[[sign_on.issuers]]</Mono></EmptyState>
        ) : (
          <Stack gap="xl">
            <Text c="dimmed">{t('signOn.intro')}</Text>
            {issuers.map((issuer) => <IssuerDetails key={issuer.id} issuer={issuer} />)}
            <TestForm issuers={issuers} />
          </Stack>
        )}
      </Content>
    </Page>
  );
}
