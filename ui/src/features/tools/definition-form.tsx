/** The form side of a definition. Every change is written into the source text. */
import { ActionIcon, Button, Checkbox, Collapse, Group, Input, NumberInput, Select, Stack, Switch, TagsInput, Text, Textarea, TextInput, UnstyledButton } from '@mantine/core';
import { IconChevronDown, IconChevronRight, IconPlus, IconX } from '@tabler/icons-react';
import { useState } from 'react';
import type { Json, JsonObject, Problem, SourceForm } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { Editor } from '@/parts/editor';
import { KeyValues } from '@/parts/key-values';
import classes from '@/parts/parts.module.css';
import { IMPLEMENTATIONS, implementationKey, implementationSpec, type FieldSpec } from './implementations';
import { getPath, readParameters, writeBody, writeParameters, writeSource, type Parameter, type Path, type Source } from './source';

interface FormProps {
  text: string;
  form: SourceForm;
  source: Source;
  problems: Problem[];
  onChange: (text: string) => void;
  /** A stored tool keeps its name and type. */
  isNew: boolean;
}

const TYPES = ['string', 'integer', 'number', 'boolean', 'object', 'array', 'any'];

function asText(value: unknown): string {
  return value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);
}

function JsonField({ label, value, onChange, error }: { label: string; value: unknown; onChange: (value: Json | undefined) => void; error: string | undefined }) {
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
  return <Textarea label={label} value={text} autosize minRows={1} maxRows={12} styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }} error={invalid || error} onChange={(event) => change(event.currentTarget.value)} />;
}

function Field({ spec, value, onChange, error, runtime }: { spec: FieldSpec; value: unknown; onChange: (value: Json | undefined) => void; error: string | undefined; runtime: unknown }) {
  const t = useT();
  const label = t(spec.label);
  const shared = { label, description: spec.help && t(spec.help), error, withAsterisk: spec.required === true };
  switch (spec.kind) {
    case 'select':
      return <Select {...shared} data={spec.options ?? []} value={asText(value) || null} onChange={(next) => onChange(next ?? undefined)} clearable={!spec.required} />;
    case 'map':
      return <KeyValues label={label} value={Object.fromEntries(Object.entries((value ?? {}) as JsonObject).map(([key, item]) => [key, asText(item)]))} onChange={(next) => onChange(Object.keys(next).length === 0 ? undefined : next)} />;
    case 'number':
      return <NumberInput {...shared} value={typeof value === 'number' ? value : ''} min={0} onChange={(next) => onChange(typeof next === 'number' ? next : undefined)} />;
    case 'switch':
      return <Switch label={label} checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} />;
    case 'list':
      return <TagsInput {...shared} value={Array.isArray(value) ? value.map(asText) : []} onChange={(next) => onChange(next.length === 0 ? undefined : next)} splitChars={[]} allowDuplicates />;
    case 'json':
      return <JsonField label={label} value={value} onChange={onChange} error={error} />;
    case 'code':
      return (
        <Input.Wrapper {...shared} component="div" labelElement="div">
          <Editor label={label} value={asText(value)} language={runtime === 'python' ? 'python' : (spec.language ?? 'text')} onChange={(next) => onChange(next === '' ? undefined : next)} minHeight="6rem" maxHeight="22rem" />
        </Input.Wrapper>
      );
    case 'text':
      return <TextInput {...shared} value={asText(value)} onChange={(event) => onChange(event.currentTarget.value || undefined)} />;
  }
}

function Fold({ label, children }: { label: string; children: React.ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <div>
      <UnstyledButton onClick={() => setOpen(!open)} aria-expanded={open}><Group gap={4} c="dimmed">{open ? <IconChevronDown size={14} /> : <IconChevronRight size={14} />}<Text c="dimmed">{label}</Text></Group></UnstyledButton>
      <Collapse expanded={open} transitionDuration={100}><Stack gap="md" mt="sm">{children}</Stack></Collapse>
    </div>
  );
}

function Parameters({ source, onChange, problems }: { source: Source; onChange: (parameters: Parameter[]) => void; problems: Problem[] }) {
  const t = useT();
  const parameters = readParameters(source.doc);
  if (parameters === undefined) return <Text c="dimmed">{t('define.complexSchema')}</Text>;
  const patch = (index: number, change: Partial<Parameter>) => onChange(parameters.map((item, at) => (at === index ? { ...item, ...change } : item)));
  return (
    <Input.Wrapper label={t('define.parameters')} component="div" labelElement="div" error={problems.find((problem) => /^(params|input_schema|parameters)/.test(problem.field))?.message}>
      <Stack gap={6} mt={2}>
        {parameters.map((item, index) => (
          <div key={index} className={classes.parameter}>
            <TextInput className={classes.parameterName} value={item.name} aria-label={t('common.name')} placeholder={t('common.name')} onChange={(event) => patch(index, { name: event.currentTarget.value })} />
            <Select className={classes.parameterType} data={TYPES} value={item.type} aria-label={t('schema.type')} allowDeselect={false} onChange={(next) => patch(index, { type: next ?? 'string' })} />
            <TextInput className={classes.parameterText} value={item.description} aria-label={t('common.description')} placeholder={t('common.description')} onChange={(event) => patch(index, { description: event.currentTarget.value })} />
            <Checkbox className={classes.parameterNeed} checked={item.required} aria-label={`${item.name} ${t('common.required')}`} label={t('common.required')} onChange={(event) => patch(index, { required: event.currentTarget.checked })} />
            <ActionIcon className={classes.parameterEnd} aria-label={`${t('common.remove')} ${item.name}`} onClick={() => onChange(parameters.filter((_, at) => at !== index))}><IconX size={14} /></ActionIcon>
          </div>
        ))}
        <Button variant="subtle" size="compact-xs" leftSection={<IconPlus size={13} />} style={{ alignSelf: 'flex-start' }}
          onClick={() => onChange([...parameters, { name: `argument_${parameters.length + 1}`, type: 'string', description: '', required: false, rest: {} }])}>{t('define.addParameter')}</Button>
      </Stack>
    </Input.Wrapper>
  );
}

