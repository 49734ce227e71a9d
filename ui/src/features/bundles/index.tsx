import { Alert, Button, Group, Modal, Stack, Switch, Table, Text, Textarea, TextInput, Title } from '@mantine/core';
import { IconBox, IconPlus, IconRestore, IconRocket, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { bundles as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { bundlesQuery, bundleToolsQuery, toolRef } from '@/api/queries';
import { useMay } from '@/api/session';
import type { Bundle } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { Chip, EmptyState, ErrorPanel, Facts, Mono, SectionTitle } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { FilterInput } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { ToolLink } from '@/parts/links';
import { Drawer, Loading, Page, Split, Toolbar } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';

const PUBLICATION_STATUS = { published: 'published', unchanged: 'ok', skipped: 'disabled', failed: 'error' } as const;
const state = (bundle: Bundle) => (bundle.soft_deleted_at ? 'deleted' : bundle.enabled ? 'enabled' : 'disabled');

function BundleForm({ bundle, onDone }: { bundle?: Bundle; onDone: (slug: string) => void }) {
  const t = useT();
  const [slug, setSlug] = useState(bundle?.slug ?? '');
  const [name, setName] = useState(bundle?.display_name ?? '');
  const [description, setDescription] = useState(bundle?.description ?? '');
  const save = useAction(() => actions.put(slug, { display_name: name || slug, description, enabled: bundle?.enabled ?? true }), { invalidates: [keys.bundles], done: () => { notify(t('common.saved')); onDone(slug); } });
  return (
    <form onSubmit={(event) => { event.preventDefault(); save.mutate(undefined); }}>
      <Stack>
        {!bundle && <TextInput label={t('bundles.slug')} description={t('bundles.slugHelp')} required value={slug} onChange={(event) => setSlug(event.currentTarget.value)} data-autofocus />}
        <TextInput label={t('define.displayName')} value={name} onChange={(event) => setName(event.currentTarget.value)} />
        <Textarea label={t('common.description')} autosize minRows={2} value={description} onChange={(event) => setDescription(event.currentTarget.value)} />
        <Group justify="flex-end"><Button type="submit" loading={save.isPending}>{t('common.save')}</Button></Group>
      </Stack>
    </form>
  );
}

/** What publishing would do, tool by tool; then what it did. All tools are published, or none. */
function PublishReport({ bundle, onClose }: { bundle: Bundle; onClose: () => void }) {
  const t = useT();
  const plan = useQuery({ queryKey: [...keys.bundles, 'publish', bundle.slug], queryFn: () => actions.publish(bundle.slug, true), staleTime: 0, gcTime: 0, retry: false });
  const publish = useAction(() => actions.publish(bundle.slug, false), { invalidates: [keys.bundles, keys.tools], failed: () => undefined, done: (done) => { notify(t('bundles.published', { n: done.published, name: bundle.slug })); onClose(); } });
  const report = plan.data;
  if (plan.error) return <ErrorPanel error={plan.error} onRetry={() => void plan.refetch()} />;
  if (!report) return <Loading />;
  return (
    <Stack>
      <Text>{t('bundles.publishSummary', { published: report.published, unchanged: report.unchanged, failed: report.failed })}</Text>
      {report.failed > 0 && <Alert variant="light" color="red">{t('bundles.publishBlocked')}</Alert>}
      <Table.ScrollContainer minWidth={360} mah={420}>
        <Table verticalSpacing={4}>
          <Table.Tbody>{report.tools.map((line) => (
            <Table.Tr key={line.id}>
              <Table.Td><ToolLink tool={line.tool} />{line.reason && <Text size="xs" c={line.action === 'failed' ? 'var(--haft-bad)' : 'dimmed'}>{visibleText(line.reason)}</Text>}</Table.Td>
              <Table.Td><StatusBadge status={PUBLICATION_STATUS[line.action]} label={t(`bundles.publication.${line.action}`)} /></Table.Td>
              <Table.Td ta="right"><Text c="dimmed">{line.published_revision === line.revision || line.published_revision === null ? t('tools.revisionN', { n: line.revision }) : `${line.published_revision} → ${line.revision}`}</Text></Table.Td>
            </Table.Tr>
          ))}</Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {publish.error && <ErrorPanel error={publish.error} />}
      <Group justify="flex-end"><Button variant="default" onClick={onClose}>{t('common.cancel')}</Button><Button loading={publish.isPending} disabled={report.published === 0 || report.failed > 0} onClick={() => publish.mutate(undefined)}>{t('bundles.publishRun', { n: report.published })}</Button></Group>
    </Stack>
  );
}

function Detail({ bundle, onClose }: { bundle: Bundle; onClose: () => void }) {
  const t = useT();
  const ask = useAsk();
  const navigate = useNavigate();
  const mayEdit = useMay('editor');
  const [editing, setEditing] = useState(false);
  const invalidates = [keys.bundles, keys.tools];
  const tools = useQuery(bundleToolsQuery(bundle.slug));
  const enable = useAction((enabled: boolean) => actions.enable(bundle.slug, enabled), { invalidates, done: (_, enabled) => notify(t(enabled ? 'bundles.enabled' : 'bundles.disabled', { name: bundle.slug }), { label: t('common.undo'), run: () => enable.mutate(!enabled) }) });
  const revive = useAction(() => actions.put(bundle.slug, { display_name: bundle.display_name, description: bundle.description, enabled: true }), { invalidates, done: () => notify(t('bundles.revived', { name: bundle.slug })) });
  const [publishing, setPublishing] = useState(false);
  const remove = useAction(() => actions.remove(bundle.slug), { invalidates, done: () => { onClose(); notify(t('bundles.deleted', { name: bundle.slug }), { label: t('common.undo'), run: () => revive.mutate(undefined) }); } });
  const isOwn = !bundle.built_in && bundle.kind === 'user';
  const askDelete = async () => { if (await ask({ title: t('bundles.deleteTitle', { name: bundle.slug }), body: t('bundles.deleteBody'), confirm: t('common.delete'), danger: true })) remove.mutate(undefined); };
  return (
    <Drawer label={bundle.slug} title={<div><Title order={2}>{visibleText(bundle.display_name || bundle.slug)}</Title><Group gap="sm"><StatusBadge status={state(bundle)} {...(state(bundle) === 'deleted' ? { label: t('bundles.state.deleted') } : {})} /><Mono>{bundle.slug}</Mono></Group></div>} onClose={onClose}>
      <Stack>
        <Text>{visibleText(bundle.description)}</Text>
        {mayEdit && (
          <Group gap="sm">
            {bundle.soft_deleted_at ? <Button leftSection={<IconRestore size={14} />} onClick={() => revive.mutate(undefined)}>{t('bundles.revive')}</Button> : (
              <>
                <Switch label={t('common.enabled')} checked={bundle.enabled} onChange={(event) => enable.mutate(event.currentTarget.checked)} />
                {isOwn && <Button variant="default" onClick={() => setEditing(true)}>{t('common.edit')}</Button>}
                {isOwn && <Button variant="default" leftSection={<IconPlus size={14} />} onClick={() => void navigate({ to: '/tools/new', search: { bundle: bundle.slug } as never })}>{t('tools.new')}</Button>}
                {isOwn && <Button variant="default" leftSection={<IconRocket size={14} />} onClick={() => setPublishing(true)}>{t('bundles.publishAll')}</Button>}
                {isOwn && <Button variant="default" leftSection={<IconTrash size={14} />} disabled={bundle.tool_count > 0} title={bundle.tool_count > 0 ? t('bundles.notEmpty') : undefined} onClick={() => void askDelete()}>{t('common.delete')}</Button>}
              </>
            )}
          </Group>
        )}
        {bundle.built_in && <Text c="dimmed">{t('bundles.builtIn')}</Text>}
        <SectionTitle>{t('nav.tools')} · {bundle.tool_count}</SectionTitle>
        {tools.data?.tools.length === 0 && <Text c="dimmed">{t('bundles.noTools')}</Text>}
        <Stack gap={4}>{tools.data?.tools.map((tool) => <Group key={toolRef(tool)} gap="sm" wrap="nowrap"><StatusBadge status={tool.ready ? (tool.enabled ? tool.status : 'disabled') : 'not_ready'} iconOnly /><ToolLink tool={toolRef(tool)} /><Text c="dimmed" truncate flex={1}>{visibleText(tool.description)}</Text></Group>)}</Stack>
        <SectionTitle>{t('tools.about')}</SectionTitle>
        <Facts rows={[['ID', <Mono key="i">{bundle.id}</Mono>], [t('bundles.kind'), t(`bundles.kind.${bundle.kind}` as MessageKey)], [t('common.created'), <Time key="c" at={bundle.created_at} />], [t('common.modified'), <Time key="m" at={bundle.modified_at} />]]} />
      </Stack>
      <Modal opened={editing} onClose={() => setEditing(false)} title={t('common.edit')}><BundleForm bundle={bundle} onDone={() => setEditing(false)} /></Modal>
      <Modal opened={publishing} onClose={() => setPublishing(false)} size="lg" title={t('bundles.publishTitle', { name: bundle.slug })}>{publishing && <PublishReport bundle={bundle} onClose={() => setPublishing(false)} />}</Modal>
    </Drawer>
  );
}

export function BundlesPage() {
  const t = useT();
  const mayEdit = useMay('editor');
  const [url, setUrl] = useUrlState();
  const { data: all, error, isPending, refetch } = useQuery(bundlesQuery);
  const q = (url['q'] ?? '').toLowerCase();
  const rows = (all ?? []).filter((bundle) => `${bundle.slug} ${bundle.display_name} ${bundle.description}`.toLowerCase().includes(q));
  const open = all?.find((bundle) => bundle.slug === url['open']);
  const columns = useMemo<Column<Bundle>[]>(() => [
    { key: 'state', header: '', width: '16px', render: (row) => <StatusBadge status={state(row)} iconOnly /> },
    { key: 'slug', header: t('common.name'), width: 'minmax(8rem, 1fr)', render: (row) => <Mono>{visibleText(row.slug)}</Mono> },
    { key: 'description', header: t('common.description'), width: 'minmax(8rem, 2fr)', secondary: true, render: (row) => <Text c="dimmed" truncate>{visibleText(row.description)}</Text> },
    { key: 'kind', header: t('bundles.kind'), width: '7rem', render: (row) => <Chip>{t(`bundles.kind.${row.kind}` as MessageKey)}</Chip> },
    { key: 'tools', header: t('nav.tools'), width: '4rem', align: 'end', render: (row) => row.tool_count.toLocaleString() },
    { key: 'modified', header: t('common.modified'), width: '7rem', secondary: true, render: (row) => <Time at={row.modified_at} /> },
  ], [t]);
  return (
    <Page title={t('nav.bundles')} count={all?.length} primary={mayEdit && <Button leftSection={<IconPlus size={15} />} onClick={() => setUrl({ new: '1' })}>{t('bundles.new')}</Button>}>
      <Toolbar><FilterInput value={url['q'] ?? ''} onChange={(next) => setUrl({ q: next || undefined })} label={t('common.filter')} /></Toolbar>
      <Split drawer={open && <Detail key={open.slug} bundle={open} onClose={() => setUrl({ open: undefined })} />}>
        {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : (
          <DataTable label={t('nav.bundles')} rows={rows} columns={columns} rowKey={(row) => row.slug} rowName={(row) => row.slug} openKey={url['open']} onOpen={(row) => setUrl({ open: row.slug }, { push: true })} empty={<EmptyState icon={IconBox} title={t('bundles.empty')}>{t('bundles.emptyHint')}</EmptyState>}
            phone={(row) => <div><Group gap={6} wrap="nowrap"><StatusBadge status={state(row)} iconOnly /><Text truncate flex={1}><Mono>{visibleText(row.slug)}</Mono></Text><Chip>{t(`bundles.kind.${row.kind}` as MessageKey)}</Chip></Group><Text size="xs" c="dimmed" truncate>{row.tool_count.toLocaleString()} {t('nav.tools')} · {visibleText(row.description)}</Text></div>} />
        )}
      </Split>
      <Modal opened={url['new'] !== undefined} onClose={() => setUrl({ new: undefined })} title={t('bundles.new')}><BundleForm onDone={(slug) => setUrl({ new: undefined, open: slug })} /></Modal>
    </Page>
  );
}
