import { Alert, Autocomplete, Button, Checkbox, FileButton, Group, Select, SimpleGrid, Stack, Table, Text, Textarea, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconUpload } from '@tabler/icons-react';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useState, type DragEvent } from 'react';
import { imports } from '@/api/actions';
import { keys } from '@/api/keys';
import { bundlesQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import type { ItemImportReport } from '@/api/types';
import type { ImportBody, ImportReport } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { notify, useAction } from '@/parts/feedback';
import { oneLine, visibleText } from '@/parts/format';
import { ImportItems } from '@/parts/import-items';
import { PageLink } from '@/parts/links';
import { Content, Guided, Loading, Page } from '@/parts/page';
import { API_KINDS, detectKind, type ImportKind } from './detect';

// As `import.max_document_bytes` of the server; GitHub's API description has 13 MB.
const MAX_FILE = 32 * 1024 * 1024;

/** Why an operation is left out, or what to look at. */
const note = (tool: ImportReport['tools'][number]) => tool.reason ?? tool.warnings?.map((warning) => warning.message).join('; ') ?? '';

/** A description of an API: each of its operations becomes a tool. */
function ApiDescription({ text, isUrl }: { text: string; isUrl: boolean }) {
  const t = useT();
  const navigate = useNavigate();
  const [bundle, setBundle] = useState('');
  const [baseUrl, setBaseUrl] = useState('');
  const [kind, setKind] = useState<string | null>(null);
  const [off, setOff] = useState(new Set<string>());
  const source = isUrl ? { url: text.trim() } : { document: text };
  const body = (dryRun: boolean): ImportBody => ({ ...source, ...(bundle ? { bundle } : {}), ...(baseUrl ? { base_url: baseUrl } : {}), ...(kind ? { kind } : {}), dry_run: dryRun, ...(off.size > 0 ? { exclude: [...off] } : {}) }) as unknown as ImportBody;
  const preview = useMutation<ImportReport, Error>({ mutationFn: () => imports.api(body(true)) });
  const run = useAction(() => imports.api(body(false)), { invalidates: [keys.tools, keys.bundles], done: (report) => { notify(t('import.done', { n: report.created + report.updated })); void navigate({ to: '/tools', search: { bundle: report.bundle } as never }); } });
  const report = preview.data;
  const toggle = (name: string) => setOff((current) => { const next = new Set(current); if (!next.delete(name)) next.add(name); return next; });
  return (
    <Stack>
      <TextInput label={t('tools.bundle')} placeholder={report?.bundle ?? t('import.bundleAuto')} value={bundle} onChange={(event) => setBundle(event.currentTarget.value)} />
      <SimpleGrid cols={2}>
        <TextInput label={t('import.baseUrl')} description={t('import.baseUrlHelp')} value={baseUrl} onChange={(event) => setBaseUrl(event.currentTarget.value)} />
        <Select label={t('import.kind')} description={t('import.kindHelp')} placeholder={t('import.kindAuto')} clearable data={kindOptions(t)} value={kind} onChange={setKind} />
      </SimpleGrid>
      <Group><Button variant={report ? 'default' : 'filled'} loading={preview.isPending} onClick={() => preview.mutate()}>{t('import.preview')}</Button>{report && <Button loading={run.isPending} onClick={() => run.mutate(undefined)}>{t('import.run', { n: report.tools.filter((tool) => tool.name && !off.has(tool.operation)).length })}</Button>}</Group>
      {preview.error && <ErrorPanel error={preview.error} />}
      {report && (
        <>
          <Text><strong>{visibleText(report.title)}</strong> {report.version} · {t('import.summary', { created: report.created, updated: report.updated, unchanged: report.unchanged, skipped: report.skipped })}</Text>
          {report.secrets.length > 0 && <Alert variant="light" color="yellow">{t('import.secrets', { names: report.secrets.join(', ') })}</Alert>}
          {report.warnings.map((warning) => <Text key={warning.message} size="xs" c="var(--haft-warn)">{visibleText(warning.message)}</Text>)}
          <Table verticalSpacing={4} layout="fixed">
            <Table.Tbody>{report.tools.slice(0, 500).map((tool) => (
              <Table.Tr key={tool.operation}>
                <Table.Td w={30}>{tool.name && <Checkbox aria-label={tool.name} checked={!off.has(tool.operation)} onChange={() => toggle(tool.operation)} />}</Table.Td>
                <Table.Td style={{ overflowWrap: 'anywhere' }}>
                  <Mono>{visibleText(tool.name ?? '—')}</Mono><Text size="xs" c="dimmed">{oneLine(tool.operation, 90)}</Text>
                  {note(tool) && <Text size="xs" c="var(--haft-warn)">{oneLine(note(tool), 140)}</Text>}
                </Table.Td>
                <Table.Td w={120} ta="right"><Chip>{t(`import.action.${tool.action}` as MessageKey)}</Chip></Table.Td>
              </Table.Tr>
            ))}</Table.Tbody>
          </Table>
          {report.tools.length > 500 && <Text c="dimmed">{t('json.moreItems', { n: report.tools.length - 500 })}</Text>}
        </>
      )}
    </Stack>
  );
}

const kindOptions = (t: ReturnType<typeof useT>) => (['openapi', 'postman', 'bruno', 'graphql'] as const).map((value) => ({ value, label: t(`import.kind.${value}` as MessageKey) }));

const DEFAULT_BUNDLE = 'user-created';

/** Opens the one tool that was imported, or the list of them. */
function useOpenImported() {
  const navigate = useNavigate();
  const t = useT();
  return (report: ItemImportReport, bundle: string) => {
    const stored = report.items.filter((item) => item.action === 'create' || item.action === 'replace');
    notify(t('import.done', { n: stored.length }));
    const only = stored.length === 1 ? stored[0] : undefined;
    if (only) void navigate({ to: '/tools/$ref', params: { ref: bundle ? `${bundle}:${only.name}` : only.name } as never, search: { tab: 'try' } as never });
    else void navigate({ to: '/tools', search: { bundle: bundle || undefined } as never });
  };
}

function BundleField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const t = useT();
  const bundles = (useQuery(bundlesQuery).data ?? []).filter((bundle) => bundle.kind === 'user' && !bundle.soft_deleted_at).map((bundle) => bundle.slug);
  return <Autocomplete label={t('tools.bundle')} data={bundles} placeholder={DEFAULT_BUNDLE} value={value} onChange={onChange} />;
}