export function DefinitionForm({ text, form, source, problems, onChange, isNew }: FormProps) {
  const t = useT();
  const { doc } = source;
  const write = (path: Path, value: Json | undefined) => onChange(writeSource(text, form, path, value));
  const problemAt = (field: string) => problems.find((problem) => problem.field === field || problem.field.startsWith(`${field}.`) || problem.field.startsWith(`${field}[`))?.message;
  const isSkill = form === 'skill' && doc['implementation'] === undefined;
  const key = implementationKey(doc);
  const implementation = (doc[key] ?? {}) as JsonObject;
  const type = implementation['type'] ?? doc['implementation_type'] ?? doc['type'];
  const spec = implementationSpec(type);
  const changeType = (next: string | null) => {
    const chosen = implementationSpec(next);
    if (chosen) onChange(writeSource(text, form, [key], chosen.template['implementation']));
  };
  const field = (item: FieldSpec) => (
    <Field key={item.key} spec={item} value={implementation[item.key]} runtime={implementation['runtime']} error={problemAt(`${key}.${item.key}`)} onChange={(value) => write([key, item.key], value)} />
  );
  return (
    <Stack gap="md">
      <Group grow align="flex-start">
        <TextInput label={t('common.name')} withAsterisk value={asText(doc['name'])} disabled={!isNew} error={problemAt('name')} description={isNew ? t('define.nameHelp') : undefined} onChange={(event) => write(['name'], event.currentTarget.value)} />
        <TextInput label={t('common.version')} value={asText(doc['version'])} placeholder="1.0.0" disabled={!isNew} error={problemAt('version')} description={isNew ? t('define.versionHelp') : undefined} onChange={(event) => write(['version'], event.currentTarget.value || undefined)} />
      </Group>
      <Textarea label={t('common.description')} description={t('define.descriptionHelp')} withAsterisk autosize minRows={2} value={asText(doc['description'])} error={problemAt('description')} onChange={(event) => write(['description'], event.currentTarget.value)} />
      <Parameters source={source} problems={problems} onChange={(parameters) => onChange(writeParameters(text, form, parameters))} />
      {isSkill ? (
        <>
          <Select label={t('impl.runtime')} data={['bash', 'python']} value={asText(doc['runtime']) || null} onChange={(next) => write(['runtime'], next ?? undefined)} />
          <Input.Wrapper label={t('impl.scriptBody')} component="div" labelElement="div">
            <Editor label={t('impl.scriptBody')} language={doc['runtime'] === 'python' ? 'python' : 'bash'} value={source.body} onChange={(next) => onChange(writeBody(text, next))} />
          </Input.Wrapper>
        </>
      ) : (
        <>
          <Select label={t('tools.type')} data={IMPLEMENTATIONS.map((item) => ({ value: item.type, label: t(item.label) }))} value={spec?.type ?? null} allowDeselect={false} onChange={changeType} disabled={!isNew} error={problemAt(`${key}.type`)} maxDropdownHeight={360} />
          {spec?.fields.filter((item) => !item.advanced || implementation[item.key] !== undefined).map(field)}
          {spec?.fields.some((item) => item.advanced && implementation[item.key] === undefined) && (
            <Fold label={t('define.moreFields')}>{spec.fields.filter((item) => item.advanced && implementation[item.key] === undefined).map(field)}</Fold>
          )}
        </>
      )}
      <Fold label={t('define.safety')}>
        <Select label={t('tools.policy')} data={['allow', 'elevated', 'deny'].map((value) => ({ value, label: t(`status.${value}` as MessageKey) }))} value={asText(doc['policy']) || 'allow'} allowDeselect={false} onChange={(next) => write(['policy'], next === 'allow' ? undefined : (next ?? undefined))} />
        <Switch label={t('tools.confirmation')} checked={doc['requires_confirmation'] === true} onChange={(event) => write(['requires_confirmation'], event.currentTarget.checked || undefined)} />
        <Switch label={t('tools.network')} description={t('define.networkHelp')} checked={doc['network'] === true} onChange={(event) => write(['network'], event.currentTarget.checked || undefined)} />
        <Switch label={t('tools.sandbox')} description={t('define.sandboxHelp')} checked={doc['sandbox'] === true} onChange={(event) => write(['sandbox'], event.currentTarget.checked || undefined)} />
        <NumberInput label={t('impl.timeoutMs')} min={1} value={(getPath(doc, ['execution', 'timeout_ms']) as number | undefined) ?? ''} onChange={(next) => write(['execution', 'timeout_ms'], typeof next === 'number' ? next : undefined)} />
        <Switch label={t('tools.pure')} description={t('define.pureHelp')} checked={getPath(doc, ['execution', 'is_pure']) === true} onChange={(event) => write(['execution', 'is_pure'], event.currentTarget.checked || undefined)} />
      </Fold>
      <Fold label={t('define.about')}>
        <TextInput label={t('define.displayName')} value={asText(doc['display_name'])} onChange={(event) => write(['display_name'], event.currentTarget.value || undefined)} />
        <TextInput label={t('define.category')} value={asText(doc['category'])} onChange={(event) => write(['category'], event.currentTarget.value || undefined)} />
        <TagsInput label={t('tools.tag')} value={Array.isArray(doc['tags']) ? doc['tags'].map(asText) : []} onChange={(next) => write(['tags'], next.length === 0 ? undefined : next)} />
      </Fold>
    </Stack>
  );
}
