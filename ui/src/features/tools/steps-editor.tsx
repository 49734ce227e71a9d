/** The steps of a tool: each calls another tool, with arguments from the call and from other steps. */
import { ActionIcon, Autocomplete, Button, Checkbox, Group, Input, NumberInput, Select, SimpleGrid, Stack, Text, TextInput, Tooltip } from '@mantine/core';
import { IconArrowDown, IconArrowUp, IconPlus, IconX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { toolQuery } from '@/api/queries';
import type { Json, JsonObject, Problem } from '@/api/types';
import { useT } from '@/i18n';
import { Fold, JsonField, problemAt } from '@/parts/form-fields';
import { visibleText } from '@/parts/format';
import { schemaRows, type Schema } from '@/parts/schema';
import { ToolSelect } from '@/parts/tool-picker';
import { checkSteps, mappingText, mappingValue, moveStep, newStep, readSteps, renameIn, renameStep, stepId, suggestions, waitsFor, type StepProblem } from './steps';
import classes from './steps.module.css';

const POLICIES = ['stop', 'continue', 'fallback'] as const;
const PLAIN = { default: (value: string) => value, oneOf: (values: string) => values };

interface MappingProps {
  label: string;
  value: Json | undefined;
  type?: string | undefined;
  choices: string[];
  error?: string | undefined;
  description?: string | undefined;
  required?: boolean;
  hideLabel?: boolean;
  onChange: (value: Json | undefined) => void;
}

/** A text with suggestions; JSON stays JSON. */
function MappingField({ label, value, type, choices, error, description, required = false, hideLabel = false, onChange }: MappingProps) {
  const [draft, setDraft] = useState(() => mappingText(value));
  const [seen, setSeen] = useState(value);
  // A change in the source replaces the text.
  if (JSON.stringify(seen) !== JSON.stringify(value)) {
    setSeen(value);
    if (JSON.stringify(mappingValue(draft, type)) !== JSON.stringify(value)) setDraft(mappingText(value));
  }
  return (
    <Autocomplete {...(hideLabel ? { 'aria-label': label } : { label })} description={description} withAsterisk={required && !hideLabel} value={draft} data={choices} limit={30} error={error} styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
      onChange={(next) => { setDraft(next); onChange(mappingValue(next, type)); }} />
  );
}

function Arguments({ step, choices, at, onChange }: { step: JsonObject; choices: string[]; at: (field: string) => string | undefined; onChange: (args: JsonObject) => void }) {
  const t = useT();
  const [extra, setExtra] = useState('');
  const target = String(step['tool'] ?? '');
  const tool = useQuery({ ...toolQuery(target), enabled: target !== '', staleTime: 60_000 }).data;
  const rows = useMemo(() => (tool ? schemaRows((tool.input_schema ?? {}) as Schema, PLAIN).filter((row) => row.depth === 0) : []), [tool]);
  const args = (typeof step['args'] === 'object' && step['args'] !== null && !Array.isArray(step['args']) ? step['args'] : {}) as JsonObject;
  const others = Object.keys(args).filter((name) => !rows.some((row) => row.name === name));
  const names = [...rows.map((row) => row.name), ...others];
  const set = (name: string, value: Json | undefined) => {
    const { [name]: _, ...rest } = args;
    onChange(value === undefined ? rest : { ...rest, [name]: value });
  };
  const add = () => { if (extra.trim() !== '' && !(extra.trim() in args)) { onChange({ ...args, [extra.trim()]: '' }); setExtra(''); } };
  return (
    <Input.Wrapper label={t('steps.arguments')} description={names.length > 0 ? t('steps.argumentsHelp') : target === '' ? t('steps.chooseFirst') : t('schema.none')} component="div" labelElement="div" error={at('args')}>
      <Stack gap={6} mt={4}>
        {names.map((name) => {
          const row = rows.find((each) => each.name === name);
          return (
            <div key={name} className={classes.argument}>
              <Tooltip label={row?.description ? visibleText(row.description) : t('steps.notDeclared')} disabled={row !== undefined && row.description === ''}><Text className={classes.argumentName} c={row ? undefined : 'var(--haft-warn)'}>{visibleText(name)}{row?.required && <Text span c="var(--haft-bad)" aria-label={t('common.required')}> *</Text>}</Text></Tooltip>
              <MappingField hideLabel label={`${t('steps.arguments')}: ${name}`} value={args[name]} type={row?.type} choices={choices} error={at(`args.${name}`)} onChange={(value) => set(name, value)} />
              {row === undefined ? <ActionIcon aria-label={`${t('common.remove')} ${name}`} onClick={() => set(name, undefined)}><IconX size={14} /></ActionIcon> : <span />}
            </div>
          );
        })}
        {target !== '' && tool === undefined && <Group gap={4}><TextInput w={180} aria-label={t('define.addParameter')} placeholder={t('common.name')} value={extra} onChange={(event) => setExtra(event.currentTarget.value)} /><Button variant="subtle" size="compact-xs" leftSection={<IconPlus size={13} />} onClick={add}>{t('define.addParameter')}</Button></Group>}
      </Stack>
    </Input.Wrapper>
  );
}

interface CardProps {
  steps: JsonObject[];
  index: number;
  parameters: string[];
  local: StepProblem[];
  at: (field: string) => string | undefined;
  onPatch: (key: string, value: Json | undefined) => void;
  onSteps: (steps: JsonObject[]) => void;
  onRename: (id: string) => void;
}

function useLocalText(): (problem: StepProblem) => string {
  const t = useT();
  return ({ kind, name }) => {
    switch (kind) {
      case 'id': return t('steps.wrongId');
      case 'twice': return t('steps.idTwice', { name });
      case 'unknown': return t('steps.unknownStep', { name });
      case 'argument': return t('steps.unknownArgument', { name });
      case 'item': return t('steps.noItem');
      case 'cycle': return t('steps.cycle', { name });
    }
  };
}

function StepCard({ steps, index, parameters, local, at, onPatch, onSteps, onRename }: CardProps) {
  const t = useT();
  const say = useLocalText();
  const step = steps[index] ?? {};
  const id = stepId(step);
  const choices = useMemo(() => suggestions(steps, index, parameters), [steps, index, parameters]);
  const isEach = step['for_each'] !== undefined;
  const policy = POLICIES.find((name) => name === step['on_failure']) ?? 'stop';
  const others = steps.map(stepId).filter((other) => other !== id && other !== '');
  const after = Array.isArray(step['after']) ? step['after'].map(String) : [];
  const waits = waitsFor(step);
  return (
    <section className={classes.step} aria-label={t('steps.stepN', { n: index + 1, id })}>
      <Group gap="sm" wrap="nowrap" align="flex-start">
        <span className={classes.number} aria-hidden>{index + 1}</span>
        <TextInput flex={1} aria-label={t('steps.id')} placeholder={t('steps.id')} value={id} error={at('id') ?? local.filter((problem) => problem.kind === 'id' || problem.kind === 'twice').map(say)[0]} onChange={(event) => onRename(event.currentTarget.value)} />
        <Group gap={0} wrap="nowrap">
          <ActionIcon aria-label={`${t('schemaForm.moveUp')} ${id}`} disabled={index === 0} onClick={() => onSteps(moveStep(steps, index, index - 1))}><IconArrowUp size={14} /></ActionIcon>
          <ActionIcon aria-label={`${t('schemaForm.moveDown')} ${id}`} disabled={index === steps.length - 1} onClick={() => onSteps(moveStep(steps, index, index + 1))}><IconArrowDown size={14} /></ActionIcon>
          <ActionIcon aria-label={`${t('common.remove')} ${id}`} onClick={() => onSteps(steps.filter((_, other) => other !== index))}><IconX size={14} /></ActionIcon>
        </Group>
      </Group>
      <Stack gap="sm" mt="sm">
        <ToolSelect label={t('steps.tool')} required value={String(step['tool'] ?? '')} error={at('tool')} onChange={(tool) => onPatch('tool', tool)} />
        <Arguments step={step} choices={choices} at={at} onChange={(args) => onPatch('args', Object.keys(args).length === 0 ? undefined : args)} />
        {local.filter((problem) => problem.kind !== 'id' && problem.kind !== 'twice').map((problem) => <Text key={problem.kind + problem.name} size="xs" c="var(--haft-bad)" role="alert">{say(problem)}</Text>)}
        {waits.length > 0 && <Text size="xs" c="dimmed">{t('steps.waits', { names: waits.join(', ') })}</Text>}
        <Fold label={t('steps.more')} startOpen={step['when'] !== undefined || isEach || policy !== 'stop' || ['when', 'for_each', 'on_failure', 'fallback', 'after', 'max_items'].some((key) => at(key) !== undefined)}>
          <MappingField label={t('steps.when')} description={t('steps.whenHelp')} value={step['when']} choices={choices.filter((choice) => choice.endsWith('.ok') || choice.startsWith('$args.'))} error={at('when')} onChange={(value) => onPatch('when', value)} />
          <SimpleGrid cols={{ base: 1, xs: 2 }}>
            <MappingField label={t('steps.forEach')} description={t('steps.forEachHelp')} value={step['for_each']} choices={choices.filter((choice) => !choice.startsWith('$item') && choice !== '$index' && !choice.endsWith('.ok'))} error={at('for_each')} onChange={(value) => onPatch('for_each', value)} />
            {isEach && <NumberInput label={t('steps.maxItems')} min={1} max={1000} placeholder="100" value={typeof step['max_items'] === 'number' ? step['max_items'] : ''} error={at('max_items')} onChange={(next) => onPatch('max_items', typeof next === 'number' ? next : undefined)} />}
          </SimpleGrid>
          <SimpleGrid cols={{ base: 1, xs: 2 }}>
            <Select label={t('steps.onFailure')} allowDeselect={false} data={POLICIES.map((value) => ({ value, label: t(`steps.onFailure.${value}`) }))} value={policy} error={at('on_failure')} onChange={(next) => onPatch('on_failure', next === 'stop' || next === null ? undefined : next)} />
            {policy === 'fallback' && <MappingField label={t('steps.fallback')} value={step['fallback']} choices={choices} error={at('fallback')} onChange={(value) => onPatch('fallback', value)} />}
          </SimpleGrid>
          {others.length > 0 && (
            <Checkbox.Group label={t('steps.after')} description={t('steps.afterHelp')} value={after} error={at('after')} onChange={(next) => onPatch('after', next.length === 0 ? undefined : next)}>
              <Group gap="md" mt={4}>{others.map((other) => <Checkbox key={other} value={other} label={visibleText(other)} />)}</Group>
            </Checkbox.Group>
          )}
        </Fold>
      </Stack>
    </section>
  );
}

interface StepsProps {
  value: unknown;
  output: unknown;
  /** The arguments of the tool; unknown where its schema is more than a list. */
  parameters: string[] | undefined;
  problems: Problem[];
  /** Where the steps are, for the problems: `implementation`. */
  field: string;
  /** Writes values below `field`, all at once. */
  onChange: (...changes: StepsChange[]) => void;
}

export type StepsChange = [path: (string | number)[], value: Json | undefined];

export function StepsEditor({ value, output, parameters, problems, field, onChange }: StepsProps) {
  const t = useT();
  const steps = useMemo(() => readSteps(value), [value]);
  const local = useMemo(() => checkSteps(steps, parameters), [steps, parameters]);
  const replace = (next: JsonObject[]) => onChange([['steps'], next]);
  const rename = (index: number, id: string) => {
    const from = stepId(steps[index] ?? {});
    const result: StepsChange[] = output === undefined || from === '' ? [] : [[['output'], renameIn(output as Json, from, id)]];
    onChange([['steps'], renameStep(steps, index, id)], ...result);
  };
  return (
    <Stack gap="sm">
      <Input.Wrapper label={t('impl.steps')} description={t('steps.help')} component="div" labelElement="div" error={problems.find((problem) => problem.field === `${field}.steps`)?.message}>
        <Stack gap="sm" mt="sm">
          {steps.map((_, index) => (
            <StepCard key={index} steps={steps} index={index} parameters={parameters ?? []} local={local.filter((problem) => problem.index === index)}
              at={(key) => problemAt(problems, `${field}.steps[${index}].${key}`)} onPatch={(key, next) => onChange([['steps', index, key], next])} onSteps={replace} onRename={(id) => rename(index, id)} />
          ))}
          <Button variant="default" leftSection={<IconPlus size={14} />} style={{ alignSelf: 'flex-start' }} disabled={steps.length >= 100} onClick={() => replace([...steps, newStep(steps)])}>{t('steps.add')}</Button>
        </Stack>
      </Input.Wrapper>
      <JsonField key={steps.map(stepId).join(' ')} label={t('steps.output')} description={t('steps.outputHelp')} value={output} error={problemAt(problems, `${field}.output`)} onChange={(next) => onChange([['output'], next])} />
    </Stack>
  );
}
