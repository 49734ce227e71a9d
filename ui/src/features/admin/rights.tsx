/** What somebody may do: how it is shown, and the fields that set it. */
import { Checkbox, Group, Input, SegmentedControl, Select, Stack, Text } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { ROLES, useSession } from '@/api/session';
import type { Rights, Role } from '@/api/types';
import { useT } from '@/i18n';
import { Chip } from '@/parts/basics';
import { visibleText } from '@/parts/format';
import { ToolPicker } from '@/parts/tool-picker';

/** The role, and what goes beyond it. */
export function RightsChips({ rights }: { rights: Pick<Rights, 'role' | 'elevated' | 'platform'> }) {
  const t = useT();
  return <Group gap={4} wrap="nowrap">{t(`role.${rights.role}`)}{rights.elevated && <Chip>{t('status.elevated')}</Chip>}{rights.platform && <Chip>{t('account.platform')}</Chip>}</Group>;
}

export function ToolRules({ tools }: { tools: string[] | null }) {
  const t = useT();
  if (tools === null) return t('connect.allTools');
  if (tools.length === 0) return <Text c="dimmed">{t('people.noTools')}</Text>;
  return <Group gap={4}>{tools.map((rule) => <Chip key={rule}>{visibleText(rule)}</Chip>)}</Group>;
}

/** The facts about rights, to put among others. */
export function rightsRows(rights: Rights, t: ReturnType<typeof useT>): [label: string, value: ReactNode][] {
  return [
    [t('tokens.role'), `${t(`role.${rights.role}`)}: ${t(`role.${rights.role}.may`)}`],
    [t('people.more'), (rights.elevated || rights.platform) && [rights.elevated && t('account.elevated'), rights.platform && t('account.platform')].filter(Boolean).join(' · ')],
    [t('tokens.tools'), <ToolRules key="tools" tools={rights.tools} />],
  ];
}

export function RoleSelect({ value, onChange, roles = ROLES }: { value: Role; onChange: (role: Role) => void; roles?: readonly Role[] }) {
  const t = useT();
  return <Select label={t('tokens.role')} data={roles.map((role) => ({ value: role, label: `${t(`role.${role}`)}: ${t(`role.${role}.may`)}` }))} value={value} allowDeselect={false} onChange={(next) => { if (next) onChange(next as Role); }} />;
}

/** All tools, or a list that may be empty. */
function ToolsField({ value, onChange, onPicking }: { value: string[] | null; onChange: (value: string[] | null) => void; onPicking: (isPicking: boolean) => void }) {
  const t = useT();
  // Somebody who looks at the other choice does not lose the list.
  const [kept, setKept] = useState(value ?? []);
  const choose = (tools: string[]) => { setKept(tools); onChange(tools); };
  return (
    <Stack gap="sm">
      <Input.Wrapper label={t('tokens.tools')} labelElement="div">
        <SegmentedControl display="flex" w="fit-content" mt={4} aria-label={t('tokens.tools')} value={value === null ? 'all' : 'some'} onChange={(next) => onChange(next === 'all' ? null : kept)}
          data={[{ value: 'all', label: t('connect.allTools') }, { value: 'some', label: t('people.someTools') }]} />
      </Input.Wrapper>
      {value !== null && <ToolPicker label={t('people.someTools')} emptyText={t('people.noTools')} value={value} onChange={choose} onOpened={onPicking} />}
    </Stack>
  );
}

interface RightsFieldsProps {
  value: Rights;
  onChange: (value: Rights) => void;
  /** Whether it can administer the platform: people, not service accounts and groups. */
  platform?: boolean;
  onPicking: (isPicking: boolean) => void;
}

export function RightsFields({ value, onChange, platform = false, onPicking }: RightsFieldsProps) {
  const t = useT();
  const session = useSession();
  return (
    <>
      <RoleSelect value={value.role} onChange={(role) => onChange({ ...value, role })} />
      <ToolsField value={value.tools} onChange={(tools) => onChange({ ...value, tools })} onPicking={onPicking} />
      {platform && session.platform && value.role === 'admin' && <Checkbox label={t('account.platform')} description={t('tokens.platformHelp')} checked={value.platform} onChange={(event) => onChange({ ...value, platform: event.currentTarget.checked })} />}
      {(session.elevated || value.elevated) && <Checkbox label={t('account.elevated')} checked={value.elevated} onChange={(event) => onChange({ ...value, elevated: event.currentTarget.checked })} />}
    </>
  );
}
