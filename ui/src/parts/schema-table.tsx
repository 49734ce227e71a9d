import { Button, Group, Text } from '@mantine/core';
import { useMemo, useState } from 'react';
import { useT } from '@/i18n';
import { Chip, Mono } from './basics';
import { visibleText } from './format';
import { JsonView } from './json-view';
import classes from './parts.module.css';
import { schemaRows, type Schema } from './schema';

/** A schema as a readable table; the JSON Schema itself on demand. */
export function SchemaTable({ schema, empty }: { schema: Schema | null | undefined; empty?: string }) {
  const t = useT();
  const [raw, setRaw] = useState(false);
  const rows = useMemo(
    () => (schema ? schemaRows(schema, { default: (value) => t('schema.default', { value }), oneOf: (values) => t('schema.oneOf', { values }) }) : []),
    [schema, t],
  );
  if (!schema || Object.keys(schema).length === 0) return <Text c="dimmed">{empty ?? t('schema.any')}</Text>;
  return (
    <div>
      {raw ? <JsonView value={schema} /> : rows.length === 0 ? <Text c="dimmed">{empty ?? t('schema.none')}</Text> : (
        <table className={classes.schemaTable}>
          <thead><tr><th>{t('schema.field')}</th><th>{t('schema.type')}</th><th>{t('common.description')}</th></tr></thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.path}>
                <td style={{ paddingLeft: row.depth * 14 }}><Mono>{visibleText(row.name)}</Mono>{row.required && <Text span c="var(--haft-bad)" title={t('common.required')} aria-label={t('common.required')}> *</Text>}</td>
                <td><Mono>{row.type}</Mono></td>
                <td>
                  {visibleText(row.description)}
                  {row.notes.length > 0 && <Group gap={4} mt={2}>{row.notes.map((note) => <Chip key={note} title={note}>{note}</Chip>)}</Group>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Button variant="subtle" size="compact-xs" mt={4} onClick={() => setRaw(!raw)}>{t(raw ? 'schema.table' : 'schema.raw')}</Button>
    </div>
  );
}
