/** Fields that choose people, service accounts and groups. */
import { MultiSelect, Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { foundPeopleQuery, groupsQuery, serviceAccountsQuery } from '@/api/people';
import type { ActorName } from '@/api/types';
import { useT } from '@/i18n';
import { mergeOptions, toOption, type ActorOption } from './actor-draft';

type Kinds = 'people' | 'serviceAccounts' | 'both';

interface Choice {
  /** Those that are chosen at the start. */
  known: readonly ActorName[];
  chosen: readonly string[];
  kinds: Kinds;
  /** An id that is not offered. */
  except?: string | undefined;
  /** Choices besides those that the server has, such as "nobody". */
  fixed?: readonly { value: string; label: string }[];
}

/** The server searches among people, who may be many; there are few service accounts. */
function useActorOptions({ known, chosen, kinds, except, fixed = [] }: Choice) {
  const t = useT();
  const [search, setSearch] = useState('');
  const [kept, setKept] = useState<ActorOption[]>(() => known.map(toOption));
  // A field for one shows the label of what is chosen as its search.
  const isLabel = [...fixed, ...kept].some((option) => option.label === search);
  const [q] = useDebouncedValue(isLabel ? '' : search.trim(), 200);
  const people = useQuery({ ...foundPeopleQuery(q), enabled: kinds !== 'serviceAccounts' }).data;
  const accounts = useQuery({ ...serviceAccountsQuery, enabled: kinds !== 'people' }).data;
  const found = [...(kinds === 'serviceAccounts' ? [] : people ?? []), ...(kinds === 'people' ? [] : accounts ?? [])].filter((actor) => actor.status !== 'disabled' && actor.id !== except).map(toOption);
  const options = mergeOptions(kept.filter((option) => chosen.includes(option.value)), found);
  const of = (kind: ActorName['kind']) => options.filter((option) => option.kind === kind).map(({ value, label }) => ({ value, label }));
  const groups = kinds === 'people' ? of('person') : [...(kinds === 'both' ? [{ group: t('nav.people'), items: of('person') }] : []), { group: t('nav.serviceAccounts'), items: of('service_account') }];
  const keep = (next: readonly string[]) => setKept(options.filter((option) => next.includes(option.value)));
  return { options, groups, keep, field: { searchable: true, searchValue: search, onSearchChange: setSearch, nothingFoundMessage: t('people.noneFound'), maxDropdownHeight: 280 } };
}

interface ActorSelectProps {
  label: string;
  description?: string;
  value: string;
  onChange: (id: string, option: ActorOption | undefined) => void;
  known?: ActorName | null | undefined;
  except?: string | undefined;
  kinds?: Kinds;
  fixed?: Choice['fixed'];
  required?: boolean;
  hasFocus?: boolean;
}

export function ActorSelect({ label, description, value, onChange, known, except, kinds = 'people', fixed = [], required = false, hasFocus = false }: ActorSelectProps) {
  const { options, groups, keep, field } = useActorOptions({ known: known ? [known] : [], chosen: [value], kinds, except, fixed });
  return (
    <Select label={label} description={description} data={[...fixed, ...groups]} value={value || null} {...field} required={required} clearable={!required && fixed.length === 0} allowDeselect={!required && fixed.length === 0}
      data-autofocus={hasFocus ? true : undefined}
      onChange={(next) => { keep(next ? [next] : []); onChange(next ?? '', options.find((option) => option.value === next)); }} />
  );
}

export function MembersField({ value, onChange, known }: { value: string[]; onChange: (value: string[]) => void; known: readonly ActorName[] }) {
  const t = useT();
  const { groups, keep, field } = useActorOptions({ known, chosen: value, kinds: 'both' });
  return (
    <MultiSelect label={t('groups.members')} data={groups} value={value} {...field} clearable hidePickedOptions placeholder={value.length === 0 ? t('groups.addMember') : ''}
      onChange={(next) => { keep(next); onChange(next); }} />
  );
}

export function GroupsField({ value, onChange }: { value: string[]; onChange: (value: string[]) => void }) {
  const t = useT();
  const groups = useQuery(groupsQuery).data;
  return (
    <MultiSelect label={t('nav.groups')} description={t('people.groupsHelp')} data={(groups ?? []).map((group) => ({ value: group.id, label: group.name }))} value={value} onChange={onChange}
      searchable clearable disabled={groups === undefined} placeholder={value.length === 0 ? t('common.none') : ''} nothingFoundMessage={t('groups.noneFound')} />
  );
}