function Curl({ text }: { text: string }) {
  const t = useT();
  const open = useOpenImported();
  const [name, setName] = useState('');
  const [bundle, setBundle] = useState('');
  const [settled] = useDebouncedValue(`${name}\n${bundle}`, 300);
  const options = { command: text, ...(name ? { name } : {}), ...(bundle ? { bundle } : {}) };
  return (
    <Stack>
      <SimpleGrid cols={2}><TextInput label={t('common.name')} placeholder={t('import.nameAuto')} value={name} onChange={(event) => setName(event.currentTarget.value)} /><BundleField value={bundle} onChange={setBundle} /></SimpleGrid>
      <ImportItems source={['curl', text, settled]} run={({ dry_run }) => imports.curl({ ...options, dry_run })} label={() => t('define.create')} onDone={(report) => open(report, bundle || DEFAULT_BUNDLE)} />
      <Text size="xs" c="dimmed">{t('import.secretsHint')} <PageLink to="/credentials">{t('nav.credentials')}</PageLink></Text>
    </Stack>
  );
}

function Definitions({ text }: { text: string }) {
  const t = useT();
  const open = useOpenImported();
  const [bundle, setBundle] = useState('');
  const [settled] = useDebouncedValue(bundle, 300);
  return (
    <Stack>
      <BundleField value={bundle} onChange={setBundle} />
      <ImportItems source={['tools', text, settled]} run={(options) => imports.tools({ text, ...(bundle ? { bundle } : {}), ...options })} label={(n) => t('import.run', { n })} onDone={(report) => open(report, bundle)} />
    </Stack>
  );
}

function Servers({ text }: { text: string }) {
  const t = useT();
  const navigate = useNavigate();
  const mayAdmin = useMay('admin');
  const [network, setNetwork] = useState(true);
  if (!mayAdmin) return <PermissionNote needs="admin" />;
  return (
    <Stack>
      <Checkbox label={t('servers.network')} description={t('servers.networkHelp')} checked={network} onChange={(event) => setNetwork(event.currentTarget.checked)} />
      <ImportItems source={['mcp', text, network]} run={(options) => imports.mcp({ config: text, network, ...options })} label={(n) => t('servers.addN', { n })}
        onDone={(report) => { notify(t('servers.added', { n: report.created + report.replaced })); void navigate({ to: '/servers' }); }} />
    </Stack>
  );
}

function Preview({ kind, text }: { kind: ImportKind; text: string }) {
  const t = useT();
  if (API_KINDS.includes(kind)) return <ApiDescription key={text} text={text} isUrl={kind === 'url'} />;
  switch (kind) {
    case 'empty': return <EmptyState title={t('import.nothing')}>{t('import.nothingHint')}</EmptyState>;
    case 'curl': return <Curl text={text} />;
    case 'mcp': return <Servers text={text} />;
    default: return <Definitions text={text} />;
  }
}

export function ImportPage() {
  const t = useT();
  const mayEdit = useMay('editor');
  const [text, setText] = useState('');
  const [name, setName] = useState('');
  const [over, setOver] = useState(false);
  const [busy, setBusy] = useState(false);
  const [settled] = useDebouncedValue(text, 300);
  const kind = useMemo(() => detectKind(settled, name), [settled, name]);
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
        <Guided preview={<><SectionTitle right={kind !== 'empty' && <Chip>{t(`import.kind.${kind}` as MessageKey)}</Chip>}>{t('import.result')}</SectionTitle>{busy ? <Loading /> : <Preview kind={kind} text={settled} />}</>}>
          <Stack>
            <Text c="dimmed">{t('import.intro')}</Text>
            <Textarea label={t('import.paste')} value={text.length > 200_000 ? `${text.slice(0, 200_000)}…` : text} readOnly={text.length > 200_000} autosize minRows={12} maxRows={24} placeholder={"curl https://api.example.com/v1/search?q=test -H 'Authorization: Bearer …'"}
              styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', outline: over ? '2px dashed var(--mantine-primary-color-filled)' : undefined } }}
              onChange={(event) => { setName(''); setText(event.currentTarget.value); }} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={drop} />
            <Group><FileButton onChange={(file) => void read(file)} accept=".json,.yaml,.yml,.skill,.txt,.bru,.graphql,.graphqls,.gql">{(props) => <Button variant="default" leftSection={<IconUpload size={14} />} {...props}>{t('import.file')}</Button>}</FileButton>{text && <Button variant="subtle" color="gray" onClick={() => setText('')}>{t('define.startOver')}</Button>}</Group>
          </Stack>
        </Guided>
      </Content>
    </Page>
  );
}
