import { Badge, Button, Group, Menu, Stack, Tabs, Text, Title } from '@mantine/core';
import { IconRocket, IconTool } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import { pipelineKeys, PIPELINES, pipelines } from '@/api/retrieval';
import type { Pipeline, PipelineRevision } from '@/api/retrieval-types';
import { readResource } from '@/api/resources';
import { useMay } from '@/api/session';
import type { JsonObject } from '@/api/types';
import { useT } from '@/i18n';
import { CodeBlock, CopyButton, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { bytes, visibleText } from '@/parts/format';
import { ResourceDrawer, ResourceMenu, ResourcePage, type ResourceParts } from '@/parts/resource-detail';
import { ResourceHistory } from '@/parts/resource-history';
import { toYaml } from '@/parts/source';
import { StatusBadge } from '@/parts/status';
import { shownStatus } from '@/parts/taxonomy';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { ResourceUsers } from '@/parts/used-by';
import { Documents } from './documents';
import { PipelineForm } from './pipeline-form';
import { TryQuery } from './try-query';

const TABS = ['documents', 'try', 'settings', 'revisions'] as const;
const revisionText = (revision: PipelineRevision) => toYaml(revision.definition as unknown as JsonObject);

function Heading({ pipeline, isPage }: { pipeline: Pipeline; isPage: boolean }) {
  const t = useT();
  return (
    <div>
      <Title order={isPage ? 1 : 2} style={{ overflowWrap: 'anywhere' }}>{visibleText(pipeline.name)}</Title>
      <Group gap="sm" mt={2}>
        <StatusBadge status={shownStatus(pipeline)} />
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
  const mayEdit = useMay('editor');
  const { slug, name } = pipeline;
  const publish = useAction(() => pipelines.publish(slug), { invalidates: [pipelineKeys.all], done: () => notify(t('tools.publishedOne', { name })) });
  const askPublish = async () => { if (await ask({ title: t('retrieval.publishTitle', { name }), body: t('retrieval.publishBody'), confirm: t('tools.publish') })) publish.mutate(undefined); };
  return (
    <>
      {mayEdit && (pipeline.status === 'draft' || pipeline.published_revision !== pipeline.revision) && <Button leftSection={<IconRocket size={14} />} loading={publish.isPending} onClick={() => void askPublish()}>{t('tools.publishMenu')}</Button>}
      <ResourceMenu kind={PIPELINES} requests={pipelines} resource={pipeline} publish={t('retrieval.publishBody')} deleteBody={t('retrieval.deleteBody', { n: pipeline.documents })} typed={pipeline.documents > 0 ? slug : undefined} onDeleted={onDeleted}>
        <Menu.Item leftSection={<IconTool size={15} />} onClick={() => void navigate({ to: '/tools/new', search: { type: 'rag_retrieval', pipeline: slug } as never })}>{t('retrieval.makeTool')}</Menu.Item>
      </ResourceMenu>
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
        <ResourceUsers path="pipelines" id={pipeline.id} />
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
        <Tabs.Panel value="revisions"><ResourceHistory kind={PIPELINES} resource={pipeline} requests={pipelines} text={revisionText} oneText={t('retrieval.oneRevision')} /></Tabs.Panel>
      </Tabs>
    </Stack>
  );
}

const PARTS: ResourceParts<Pipeline> = {
  kind: PIPELINES,
  read: readResource<Pipeline>('pipelines'),
  heading: (pipeline, isPage) => <Heading pipeline={pipeline} isPage={isPage} />,
  actions: (pipeline, onDeleted) => <Actions pipeline={pipeline} onDeleted={onDeleted} />,
  body: (pipeline) => <Body pipeline={pipeline} />,
};

export const PipelineDrawer = ({ target, onClose }: { target: string; onClose: () => void }) => <ResourceDrawer parts={PARTS} target={target} onClose={onClose} />;

export const PipelinePage = () => <ResourcePage parts={PARTS} />;
