import { Button, Checkbox, Group, Modal, SegmentedControl, Select, Stack, Switch, TagsInput, Text, Textarea, TextInput, Title } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconLogin, IconPlus, IconRefresh, IconServer2, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { imports, servers as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { bundleToolsQuery, serverChangesQuery, serverFindingsQuery, serversQuery, toolRef } from '@/api/queries';
import { useMay } from '@/api/session';
import type { McpServer, McpToolChange, NewServer, ScanFinding } from '@/api/types';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { DiffView } from '@/parts/diff-view';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { oneLine, visibleText } from '@/parts/format';
import { ImportItems } from '@/parts/import-items';
import { KeyValues } from '@/parts/key-values';
import { ToolLink } from '@/parts/links';
import { Drawer, Loading, Page, Split } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { TextView } from '@/parts/text-view';
import { useUrlState } from '@/parts/url-state';
import { isDownloader, runsDownloader } from './downloaders';

const sideText = (side: McpToolChange['agreed']) => JSON.stringify(side, null, 2);
const phase = (server: McpServer) => (server.enabled ? server.state.phase : 'disabled');
const serverAddress = (server: McpServer) => ('url' in server ? server.url : `${server.command} ${(server.args ?? []).join(' ')}`);

function Finding({ finding, named }: { finding: ScanFinding; named?: boolean }) {
  const t = useT();
  const isHard = finding.severity === 'hard';
  return (
    <div>
      <Group gap="sm"><StatusBadge status={isHard ? 'failed' : 'warning'} label={t(isHard ? 'servers.hard' : 'servers.soft')} />{named && finding.tool && <Mono>{visibleText(finding.tool)}</Mono>}<Mono>{finding.rule}</Mono><Text c="dimmed">{visibleText(finding.field)}</Text></Group>
      <Text>{finding.message}</Text>
      {finding.excerpt && <Text c="dimmed" style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(finding.excerpt)}</Mono></Text>}
    </div>
  );
}

/** What the scan found in tools that do not wait for review. */
function Findings({ server }: { server: McpServer }) {
  const t = useT();
  const { data: list } = useQuery(serverFindingsQuery(server.id));
  const { data: changes } = useQuery(serverChangesQuery(server.id));
  const waiting = new Set(changes?.changes.flatMap((change) => change.findings.map((finding) => finding.tool)));
  const rest = list?.findings.filter((finding) => !waiting.has(finding.tool)) ?? [];
  if (rest.length === 0) return null;
  return (
    <div>
      <SectionTitle>{t('servers.findings', { n: rest.length })}</SectionTitle>
      <Text c="dimmed" mb="sm">{t('servers.findingsHint')}</Text>
      <Stack gap="sm">{rest.slice(0, 100).map((finding) => <Finding key={`${finding.tool} ${finding.rule}`} finding={finding} named />)}</Stack>
    </div>
  );
}

function Changes({ server }: { server: McpServer }) {
  const t = useT();
  const mayAdmin = useMay('admin');
  const { data: list } = useQuery(serverChangesQuery(server.id));
  const invalidates = [keys.servers, keys.tools];
  const accept = useAction((names: string[]) => actions.accept(server.id, names), { invalidates, done: (_, names) => notify(t('servers.accepted', { n: names.length })) });
  const reject = useAction((names: string[]) => actions.reject(server.id, names), { invalidates, done: (_, names) => notify(t('servers.rejectedNotice', { n: names.length })) });
  if (!list || list.changes.length === 0) return null;
  const open = list.changes.filter((change) => !change.rejected).map((change) => change.name);
  return (
    <div>
      <SectionTitle right={mayAdmin && open.length > 1 && <Group gap="xs"><Button size="compact-xs" variant="default" loading={reject.isPending} onClick={() => reject.mutate(open)}>{t('servers.rejectAll')}</Button><Button size="compact-xs" loading={accept.isPending} onClick={() => accept.mutate(open)}>{t('servers.acceptAll')}</Button></Group>}>{t('servers.changes', { n: list.changes.length })}</SectionTitle>
      <Text c="dimmed" mb="sm">{t('servers.changesHint')} {t('servers.rejectHint')}</Text>
      <Stack>{list.changes.map((change) => (
        <div key={change.name}>
          <Group justify="space-between" mb={4}>
            <Group gap="sm"><Mono>{visibleText(change.name)}</Mono>{change.new && <StatusBadge status="pending" label={t('servers.new')} />}{change.rejected && <StatusBadge status="denied" label={t('servers.rejected')} />}</Group>
            {mayAdmin && <Group gap="xs">{!change.rejected && <Button size="compact-xs" variant="default" loading={reject.isPending} onClick={() => reject.mutate([change.name])}>{t('servers.reject')}</Button>}<Button size="compact-xs" variant={change.rejected ? 'default' : 'filled'} loading={accept.isPending} onClick={() => accept.mutate([change.name])}>{t('servers.accept')}</Button></Group>}
          </Group>
          {change.findings.length > 0 && <Stack gap="xs" mb="xs">{change.findings.map((finding) => <Finding key={finding.rule} finding={finding} />)}</Stack>}
          <DiffView before={change.new ? '' : sideText(change.agreed)} after={sideText(change.offered)} beforeLabel={t('servers.agreed')} afterLabel={t('servers.offered')} />
        </div>
      ))}</Stack>
    </div>
  );
}

