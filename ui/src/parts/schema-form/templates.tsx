/** The look of generated forms: Mantine inputs, optional fields folded. */
import { ActionIcon, Button, Checkbox, Collapse, Fieldset, Group, Input, NumberInput, Select, Stack, Text, Textarea, TextInput, UnstyledButton } from '@mantine/core';
import { IconArrowDown, IconArrowUp, IconChevronDown, IconChevronRight, IconPlus, IconX } from '@tabler/icons-react';
import {
  ADDITIONAL_PROPERTY_FLAG, canExpand, type ArrayFieldItemTemplateProps, type ArrayFieldTemplateProps, type BaseInputTemplateProps, type FieldTemplateProps,
  type MultiSchemaFieldTemplateProps, type ObjectFieldTemplateProps, type TemplatesType, type RegistryWidgetsType, type WidgetProps,
} from '@rjsf/utils';
import { useState } from 'react';
import { useT } from '@/i18n';
import { visibleText } from '../format';

const LONG_TEXT = 200;

function common(props: WidgetProps | BaseInputTemplateProps) {
  const description = props.schema.description;
  return {
    id: props.id,
    label: props.hideLabel === true ? undefined : visibleText(props.label || props.schema.title || ''),
    'aria-label': props.hideLabel === true ? props.label || props.id : undefined,
    description: description ? visibleText(description) : undefined,
    required: props.required ?? false,
    withAsterisk: props.required ?? false,
    disabled: (props.disabled ?? false) || (props.readonly ?? false),
    error: props.rawErrors && props.rawErrors.length > 0 ? visibleText(props.rawErrors.join(' ')) : undefined,
  };
}

function isLong(props: BaseInputTemplateProps): boolean {
  const { schema } = props;
  return schema.type === 'string' && !schema.format && ((schema.maxLength ?? 0) > LONG_TEXT || /body|text|content|message|query|prompt|script|code/i.test(props.name));
}

function BaseInput(props: BaseInputTemplateProps) {
  const { schema, value, onChange, options } = props;
  const type = Array.isArray(schema.type) ? schema.type.find((name) => name !== 'null') : schema.type;
  if (type === 'integer' || type === 'number') {
    return (
      <NumberInput {...common(props)} value={value ?? ''} allowDecimal={type === 'number'} min={schema.minimum ?? Number.MIN_SAFE_INTEGER} max={schema.maximum ?? Number.MAX_SAFE_INTEGER} clampBehavior="none"
        onChange={(next) => onChange(next === '' ? options.emptyValue : next)} />
    );
  }
  const change = (text: string) => onChange(text === '' ? options.emptyValue : text);
  if (isLong(props)) {
    return <Textarea {...common(props)} value={value ?? ''} autosize minRows={2} maxRows={12} onChange={(event) => change(event.currentTarget.value)} />;
  }
  const inputType = schema.format === 'date' ? 'date' : schema.format === 'password' ? 'password' : 'text';
  const example = Array.isArray(schema.examples) && typeof schema.examples[0] === 'string' ? schema.examples[0] : undefined;
  return <TextInput {...common(props)} type={inputType} value={value ?? ''} placeholder={example ?? ''} onChange={(event) => change(event.currentTarget.value)} />;
}

function SelectWidget(props: WidgetProps) {
  const { options, value, multiple, onChange } = props;
  const choices = options.enumOptions ?? [];
  const data = choices.map((choice, index) => ({ value: String(index), label: visibleText(String(choice.label)) }));
  if (multiple) {
    const selected = new Set(Array.isArray(value) ? value.map((item) => JSON.stringify(item)) : []);
    return (
      <Checkbox.Group {...common(props)} value={choices.flatMap((choice, index) => (selected.has(JSON.stringify(choice.value)) ? [String(index)] : []))}
        onChange={(next) => onChange(next.map((index) => choices[Number(index)]?.value as unknown))}>
        <Group gap="md" mt={4}>{data.map((item) => <Checkbox key={item.value} {...item} />)}</Group>
      </Checkbox.Group>
    );
  }
  const at = choices.findIndex((choice) => JSON.stringify(choice.value) === JSON.stringify(value));
  return (
    <Select {...common(props)} data={data} value={at < 0 ? null : String(at)} clearable={!(props.required ?? false)} searchable={data.length > 10} allowDeselect={false}
      onChange={(next) => onChange(next === null ? options.emptyValue : (choices[Number(next)]?.value as unknown))} />
  );
}

function CheckboxWidget(props: WidgetProps) {
  const { label, description, id, disabled, error } = common(props);
  return <Checkbox id={id} label={label} description={description} disabled={disabled} error={error} checked={props.value === true} onChange={(event) => props.onChange(event.currentTarget.checked)} />;
}

function FieldTemplate(props: FieldTemplateProps) {
  const t = useT();
  const { children, schema, label, id, onKeyRenameBlur, onRemoveProperty, hidden, rawErrors, registry } = props;
  if (hidden) return <div hidden>{children}</div>;
  const type = schema.type;
  const ownErrors = (type === 'object' || type === 'array') && rawErrors && rawErrors.length > 0;
  const errors = ownErrors && <Text size="xs" c="var(--mantine-color-error)">{visibleText(rawErrors.join(' '))}</Text>;
  if (!(ADDITIONAL_PROPERTY_FLAG in schema)) return <div>{children}{errors}</div>;
  void registry;
  return (
    <Group align="flex-end" wrap="nowrap" gap="xs">
      <TextInput id={`${id}-key`} label={t('schemaForm.key')} defaultValue={label} onBlur={onKeyRenameBlur} flex={1} />
      <div style={{ flex: 2 }}>{children}{errors}</div>
      <ActionIcon aria-label={t('common.remove')} onClick={onRemoveProperty}><IconX size={14} /></ActionIcon>
    </Group>
  );
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === '' || value === null;
}

