import { Button, Group, Menu, Stack, Table, Tabs, Text, Title } from '@mantine/core';
import { IconTool } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Suspense, useMemo, useState } from 'react';
import type { ArtifactFields, CodeArtifact } from '@/api/artifact-types';
import { artifactKeys, ARTIFACTS, artifacts, artifactUsersQuery } from '@/api/artifacts';
import { ApiError } from '@/api/error';
import { keys } from '@/api/keys';
import { toolRef } from '@/api/queries';
import { readResource } from '@/api/resources';
import { useMay } from '@/api/session';
import type { Problem } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, CodeBlock, CopyButton, ErrorPanel, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { useDraft } from '@/parts/draft';
import { Editor } from '@/parts/editor';
import { notify, useAction } from '@/parts/feedback';
import { RestoredNote } from '@/parts/form-fields';
import { visibleText } from '@/parts/format';
import { lazyPart } from '@/parts/lazy';
import { ToolLink } from '@/parts/links';
import { Loading } from '@/parts/page';
import { ResourceDrawer, ResourceMenu, ResourcePage, type ResourceParts } from '@/parts/resource-detail';
import { ResourceHistory } from '@/parts/resource-history';
import { StatusBadge } from '@/parts/status';
import { shownStatus } from '@/parts/taxonomy';
import { Time } from '@/parts/time';
import { useUrlState } from '@/parts/url-state';
import { defaultText, fieldsOf, versionText, wrongInput } from './artifact';

const ArtifactForm = lazyPart(async () => (await import('./artifact-form')).ArtifactForm);

const TABS = ['code', 'users', 'versions'] as const;

export function readProblems(error: unknown): Problem[] {
  const list = error instanceof ApiError ? error.details['problems'] : undefined;
  return Array.isArray(list) ? (list as Problem[]) : [];
}

function Heading({ artifact, isPage }: { artifact: CodeArtifact; isPage: boolean }) {
  const t = useT();
  return (
    <div>
      <Title order={isPage ? 1 : 2} style={{ overflowWrap: 'anywhere' }}>{visibleText(artifact.name || artifact.slug)}</Title>
      <Group gap="sm" mt={2}>
        <StatusBadge status={shownStatus(artifact)} />
        <Chip>{t(`artifacts.runtime.${artifact.runtime}`)}</Chip>
        <Group gap={2}><Mono>{visibleText(artifact.slug)}</Mono><CopyButton text={artifact.slug} /></Group>
        <Text c="dimmed">{t('artifacts.versionN', { n: artifact.version })}</Text>
      </Group>
    </div>
  );
}

function EditCode({ artifact }: { artifact: CodeArtifact }) {
  const t = useT();
  const stored = useMemo(() => fieldsOf(artifact), [artifact]);
  const draft = useDraft<ArtifactFields>(`artifact.${artifact.id}`, stored);
  const [failure, setFailure] = useState<unknown>();
  const fields = draft.value;
  const changed = draft.isDirty && JSON.stringify(fields) !== JSON.stringify(stored);
  const save = useAction(() => artifacts.update(artifact.id, fields), {
    invalidates: [artifactKeys.all, keys.tools], failed: setFailure,
    done: (next) => { draft.clear(); setFailure(undefined); notify(t('artifacts.saved', { n: next.version })); },
  });
  const publish = useAction(() => artifacts.publish(artifact.id), { invalidates: [artifactKeys.all, keys.tools], done: (next) => notify(t('tools.publishedOne', { name: next.name || next.slug })) });
  const isWrong = wrongInput(fields.inputs) !== undefined;
  const discard = () => { draft.clear(); setFailure(undefined); };
  return (
    <Stack>
      <RestoredNote at={changed ? draft.restoredAt : undefined} onDiscard={discard} />
      <Group justify="flex-end" gap="sm">
        {changed && <Button variant="subtle" color="gray" onClick={discard}>{t('common.discard')}</Button>}
        {!changed && artifact.published_revision !== artifact.version && <Button variant="default" loading={publish.isPending} onClick={() => publish.mutate(undefined)}>{t('tools.publishMenu')}</Button>}
        <Button disabled={!changed || isWrong} loading={save.isPending} onClick={() => save.mutate(undefined)}>{t('artifacts.save')}</Button>
      </Group>
      {Boolean(failure) && <ErrorPanel error={failure} />}
      <ArtifactForm fields={fields} problems={readProblems(failure)} isNew={false} onChange={draft.set} onSave={() => { if (changed && !isWrong) save.mutate(undefined); }} />
    </Stack>
  );
}

