import Form from '@rjsf/core';
import type { RJSFSchema } from '@rjsf/utils';
import { useMemo } from 'react';
import type { JsonObject } from '@/api/types';
import { toErrorSchema } from './errors';
import type { SchemaFormProps } from './index';
import { templates, widgets } from './templates';
import { toolLists, ToolListWidget } from './tool-list';
import { validator } from './validator';

const UI = { 'ui:submitButtonOptions': { norender: true }, 'ui:label': false };
const WIDGETS = { ...widgets, tool_list: ToolListWidget };

export default function RjsfForm({ schema, value, onChange, violations, onSubmit }: SchemaFormProps) {
  const errors = useMemo(() => toErrorSchema(violations), [violations]);
  // The title and description of the whole schema are shown by the page.
  const shown = useMemo(() => ({ ...schema, title: undefined, description: undefined }) as RJSFSchema, [schema]);
  const ui = useMemo(() => ({ ...UI, ...toolLists(schema) }), [schema]);
  return (
    <Form schema={shown} formData={value} validator={validator} templates={templates} widgets={WIDGETS} uiSchema={ui} extraErrors={errors} noValidate noHtml5Validate showErrorList={false}
      idPrefix="arg" experimental_defaultFormStateBehavior={{ emptyObjectFields: 'skipDefaults', arrayMinItems: { populate: 'never' } }}
      onChange={(event) => onChange((event.formData ?? {}) as JsonObject)} onSubmit={() => onSubmit?.()} />
  );
}
