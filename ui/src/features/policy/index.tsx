import { Alert, Autocomplete, Button, Group, SegmentedControl, Select, Stack, Table, Tabs, Text } from '@mantine/core';
import { IconChevronDown, IconChevronRight, IconShieldLock } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { stringify } from 'yaml';
import { policy as actions } from '@/api/actions';
import { ApiError } from '@/api/error';
import { policyQuery, toolListQuery } from '@/api/queries';
import { useMay, useSession } from '@/api/session';
import type { ExplainBody, JsonObject, PolicyRule } from '@/api/types';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel, Mono, PermissionNote } from '@/parts/basics';
import { useDraft } from '@/parts/draft';
import { Editor, type EditorProblem } from '@/parts/editor';
import { notify, useAction } from '@/parts/feedback';
import { oneLine, visibleText } from '@/parts/format';
import { PageLink } from '@/parts/links';
import { Content, Loading, Page } from '@/parts/page';
import { parseObject } from '@/parts/schema-form';
import { StatusBadge } from '@/parts/status';
import { useUrlState } from '@/parts/url-state';

type Scope = 'tenant' | 'platform';
const START = 'rules:\n  - name: large-payments\n    match: { tools: ["bank:pay"] }\n    when: has(args.amount) && args.amount > 100\n    effect: approve\n    reason: payments above 100 need a second person\n    examples:\n      - { tool: "bank:pay", args: { amount: 250 }, expect: match }\n';

/** `null` values say nothing; leaving them out keeps the text short. */
function compact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(compact);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== null && item !== undefined && !(Array.isArray(item) && item.length === 0)).map(([key, item]) => [key, compact(item)]));
}

function matchText(rule: PolicyRule): string {
  return Object.entries(rule.match ?? {}).filter(([, list]) => Array.isArray(list) && list.length > 0).map(([key, list]) => `${key}: ${(list as string[]).join(', ')}`).join(' · ');
}

function RuleRow({ rule }: { rule: PolicyRule }) {
  const t = useT();
  const [open, setOpen] = useState(false);
  const examples = rule.examples ?? [];
  return (
    <>
      <Table.Tr>
        <Table.Td><Text fw={500}>{visibleText(rule.name)}</Text>{rule.reason && <Text size="xs" c="dimmed">{visibleText(rule.reason)}</Text>}</Table.Td>
        <Table.Td><StatusBadge status={rule.effect} /></Table.Td><Table.Td>{visibleText(matchText(rule)) || t('policy.everything')}</Table.Td><Table.Td><Mono>{visibleText(rule.when ?? '')}</Mono></Table.Td>
        <Table.Td ta="right">{examples.length === 0 ? <Text c="dimmed">—</Text> : <Button variant="subtle" size="compact-xs" aria-expanded={open} rightSection={open ? <IconChevronDown size={13} /> : <IconChevronRight size={13} />} onClick={() => setOpen(!open)}>{examples.length}</Button>}</Table.Td>
      </Table.Tr>
      {open && (
        <Table.Tr>
          <Table.Td colSpan={5}>
            <Stack gap={4}>{examples.map((example, index) => (
              <Group key={index} gap="sm" wrap="nowrap">
                <StatusBadge status={example.expect === 'match' ? 'ok' : 'disabled'} label={t(example.expect === 'match' ? 'policy.matches' : 'policy.matchesNot')} />
                <Mono>{visibleText(example.tool ?? '')}</Mono><Text c="dimmed" truncate flex={1}><Mono>{oneLine(example.args ?? {}, 200)}</Mono></Text>
                {example.tool && <PageLink to="/policy" search={{ tab: 'explain', tool: example.tool, args: JSON.stringify(example.args ?? {}) }}>{t('policy.explain')}</PageLink>}
              </Group>
            ))}</Stack>
          </Table.Td>
        </Table.Tr>
      )}
    </>
  );
}