function ReadCode({ artifact }: { artifact: CodeArtifact }) {
  const t = useT();
  return (
    <Stack>
      <PermissionNote needs="editor" />
      {artifact.inputs.length > 0 && (
        <Table.ScrollContainer minWidth={320}>
          <Table>
            <Table.Thead><Table.Tr><Table.Th>{t('artifacts.inputs')}</Table.Th><Table.Th>{t('schema.type')}</Table.Th><Table.Th>{t('artifacts.default')}</Table.Th><Table.Th>{t('common.description')}</Table.Th></Table.Tr></Table.Thead>
            <Table.Tbody>{artifact.inputs.map((input) => <Table.Tr key={input.name}><Table.Td><Mono>{visibleText(input.name)}</Mono>{input.required && <Text span c="var(--haft-bad)" title={t('common.required')}> *</Text>}</Table.Td><Table.Td><Mono>{input.type}</Mono></Table.Td><Table.Td><Mono>{visibleText(defaultText(input.default))}</Mono></Table.Td><Table.Td>{visibleText(input.description ?? '')}</Table.Td></Table.Tr>)}</Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      <Editor readOnly language={artifact.runtime} label={t('define.source')} value={artifact.source} maxHeight="60vh" />
    </Stack>
  );
}

function Users({ artifact }: { artifact: CodeArtifact }) {
  const t = useT();
  const { data, error, refetch } = useQuery(artifactUsersQuery(artifact));
  if (error) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading rows={3} />;
  return (
    <Stack>
      {data.length === 0 ? <Text c="dimmed">{t('artifacts.unused')}</Text> : (
        <Table verticalSpacing={6}>
          <Table.Thead><Table.Tr><Table.Th>{t('common.name')}</Table.Th><Table.Th>{t('artifacts.version')}</Table.Th><Table.Th>{t('common.status')}</Table.Th></Table.Tr></Table.Thead>
          <Table.Tbody>{data.map(({ tool, version }) => <Table.Tr key={toolRef(tool)}><Table.Td><ToolLink tool={toolRef(tool)} /></Table.Td><Table.Td>{version ?? t('artifacts.newest')}</Table.Td><Table.Td><StatusBadge status={shownStatus(tool)} /></Table.Td></Table.Tr>)}</Table.Tbody>
        </Table>
      )}
      <div><SectionTitle>{t('retrieval.inTool')}</SectionTitle><CodeBlock text={`implementation:\n  type: artifact\n  artifact_id: ${artifact.slug}\n  artifact_version: "${artifact.version}"`} /></div>
    </Stack>
  );
}

function ArtifactMenu({ artifact, onDeleted }: { artifact: CodeArtifact; onDeleted: () => void }) {
  const t = useT();
  const navigate = useNavigate();
  return (
    <ResourceMenu kind={ARTIFACTS} requests={artifacts} resource={artifact} invalidates={[keys.tools]} publish={t('artifacts.publishBody')} deleteBody={t('artifacts.deleteBody', { n: artifact.version })} onDeleted={onDeleted}>
      <Menu.Item leftSection={<IconTool size={15} />} onClick={() => void navigate({ to: '/tools/new', search: { type: 'artifact', artifact: artifact.slug } as never })}>{t('retrieval.makeTool')}</Menu.Item>
    </ResourceMenu>
  );
}

function Body({ artifact }: { artifact: CodeArtifact }) {
  const t = useT();
  const mayEdit = useMay('editor');
  const [url, setUrl] = useUrlState();
  const tab = TABS.find((name) => name === url['tab']) ?? 'code';
  return (
    <Tabs value={tab} onChange={(next) => setUrl({ tab: next === 'code' || next === null ? undefined : next })}>
      <Tabs.List mb="lg">{TABS.map((name) => <Tabs.Tab key={name} value={name}>{t(`artifacts.tab.${name}`)}</Tabs.Tab>)}</Tabs.List>
      <Suspense fallback={<Loading rows={5} />}>
        <Tabs.Panel value="code">{mayEdit ? <EditCode key={artifact.id} artifact={artifact} /> : <ReadCode artifact={artifact} />}</Tabs.Panel>
        <Tabs.Panel value="users"><Users artifact={artifact} /></Tabs.Panel>
        <Tabs.Panel value="versions"><ResourceHistory kind={ARTIFACTS} resource={artifact} requests={artifacts} text={versionText} oneText={t('artifacts.oneVersion')} invalidates={[keys.tools]} /><SectionTitle>{t('tools.about')}</SectionTitle><Facts rows={[['ID', <Mono key="id">{artifact.id}</Mono>], [t('common.created'), <Time key="c" at={artifact.created_at} />], [t('common.modified'), <Time key="m" at={artifact.modified_at} />]]} /></Tabs.Panel>
      </Suspense>
    </Tabs>
  );
}

const PARTS: ResourceParts<CodeArtifact> = {
  kind: ARTIFACTS,
  read: readResource<CodeArtifact>('code-artifacts'),
  heading: (artifact, isPage) => <Heading artifact={artifact} isPage={isPage} />,
  actions: (artifact, onDeleted) => <ArtifactMenu artifact={artifact} onDeleted={onDeleted} />,
  body: (artifact) => <Body artifact={artifact} />,
};

export const ArtifactDrawer = ({ target, onClose }: { target: string; onClose: () => void }) => <ResourceDrawer parts={PARTS} target={target} onClose={onClose} />;

export const ArtifactPage = () => <ResourcePage parts={PARTS} />;