function Detail({ server, onClose }: { server: McpServer; onClose: () => void }) {
  const t = useT();
  const ask = useAsk();
  const mayAdmin = useMay('admin');
  const invalidates = [keys.servers, keys.tools];
  const refresh = useAction(() => actions.refresh(server.id), { invalidates, done: () => notify(t('servers.refreshed')) });
  const patch = useAction((change: Parameters<typeof actions.patch>[1]) => actions.patch(server.id, change), { invalidates });
  const remove = useAction(() => actions.remove(server.id), { invalidates, done: () => { onClose(); notify(t('common.deleted')); } });
  const review = useAction(() => actions.review(server.id), { invalidates, done: () => notify(t('servers.reviewed')) });
  const login = useAction(() => actions.login(server.id), { done: ({ authorization_url }) => { if (/^https?:/.test(authorization_url)) window.open(authorization_url, '_blank', 'noopener'); } });
  const logout = useAction(() => actions.logout(server.id), { invalidates });
  const tools = useQuery(bundleToolsQuery(server.id)).data?.tools ?? [];
  const { state } = server;
  const isRemote = 'url' in server;
  const askDelete = async () => { if (await ask({ title: t('servers.deleteTitle', { name: server.id }), body: t('servers.deleteBody', { n: state.tools }), confirm: t('common.delete'), danger: true })) remove.mutate(undefined); };
  return (
    <Drawer label={server.id} title={<div><Title order={2}><Mono>{visibleText(server.id)}</Mono></Title><StatusBadge status={phase(server)} /></div>} onClose={onClose}>
      <Stack gap="sm">
        {state.error && <ErrorPanel error={new Error(state.error)} title={t('servers.problem')} />}
        {server.warnings?.map((warning) => <Text key={warning} c="var(--haft-warn)">{visibleText(warning)}</Text>)}
        {mayAdmin ? (
          <Group gap="sm">
            <Switch label={t('common.enabled')} checked={server.enabled} disabled={Boolean(server.declared_in)} onChange={(event) => patch.mutate({ enabled: event.currentTarget.checked })} />
            <Button variant="default" leftSection={<IconRefresh size={14} />} loading={refresh.isPending} onClick={() => refresh.mutate(undefined)}>{t('servers.refresh')}</Button>
            {isRemote && (state.phase === 'needs_auth' ? <Button leftSection={<IconLogin size={14} />} loading={login.isPending} onClick={() => login.mutate(undefined)}>{t('servers.login')}</Button> : <Button variant="subtle" color="gray" onClick={() => logout.mutate(undefined)}>{t('servers.logout')}</Button>)}
            {!server.reviewed_at && <Button variant="default" loading={review.isPending} onClick={() => review.mutate(undefined)}>{t('servers.review')}</Button>}
            {!server.declared_in && <Button variant="default" leftSection={<IconTrash size={14} />} onClick={() => void askDelete()}>{t('common.delete')}</Button>}
          </Group>
        ) : <PermissionNote needs="admin" />}
        <Changes server={server} />
        <Findings server={server} />
        <SectionTitle>{t('nav.tools')} · {state.tools}</SectionTitle>
        <Stack gap={4}>{tools.map((tool) => <Group key={toolRef(tool)} gap="sm" wrap="nowrap"><StatusBadge status={tool.ready ? (tool.enabled ? tool.status : 'disabled') : 'not_ready'} iconOnly /><ToolLink tool={toolRef(tool)} /><Text c="dimmed" truncate flex={1}>{oneLine(tool.description, 120)}</Text></Group>)}</Stack>
        {state.stderr && state.stderr.length > 0 && <><SectionTitle>stderr</SectionTitle><TextView text={state.stderr.join('\n')} label="stderr" maxHeight={220} /></>}
        <SectionTitle>{t('tools.about')}</SectionTitle>
        <Facts rows={[
          [t('servers.address'), <Mono key="a">{visibleText(serverAddress(server))}</Mono>], [t('servers.software'), state.server_info && visibleText(state.server_info)], [t('servers.protocol'), state.protocol],
          [t('tools.policy'), <Select key="p" aria-label={t('tools.policy')} data={['allow', 'elevated', 'deny']} value={server.policy} disabled={!mayAdmin} allowDeselect={false} w={140} onChange={(next) => patch.mutate({ policy: next as never })} />],
          [t('servers.network'), !isRemote && <Switch key="n" aria-label={t('servers.network')} checked={server.network ?? false} disabled={!mayAdmin || Boolean(server.declared_in)} onChange={(event) => patch.mutate({ network: event.currentTarget.checked })} />],
          [t('servers.acceptChanges'), <Switch key="s" aria-label={t('servers.acceptChanges')} checked={server.accept_changes} disabled={!mayAdmin} onChange={(event) => patch.mutate({ accept_changes: event.currentTarget.checked })} />],
          [t('servers.reviewNewTools'), <Select key="r" aria-label={t('servers.reviewNewTools')} data={[{ value: 'auto', label: t('servers.reviewAuto') }, { value: 'always', label: t('servers.reviewAlways') }, { value: 'never', label: t('servers.reviewNever') }]} value={server.review_new_tools == null ? 'auto' : server.review_new_tools ? 'always' : 'never'} disabled={!mayAdmin || Boolean(server.declared_in)} allowDeselect={false} w={220} onChange={(next) => patch.mutate({ review_new_tools: next === 'auto' ? null : next === 'always' })} />],
          [t('servers.declaredIn'), server.declared_in && <Mono key="declaredIn">{server.declared_in}</Mono>], [t('servers.failures'), state.failures || null],
        ]} />
      </Stack>
    </Drawer>
  );
}

