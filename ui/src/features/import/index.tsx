import { Alert, Button, Checkbox, FileButton, Group, Stack, Table, Text, Textarea, TextInput } from '@mantine/core';
import { IconUpload } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useState, type DragEvent } from 'react';
import { stringify } from 'yaml';
import { imports, servers as serverActions, tools } from '@/api/actions';
import { keys } from '@/api/keys';
import { toolRef } from '@/api/queries';
import { useMay } from '@/api/session';
import type { ImportBody, ImportReport, SourceForm } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { Editor } from '@/parts/editor';
import { notify, useAction } from '@/parts/feedback';
import { oneLine, visibleText } from '@/parts/format';
import { parseServers } from '@/parts/mcp-config';
import { Content, Guided, Loading, Page } from '@/parts/page';
import { parseCurl } from './curl';
import { detectKind, type ImportKind } from './detect';

// As `import.max_document_bytes` of the server; GitHub's API description has 13 MB.
const MAX_FILE = 32 * 1024 * 1024;

function OpenApi({ text, isUrl }: { text: string; isUrl: boolean }) {
  const t = useT();
  const navigate = useNavigate();
  const [bundle, setBundle] = useState('');
  const [off, setOff] = useState(new Set<string>());
  const source = isUrl ? { url: text.trim() } : { document: text };
  const body = (dryRun: boolean): ImportBody => ({ ...source, ...(bundle ? { bundle } : {}), dry_run: dryRun, ...(off.size > 0 ? { exclude: [...off] } : {}) }) as unknown as ImportBody;
  const preview = useMutation<ImportReport, Error>({ mutationFn: () => imports.openapi(body(true)) });
  const run = useAction(() => imports.openapi(body(false)), { invalidates: [keys.tools, keys.bundles], done: (report) => { notify(t('import.done', { n: report.created + report.updated })); void navigate({ to: '/tools', search: { bundle: report.bundle } as never }); } });
  const report = preview.data;
  const toggle = (name: string) => setOff((current) => { const next = new Set(current); if (!next.delete(name)) next.add(name); return next; });
  return (
    <Stack>
      <TextInput label={t('tools.bundle')} placeholder={report?.bundle ?? t('import.bundleAuto')} value={bundle} onChange={(event) => setBundle(event.currentTarget.value)} />
      <Group><Button variant={report ? 'default' : 'filled'} loading={preview.isPending} onClick={() => preview.mutate()}>{t('import.preview')}</Button>{report && <Button loading={run.isPending} onClick={() => run.mutate(undefined)}>{t('import.run', { n: report.tools.filter((tool) => tool.name && !off.has(tool.operation)).length })}</Button>}</Group>
      {preview.error && <ErrorPanel error={preview.error} />}
      {report && (
        <>
          <Text><strong>{visibleText(report.title)}</strong> {report.version} · {t('import.summary', { created: report.created, updated: report.updated, unchanged: report.unchanged, skipped: report.skipped })}</Text>
          {report.secrets.length > 0 && <Alert variant="light" color="yellow">{t('import.secrets', { names: report.secrets.join(', ') })}</Alert>}
          {report.warnings.map((warning) => <Text key={warning.message} size="xs" c="var(--haft-warn)">{visibleText(warning.message)}</Text>)}
          <Table verticalSpacing={4} stickyHeader>
            <Table.Tbody>{report.tools.slice(0, 500).map((tool) => (
              <Table.Tr key={tool.operation}>
                <Table.Td w={30}>{tool.name && <Checkbox aria-label={tool.name} checked={!off.has(tool.operation)} onChange={() => toggle(tool.operation)} />}</Table.Td>
                <Table.Td><Mono>{visibleText(tool.name ?? '—')}</Mono><Text size="xs" c="dimmed">{oneLine(tool.operation, 90)}</Text></Table.Td>
                <Table.Td><Chip>{t(`import.action.${tool.action}` as MessageKey)}</Chip></Table.Td><Table.Td><Text size="xs" c="dimmed">{oneLine(tool.reason ?? tool.warnings?.map((warning) => warning.message).join('; ') ?? '', 140)}</Text></Table.Td>
              </Table.Tr>
            ))}</Table.Tbody>
          </Table>
          {report.tools.length > 500 && <Text c="dimmed">{t('json.moreItems', { n: report.tools.length - 500 })}</Text>}
        </>
      )}
    </Stack>
  );
}

function Definition({ text, form, note }: { text: string; form: SourceForm; note?: string }) {
  const t = useT();
  const navigate = useNavigate();
  const [draft, setDraft] = useState(text);
  const check = useMutation({ mutationFn: () => tools.validate('new', draft, form) });
  const create = useAction(() => tools.create(draft, form), { invalidates: [keys.tools], done: (tool) => { notify(t('define.created', { name: tool.name })); void navigate({ to: '/tools/$ref', params: { ref: toolRef(tool) } as never, search: { tab: 'try' } as never }); } });
  return (
    <Stack>
      {note && <Alert variant="light" color="yellow">{note}</Alert>}
      <Editor language={form} label={t('define.source')} value={draft} onChange={setDraft} problems={[...(check.data?.errors ?? []).map((problem) => ({ ...problem, severity: 'error' as const })), ...(check.data?.warnings ?? []).map((problem) => ({ ...problem, severity: 'warning' as const }))]} />
      {check.data && [...check.data.errors, ...check.data.warnings].map((problem) => <Text key={problem.message} size="xs"><Mono>{problem.field}</Mono>: {visibleText(problem.message)}</Text>)}
      {check.data?.valid && <Text c="dimmed">{t('define.valid')}</Text>}
      {check.error && <ErrorPanel error={check.error} />}
      <Group><Button variant="default" loading={check.isPending} onClick={() => check.mutate()}>{t('import.check')}</Button><Button loading={create.isPending} onClick={() => create.mutate(undefined)}>{t('define.create')}</Button></Group>
    </Stack>
  );
}

