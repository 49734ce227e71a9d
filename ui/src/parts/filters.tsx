import { Button, MultiSelect, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { IconSearch, IconX } from '@tabler/icons-react';
import { useEffect, useRef, useState } from 'react';
import { useT } from '@/i18n';

/** The filter of a list; `/` jumps to it. Of several, each is `half` as wide. */
export function FilterInput({ value, onChange, label, half = false }: { value: string; onChange: (value: string) => void; label: string; half?: boolean }) {
  const [text, setText] = useState(value);
  const ref = useRef<HTMLInputElement>(null);
  const sent = useRef(value);
  useEffect(() => {
    if (value !== sent.current) {
      sent.current = value;
      setText(value);
    }
  }, [value]);
  const send = useDebouncedCallback((next: string) => {
    sent.current = next;
    onChange(next);
  }, 120);
  return (
    <TextInput ref={ref} value={text} w={half ? { base: '47%', sm: 180 } : { base: '100%', sm: 260 }} placeholder={label} aria-label={label} data-filter
      leftSection={<IconSearch size={14} />}
      onChange={(event) => { setText(event.currentTarget.value); send(event.currentTarget.value); }}
      onKeyDown={(event) => { if (event.key === 'Escape') event.currentTarget.blur(); }} />
  );
}

export interface Choice {
  value: string;
  label: string;
}

/** Chooses values of one property; several of them are alternatives. */
export function Facet({ label, choices, value, onChange }: { label: string; choices: Choice[]; value: string[]; onChange: (value: string[]) => void }) {
  return (
    <MultiSelect data={choices} value={value} onChange={onChange} aria-label={label} placeholder={value.length === 0 ? label : ''} clearable
      searchable={choices.length > 8} w={{ base: '47%', sm: value.length > 0 ? 190 : 130 }} comboboxProps={{ width: 240, position: 'bottom-start' }}
      maxDropdownHeight={320} hidePickedOptions={false} />
  );
}

export function ClearFilters({ visible, onClear }: { visible: boolean; onClear: () => void }) {
  const t = useT();
  if (!visible) return null;
  return <Button variant="subtle" color="gray" leftSection={<IconX size={13} />} onClick={onClear}>{t('common.clearFilters')}</Button>;
}
