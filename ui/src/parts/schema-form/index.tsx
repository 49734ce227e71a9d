import { Group, SegmentedControl, Stack, Text } from '@mantine/core';
import { Suspense, useEffect, useState } from 'react';
import type { JsonObject } from '@/api/types';
import { useT } from '@/i18n';
import { Boundary } from '../basics';
import { Editor } from '../editor';
import { lazyPart } from '../lazy';
import { Loading } from '../page';
import type { Schema } from '../schema';
import type { Violation } from './errors';

export interface SchemaFormProps {
  schema: Schema;
  value: JsonObject;
  onChange: (value: JsonObject) => void;
  violations: Violation[];
  onSubmit?: () => void;
}

const RjsfForm = lazyPart(async () => (await import('./rjsf')).default);

/** Loads the form ahead: what is below it must not move when it appears. */
export const preloadForm = RjsfForm.preload;

export function parseObject(text: string): { value: JsonObject } | { error: string } {
  try {
    const value: unknown = text.trim() === '' ? {} : JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return { error: 'not_object' };
    return { value: value as JsonObject };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/** Arguments of a tool: a form from the schema, or JSON; switching loses nothing. */
export function ArgumentsInput(props: SchemaFormProps & { mode: 'form' | 'json'; onMode: (mode: 'form' | 'json') => void; onInvalid?: (invalid: boolean) => void }) {
  const t = useT();
  const { mode, onMode, value, onChange, onInvalid, violations } = props;
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const parsed = parseObject(text);
  const invalid = mode === 'json' && 'error' in parsed;
  useEffect(() => onInvalid?.(invalid), [invalid, onInvalid]);
  // A change from outside, such as an example, replaces the text.
  const [seen, setSeen] = useState(value);
  if (seen !== value) {
    setSeen(value);
    if (!('value' in parsed) || JSON.stringify(parsed.value) !== JSON.stringify(value)) setText(JSON.stringify(value, null, 2));
  }
  return (
    <Stack gap="md">
      <Group>
        <SegmentedControl value={mode} onChange={(next) => onMode(next as 'form' | 'json')} data={[{ value: 'form', label: t('common.form') }, { value: 'json', label: t('common.json') }]} disabled={invalid} />
      </Group>
      {mode === 'json' ? (
        <>
          <Editor language="json" label={t('common.json')} value={text} minHeight="10rem"
            onChange={(next) => { setText(next); const result = parseObject(next); if ('value' in result) onChange(result.value); }}
            problems={'error' in parsed ? [{ message: parsed.error, severity: 'error', line: 1 }] : []} />
          {'error' in parsed && <Text size="xs" c="var(--mantine-color-error)">{parsed.error === 'not_object' ? t('json.notObject') : t('json.invalid', { message: parsed.error })}</Text>}
          {violations.map((violation) => <Text key={violation.path + violation.message} size="xs" c="var(--mantine-color-error)">{violation.path} {violation.message}</Text>)}
        </>
      ) : (
        <Boundary title={t('schemaForm.unsupported')}>
          <Suspense fallback={<Loading rows={3} />}><RjsfForm {...props} /></Suspense>
          {violations.filter((violation) => violation.path === '').map((violation) => <Text key={violation.message} size="xs" c="var(--mantine-color-error)">{violation.message}</Text>)}
        </Boundary>
      )}
    </Stack>
  );
}

