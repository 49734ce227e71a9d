/** Form and source side by side, kept in step; the server validates while one types. */
import { Alert, Group, Stack, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconCircleCheck } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { tools } from '@/api/actions';
import type { SourceForm } from '@/api/types';
import { useT } from '@/i18n';
import { ErrorPanel } from '@/parts/basics';
import { Editor, type EditorProblem } from '@/parts/editor';
import { FormAndSource, ProblemLines } from '@/parts/form-fields';
import { visibleText } from '@/parts/format';
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
      <ProblemLines errors={report?.errors ?? []} warnings={report?.warnings ?? []} />
    </Stack>
  );
  return <FormAndSource form={formSide} source={sourceSide} />;
}