function Rules({ rules, onEdit }: { rules: PolicyRule[]; onEdit: () => void }) {
  const t = useT();
  if (rules.length === 0) return <EmptyState icon={IconShieldLock} title={t('policy.empty')} action={<Button onClick={onEdit}>{t('policy.first')}</Button>}>{t('policy.emptyHint')}</EmptyState>;
  return (
    <Table.ScrollContainer minWidth={600}>
      <Table verticalSpacing={8}>
        <Table.Thead><Table.Tr><Table.Th>{t('common.name')}</Table.Th><Table.Th>{t('policy.effect')}</Table.Th><Table.Th>{t('policy.match')}</Table.Th><Table.Th>{t('policy.when')}</Table.Th><Table.Th ta="right">{t('policy.examples')}</Table.Th></Table.Tr></Table.Thead>
        <Table.Tbody>{rules.map((rule) => <RuleRow key={rule.name} rule={rule} />)}</Table.Tbody>
      </Table>
      <Text size="xs" c="dimmed" mt="sm">{t('policy.order')}</Text>
    </Table.ScrollContainer>
  );
}

function EditRules({ scope, rules }: { scope: Scope; rules: PolicyRule[] }) {
  const t = useT();
  const mayAdmin = useMay('admin');
  const stored = useMemo(() => (rules.length === 0 ? START : stringify(compact({ rules }), { lineWidth: 0 })), [rules]);
  const draft = useDraft(`policy.${scope}`, stored);
  const [problems, setProblems] = useState<EditorProblem[]>([]);
  const [failure, setFailure] = useState<unknown>();
  const failed = (error: unknown) => {
    const list = error instanceof ApiError && Array.isArray(error.details['problems']) ? (error.details['problems'] as { line?: number; column?: number; message: string }[]) : [];
    setProblems(list.map((problem) => ({ line: problem.line, column: problem.column, message: problem.message, severity: 'error' })));
    setFailure(error);
  };
  const good = () => { setProblems([]); setFailure(undefined); };
  const check = useAction(() => actions.putText(draft.value, scope, true), { failed, done: () => { good(); notify(t('policy.valid')); } });
  const save = useAction(() => actions.putText(draft.value, scope, false), { failed, invalidates: [['policy']], done: () => { good(); draft.clear(); notify(t('policy.saved')); } });
  return (
    <Stack>
      <Editor language="yaml" label={t('policy.rules')} value={draft.value} onChange={draft.set} problems={problems} minHeight="20rem" maxHeight="60vh" />
      {Boolean(failure) && <ErrorPanel error={failure} />}
      <Group>
        <Button variant="default" loading={check.isPending} onClick={() => check.mutate(undefined)}>{t('policy.check')}</Button>
        {mayAdmin ? <Button loading={save.isPending} onClick={() => save.mutate(undefined)}>{t('policy.save')}</Button> : <PermissionNote needs="admin" />}
        {draft.isDirty && <Button variant="subtle" color="gray" onClick={draft.clear}>{t('common.discard')}</Button>}
      </Group>
    </Stack>
  );
}

