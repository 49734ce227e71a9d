import { ActionIcon, Badge, Button, Group, Menu, Skeleton, Stack, Tabs, Text, Title } from '@mantine/core';
import { IconDots, IconRocket, IconTool, IconTrash } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useEffect } from 'react';
import { pipelineKeys, pipelineQuery, pipelines } from '@/api/retrieval';
import type { Pipeline } from '@/api/retrieval-types';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { CodeBlock, CopyButton, ErrorPanel, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { bytes, visibleText } from '@/parts/format';
import { Drawer, Loading } from '@/parts/page';
import classes from '@/parts/parts.module.css';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { Documents } from './documents';
import { PipelineForm } from './pipeline-form';
import { TryQuery } from './try-query';

const TABS = ['documents', 'try', 'settings'] as const;

function Heading({ pipeline, isPage }: { pipeline: Pipeline; isPage: boolean }) {
  const t = useT();
  return (
    <div>
      <Title order={isPage ? 1 : 2} style={{ overflowWrap: 'anywhere' }}>{visibleText(pipeline.name)}</Title>
      <Group gap="sm" mt={2}>
        <StatusBadge status={pipeline.status} />
        <Group gap={2}><Mono>{visibleText(pipeline.slug)}</Mono><CopyButton text={pipeline.slug} /></Group>
        <Text c="dimmed" visibleFrom="xs">{t('retrieval.documentCount', { n: pipeline.documents })}</Text>
      </Group>
    </div>
  );
}

function Actions({ pipeline, onDeleted }: { pipeline: Pipeline; onDeleted: () => void }) {
  const t = useT();
  const ask = useAsk();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const mayEdit = useMay('editor');
  const { slug, name } = pipeline;
  const publish = useAction(() => pipelines.publish(slug), { invalidates: [pipelineKeys.all], done: () => notify(t('tools.publishedOne', { name })) });
  const remove = useAction(() => pipelines.remove(slug), {
    invalidates: [pipelineKeys.all],
    done: () => { queries.removeQueries({ queryKey: pipelineKeys.one(slug) }); onDeleted(); notify(t('agents.deleted', { name })); },
  });
  if (!mayEdit) return null;
  const askPublish = async () => { if (await ask({ title: t('retrieval.publishTitle', { name }), body: t('retrieval.publishBody'), confirm: t('tools.publish') })) publish.mutate(undefined); };
  const askRemove = async () => { if (await ask({ title: t('tools.deleteTitle', { name }), body: t('retrieval.deleteBody', { n: pipeline.documents }), confirm: t('common.delete'), danger: true, ...(pipeline.documents > 0 ? { typed: slug } : {}) })) remove.mutate(undefined); };
  return (
    <>
      {(pipeline.status === 'draft' || pipeline.published_revision !== pipeline.revision) && <Button leftSection={<IconRocket size={14} />} loading={publish.isPending} onClick={() => void askPublish()}>{t('tools.publishMenu')}</Button>}
      <Menu position="bottom-end" width={220}>
        <Menu.Target><ActionIcon aria-label={t('common.more')}><IconDots size={16} /></ActionIcon></Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<IconTool size={15} />} onClick={() => void navigate({ to: '/tools/new', search: { type: 'rag_retrieval', pipeline: slug } as never })}>{t('retrieval.makeTool')}</Menu.Item>
          <Menu.Divider />
          <Menu.Item color="red" leftSection={<IconTrash size={15} />} onClick={() => void askRemove()}>{t('common.delete')}…</Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </>
  );
}