function AddServer({ onDone }: { onDone: (id: string) => void }) {
  const t = useT();
  const [kind, setKind] = useState('program');
  const [id, setId] = useState('');
  const [command, setCommand] = useState('');
  const [args, setArgs] = useState<string[]>([]);
  const [env, setEnv] = useState<Record<string, string>>({});
  const [cwd, setCwd] = useState('');
  const [chosenNetwork, setNetwork] = useState<boolean>();
  const [address, setAddress] = useState('');
  const [headers, setHeaders] = useState<Record<string, string>>({});
  const [prefix, setPrefix] = useState('');
  const [text, setText] = useState('');
  const [settled] = useDebouncedValue(text, 300);
  const [failure, setFailure] = useState<unknown>();
  const add = useAction((server: NewServer) => actions.add(server), { invalidates: [keys.servers, keys.tools, keys.bundles], failed: setFailure, done: (server) => { notify(t('servers.added', { n: 1 })); onDone(server.id); } });
  const network = chosenNetwork ?? (kind === 'paste' ? runsDownloader(text) : isDownloader(command));
  const shared = { id, ...(prefix ? { prefix } : {}) };
  const server = (kind === 'program' ? { ...shared, command, args, env, network, ...(cwd ? { cwd } : {}) } : { ...shared, url: address, headers }) as NewServer;
  const networkBox = <Checkbox label={t('servers.network')} description={t('servers.networkHelp')} checked={network} onChange={(event) => setNetwork(event.currentTarget.checked)} />;
  const kinds = <SegmentedControl value={kind} onChange={setKind} data={[{ value: 'program', label: t('servers.program') }, { value: 'url', label: 'URL' }, { value: 'paste', label: t('servers.paste') }]} />;
  if (kind === 'paste') {
    return (
      <Stack>
        {kinds}
        <Textarea label={t('servers.pasteLabel')} placeholder={'{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'} autosize minRows={6} maxRows={16} value={text} onChange={(event) => setText(event.currentTarget.value)} styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }} data-autofocus />
        {networkBox}
        {settled.trim() !== '' && <ImportItems source={['mcp', settled, network]} run={(options) => imports.mcp({ config: settled, network, ...options })} label={(n) => t('servers.addN', { n })}
          onDone={(report) => { notify(t('servers.added', { n: report.created + report.replaced })); onDone(report.items.find((item) => item.action === 'create' || item.action === 'replace')?.name ?? ''); }} />}
      </Stack>
    );
  }
  return (
    <form onSubmit={(event) => { event.preventDefault(); add.mutate(server); }}>
      <Stack>
        {kinds}
        <TextInput label={t('common.name')} required value={id} onChange={(event) => setId(event.currentTarget.value)} data-autofocus />
        {kind === 'program' && <><TextInput label={t('servers.command')} required value={command} onChange={(event) => setCommand(event.currentTarget.value)} /><TagsInput label={t('servers.args')} value={args} onChange={setArgs} splitChars={[]} allowDuplicates /><KeyValues label={t('impl.env')} value={env} onChange={setEnv} /><TextInput label={t('servers.cwd')} value={cwd} onChange={(event) => setCwd(event.currentTarget.value)} /></>}
        {kind === 'url' && <><TextInput label="URL" required type="url" value={address} onChange={(event) => setAddress(event.currentTarget.value)} /><KeyValues label={t('impl.headers')} value={headers} onChange={setHeaders} /></>}
        <TextInput label={t('servers.prefix')} description={t('servers.prefixHelp')} value={prefix} onChange={(event) => setPrefix(event.currentTarget.value)} />
        {kind === 'program' && networkBox}
        <Text size="xs" c="dimmed">{t('impl.secret.help')}</Text>
        {Boolean(failure) && <ErrorPanel error={failure} />}
        <Group justify="flex-end"><Button type="submit" loading={add.isPending}>{t('servers.add')}</Button></Group>
      </Stack>
    </form>
  );
}

