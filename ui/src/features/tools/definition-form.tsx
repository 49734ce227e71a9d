/** The form side of a definition. Every change is written into the source text. */
import { ActionIcon, Button, Checkbox, Group, Input, NumberInput, Select, Stack, Switch, TagsInput, Text, Textarea, TextInput } from '@mantine/core';
import { IconPlus, IconX } from '@tabler/icons-react';
import type { Json, JsonObject, Problem, SourceForm } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { Editor } from '@/parts/editor';
import { asText, Fold, JsonField, problemAt as findProblem } from '@/parts/form-fields';
import { KeyValues } from '@/parts/key-values';
import classes from '@/parts/parts.module.css';
import { IMPLEMENTATIONS, implementationKey, implementationSpec, type FieldSpec } from './implementations';
import { AgentField, ArtifactField, PipelineField } from './reference-fields';
import { getPath, readParameters, writeBody, writeParameters, writeSource, type Parameter, type Path, type Source } from './source';
import { StepsEditor } from './steps-editor';

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
    // These need more than their own value: see `Reference`.
    case 'agent':
    case 'artifact':
    case 'pipeline':
    case 'steps':
      return <TextInput {...shared} value={asText(value)} onChange={(event) => onChange(event.currentTarget.value || undefined)} />;
  }
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
  const problemAt = (field: string) => findProblem(problems, field);
  const isSkill = form === 'skill' && doc['implementation'] === undefined;
  const key = implementationKey(doc);
  const implementation = (doc[key] ?? {}) as JsonObject;
  const type = implementation['type'] ?? doc['implementation_type'] ?? doc['type'];
  const spec = implementationSpec(type);
  const changeType = (next: string | null) => {
    const chosen = implementationSpec(next);
    if (chosen) onChange(writeSource(text, form, [key], chosen.template['implementation']));
  };
  const parameters = readParameters(doc);
  const setParameters = (next: Parameter[]) => onChange(writeParameters(text, form, next));
  const field = (item: FieldSpec) => {
    const shared = { label: t(item.label), description: item.help && t(item.help), value: asText(implementation[item.key]), error: problemAt(`${key}.${item.key}`), onChange: (value: string) => write([key, item.key], value) };
    switch (item.kind) {
      case 'agent': {
        // Definitions may name an agent by its id.
        const named = implementation['target_agent_id'] !== undefined && !implementation[item.key] ? 'target_agent_id' : item.key;
        return <AgentField key={item.key} {...shared} value={asText(implementation[named])} error={problemAt(`${key}.${named}`)} onChange={(value) => write([key, named], value)} timeout={getPath(doc, ['execution', 'timeout_ms']) as number | undefined} onTimeout={(ms) => write(['execution', 'timeout_ms'], ms)} />;
      }
      case 'pipeline':
        return <PipelineField key={item.key} {...shared} />;
      case 'artifact':
        // Inline source instead of a stored artifact is edited in the source.
        if (implementation['source'] !== undefined) return <Field key={item.key} spec={{ key: 'source', label: 'impl.scriptBody', kind: 'code', language: 'bash' }} value={implementation['source']} runtime={implementation['runtime']} error={problemAt(`${key}.source`)} onChange={(value) => write([key, 'source'], value)} />;
        return <ArtifactField key={item.key} {...shared} version={asText(implementation['artifact_version'])} onVersion={(value) => write([key, 'artifact_version'], value)} onInputs={setParameters} parameters={parameters?.map((each) => each.name)} />;
      case 'steps':
        return <StepsEditor key={item.key} value={implementation['steps']} output={implementation['output']} parameters={parameters?.map((each) => each.name)} problems={problems} field={key} onChange={(...changes) => onChange(changes.reduce((written, [path, value]) => writeSource(written, form, [key, ...path], value), text))} />;
      default:
        return <Field key={item.key} spec={item} value={implementation[item.key]} runtime={implementation['runtime']} error={shared.error} onChange={(value) => write([key, item.key], value)} />;
    }
  };
  return (
    <Stack gap="md">
      <Group grow align="flex-start">
        <TextInput label={t('common.name')} withAsterisk value={asText(doc['name'])} disabled={!isNew} error={problemAt('name')} description={isNew ? t('define.nameHelp') : undefined} onChange={(event) => write(['name'], event.currentTarget.value)} />
        <TextInput label={t('common.version')} value={asText(doc['version'])} placeholder="1.0.0" disabled={!isNew} error={problemAt('version')} description={isNew ? t('define.versionHelp') : undefined} onChange={(event) => write(['version'], event.currentTarget.value || undefined)} />
      </Group>
      <Textarea label={t('common.description')} description={t('define.descriptionHelp')} withAsterisk autosize minRows={2} value={asText(doc['description'])} error={problemAt('description')} onChange={(event) => write(['description'], event.currentTarget.value)} />
      <Parameters source={source} problems={problems} onChange={setParameters} />
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