function Servers({ text }: { text: string }) {
  const t = useT();
  const navigate = useNavigate();
  const mayAdmin = useMay('admin');
  const [network, setNetwork] = useState(true);
  const [off, setOff] = useState(new Set<string>());
  const { servers, error } = useMemo(() => parseServers(text), [text]);
  const chosen = servers.filter((server) => !off.has(server.id));
  const add = useAction(async () => { for (const server of chosen) await serverActions.add({ ...server, network: server.url ? false : network }); return chosen.length; }, { invalidates: [keys.servers, keys.tools], done: (n) => { notify(t('servers.added', { n })); void navigate({ to: '/servers' }); } });
  if (error) return <ErrorPanel error={new Error(error)} />;
  return (
    <Stack>
      {servers.map((server) => <Checkbox key={server.id} checked={!off.has(server.id)} label={<><Mono>{visibleText(server.id)}</Mono> <Text span c="dimmed">{oneLine(server.url ?? [server.command, ...(server.args ?? [])].join(' '), 90)}</Text></>} onChange={() => setOff((current) => { const next = new Set(current); if (!next.delete(server.id)) next.add(server.id); return next; })} />)}
      <Checkbox label={t('servers.network')} description={t('servers.networkHelp')} checked={network} onChange={(event) => setNetwork(event.currentTarget.checked)} />
      {mayAdmin ? <Group><Button loading={add.isPending} disabled={chosen.length === 0} onClick={() => add.mutate(undefined)}>{t('servers.add')}</Button></Group> : <PermissionNote needs="admin" />}
    </Stack>
  );
}

function Curl({ text }: { text: string }) {
  const t = useT();
  const result = useMemo(() => parseCurl(text), [text]);
  if ('error' in result) return <ErrorPanel error={new Error(result.error)} />;
  const notes = [result.secrets.length > 0 && t('import.secrets', { names: result.secrets.map((secret) => secret.name).join(', ') }), result.ignored.length > 0 && t('import.ignored', { names: result.ignored.join(', ') })].filter(Boolean).join(' ');
  return <Definition text={stringify(result.doc, { lineWidth: 0 })} form="yaml" {...(notes ? { note: notes } : {})} />;
}

function Preview({ kind, text }: { kind: ImportKind; text: string }) {
  const t = useT();
  switch (kind) {
    case 'empty': return <EmptyState title={t('import.nothing')}>{t('import.nothingHint')}</EmptyState>;
    case 'url': case 'openapi': return <OpenApi key={text} text={text} isUrl={kind === 'url'} />;
    case 'curl': return <Curl key={text} text={text} />;
    case 'mcp': return <Servers text={text} />;
    default: return <Definition key={text} text={text} form={kind} />;
  }
}

export function ImportPage() {
  const t = useT();
  const mayEdit = useMay('editor');
  const [text, setText] = useState('');
  const [name, setName] = useState('');
  const [over, setOver] = useState(false);
  const [busy, setBusy] = useState(false);
  const kind = useMemo(() => detectKind(text, name), [text, name]);
  const read = async (file: File | null) => {
    if (!file) return;
    if (file.size > MAX_FILE) { notify(t('import.tooLarge')); return; }
    setBusy(true);
    setName(file.name);
    setText(await file.text());
    setBusy(false);
  };
  const drop = (event: DragEvent) => { event.preventDefault(); setOver(false); void read(event.dataTransfer.files[0] ?? null); };
  if (!mayEdit) return <Page title={t('nav.import')}><Content><PermissionNote needs="editor" /></Content></Page>;
  return (
    <Page title={t('nav.import')}>
      <Content>
        <Guided preview={<><SectionTitle right={kind !== 'empty' && <Chip>{t(`import.kind.${kind}` as MessageKey)}</Chip>}>{t('import.result')}</SectionTitle>{busy ? <Loading /> : <Preview kind={kind} text={text} />}</>}>
          <Stack>
            <Text c="dimmed">{t('import.intro')}</Text>
            <Textarea label={t('import.paste')} value={text.length > 200_000 ? `${text.slice(0, 200_000)}…` : text} readOnly={text.length > 200_000} autosize minRows={12} maxRows={24} placeholder={"curl https://api.example.com/v1/search?q=test -H 'Authorization: Bearer …'"}
              styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', outline: over ? '2px dashed var(--mantine-primary-color-filled)' : undefined } }}
              onChange={(event) => { setName(''); setText(event.currentTarget.value); }} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={drop} />
            <Group><FileButton onChange={(file) => void read(file)} accept=".json,.yaml,.yml,.skill,.txt">{(props) => <Button variant="default" leftSection={<IconUpload size={14} />} {...props}>{t('import.file')}</Button>}</FileButton>{text && <Button variant="subtle" color="gray" onClick={() => setText('')}>{t('define.startOver')}</Button>}</Group>
          </Stack>
        </Guided>
      </Content>
    </Page>
  );
}
