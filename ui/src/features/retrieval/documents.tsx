/** The documents of a pipeline: what they are, how far they are, and how they get in. */
import { ActionIcon, Button, FileButton, Group, Menu, Modal, Progress, Stack, Table, Text, Textarea, TextInput } from '@mantine/core';
import { IconChevronDown, IconFileText, IconLink, IconRefresh, IconTrash, IconUpload } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useState, type DragEvent } from 'react';
import { documentsQuery, ingestQuery, pipelineKeys, pipelines } from '@/api/retrieval';
import type { IngestReport, Pipeline, PipelineDocument } from '@/api/retrieval-types';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel, Mono, PermissionNote } from '@/parts/basics';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { FilterInput } from '@/parts/filters';
import { bytes, visibleText } from '@/parts/format';
import { Loading } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { chosenFiles, droppedFiles, type Upload } from '@/parts/workspace/upload';
import { readUrls } from './query';
import classes from './retrieval.module.css';

const STATUS: Record<PipelineDocument['state'], string> = { queued: 'pending', running: 'running', done: 'ready', failed: 'error' };

interface Sending {
  name: string;
  index: number;
  total: number;
  share: number;
}

/** Sends one file after the other. A file that fails does not stop the others. */
function useSendFiles(pipeline: Pipeline) {
  const t = useT();
  const queries = useQueryClient();
  const [sending, setSending] = useState<Sending>();
  const [failed, setFailed] = useState<{ name: string; error: unknown }[]>([]);
  const send = async (files: Upload[]) => {
    const problems: { name: string; error: unknown }[] = [];
    for (const [index, { path, file }] of files.entries()) {
      const state = { name: path, index, total: files.length };
      setSending({ ...state, share: 0 });
      try {
        await pipelines.sendFile(pipeline.slug, path, file, (share) => setSending({ ...state, share }));
      } catch (error) {
        problems.push({ name: path, error });
      }
      void queries.invalidateQueries({ queryKey: pipelineKeys.one(pipeline.slug) });
    }
    setSending(undefined);
    setFailed(problems);
    void queries.invalidateQueries({ queryKey: pipelineKeys.all });
    if (files.length > problems.length) notify(t('retrieval.uploaded', { n: files.length - problems.length }));
  };
  return { send, sending, failed, forget: () => setFailed([]) };
}

function AddText({ pipeline, onClose }: { pipeline: Pipeline; onClose: () => void }) {
  const t = useT();
  const [name, setName] = useState('');
  const [text, setText] = useState('');
  const [failure, setFailure] = useState<unknown>();
  const add = useAction(() => pipelines.add(pipeline.slug, { name: name.trim(), text }), { invalidates: [pipelineKeys.all], failed: setFailure, done: onClose });
  return (
    <Modal opened onClose={onClose} title={t('retrieval.addText')} size="lg">
      <form onSubmit={(event) => { event.preventDefault(); add.mutate(undefined); }}>
        <Stack>
          <TextInput label={t('common.name')} description={t('retrieval.documentNameHelp')} placeholder="guide/install.md" required value={name} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
          <Textarea label={t('retrieval.text')} required autosize minRows={8} maxRows={20} value={text} onChange={(event) => setText(event.currentTarget.value)} />
          {Boolean(failure) && <ErrorPanel error={failure} />}
          <Group justify="flex-end"><Button variant="default" onClick={onClose}>{t('common.cancel')}</Button><Button type="submit" loading={add.isPending} disabled={name.trim() === '' || text.trim() === ''}>{t('retrieval.addDocument')}</Button></Group>
        </Stack>
      </form>
    </Modal>
  );
}

function AddUrls({ pipeline, onClose }: { pipeline: Pipeline; onClose: () => void }) {
  const t = useT();
  const [text, setText] = useState('');
  const [failure, setFailure] = useState<unknown>();
  const { urls, wrong } = readUrls(text);
  const add = useAction(() => pipelines.add(pipeline.slug, { urls }), { invalidates: [pipelineKeys.all], failed: setFailure, done: onClose });
  return (
    <Modal opened onClose={onClose} title={t('retrieval.addUrls')} size="lg">
      <form onSubmit={(event) => { event.preventDefault(); add.mutate(undefined); }}>
        <Stack>
          <Textarea label={t('retrieval.urls')} description={t('retrieval.urlsHelp')} required autosize minRows={4} maxRows={16} value={text} error={wrong.length > 0 ? t('retrieval.urlWrong', { url: wrong[0] ?? '' }) : undefined} onChange={(event) => setText(event.currentTarget.value)} data-autofocus />
          {Boolean(failure) && <ErrorPanel error={failure} />}
          <Group justify="flex-end"><Button variant="default" onClick={onClose}>{t('common.cancel')}</Button><Button type="submit" loading={add.isPending} disabled={urls.length === 0 || wrong.length > 0}>{t('retrieval.addUrlCount', { n: urls.length })}</Button></Group>
        </Stack>
      </form>
    </Modal>
  );
}

