/** Fields of the format `tool_list`: lists of tools, chosen by the tool picker. */
import type { WidgetProps } from '@rjsf/utils';
import { useT } from '@/i18n';
import { visibleText } from '../format';
import type { Schema } from '../schema';
import { ToolPicker } from '../tool-picker';

const FORMAT = 'tool_list';

const isList = (field: unknown) => typeof field === 'object' && field !== null && (field as Schema)['type'] === 'array' && (field as Schema)['format'] === FORMAT;

/** Which fields of a schema are lists of tools, as settings of the form. */
export function toolLists(schema: Schema): Record<string, { 'ui:widget': string }> {
  const properties = schema['properties'];
  if (typeof properties !== 'object' || properties === null) return {};
  return Object.fromEntries(Object.entries(properties).flatMap(([name, field]) => (isList(field) ? [[name, { 'ui:widget': FORMAT }]] : [])));
}

export function ToolListWidget({ label, schema, value, onChange, rawErrors }: WidgetProps) {
  const t = useT();
  return (
    <ToolPicker label={visibleText(label || schema.title || '')} {...(schema.description ? { description: visibleText(schema.description) } : {})} emptyText={t('picker.none')} value={Array.isArray(value) ? value.map(String) : []}
      onChange={(rules) => onChange(rules.length === 0 ? undefined : rules)} error={rawErrors && rawErrors.length > 0 ? visibleText(rawErrors.join(' ')) : undefined} />
  );
}