function ObjectFieldTemplate(props: ObjectFieldTemplateProps) {
  const t = useT();
  const { properties, schema, formData, title, description, fieldPathId, onAddProperty, uiSchema, required } = props;
  const isRoot = fieldPathId.path.length === 0;
  const needed = new Set(schema.required ?? []);
  const data = (formData ?? {}) as Record<string, unknown>;
  const visible = properties.filter((property) => !property.hidden);
  // A field with a value is never folded away.
  const [initial] = useState(() => new Set(visible.filter((property) => needed.has(property.name) || !isEmpty(data[property.name])).map((property) => property.name)));
  const main = visible.filter((property) => initial.has(property.name) || needed.has(property.name) || ADDITIONAL_PROPERTY_FLAG in (((schema.properties ?? {})[property.name] as object | undefined) ?? {}));
  const rest = visible.filter((property) => !main.includes(property));
  const [open, setOpen] = useState(main.length === 0 || rest.length <= 1);
  const body = (
    <Stack gap="md">
      {main.map((property) => <div key={property.name}>{property.content}</div>)}
      {rest.length > 0 && (
        <div>
          <UnstyledButton onClick={() => setOpen(!open)} aria-expanded={open}>
            <Group gap={4} c="dimmed">{open ? <IconChevronDown size={14} /> : <IconChevronRight size={14} />}<Text c="dimmed">{t('schemaForm.optional', { n: rest.length })}</Text></Group>
          </UnstyledButton>
          <Collapse expanded={open} transitionDuration={100}><Stack gap="md" mt="sm">{rest.map((property) => <div key={property.name}>{property.content}</div>)}</Stack></Collapse>
        </div>
      )}
      {canExpand(schema, uiSchema, formData) && (
        <Button variant="subtle" size="compact-xs" style={{ alignSelf: 'flex-start' }} leftSection={<IconPlus size={13} />} onClick={onAddProperty}>{t('schemaForm.addKey')}</Button>
      )}
    </Stack>
  );
  if (isRoot) return body;
  return (
    <Fieldset legend={<Text fw={500} size="xs">{visibleText(title)}{required && <Text span c="var(--haft-bad)"> *</Text>}</Text>} p="md">
      {description && <Text size="xs" c="dimmed" mb="sm">{typeof description === 'string' ? visibleText(description) : description}</Text>}
      {body}
    </Fieldset>
  );
}

function ArrayFieldTemplate(props: ArrayFieldTemplateProps) {
  const t = useT();
  const { items, canAdd, onAddClick, title, schema, required } = props;
  return (
    <Input.Wrapper component="div" label={visibleText(title)} description={schema.description ? visibleText(schema.description) : undefined} withAsterisk={required ?? false} labelElement="div">
      <Stack gap={4} mt={2}>
        {items}
        {canAdd && <Button variant="subtle" size="compact-xs" style={{ alignSelf: 'flex-start' }} leftSection={<IconPlus size={13} />} onClick={onAddClick}>{t('schemaForm.addItem')}</Button>}
      </Stack>
    </Input.Wrapper>
  );
}

function ArrayFieldItemTemplate({ children, buttonsProps, hasToolbar }: ArrayFieldItemTemplateProps) {
  const t = useT();
  return (
    <Group gap={4} wrap="nowrap" align="flex-start">
      <div style={{ flex: 1 }}>{children}</div>
      {hasToolbar && (
        <Group gap={0} wrap="nowrap">
          {buttonsProps.hasMoveUp && <ActionIcon aria-label={t('schemaForm.moveUp')} onClick={buttonsProps.onMoveUpItem}><IconArrowUp size={14} /></ActionIcon>}
          {buttonsProps.hasMoveDown && <ActionIcon aria-label={t('schemaForm.moveDown')} onClick={buttonsProps.onMoveDownItem}><IconArrowDown size={14} /></ActionIcon>}
          {buttonsProps.hasRemove && <ActionIcon aria-label={t('schemaForm.removeItem')} onClick={buttonsProps.onRemoveItem}><IconX size={14} /></ActionIcon>}
        </Group>
      )}
    </Group>
  );
}

function MultiSchemaFieldTemplate({ selector, optionSchemaField }: MultiSchemaFieldTemplateProps) {
  return <Stack gap="sm">{selector}{optionSchemaField}</Stack>;
}

const Nothing = () => null;

export const templates: Partial<TemplatesType> = {
  BaseInputTemplate: BaseInput, FieldTemplate, ObjectFieldTemplate, ArrayFieldTemplate, ArrayFieldItemTemplate, MultiSchemaFieldTemplate,
  DescriptionFieldTemplate: Nothing, FieldErrorTemplate: Nothing, ErrorListTemplate: Nothing,
  ButtonTemplates: { SubmitButton: Nothing } as never,
};

export const widgets: RegistryWidgetsType = {
  SelectWidget, CheckboxWidget, CheckboxesWidget: SelectWidget, RadioWidget: SelectWidget,
  TextareaWidget: (props) => <Textarea {...common(props)} value={(props.value as string | undefined) ?? ''} autosize minRows={2} maxRows={12} onChange={(event) => props.onChange(event.currentTarget.value)} />,
};
