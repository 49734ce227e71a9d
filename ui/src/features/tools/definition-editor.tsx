/** Form and source side by side, kept in step; the server validates while one types. */
import { Alert, Button, Group, SegmentedControl, Stack, Text } from '@mantine/core';
import { useDebouncedValue, useMediaQuery } from '@mantine/hooks';
import { IconCircleCheck } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { tools } from '@/api/actions';
import type { SourceForm } from '@/api/types';
import { useT } from '@/i18n';
import { ErrorPanel, Mono } from '@/parts/basics';
import { Editor, type EditorProblem } from '@/parts/editor';
import { visibleText } from '@/parts/format';
import classes from '@/parts/parts.module.css';
import { DefinitionForm } from './definition-form';
import { readSource } from './source';

export function useValidation(name: string, text: string, form: SourceForm) {
  const [settled] = useDebouncedValue(text, 350);
  return useQuery({
    queryKey: ['validate', name, form, settled],
    queryFn: () => tools.validate(name, settled, form),
    enabled: settled.trim() !== '',
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 30_000,
  });
}

interface EditorPaneProps {
  name: string;
  text: string;
  form: SourceForm;
  onChange: (text: string) => void;
  isNew: boolean;
}

export function DefinitionEditor({ name, text, form, onChange, isNew }: EditorPaneProps) {
  const t = useT();
  const isNarrow = useMediaQuery('(max-width: 75em)');
  const [view, setView] = useState<'form' | 'source'>('form');
  const source = useMemo(() => readSource(text, form), [text, form]);
  const validation = useValidation(name, text, form);
  const report = validation.data;
  const problems = useMemo<EditorProblem[]>(() => [
    ...(source.error ? [{ message: source.error, line: source.line ?? 1, severity: 'error' as const }] : []),
    ...(report?.errors ?? []).map((problem) => ({ message: problem.message, line: problem.line, column: problem.column, severity: 'error' as const })),
    ...(report?.warnings ?? []).map((problem) => ({ message: problem.message, line: problem.line, column: problem.column, severity: 'warning' as const })),
  ], [source, report]);
  const formSide = source.error
    ? <Alert color="yellow" variant="light" title={t('define.fixSource')}>{visibleText(source.error)}</Alert>
    : <DefinitionForm text={text} form={form} source={source} problems={report?.errors ?? []} onChange={onChange} isNew={isNew} />;
  const sourceSide = (
    <Stack gap="sm">
      <Editor language={form} label={t('define.source')} value={text} onChange={onChange} problems={problems} minHeight="20rem" maxHeight="60vh" />
      {validation.error && <ErrorPanel error={validation.error} />}
      {report?.valid && problems.length === 0 && <Group gap={6}><IconCircleCheck size={15} color="var(--haft-good)" /><Text c="dimmed">{t('define.valid')}</Text></Group>}
      {[...(report?.errors ?? []).map((problem) => ({ problem, tone: 'var(--haft-bad)' })), ...(report?.warnings ?? []).map((problem) => ({ problem, tone: 'var(--haft-warn)' }))].map(({ problem, tone }) => (
        <Text key={problem.code + problem.field + problem.message} size="xs"><Text span c={tone} size="xs">● </Text><Mono>{problem.field}</Mono>{problem.line !== undefined && ` (${t('tools.line', { n: problem.line })})`}: {visibleText(problem.message)}</Text>
      ))}
    </Stack>
  );
  if (isNarrow) {
    return (
      <Stack>
        <SegmentedControl value={view} onChange={(next) => setView(next as 'form' | 'source')} data={[{ value: 'form', label: t('common.form') }, { value: 'source', label: t('define.source') }]} style={{ alignSelf: 'flex-start' }} />
        {view === 'form' ? formSide : sourceSide}
      </Stack>
    );
  }
  return <div className={classes.steps}><div>{formSide}</div><div>{sourceSide}</div></div>;
}

export function RestoredNote({ at, onDiscard }: { at: number | undefined; onDiscard: () => void }) {
  const t = useT();
  if (at === undefined) return null;
  return <Alert variant="light" p="sm"><Group justify="space-between"><Text>{t('common.draftKept', { time: new Date(at).toLocaleString() })}</Text><Button variant="subtle" size="compact-xs" onClick={onDiscard}>{t('common.discard')}</Button></Group></Alert>;
}
