import { Alert, Group, PasswordInput, Stack, Text } from '@mantine/core';
import { useT } from '@/i18n';
import { CopyButton, Mono } from './basics';

/** Takes a new secret; never shows what is stored. */
export function SecretField({ label, value, onChange, stored = false, required = false }: { label: string; value: string; onChange: (value: string) => void; stored?: boolean; required?: boolean }) {
  const t = useT();
  return (
    <PasswordInput label={label} value={value} onChange={(event) => onChange(event.currentTarget.value)} placeholder={stored ? t('secret.stored') : ''}
      autoComplete="new-password" spellCheck={false} required={required} data-1p-ignore />
  );
}

/** A value that the server shows once. */
export function ShownOnce({ value, note }: { value: string; note?: string }) {
  const t = useT();
  return (
    <Alert color="yellow" variant="outline">
      <Stack gap={4}>
        <Text fw={600}>{note ?? t('secret.once')}</Text>
        <Group gap="xs" wrap="nowrap"><Text component="div" style={{ overflowWrap: 'anywhere' }}><Mono>{value}</Mono></Text><CopyButton text={value} /></Group>
      </Stack>
    </Alert>
  );
}
