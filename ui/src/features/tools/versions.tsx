import { Button, Group, Radio, Stack, Table, Text } from '@mantine/core';
import { IconHistory } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { tools } from '@/api/actions';
import { keys } from '@/api/keys';
import { revisionsQuery, toolRef } from '@/api/queries';
import { useMay } from '@/api/session';
import type { Revision, Tool } from '@/api/types';
import { useT } from '@/i18n';
import { ErrorPanel, Mono, SectionTitle } from '@/parts/basics';
import { DiffView } from '@/parts/diff-view';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { ToolLink } from '@/parts/links';
import { Loading } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { useAllTools } from '@/parts/all-tools';
import { shownStatus } from './taxonomy';

function text(revision: Revision | undefined): string {
  return revision ? JSON.stringify(revision.definition, null, 2) : '';
}

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
  const ask = useAsk();
  const mayEdit = useMay('editor') && !tool.built_in;
  const ref = toolRef(tool);
  const { data, error, refetch } = useQuery(revisionsQuery(ref));
  const revisions = useMemo(() => [...(data?.revisions ?? [])].toSorted((a, b) => b.number - a.number), [data]);
  const [left, setLeft] = useState<number>();
  const [right, setRight] = useState<number>();
  const after = right ?? revisions[0]?.number;
  const before = left ?? revisions[1]?.number;
  const restore = useAction((n: number) => tools.restore(ref, n), { invalidates: [keys.tools], done: (_, n) => notify(t('tools.restored', { n })) });
  if (error) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading />;
  const askRestore = async (n: number) => {
    if (await ask({ title: t('tools.restoreTitle', { n }), body: t('tools.restoreBody', { n }), confirm: t('tools.restore') })) restore.mutate(n);
  };
  return (
    <Stack>
      <Table verticalSpacing={6}>
        <Table.Thead><Table.Tr><Table.Th w={60}>{t('diff.before')}</Table.Th><Table.Th w={60}>{t('diff.after')}</Table.Th><Table.Th>{t('tools.revision')}</Table.Th><Table.Th>{t('common.created')}</Table.Th><Table.Th /></Table.Tr></Table.Thead>
        <Table.Tbody>
          {revisions.map((revision) => (
            <Table.Tr key={revision.number}>
              <Table.Td><Radio checked={before === revision.number} onChange={() => setLeft(revision.number)} aria-label={`${t('diff.before')} ${revision.number}`} /></Table.Td>
              <Table.Td><Radio checked={after === revision.number} onChange={() => setRight(revision.number)} aria-label={`${t('diff.after')} ${revision.number}`} /></Table.Td>
              <Table.Td><Group gap="sm"><Text fw={600}>{revision.number}</Text><Mono>{revision.definition.version}</Mono>{revision.published && <StatusBadge status="published" />}</Group></Table.Td>
              <Table.Td><Time at={revision.created_at} />{revision.created_by && <Text span c="dimmed"> · {visibleText(revision.created_by)}</Text>}</Table.Td>
              <Table.Td ta="right">
                {mayEdit && revision.number !== tool.revision && <Button variant="subtle" size="compact-xs" leftSection={<IconHistory size={13} />} onClick={() => void askRestore(revision.number)}>{t('tools.restore')}</Button>}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {revisions.length > 1 && before !== undefined && after !== undefined && (
        <>
          <SectionTitle>{t('tools.compare', { from: before, to: after })}</SectionTitle>
          <DiffView before={text(revisions.find((revision) => revision.number === before))} after={text(revisions.find((revision) => revision.number === after))}
            beforeLabel={t('tools.revisionN', { n: before })} afterLabel={t('tools.revisionN', { n: after })} />
        </>
      )}
      {revisions.length === 1 && <Text c="dimmed">{t('tools.oneRevision')}</Text>}
      <OtherVersions tool={tool} />
    </Stack>
  );
}
