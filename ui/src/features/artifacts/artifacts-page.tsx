import { Button, Group, Stack, Text } from '@mantine/core';
import { IconCode, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Suspense, useCallback, useState } from 'react';
import type { ArtifactFields, CodeArtifact } from '@/api/artifact-types';
import { artifactKeys, ARTIFACTS, artifacts, artifactsQuery, brokenArtifactFilesQuery } from '@/api/artifacts';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { Chip, ErrorPanel, Highlight, Mono, PermissionNote } from '@/parts/basics';
import type { Column } from '@/parts/data-table';
import { useDraft } from '@/parts/draft';
import { notify, useAction } from '@/parts/feedback';
import { RestoredNote } from '@/parts/form-fields';
import { visibleText } from '@/parts/format';
import { lazyPart } from '@/parts/lazy';
import { Content, Loading, Page } from '@/parts/page';
import { ResourceListPage } from '@/parts/resource-list';
import { StatusBadge } from '@/parts/status';
import { shownStatus } from '@/parts/taxonomy';
import { Time } from '@/parts/time';
import { newArtifact, wrongInput } from './artifact';
import { ArtifactDrawer, readProblems } from './artifact-detail';

const ArtifactForm = lazyPart(async () => (await import('./artifact-form')).ArtifactForm);

export function ArtifactsPage() {
  const t = useT();
  const mayEdit = useMay('editor');
  const { data, error, refetch } = useQuery(artifactsQuery);
  const { data: brokenFiles } = useQuery(brokenArtifactFilesQuery);
  const columns = useCallback((q: string): Column<CodeArtifact>[] => [
    { key: 'state', header: '', width: '16px', render: (row) => <StatusBadge status={shownStatus(row)} iconOnly /> },
    { key: 'name', header: t('common.name'), width: 'minmax(8rem, 1fr)', render: (row) => <Highlight text={row.name} query={q} /> },
    { key: 'slug', header: t('agents.slug'), width: 'minmax(7rem, 0.8fr)', render: (row) => <Mono><Highlight text={row.slug} query={q} /></Mono> },
    { key: 'description', header: t('common.description'), width: 'minmax(6rem, 2fr)', secondary: true, render: (row) => <Text c="dimmed" truncate>{visibleText(row.description)}</Text> },
    { key: 'runtime', header: t('impl.runtime'), width: '8rem', render: (row) => <Chip>{t(`artifacts.runtime.${row.runtime}`)}</Chip> },
    { key: 'inputs', header: t('artifacts.inputs'), width: '6rem', align: 'end', secondary: true, render: (row) => row.inputs.length },
    { key: 'version', header: t('artifacts.version'), width: '5rem', align: 'end', render: (row) => row.version },
    { key: 'modified', header: t('common.modified'), width: '7rem', align: 'end', secondary: true, render: (row) => <Time at={row.modified_at} /> },
  ], [t]);
  return (
    <ResourceListPage title={t('nav.artifacts')} icon={IconCode} kind={ARTIFACTS} undelete={artifacts.undelete} data={data} error={error} onRetry={() => void refetch()} brokenFiles={brokenFiles}
      text={(row) => `${row.slug} ${row.name} ${row.description}`} columns={columns}
      add={mayEdit && <Button component={Link} to={'/artifacts/new' as never} leftSection={<IconPlus size={15} />}>{t('artifacts.new')}</Button>}
      empty={{ title: t('artifacts.empty'), hint: t('artifacts.emptyHint'), none: t('artifacts.noneFound') }}
      drawer={(ref, close) => <ArtifactDrawer key={ref} target={ref} onClose={close} />}
      phone={(row) => <div><Group gap={6} wrap="nowrap"><StatusBadge status={shownStatus(row)} iconOnly /><Text truncate flex={1}>{visibleText(row.name)}</Text><Chip>{t(`artifacts.runtime.${row.runtime}`)}</Chip></Group><Text size="xs" c="dimmed" truncate>{t('artifacts.versionN', { n: row.version })}{row.description && ` · ${visibleText(row.description)}`}</Text></div>} />
  );
}

export function NewArtifactPage() {
  const t = useT();
  const navigate = useNavigate();
  const mayEdit = useMay('editor');
  const draft = useDraft<ArtifactFields>('new-artifact', newArtifact('bash'));
  const [failure, setFailure] = useState<unknown>();
  const fields = draft.value;
  const create = useAction(() => artifacts.create({ ...fields, name: fields.name || fields.slug }), {
    invalidates: [artifactKeys.all], failed: setFailure,
    done: (artifact) => { draft.clear(); notify(t('define.created', { name: artifact.name || artifact.slug })); void navigate({ to: '/artifacts/$ref' as never, params: { ref: artifact.slug } as never }); },
  });
  if (!mayEdit) return <Page title={t('artifacts.new')}><Content><PermissionNote needs="editor" /></Content></Page>;
  const isReady = fields.slug.trim() !== '' && wrongInput(fields.inputs) === undefined;
  return (
    <Page title={t('artifacts.new')} primary={<Button disabled={!isReady} loading={create.isPending} onClick={() => create.mutate(undefined)}>{t('artifacts.create')}</Button>}>
      <Content narrow>
        <Stack>
          <RestoredNote at={draft.restoredAt} onDiscard={draft.clear} />
          {Boolean(failure) && <ErrorPanel error={failure} />}
          <Suspense fallback={<Loading />}><ArtifactForm fields={fields} problems={readProblems(failure)} isNew onChange={draft.set} /></Suspense>
        </Stack>
      </Content>
    </Page>
  );
}
