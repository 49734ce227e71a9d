/** Source, language and inputs of an artifact. */
import { ActionIcon, Button, Checkbox, FileButton, Group, Input, SegmentedControl, Select, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { IconPlus, IconUpload, IconX } from '@tabler/icons-react';
import { useState } from 'react';
import type { ArtifactFields, ArtifactInput } from '@/api/artifact-types';
import type { Problem } from '@/api/types';
import { useT } from '@/i18n';
import { Editor } from '@/parts/editor';
import { problemAt } from '@/parts/form-fields';
import { bytes } from '@/parts/format';
import { changeRuntime, defaultText, INPUT_TYPES, readDefault, RUNTIMES, wrongInput } from './artifact';
import classes from './artifacts.module.css';

function DefaultField({ input, onChange }: { input: ArtifactInput; onChange: (next: ArtifactInput) => void }) {
  const t = useT();
  const type = input.type ?? 'any';
  const [text, setText] = useState(() => defaultText(input.default));
  const change = (next: string) => {
    setText(next);
    const { default: _, ...rest } = input;
    const value = readDefault(next, type);
    onChange(value === undefined ? rest : { ...rest, default: value });
  };
  const isWrong = text !== '' && readDefault(text, type) === undefined;
  return <TextInput className={classes.inputDefault} value={text} aria-label={`${input.name} ${t('artifacts.default')}`} placeholder={t('artifacts.default')} error={isWrong && t('artifacts.defaultWrong', { type })} onChange={(event) => change(event.currentTarget.value)} />;
}

function Inputs({ value, onChange, error }: { value: ArtifactInput[]; onChange: (inputs: ArtifactInput[]) => void; error: string | undefined }) {
  const t = useT();
  const patch = (index: number, next: ArtifactInput) => onChange(value.map((each, at) => (at === index ? next : each)));
  const wrong = wrongInput(value);
  return (
    <Input.Wrapper label={t('artifacts.inputs')} description={t('artifacts.inputsHelp')} component="div" labelElement="div" error={error}>
      <Stack gap={6} mt={4}>
        {value.map((input, index) => (
          <div key={index} className={classes.input}>
            <TextInput className={classes.inputName} value={input.name} aria-label={t('common.name')} placeholder={t('common.name')} error={wrong?.index === index && t(wrong.reason === 'name' ? 'artifacts.inputName' : 'artifacts.inputTwice')} onChange={(event) => patch(index, { ...input, name: event.currentTarget.value })} />
            <Select className={classes.inputType} data={[...INPUT_TYPES]} value={input.type} aria-label={t('schema.type')} allowDeselect={false} onChange={(next) => patch(index, { ...input, type: (next ?? 'string') as ArtifactInput['type'] })} />
            <DefaultField key={input.type} input={input} onChange={(next) => patch(index, next)} />
            <TextInput className={classes.inputText} value={input.description ?? ''} aria-label={t('common.description')} placeholder={t('common.description')} onChange={(event) => patch(index, { ...input, description: event.currentTarget.value })} />
            <Checkbox className={classes.inputNeed} checked={input.required} aria-label={`${input.name} ${t('common.required')}`} label={t('common.required')} onChange={(event) => patch(index, { ...input, required: event.currentTarget.checked })} />
            <ActionIcon className={classes.inputEnd} aria-label={`${t('common.remove')} ${input.name}`} onClick={() => onChange(value.filter((_, at) => at !== index))}><IconX size={14} /></ActionIcon>
          </div>
        ))}
        <Button variant="subtle" size="compact-xs" leftSection={<IconPlus size={13} />} style={{ alignSelf: 'flex-start' }} onClick={() => onChange([...value, { name: `input_${value.length + 1}`, type: 'string', required: false }])}>{t('artifacts.addInput')}</Button>
      </Stack>
    </Input.Wrapper>
  );
}

async function toBase64(file: File): Promise<string> {
  const data = new Uint8Array(await file.arrayBuffer());
  let text = '';
  // In parts: a call takes a limited number of arguments.
  for (let at = 0; at < data.length; at += 0x8000) text += String.fromCodePoint(...data.subarray(at, at + 0x8000));
  return btoa(text);
}

export function ArtifactForm({ fields, problems, isNew, onChange, onSave }: { fields: ArtifactFields; problems: Problem[]; isNew: boolean; onChange: (fields: ArtifactFields) => void; onSave?: () => void }) {
  const t = useT();
  const at = (field: string) => problemAt(problems, field);
  const set = (change: Partial<ArtifactFields>) => onChange({ ...fields, ...change });
  const sourceProblems = problems.filter((problem) => problem.field === 'source').map((problem) => ({ message: problem.message, line: problem.line, column: problem.column, severity: 'error' as const }));
  return (
    <Stack>
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <TextInput label={t('agents.slug')} description={isNew ? t('artifacts.slugHelp') : undefined} withAsterisk disabled={!isNew} value={fields.slug} error={at('slug')} onChange={(event) => set({ slug: event.currentTarget.value })} />
        <TextInput label={t('common.name')} description={isNew ? t('agents.nameHelp') : undefined} value={fields.name} error={at('name')} onChange={(event) => set({ name: event.currentTarget.value })} />
      </SimpleGrid>
      <TextInput label={t('common.description')} value={fields.description} error={at('description')} onChange={(event) => set({ description: event.currentTarget.value })} />
      <Inputs value={fields.inputs} onChange={(inputs) => set({ inputs })} error={at('inputs')} />
      <Input.Wrapper label={t('impl.runtime')} component="div" labelElement="div" error={at('runtime')}>
        <div><SegmentedControl aria-label={t('impl.runtime')} value={fields.runtime} onChange={(next) => onChange(changeRuntime(fields, next as ArtifactFields['runtime']))} data={RUNTIMES.map((value) => ({ value, label: t(`artifacts.runtime.${value}`) }))} /></div>
      </Input.Wrapper>
      {fields.runtime === 'wasm' ? (
        <Input.Wrapper label={t('artifacts.module')} description={t('artifacts.moduleHelp')} component="div" labelElement="div" error={at('source')}>
          <Group gap="sm" mt={4}>
            <FileButton accept=".wasm,application/wasm" onChange={(file) => { if (file) void toBase64(file).then((source) => set({ source })); }}>{(props) => <Button variant="default" leftSection={<IconUpload size={14} />} {...props}>{t('artifacts.chooseModule')}</Button>}</FileButton>
            <Text c="dimmed">{fields.source === '' ? t('common.none') : bytes(Math.floor((fields.source.length * 3) / 4))}</Text>
          </Group>
        </Input.Wrapper>
      ) : (
        <Input.Wrapper label={t('define.source')} description={t(fields.runtime === 'python' ? 'artifacts.pythonHelp' : 'artifacts.bashHelp')} component="div" labelElement="div" error={at('source')}>
          <Editor label={t('define.source')} language={fields.runtime} value={fields.source} problems={sourceProblems} minHeight="16rem" maxHeight="55vh" onChange={(source) => set({ source })} {...(onSave ? { onSave } : {})} />
        </Input.Wrapper>
      )}
    </Stack>
  );
}