function Explain() {
  const t = useT();
  const [url, setUrl] = useUrlState();
  const [tool, setTool] = useState(url['tool'] ?? '');
  const [args, setArgs] = useState(url['args'] ?? '{}');
  const [role, setRole] = useState<string | null>('caller');
  const [surface, setSurface] = useState<string | null>('rest');
  const parsed = parseObject(args);
  const tools = [...new Set((useInfiniteQuery(toolListQuery).data?.pages.flatMap((page) => page.tools) ?? []).map((row) => `${row.bundle}:${row.name}`))];
  const explain = useAction(() => actions.explain({ tool, args: 'value' in parsed ? parsed.value : ({} as JsonObject), as: { role, surface } } as unknown as ExplainBody));
  const { data: answer, error } = explain;
  useEffect(() => setUrl({ tool: tool || undefined, args: args === '{}' ? undefined : args }), [tool, args, setUrl]);
  return (
    <form onSubmit={(event) => { event.preventDefault(); explain.mutate(undefined); }}>
      <Stack>
        <Text c="dimmed">{t('policy.explainHint')}</Text>
        <Group align="flex-start" grow>
          <Autocomplete label={t('calls.tool')} required data={tools} limit={20} value={tool} placeholder="bank:pay" onChange={setTool} />
          <Select label={t('policy.asRole')} data={(['viewer', 'caller', 'editor', 'admin'] as const).map((value) => ({ value, label: t(`role.${value}`) }))} value={role} onChange={setRole} />
          <Select label={t('calls.surface')} data={['rest', 'mcp', 'cli']} value={surface} onChange={setSurface} />
        </Group>
        <div><Text fw={500} mb={4}>{t('calls.arguments')}</Text><Editor language="json" label={t('calls.arguments')} value={args} onChange={setArgs} minHeight="5rem" /></div>
        <Group><Button type="submit" loading={explain.isPending} disabled={'error' in parsed}>{t('policy.explain')}</Button></Group>
        {error && <ErrorPanel error={error} />}
        {answer && (
          <>
            <Alert variant="light" color="gray"><Group gap="md"><StatusBadge status={answer.effect} />{answer.rule && <Text fw={600}>{answer.rule}</Text>}{answer.reason && <Text>{visibleText(answer.reason)}</Text>}</Group></Alert>
            <Table verticalSpacing={6}>
              <Table.Thead><Table.Tr><Table.Th>{t('policy.rule')}</Table.Th><Table.Th>{t('policy.matched')}</Table.Th><Table.Th>{t('policy.why')}</Table.Th></Table.Tr></Table.Thead>
              <Table.Tbody>{answer.considered.map((item, index) => <Table.Tr key={index}><Table.Td><Mono>{visibleText(item.rule)}</Mono></Table.Td><Table.Td>{item.matched ? <StatusBadge status={item.effect} /> : <Text c="dimmed">{t('common.no')}</Text>}</Table.Td><Table.Td>{visibleText(item.why)}</Table.Td></Table.Tr>)}</Table.Tbody>
            </Table>
          </>
        )}
      </Stack>
    </form>
  );
}

export function PolicyPage() {
  const t = useT();
  const session = useSession();
  const [url, setUrl] = useUrlState();
  const scope: Scope = url['scope'] === 'platform' ? 'platform' : 'tenant';
  const mayEdit = useMay('editor');
  const { data, error, refetch } = useQuery({ ...policyQuery(scope), enabled: mayEdit });
  const tab = url['tab'] ?? 'rules';
  if (!mayEdit) return <Page title={t('nav.policy')}><Content><PermissionNote needs="editor" /></Content></Page>;
  return (
    <Page title={t('nav.policy')} count={data?.rules.length}>
      <Content>
        <Tabs value={tab} onChange={(next) => setUrl({ tab: next ?? undefined })}>
          <Tabs.List mb="lg"><Tabs.Tab value="rules">{t('policy.rules')}</Tabs.Tab><Tabs.Tab value="edit">{t('common.edit')}</Tabs.Tab><Tabs.Tab value="explain">{t('policy.explain')}</Tabs.Tab></Tabs.List>
          {session.platform && tab !== 'explain' && <SegmentedControl mb="md" value={scope} onChange={(next) => setUrl({ scope: next === 'tenant' ? undefined : next })} data={[{ value: 'tenant', label: t('policy.tenantRules') }, { value: 'platform', label: t('policy.platformRules') }]} />}
          {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : !data ? <Loading /> : (
            <>
              <Tabs.Panel value="rules"><Rules rules={data.rules} onEdit={() => setUrl({ tab: 'edit' })} /></Tabs.Panel>
              <Tabs.Panel value="edit"><EditRules key={scope} scope={scope} rules={data.rules} /></Tabs.Panel>
              <Tabs.Panel value="explain"><Explain /></Tabs.Panel>
            </>
          )}
        </Tabs>
      </Content>
    </Page>
  );
}
