/** The form field for a list of tools: what is chosen, what it costs, and a dialog to choose. */
import { ActionIcon, Button, Group, Input, Stack, Text, TextInput } from '@mantine/core';
import { IconListCheck } from '@tabler/icons-react';
import { Suspense, useMemo, useState } from 'react';
import { useT } from '@/i18n';
import { useAllTools } from '../all-tools';
import { lazyPart } from '../lazy';
import { distinctTools, emptyRules, MAX_RULES, selectedTools } from './model';
import { RuleChip, SelectionSummary } from './summary';
import classes from './tool-picker.module.css';

const PickerDialog = lazyPart(async () => (await import('./dialog')).PickerDialog);
const SHOWN_RULES = 12;

interface ToolPickerProps {
  label: string;
  description?: string;
  /** What no rule at all means. */
  emptyText: string;
  value: string[];
  onChange: (rules: string[]) => void;
  /** Tells whether the dialog is open: one around the field must leave the Escape key to it. */
  onOpened?: (opened: boolean) => void;
  /** Whether `!rule` excludes tools. */
  exclusions?: boolean;
  /** Whether tools that are not published are counted as a problem. */
  needsPublished?: boolean;
  error?: string | undefined;
}

export function ToolPicker({ label, description, emptyText, value, onChange, onOpened, exclusions = false, needsPublished = false, error }: ToolPickerProps) {
  const t = useT();
  const [opened, setOpened] = useState(false);
  const { rows } = useAllTools();
  const tools = useMemo(() => distinctTools(rows), [rows]);
  const chosen = useMemo(() => selectedTools(value, tools), [value, tools]);
  const unknown = useMemo(() => new Set(tools.length > 0 ? emptyRules(value, tools) : []), [value, tools]);
  const open = (next: boolean) => {
    setOpened(next);
    onOpened?.(next);
  };
  return (
    <Input.Wrapper label={label} description={description} labelElement="div" error={value.length > MAX_RULES ? t('picker.tooMany', { n: MAX_RULES }) : error}>
      <Stack gap="sm" className={classes.field} role="group" aria-label={label}>
        <Group justify="space-between" gap="sm">
          <SelectionSummary rules={value} chosen={chosen} emptyText={emptyText} needsPublished={needsPublished} />
          <Group gap={4} ml="auto">
            {value.length > 0 && <Button variant="subtle" color="gray" size="compact-sm" onClick={() => onChange([])}>{t('picker.clear')}</Button>}
            <Button variant="default" size="compact-sm" leftSection={<IconListCheck size={14} />} onClick={() => open(true)}>{t('picker.choose')}</Button>
          </Group>
        </Group>
        {value.length > 0 && (
          <Group gap={4}>
            {value.slice(0, SHOWN_RULES).map((rule) => <RuleChip key={rule} rule={rule} isEmpty={unknown.has(rule)} onRemove={() => onChange(value.filter((each) => each !== rule))} />)}
            {value.length > SHOWN_RULES && <Text size="xs" c="dimmed">{t('picker.more', { n: value.length - SHOWN_RULES })}</Text>}
          </Group>
        )}
      </Stack>
      {opened && <Suspense><PickerDialog title={label} emptyText={emptyText} value={value} onChange={onChange} onClose={() => open(false)} exclusions={exclusions} needsPublished={needsPublished} /></Suspense>}
    </Input.Wrapper>
  );
}

interface ToolSelectProps {
  label: string;
  /** `bundle:name`, or whatever else names a tool. */
  value: string;
  onChange: (rule: string) => void;
  error?: string | undefined;
  required?: boolean;
}

/** The form field for one tool: its name, or a choice from the list. */
export function ToolSelect({ label, value, onChange, error, required = false }: ToolSelectProps) {
  const t = useT();
  const [opened, setOpened] = useState(false);
  const { rows } = useAllTools();
  const tools = useMemo(() => distinctTools(rows), [rows]);
  // Versions and ids name tools, too; only the server knows them all.
  const isUnknown = value !== '' && tools.length > 0 && !/[@]|^[0-9a-f-]{36}$/i.test(value) && emptyRules([value], tools).length > 0;
  return (
    <>
      <TextInput label={label} value={value} withAsterisk={required} error={error ?? (isUnknown ? t('picker.ruleEmpty') : undefined)} onChange={(event) => onChange(event.currentTarget.value)} rightSectionWidth={34}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }} rightSection={<ActionIcon aria-label={`${t('picker.chooseOne')}: ${label}`} onClick={() => setOpened(true)}><IconListCheck size={15} /></ActionIcon>} />
      {opened && <Suspense><PickerDialog title={t('picker.chooseOne')} emptyText={t('picker.none')} value={value === '' ? [] : [value]} single onChange={(rules) => { setOpened(false); onChange(rules.at(-1) ?? ''); }} onClose={() => setOpened(false)} /></Suspense>}
    </>
  );
}
