/** The form side of an agent's definition. Every change is written into the source text. */
import { ActionIcon, Button, Group, Input, NumberInput, SegmentedControl, SimpleGrid, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core';
import { IconPlus, IconX } from '@tabler/icons-react';
import { useState } from 'react';
import type { Json, JsonObject, Problem, SourceForm } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, SectionTitle } from '@/parts/basics';
import { Editor } from '@/parts/editor';
import { asText, Fold, problemAt } from '@/parts/form-fields';
import { visibleText } from '@/parts/format';
import { getPath, writeSource, type Path, type Source } from '@/parts/source';
import { ToolPicker } from '@/parts/tool-picker';
import { joinRules, splitRules } from '@/parts/tool-picker/model';
import { readModel, variableNames, variableText, variableValue } from './definition';
import { ModelFields } from './model-fields';

interface FormProps {
  text: string;
  form: SourceForm;
  source: Source;
  errors: Problem[];
  warnings: Problem[];
  onChange: (text: string) => void;
  /** A stored agent keeps its short name. */
  isNew: boolean;
}

const listOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(asText) : typeof value === 'string' ? [value] : []);
const numberOf = (value: unknown) => (typeof value === 'number' ? value : '');
const orNothing = (next: string | number) => (typeof next === 'number' ? next : undefined);

function Instructions({ doc, error, write }: { doc: JsonObject; error: string | undefined; write: (path: Path, value: Json | undefined) => void }) {
  const t = useT();
  const key = ['instructions', 'system', 'prompt'].find((name) => Object.hasOwn(doc, name)) ?? 'instructions';
  const instructions = asText(doc[key]);
  const variables = (typeof doc['variables'] === 'object' && doc['variables'] !== null && !Array.isArray(doc['variables']) ? doc['variables'] : {}) as JsonObject;
  const used = variableNames(instructions);
  const unset = used.filter((name) => !Object.hasOwn(variables, name));
  const unused = new Set(Object.keys(variables).filter((name) => !used.includes(name)));
  const set = (next: JsonObject) => write(['variables'], Object.keys(next).length === 0 ? undefined : next);
  return (
    <>
      <Input.Wrapper label={t('agents.instructions')} description={t('agents.instructionsHelp')} component="div" labelElement="div" error={error}>
        <Editor label={t('agents.instructions')} language="text" value={instructions} minHeight="10rem" maxHeight="28rem" onChange={(next) => write([key], next === '' ? undefined : next)} />
      </Input.Wrapper>
      {(used.length > 0 || unused.size > 0) && (
        <Input.Wrapper label={t('agents.variables')} description={t('agents.variablesHelp')} component="div" labelElement="div">
          <Stack gap={6} mt={4}>
            {Object.entries(variables).map(([name, value]) => (
              <Group key={name} gap="sm" wrap="nowrap">
                <span style={{ flex: 1, minWidth: 0 }}><Chip>{visibleText(name)}</Chip>{unused.has(name) && <Text span size="xs" c="var(--haft-warn)" ml={6}>{t('agents.variableUnused')}</Text>}</span>
                <TextInput flex={2} aria-label={`${t('agents.variables')}: ${name}`} value={variableText(value)} onChange={(event) => set({ ...variables, [name]: variableValue(event.currentTarget.value, value) })} />
                <ActionIcon aria-label={`${t('common.remove')} ${name}`} onClick={() => set(Object.fromEntries(Object.entries(variables).filter(([other]) => other !== name)))}><IconX size={14} /></ActionIcon>
              </Group>
            ))}
            {unset.map((name) => (
              <Group key={name} gap="sm" wrap="nowrap">
                <span style={{ flex: 1, minWidth: 0 }}><Chip>{visibleText(name)}</Chip></span>
                <Text flex={2} size="xs" c="dimmed">{t('agents.variableUnset')}</Text>
                <Button variant="subtle" size="compact-xs" leftSection={<IconPlus size={13} />} aria-label={t('agents.setVariable', { name })} onClick={() => set({ ...variables, [name]: '' })}>{t('agents.setValue')}</Button>
              </Group>
            ))}
          </Stack>
        </Input.Wrapper>
      )}
    </>
  );
}

