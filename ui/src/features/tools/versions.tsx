import { Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { tools } from '@/api/actions';
import { keys } from '@/api/keys';
import { revisionsQuery, toolRef } from '@/api/queries';
import { useMay } from '@/api/session';
import type { Tool } from '@/api/types';
import { useT } from '@/i18n';
import { useAllTools } from '@/parts/all-tools';
import { ErrorPanel, Mono, SectionTitle } from '@/parts/basics';
import { notify, useAction } from '@/parts/feedback';
import { ToolLink } from '@/parts/links';
import { Loading } from '@/parts/page';
import { Revisions, type RevisionRow } from '@/parts/revisions';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { shownStatus } from './taxonomy';

/** The other versions with the same name in the same bundle. */
function OtherVersions({ tool }: { tool: Tool }) {
  const t = useT();
  const { rows } = useAllTools();
  const others = rows.filter((row) => row.name === tool.name && row.bundle === tool.bundle && row.version !== tool.version);
  if (others.length === 0) return null;
  return (
    <div>
      <SectionTitle>{t('tools.otherVersions')}</SectionTitle>
      <Stack gap={4}>{others.map((row) => <Group key={row.version} gap="sm"><ToolLink tool={toolRef(row)} tab="versions">{row.version}</ToolLink><StatusBadge status={shownStatus(row)} /><Text c="dimmed"><Time at={row.modified_at} /></Text></Group>)}</Stack>
    </div>
  );
}

export function Versions({ tool }: { tool: Tool }) {
  const t = useT();
  const mayEdit = useMay('editor') && !tool.built_in;
  const ref = toolRef(tool);
  const { data, error, refetch } = useQuery(revisionsQuery(ref));
  const rows = useMemo(() => (data?.revisions ?? []).map((revision): RevisionRow => ({
    number: revision.number, created_at: revision.created_at, created_by: revision.created_by, published: revision.published,
    text: JSON.stringify(revision.definition, null, 2), note: <Mono>{revision.definition.version}</Mono>,
  })), [data]);
  const restore = useAction((n: number) => tools.restore(ref, n), { invalidates: [keys.tools], done: (_, n) => notify(t('tools.restored', { n })) });
  if (error) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading />;
  return (
    <Stack>
      <Revisions rows={rows} current={tool.revision} oneText={t('tools.oneRevision')} onRestore={mayEdit ? restore.mutate : undefined} />
      <OtherVersions tool={tool} />
    </Stack>
  );
}