export function ServersPage() {
  const t = useT();
  const mayAdmin = useMay('admin');
  const [url, setUrl] = useUrlState();
  const { data: rows, error, isPending, refetch } = useQuery(serversQuery);
  const open = rows?.find((server) => server.id === url['open']);
  const columns = useMemo<Column<McpServer>[]>(() => [
    { key: 'id', header: t('common.name'), width: 'minmax(8rem, 1fr)', render: (row) => <Mono>{visibleText(row.id)}</Mono> },
    { key: 'phase', header: t('common.status'), width: '9rem', render: (row) => <StatusBadge status={phase(row)} /> },
    { key: 'address', header: t('servers.address'), width: 'minmax(8rem, 2fr)', secondary: true, render: (row) => <Text c={row.state.error ? 'var(--haft-bad)' : 'dimmed'} truncate>{oneLine(row.state.error ?? serverAddress(row))}</Text> },
    { key: 'changes', header: t('servers.toReview'), width: '6rem', align: 'end', render: (row) => (row.state.refused?.length ? <StatusBadge status="warning" label={String(row.state.refused.length)} /> : '—') },
    { key: 'tools', header: t('nav.tools'), width: '4rem', align: 'end', render: (row) => row.state.tools },
  ], [t]);
  return (
    <Page title={t('nav.servers')} count={rows?.length} primary={mayAdmin && <Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ new: '1' })}>{t('servers.add')}</Button>}>
      <Split drawer={open && <Detail key={open.id} server={open} onClose={() => setUrl({ open: undefined })} />}>
        {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : (
          <DataTable label={t('nav.servers')} rows={rows} columns={columns} rowKey={(row) => row.id} rowName={(row) => row.id} openKey={url['open']} onOpen={(row) => setUrl({ open: row.id }, { push: true })}
            empty={<EmptyState icon={IconServer2} title={t('servers.empty')} action={mayAdmin && <Button onClick={() => setUrl({ new: '1' })}>{t('servers.add')}</Button>}>{t('servers.emptyHint')}</EmptyState>}
            phone={(row) => <div><Group gap={6} wrap="nowrap"><Text truncate flex={1}><Mono>{visibleText(row.id)}</Mono></Text><StatusBadge status={phase(row)} /></Group><Text size="xs" c="dimmed" truncate>{row.state.tools} {t('nav.tools')} · {oneLine(row.state.error ?? serverAddress(row), 80)}</Text></div>} />
        )}
      </Split>
      <Modal opened={url['new'] !== undefined} onClose={() => setUrl({ new: undefined })} title={t('servers.add')} size="lg"><AddServer onDone={(id) => setUrl({ new: undefined, open: id })} /></Modal>
    </Page>
  );
}