function DocumentRow({ pipeline, document, mayEdit }: { pipeline: Pipeline; document: PipelineDocument; mayEdit: boolean }) {
  const t = useT();
  const ask = useAsk();
  const remove = useAction(() => pipelines.removeDocument(pipeline.slug, document.id), { invalidates: [pipelineKeys.all], done: () => notify(t('retrieval.documentDeleted', { name: document.name })) });
  const askRemove = async () => { if (await ask({ title: t('tools.deleteTitle', { name: document.name }), body: t('retrieval.deleteDocumentBody'), confirm: t('common.delete'), danger: true })) remove.mutate(undefined); };
  const { progress } = document;
  return (
    <Table.Tr>
      <Table.Td style={{ overflowWrap: 'anywhere' }}>
        <Mono>{visibleText(document.name)}</Mono>
        {document.source && document.source !== document.name && <Text size="xs" c="dimmed">{visibleText(document.source)}</Text>}
        {document.error && <Text size="xs" c="var(--haft-bad)" role="alert">{visibleText(document.error)}</Text>}
        {document.state === 'running' && progress && progress.total > 0 && <Progress mt={4} size="xs" value={(progress.done / progress.total) * 100} aria-label={t('retrieval.progressOf', { name: document.name })} />}
      </Table.Td>
      <Table.Td><StatusBadge status={STATUS[document.state]} label={t(`retrieval.state.${document.state}`)} /></Table.Td>
      <Table.Td ta="right" visibleFrom="sm">{document.chunks.toLocaleString()}</Table.Td>
      <Table.Td ta="right" visibleFrom="sm">{bytes(document.bytes)}</Table.Td>
      <Table.Td visibleFrom="md"><Time at={document.modified_at} /></Table.Td>
      <Table.Td ta="right">{mayEdit && <ActionIcon aria-label={`${t('common.delete')} ${document.name}`} loading={remove.isPending} onClick={() => void askRemove()}><IconTrash size={14} /></ActionIcon>}</Table.Td>
    </Table.Tr>
  );
}

/** How far all documents together are. */
function IngestState({ report }: { report: IngestReport }) {
  const t = useT();
  const { failed } = report;
  const busy = report.queued + report.running;
  if (busy === 0 && failed === 0) return null;
  const done = report.done + failed;
  return (
    <Stack gap={4} role="status">
      {busy > 0 && <><Text>{t('retrieval.ingesting', { n: done, total: done + busy })}</Text><Progress value={(done / Math.max(1, done + busy)) * 100} size="sm" animated aria-label={t('retrieval.ingest')} /></>}
      {failed > 0 && <Text c="var(--haft-bad)">{t('retrieval.failedCount', { n: failed })}</Text>}
    </Stack>
  );
}

