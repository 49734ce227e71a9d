/** The immutable states of something: two of them compared, an earlier one restored. */
import { Button, Group, Radio, Stack, Table, Text } from '@mantine/core';
import { IconHistory } from '@tabler/icons-react';
import { useQueries } from '@tanstack/react-query';
import { useMemo, useState, type ReactNode } from 'react';
import { useT, type MessageKey } from '@/i18n';
import { ErrorPanel, SectionTitle } from './basics';
import { DiffView } from './diff-view';
import { useAsk } from './feedback';
import { visibleText } from './format';
import { Loading } from './page';
import { StatusBadge } from './status';
import { Time } from './time';

/** What the states are called. */
const WORDS = {
  revision: { one: 'tools.revision', numbered: 'tools.revisionN', compare: 'tools.compare', restoreTitle: 'tools.restoreTitle', restoreBody: 'tools.restoreBody' },
  version: { one: 'artifacts.version', numbered: 'artifacts.versionN', compare: 'artifacts.compare', restoreTitle: 'artifacts.restoreTitle', restoreBody: 'artifacts.restoreBody' },
} satisfies Record<string, Record<string, MessageKey>>;

export interface RevisionRow {
  number: number;
  created_at: string;
  created_by?: string | null | undefined;
  published?: boolean;
  /** What is compared; read when it is shown where it is not known yet. */
  text?: string;
  /** Shown beside the number. */
  note?: ReactNode;
}

interface RevisionsProps {
  word?: keyof typeof WORDS;
  rows: RevisionRow[];
  /** The number of the present state, which cannot be restored. */
  current: number;
  /** Said where there is only one. */
  oneText: string;
  /** Reads the text of a state. */
  textQuery?: (n: number) => { queryKey: readonly unknown[]; queryFn: (context: { signal: AbortSignal }) => Promise<string> };
  /** Absent where the reader may not restore. */
  onRestore?: ((n: number) => void) | undefined;
}

/** Two states beside each other. */
function Compare({ rows, before, after, textQuery, word }: { rows: RevisionRow[]; before: number; after: number; textQuery: RevisionsProps['textQuery']; word: keyof typeof WORDS }) {
  const t = useT();
  const shown = [before, after].map((n) => ({ n, text: rows.find((row) => row.number === n)?.text }));
  const read = useQueries({
    queries: shown.map(({ n, text }) => ({
      queryKey: ['text', ...(textQuery?.(n).queryKey ?? []), n], queryFn: ({ signal }: { signal: AbortSignal }) => textQuery?.(n).queryFn({ signal }) ?? '',
      enabled: text === undefined && textQuery !== undefined, staleTime: Number.POSITIVE_INFINITY, retry: false,
    })),
  });
  const failed = read.find((each) => each.error !== null);
  if (failed?.error) return <ErrorPanel error={failed.error} onRetry={() => void failed.refetch()} />;
  const [left, right] = shown.map(({ text }, index) => text ?? read[index]?.data);
  if (left === undefined || right === undefined) return <Loading rows={3} />;
  return <DiffView before={left} after={right} beforeLabel={t(WORDS[word].numbered, { n: before })} afterLabel={t(WORDS[word].numbered, { n: after })} />;
}

export function Revisions({ word = 'revision', rows, current, oneText, textQuery, onRestore }: RevisionsProps) {
  const t = useT();
  const ask = useAsk();
  const words = WORDS[word];
  const sorted = useMemo(() => [...rows].toSorted((a, b) => b.number - a.number), [rows]);
  const [left, setLeft] = useState<number>();
  const [right, setRight] = useState<number>();
  const after = right ?? sorted[0]?.number;
  const before = left ?? sorted[1]?.number;
  const askRestore = async (n: number) => {
    if (await ask({ title: t(words.restoreTitle, { n }), body: t(words.restoreBody, { n }), confirm: t('tools.restore') })) onRestore?.(n);
  };
  return (
    <Stack>
      <Table.ScrollContainer minWidth={340}>
        <Table verticalSpacing={6}>
          <Table.Thead><Table.Tr><Table.Th w={60}>{t('diff.before')}</Table.Th><Table.Th w={60}>{t('diff.after')}</Table.Th><Table.Th>{t(words.one)}</Table.Th><Table.Th>{t('common.created')}</Table.Th><Table.Th /></Table.Tr></Table.Thead>
          <Table.Tbody>
            {sorted.map((row) => (
              <Table.Tr key={row.number}>
                <Table.Td><Radio checked={before === row.number} onChange={() => setLeft(row.number)} aria-label={`${t('diff.before')} ${row.number}`} /></Table.Td>
                <Table.Td><Radio checked={after === row.number} onChange={() => setRight(row.number)} aria-label={`${t('diff.after')} ${row.number}`} /></Table.Td>
                <Table.Td><Group gap="sm"><Text fw={600}>{row.number}</Text>{row.note}{row.published === true && <StatusBadge status="published" />}</Group></Table.Td>
                <Table.Td><Time at={row.created_at} />{row.created_by && <Text span c="dimmed"> · {visibleText(row.created_by)}</Text>}</Table.Td>
                <Table.Td ta="right">
                  {onRestore && row.number !== current && <Button variant="subtle" size="compact-xs" leftSection={<IconHistory size={13} />} onClick={() => void askRestore(row.number)}>{t('tools.restore')}</Button>}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {sorted.length > 1 && before !== undefined && after !== undefined && (
        <>
          <SectionTitle>{t(words.compare, { from: before, to: after })}</SectionTitle>
          <Compare rows={sorted} before={before} after={after} textQuery={textQuery} word={word} />
        </>
      )}
      {sorted.length === 1 && <Text c="dimmed">{oneText}</Text>}
    </Stack>
  );
}
