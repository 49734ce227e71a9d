import { ActionIcon, Button, Group, Input, Stack, TextInput } from '@mantine/core';
import { IconPlus, IconX } from '@tabler/icons-react';
import { useT } from '@/i18n';

/** A small map of text to text: headers, environment, query parameters. */
export function KeyValues({ label, value, onChange, keyLabel }: { label: string; value: Record<string, string>; onChange: (value: Record<string, string>) => void; keyLabel?: string }) {
  const t = useT();
  const rows = Object.entries(value);
  const replace = (index: number, key: string, text: string) => onChange(Object.fromEntries(rows.map((row, at) => (at === index ? [key, text] : row))));
  return (
    <Input.Wrapper label={label} component="div">
      <Stack gap={4} mt={2}>
        {rows.map(([key, text], index) => (
          <Group key={index} gap={4} wrap="nowrap">
            <TextInput flex={1} value={key} aria-label={`${label}: ${keyLabel ?? t('common.name')}`} onChange={(event) => replace(index, event.currentTarget.value, text)} />
            <TextInput flex={2} value={text} aria-label={`${label}: ${key}`} onChange={(event) => replace(index, key, event.currentTarget.value)} />
            <ActionIcon aria-label={`${t('common.remove')} ${key}`} onClick={() => onChange(Object.fromEntries(rows.filter((_, at) => at !== index)))}><IconX size={14} /></ActionIcon>
          </Group>
        ))}
        <Button variant="subtle" size="compact-xs" leftSection={<IconPlus size={13} />} style={{ alignSelf: 'flex-start' }} onClick={() => onChange({ ...value, '': '' })} disabled={'' in value}>
          {t('common.add')}
        </Button>
      </Stack>
    </Input.Wrapper>
  );
}