function OutputSchema({ value, error, onChange }: { value: unknown; error: string | undefined; onChange: (value: Json | undefined) => void }) {
  const t = useT();
  const [text, setText] = useState(() => (value === undefined ? '' : JSON.stringify(value, null, 2)));
  const [invalid, setInvalid] = useState<string>();
  const change = (next: string) => {
    setText(next);
    if (next.trim() === '') { setInvalid(undefined); onChange(undefined); return; }
    try {
      onChange(JSON.parse(next) as Json);
      setInvalid(undefined);
    } catch (problem) {
      setInvalid(t('json.invalid', { message: (problem as Error).message }));
    }
  };
  return (
    <Input.Wrapper label={t('agents.outputSchema')} description={t('agents.outputSchemaHelp')} component="div" labelElement="div" error={invalid ?? error}>
      <Editor label={t('agents.outputSchema')} language="json" value={text} minHeight="6rem" maxHeight="20rem" onChange={change} />
    </Input.Wrapper>
  );
}

function Limits({ doc, at, write }: { doc: JsonObject; at: (field: string) => string | undefined; write: (path: Path, value: Json | undefined) => void }) {
  const t = useT();
  const budget = (key: string) => numberOf(getPath(doc, ['budget', key]));
  const seconds = budget('time_ms');
  const attempts = numberOf(getPath(doc, ['supervision', 'attempts']));
  const setAttempts = (next: string | number) => (typeof next === 'number' && next > 0 ? write(['supervision'], { attempts: next, backoff_ms: (getPath(doc, ['supervision', 'backoff_ms']) as number | undefined) ?? 500 }) : write(['supervision'], undefined));
  return (
    <>
      <Fold label={t('agents.budgets')} startOpen={at('budget') !== undefined || at('max_iterations') !== undefined}>
        <Text size="xs" c="dimmed">{t('agents.budgetsHelp')}</Text>
        <SimpleGrid cols={{ base: 2, sm: 4 }}>
          <NumberInput label={t('agents.budgetCalls')} min={0} thousandSeparator value={budget('calls')} error={at('budget.calls')} onChange={(next) => write(['budget', 'calls'], orNothing(next))} />
          <NumberInput label={t('agents.budgetTokens')} min={0} thousandSeparator value={budget('tokens')} error={at('budget.tokens')} onChange={(next) => write(['budget', 'tokens'], orNothing(next))} />
          <NumberInput label={t('agents.budgetSeconds')} min={0} thousandSeparator value={seconds === '' ? '' : seconds / 1000} error={at('budget.time_ms')} onChange={(next) => write(['budget', 'time_ms'], typeof next === 'number' ? Math.round(next * 1000) : undefined)} />
          <NumberInput label={t('agents.budgetCost')} min={0} decimalScale={4} value={budget('cost')} error={at('budget.cost')} onChange={(next) => write(['budget', 'cost'], orNothing(next))} />
        </SimpleGrid>
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <NumberInput label={t('agents.maxIterations')} description={t('agents.maxIterationsHelp')} min={1} max={1000} placeholder="25" value={numberOf(doc['max_iterations'])} error={at('max_iterations')} onChange={(next) => write(['max_iterations'], orNothing(next))} />
          <NumberInput label={t('agents.contextWindow')} description={t('agents.contextWindowHelp')} min={1000} thousandSeparator placeholder="128,000" value={numberOf(doc['context_window'])} error={at('context_window')} onChange={(next) => write(['context_window'], orNothing(next))} />
        </SimpleGrid>
      </Fold>
      <Fold label={t('agents.supervision')} startOpen={at('supervision') !== undefined}>
        <Text size="xs" c="dimmed">{t('agents.supervisionHelp')}</Text>
        <SimpleGrid cols={2}>
          <NumberInput label={t('agents.attempts')} min={0} max={10} placeholder="0" value={attempts} error={at('supervision.attempts')} onChange={setAttempts} />
          <NumberInput label={t('agents.backoff')} min={0} max={600_000} disabled={attempts === ''} value={numberOf(getPath(doc, ['supervision', 'backoff_ms']))} error={at('supervision.backoff_ms')} onChange={(next) => write(['supervision', 'backoff_ms'], orNothing(next))} />
        </SimpleGrid>
      </Fold>
    </>
  );
}