export function Documents({ pipeline }: { pipeline: Pipeline }) {
  const t = useT();
  const mayEdit = useMay('editor');
  const [url, setUrl] = useUrlState();
  const [dialog, setDialog] = useState<'text' | 'urls'>();
  const [over, setOver] = useState(false);
  const queries = useQueryClient();
  const query = useInfiniteQuery(documentsQuery(pipeline.slug));
  const { error, refetch } = query;
  const data = useMemo(() => query.data?.pages.flatMap((page) => page.documents), [query.data]);
  const report = useQuery(ingestQuery(pipeline.slug)).data;
  // What the list shows follows the counts.
  const counts = report && `${report.queued} ${report.running} ${report.done} ${report.failed}`;
  useEffect(() => {
    if (counts !== undefined) void queries.invalidateQueries({ queryKey: documentsQuery(pipeline.slug).queryKey });
  }, [counts, queries, pipeline.slug]);
  const files = useSendFiles(pipeline);
  const reingest = useAction(() => pipelines.reingest(pipeline.slug), { invalidates: [pipelineKeys.all], done: () => notify(t('retrieval.reingesting')) });
  if (error) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading />;
  const q = (url['q'] ?? '').toLowerCase();
  const found = data.filter((document) => document.name.toLowerCase().includes(q));
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (mayEdit && event.dataTransfer.files.length > 0) void droppedFiles(event.dataTransfer, '').then(files.send);
  };
  const add = mayEdit && (
    <Group gap={0} wrap="nowrap">
      <FileButton multiple onChange={(chosen) => { if (chosen.length > 0) void files.send(chosenFiles(chosen, '')); }}>
        {(props) => <Button leftSection={<IconUpload size={15} />} loading={files.sending !== undefined} style={{ borderTopRightRadius: 0, borderBottomRightRadius: 0 }} {...props}>{t('retrieval.upload')}</Button>}
      </FileButton>
      <Menu position="bottom-end">
        <Menu.Target><Button px={6} ml={1} aria-label={t('retrieval.moreWays')} style={{ borderTopLeftRadius: 0, borderBottomLeftRadius: 0 }}><IconChevronDown size={15} /></Button></Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<IconFileText size={15} />} onClick={() => setDialog('text')}>{t('retrieval.addText')}</Menu.Item>
          <Menu.Item leftSection={<IconLink size={15} />} onClick={() => setDialog('urls')}>{t('retrieval.addUrls')}</Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </Group>
  );
  return (
    <div className={classes.drop} data-over={over} onDragOver={(event) => { event.preventDefault(); if (mayEdit) setOver(true); }} onDragLeave={(event) => { if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false); }} onDrop={drop}>
      <Stack>
        <Group justify="space-between" gap="sm">
          {data.length > 0 ? <FilterInput value={url['q'] ?? ''} onChange={(next) => setUrl({ q: next || undefined })} label={t('retrieval.filter')} /> : <span />}
          <Group gap="sm">
            {mayEdit && data.length > 0 && <Button variant="default" leftSection={<IconRefresh size={14} />} loading={reingest.isPending} title={t('retrieval.reingestHelp')} onClick={() => reingest.mutate(undefined)}>{t('retrieval.reingest')}</Button>}
            {add}
          </Group>
        </Group>
        {!mayEdit && <PermissionNote needs="editor" />}
        {files.sending && (
          <Stack gap={4} role="status">
            <Text>{t('retrieval.sending', { name: files.sending.name, n: files.sending.index + 1, total: files.sending.total })}</Text>
            <Progress value={((files.sending.index + files.sending.share) / files.sending.total) * 100} size="sm" aria-label={t('retrieval.upload')} />
          </Stack>
        )}
        {files.failed.map(({ name, error: cause }) => <ErrorPanel key={name} error={cause} title={t('retrieval.notUploaded', { name })} />)}
        {files.failed.length > 0 && <div><Button variant="subtle" size="compact-xs" onClick={files.forget}>{t('common.close')}</Button></div>}
        {report && <IngestState report={report} />}
        {data.length === 0 ? <EmptyState icon={IconFileText} title={t('retrieval.noDocuments')}>{t('retrieval.noDocumentsHint')}</EmptyState> : found.length === 0 ? <EmptyState title={t('retrieval.noneFound')} /> : (
          <Table.ScrollContainer minWidth={300}>
            <Table verticalSpacing={6}>
              <Table.Thead><Table.Tr><Table.Th>{t('retrieval.document')}</Table.Th><Table.Th>{t('common.status')}</Table.Th><Table.Th ta="right" visibleFrom="sm">{t('retrieval.chunks')}</Table.Th><Table.Th ta="right" visibleFrom="sm">{t('workspaces.size')}</Table.Th><Table.Th visibleFrom="md">{t('common.modified')}</Table.Th><Table.Th /></Table.Tr></Table.Thead>
              <Table.Tbody>{found.map((document) => <DocumentRow key={document.id} pipeline={pipeline} document={document} mayEdit={mayEdit} />)}</Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        )}
        {query.hasNextPage && <div><Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>{t('common.loadMore')}</Button></div>}
      </Stack>
      {over && <div className={classes.overlay}>{t('retrieval.dropHere')}</div>}
      {dialog === 'text' && <AddText pipeline={pipeline} onClose={() => setDialog(undefined)} />}
      {dialog === 'urls' && <AddUrls pipeline={pipeline} onClose={() => setDialog(undefined)} />}
    </div>
  );
}