function Settings({ pipeline }: { pipeline: Pipeline }) {
  const t = useT();
  const mayEdit = useMay('editor');
  return (
    <Stack>
      {mayEdit ? <PipelineForm key={pipeline.modified_at} known={pipeline} onDone={() => undefined} /> : <PermissionNote needs="editor" />}
      <div>
        <SectionTitle>{t('tools.about')}</SectionTitle>
        <Facts rows={[
          ['ID', <Mono key="id">{pipeline.id}</Mono>], [t('retrieval.documents'), pipeline.documents.toLocaleString()], [t('retrieval.chunks'), pipeline.chunks.toLocaleString()], [t('workspaces.size'), bytes(pipeline.bytes)],
          [t('retrieval.embedding'), pipeline.embedding && <Mono key="e">{visibleText(pipeline.embedding.model)}</Mono>],
          [t('common.created'), <Time key="c" at={pipeline.created_at} />], [t('common.modified'), <Time key="m" at={pipeline.modified_at} />],
        ]} />
        <SectionTitle>{t('retrieval.inTool')}</SectionTitle>
        <CodeBlock text={`implementation:\n  type: rag_retrieval\n  pipeline_id: ${pipeline.slug}`} />
      </div>
    </Stack>
  );
}

function Body({ pipeline }: { pipeline: Pipeline }) {
  const t = useT();
  const [url, setUrl] = useUrlState();
  const tab = TABS.find((name) => name === url['tab']) ?? 'documents';
  return (
    <Stack gap="sm">
      {pipeline.description && <Text style={{ overflowWrap: 'anywhere' }}>{visibleText(pipeline.description)}</Text>}
      <Tabs value={tab} onChange={(next) => setUrl({ tab: next === 'documents' || next === null ? undefined : next })}>
        <Tabs.List mb="lg">{TABS.map((name) => <Tabs.Tab key={name} value={name} rightSection={name === 'documents' && pipeline.documents > 0 ? <Badge size="xs" variant="default">{pipeline.documents.toLocaleString()}</Badge> : undefined}>{t(`retrieval.tab.${name}`)}</Tabs.Tab>)}</Tabs.List>
        <Tabs.Panel value="documents"><Documents pipeline={pipeline} /></Tabs.Panel>
        <Tabs.Panel value="try"><TryQuery pipeline={pipeline} /></Tabs.Panel>
        <Tabs.Panel value="settings"><Settings pipeline={pipeline} /></Tabs.Panel>
      </Tabs>
    </Stack>
  );
}

export function PipelineDrawer({ target, onClose }: { target: string; onClose: () => void }) {
  const navigate = useNavigate();
  const [url] = useUrlState();
  const { data: pipeline, error, refetch } = useQuery(pipelineQuery(target));
  const expand = () => void navigate({ to: '/retrieval/$ref' as never, params: { ref: target } as never, search: (url['tab'] ? { tab: url['tab'] } : {}) as never });
  return (
    <Drawer label={pipeline?.name ?? target} title={pipeline ? <Heading pipeline={pipeline} isPage={false} /> : <Skeleton h={22} w={200} />} onClose={onClose} onExpand={expand} actions={pipeline && <Actions pipeline={pipeline} onDeleted={onClose} />}>
      {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : pipeline ? <Body pipeline={pipeline} /> : <Loading />}
    </Drawer>
  );
}

export function PipelinePage() {
  const navigate = useNavigate();
  const { ref: target = '' }: { ref?: string } = useParams({ strict: false });
  const { data: pipeline, error, refetch } = useQuery(pipelineQuery(target));
  useEffect(() => {
    if (pipeline) document.title = document.title.replace(/^((?:\(\d+\) )?).*$/, `$1${pipeline.name} · haft`);
  }, [pipeline]);
  return (
    <div className={classes.page}>
      <header className={classes.pageHeader}>
        <div className={classes.pageHeading}>{pipeline ? <Heading pipeline={pipeline} isPage /> : <Title order={1}><Mono>{visibleText(target)}</Mono></Title>}</div>
        {pipeline && <Actions pipeline={pipeline} onDeleted={() => void navigate({ to: '/retrieval' as never })} />}
      </header>
      <div className={classes.scroll}>{error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : pipeline ? <Body pipeline={pipeline} /> : <Loading />}</div>
    </div>
  );
}