export function AgentForm({ text, form, source, errors, warnings, onChange, isNew }: FormProps) {
  const t = useT();
  const { doc } = source;
  const write = (path: Path, value: Json | undefined) => onChange(writeSource(text, form, path, value));
  const at = (field: string) => problemAt(errors, field) ?? problemAt(warnings, field);
  const writeModel = (field: 'model' | 'fallback') => (key: string, value: Json | undefined) => {
    const model = readModel(doc[field]);
    // A model that is written as its name alone becomes a map.
    if (typeof doc[field] === 'string') write([field], Object.fromEntries(Object.entries({ ...model, [key]: value ?? null }).filter(([, each]) => each !== null)));
    else write([field, key], value);
  };
  const writeTools = (rules: string[]) => {
    const { tools, exclude } = splitRules(rules);
    const next = writeSource(text, form, ['tools'], tools);
    onChange(writeSource(next, form, ['exclude_tools'], exclude.length === 0 ? undefined : exclude));
  };
  const isParallel = doc['tool_execution'] === 'parallel_safe';
  const needsPublished = doc['require_published'] === true;
  return (
    <Stack gap="md">
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <TextInput label={t('agents.slug')} description={isNew ? t('agents.slugHelp') : undefined} withAsterisk value={asText(doc['slug'])} disabled={!isNew} error={at('slug')} onChange={(event) => write(['slug'], event.currentTarget.value)} />
        <TextInput label={t('common.name')} description={isNew ? t('agents.nameHelp') : undefined} value={asText(doc['name'])} error={at('name')} onChange={(event) => write(['name'], event.currentTarget.value || undefined)} />
      </SimpleGrid>
      <Textarea label={t('common.description')} autosize minRows={1} value={asText(doc['description'])} error={at('description')} onChange={(event) => write(['description'], event.currentTarget.value || undefined)} />
      <SectionTitle>{t('agents.model')}</SectionTitle>
      <ModelFields field="model" model={readModel(doc['model'])} problems={[...errors, ...warnings]} onChange={writeModel('model')} />
      <Switch label={t('agents.fallback')} description={t('agents.fallbackHelp')} checked={doc['fallback'] !== undefined && doc['fallback'] !== null} onChange={(event) => write(['fallback'], event.currentTarget.checked ? { name: '' } : undefined)} />
      {doc['fallback'] !== undefined && doc['fallback'] !== null && <Stack pl="lg" gap="md"><ModelFields field="fallback" model={readModel(doc['fallback'])} problems={[...errors, ...warnings]} onChange={writeModel('fallback')} /></Stack>}
      <SectionTitle>{t('agents.task')}</SectionTitle>
      <Instructions doc={doc} error={at('instructions')} write={write} />
      <SectionTitle>{t('nav.tools')}</SectionTitle>
      <ToolPicker label={t('agents.tools')} description={t('agents.toolsHelp')} emptyText={t('agents.noTools')} value={joinRules(listOf(doc['tools']), listOf(doc['exclude_tools']))} onChange={writeTools} exclusions needsPublished={needsPublished} error={at('tools') ?? at('exclude_tools')} />
      <Switch label={t('agents.requirePublished')} description={t('agents.requirePublishedHelp')} checked={needsPublished} onChange={(event) => write(['require_published'], event.currentTarget.checked || undefined)} />
      <Input.Wrapper label={t('agents.execution')} description={t(isParallel ? 'agents.parallelHelp' : 'agents.sequentialHelp')} component="div" labelElement="div" error={at('tool_execution')}>
        <SegmentedControl mt={4} aria-label={t('agents.execution')} value={isParallel ? 'parallel_safe' : 'sequential'} onChange={(next) => write(['tool_execution'], next === 'sequential' ? undefined : next)} data={[{ value: 'sequential', label: t('agents.sequential') }, { value: 'parallel_safe', label: t('agents.parallel') }]} />
      </Input.Wrapper>
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        {isParallel && <NumberInput label={t('agents.maxParallel')} min={1} max={64} placeholder="4" value={numberOf(doc['max_parallel_tools'])} error={at('max_parallel_tools')} onChange={(next) => write(['max_parallel_tools'], orNothing(next))} />}
        <NumberInput label={t('agents.toolTimeout')} min={1} max={600_000} thousandSeparator placeholder={t('tools.defaultTimeout')} value={numberOf(doc['tool_timeout_ms'])} error={at('tool_timeout_ms')} onChange={(next) => write(['tool_timeout_ms'], orNothing(next))} />
      </SimpleGrid>
      <Limits doc={doc} at={at} write={write} />
      <Fold label={t('agents.output')} startOpen={at('output_schema') !== undefined}>
        <OutputSchema value={doc['output_schema']} error={at('output_schema')} onChange={(next) => write(['output_schema'], next)} />
      </Fold>
    </Stack>
  );
}
