/** Fields of the forms that write into a definition. */
import { Alert, Button, Collapse, Group, SegmentedControl, Stack, Text, Textarea, UnstyledButton } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { useState, type ReactNode } from 'react';
import type { Json, Problem } from '@/api/types';
import { useT } from '@/i18n';
import { Mono } from './basics';
import { visibleText } from './format';
import classes from './parts.module.css';

export function asText(value: unknown): string {
  return value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);
}

export function JsonField({ label, description, value, onChange, error }: { label: string; description?: string | undefined; value: unknown; onChange: (value: Json | undefined) => void; error: string | undefined }) {
  const t = useT();
  const [text, setText] = useState(() => (value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value, null, 2)));
  const [invalid, setInvalid] = useState('');
  const change = (next: string) => {
    setText(next);
    if (next.trim() === '') { setInvalid(''); onChange(undefined); return; }
    try {
      onChange(JSON.parse(next) as Json);
      setInvalid('');
    } catch (problem) {
      // Text that does not look like JSON is a text.
      if (/^\s*[[{"]/.test(next)) setInvalid(t('json.invalid', { message: (problem as Error).message }));
      else { setInvalid(''); onChange(next); }
    }
  };
  return <Textarea label={label} description={description} value={text} autosize minRows={1} maxRows={12} styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }} error={invalid || error} onChange={(event) => change(event.currentTarget.value)} />;
}

/** Fields that few need. Opens by itself where one of them has a problem. */
export function Fold({ label, startOpen = false, children }: { label: string; startOpen?: boolean; children: ReactNode }) {
  const [chosen, setChosen] = useState<boolean>();
  const open = chosen ?? startOpen;
  return (
    <div>
      <UnstyledButton onClick={() => setChosen(!open)} aria-expanded={open}><Group gap={4} c="dimmed">{open ? <IconChevronDown size={14} /> : <IconChevronRight size={14} />}<Text c="dimmed">{label}</Text></Group></UnstyledButton>
      <Collapse expanded={open} transitionDuration={100}><Stack gap="md" mt="sm">{children}</Stack></Collapse>
    </div>
  );
}

/** Form and source beside each other; one of them at a time where there is no room. */
export function FormAndSource({ form, source }: { form: ReactNode; source: ReactNode }) {
  const t = useT();
  const isNarrow = useMediaQuery('(max-width: 75em)');
  const [view, setView] = useState<'form' | 'source'>('form');
  if (isNarrow) {
    return (
      <Stack>
        <SegmentedControl value={view} onChange={(next) => setView(next as 'form' | 'source')} data={[{ value: 'form', label: t('common.form') }, { value: 'source', label: t('define.source') }]} style={{ alignSelf: 'flex-start' }} />
        {view === 'form' ? form : source}
      </Stack>
    );
  }
  return <div className={classes.steps}><div>{form}</div><div>{source}</div></div>;
}

export function RestoredNote({ at, onDiscard }: { at: number | undefined; onDiscard: () => void }) {
  const t = useT();
  if (at === undefined) return null;
  return <Alert variant="light" p="sm"><Group justify="space-between"><Text>{t('common.draftKept', { time: new Date(at).toLocaleString() })}</Text><Button variant="subtle" size="compact-xs" onClick={onDiscard}>{t('common.discard')}</Button></Group></Alert>;
}

/** Everything that is wrong with a definition, in words. */
export function ProblemLines({ errors, warnings }: { errors: readonly Problem[]; warnings: readonly Problem[] }) {
  const t = useT();
  const lines = [...errors.map((problem) => ({ problem, tone: 'var(--haft-bad)' })), ...warnings.map((problem) => ({ problem, tone: 'var(--haft-warn)' }))];
  return lines.map(({ problem, tone }) => (
    <Text key={problem.code + problem.field + problem.message} size="xs" style={{ overflowWrap: 'anywhere' }}><Text span c={tone} size="xs">● </Text>{problem.field !== '' && <Mono>{visibleText(problem.field)}</Mono>}{problem.line !== undefined && ` (${t('tools.line', { n: problem.line })})`}{problem.field !== '' && ': '}{visibleText(problem.message)}</Text>
  ));
}

/** The problem at a field, or at a part of it. */
export function problemAt(problems: readonly Problem[], field: string): string | undefined {
  return problems.find((problem) => problem.field === field || problem.field.startsWith(`${field}.`) || problem.field.startsWith(`${field}[`))?.message;
}
