/** The form for a new token, and its value, which is shown once. */
import { Button, Checkbox, Group, Modal, NumberInput, Select, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { tokens as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { peopleKeys } from '@/api/people';
import { hasRole, useMay, useSession } from '@/api/session';
import type { Actor, CreatedToken, RateLimit, Role } from '@/api/types';
import { useT, type Translate } from '@/i18n';
import { useAction } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { ShownOnce } from '@/parts/secret-field';
import { ToolPicker } from '@/parts/tool-picker';
import { ME, NOBODY, rolesUpTo, tokenBounds, toOption, type ActorOption } from './actor-draft';
import { ActorSelect } from './actor-select';
import { RoleSelect } from './rights';

/** `60 / 1m`, or that there is none. */
export function rateText(rate: RateLimit | null, t: Translate): string {
  return rate ? `${rate.calls.toLocaleString()} / ${rate.per}` : t('limits.unlimited');
}

export function RateField({ description, value, onChange }: { description?: string; value: RateLimit | null; onChange: (value: RateLimit | null) => void }) {
  const t = useT();
  return (
    <Group align="flex-end" gap="xs" wrap="nowrap">
      <NumberInput flex={1} label={t('tokens.rateLimit')} description={description} placeholder={t('limits.unlimited')} min={1} value={value?.calls ?? ''} onChange={(next) => onChange(typeof next === 'number' ? { calls: next, per: value?.per ?? '1m' } : null)} />
      <Select w={130} aria-label={t('tokens.period')} data={[{ value: '1s', label: t('tokens.perSecond') }, { value: '1m', label: t('tokens.perMinute') }, { value: '1h', label: t('tokens.perHour') }, { value: '1d', label: t('tokens.perDay') }, ...(value && !['1s', '1m', '1h', '1d'].includes(value.per) ? [{ value: value.per, label: value.per }] : [])]}
        value={value?.per ?? '1m'} disabled={value === null} allowDeselect={false} onChange={(next) => { if (value) onChange({ ...value, per: next ?? '1m' }); }} />
    </Group>
  );
}

/** To whom the token belongs. Other people are not among the choices: whoever has their token acts in their name. */
function OwnerField({ value, onChange }: { value: string; onChange: (owner: string, option: ActorOption | undefined) => void }) {
  const t = useT();
  const session = useSession();
  const fixed = [{ value: NOBODY, label: t('tokens.nobody') }, ...(session.actor ? [{ value: ME, label: t('tokens.me', { name: session.name }) }] : [])];
  return <ActorSelect label={t('tokens.owner')} description={t('tokens.ownerHelp')} value={value} onChange={onChange} kinds="serviceAccounts" fixed={fixed} />;
}

interface TokenFormProps {
  /** To whom it belongs, where that is not asked. */
  owner?: Actor | undefined;
  onDone: (token: CreatedToken) => void;
  onPicking: (isPicking: boolean) => void;
}

function TokenForm({ owner: fixedOwner, onDone, onPicking }: TokenFormProps) {
  const t = useT();
  const session = useSession();
  const mayAdmin = useMay('admin');
  const [known, setKnown] = useState<ActorOption[]>(() => (fixedOwner ? [toOption(fixedOwner)] : []));
  const [owner, setOwner] = useState(fixedOwner?.id ?? (mayAdmin ? NOBODY : ME));
  const isOwned = owner !== NOBODY;
  const bounds = tokenBounds(owner, known, session);
  const [name, setName] = useState('');
  // As much as the owner may do; somebody who wants less chooses it.
  const [role, setRole] = useState<Role>(isOwned ? bounds.role : 'caller');
  const [tools, setTools] = useState<string[]>([]);
  const [lifetime, setLifetime] = useState<string | null>(null);
  const [elevated, setElevated] = useState(false);
  const [platform, setPlatform] = useState(false);
  const [rate, setRate] = useState<RateLimit | null>(null);
  const [tenant, setTenant] = useState('');
  const chooseOwner = (next: string, option: ActorOption | undefined) => {
    const options = option ? [option] : [];
    const most = tokenBounds(next, options, session);
    setKnown(options);
    setOwner(next);
    setRole(next === NOBODY ? 'caller' : most.role);
    if (!most.elevated) setElevated(false);
    setPlatform(false);
  };
  const create = useAction(
    () => actions.create({
      name, role, elevated, platform,
      ...(isOwned ? { owner } : {}), ...(rate ? { rate_limit: rate } : {}), ...(tools.length > 0 ? { tools } : {}), ...(lifetime ? { expires_in: lifetime } : {}), ...(tenant && !isOwned ? { tenant } : {}),
    }),
    { invalidates: [keys.tokens, peopleKeys.all], done: onDone },
  );
  return (
    <form onSubmit={(event) => { event.preventDefault(); create.mutate(undefined); }}>
      <Stack>
        <TextInput label={t('common.name')} description={isOwned ? undefined : t('tokens.nameHelp')} required value={name} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
        {mayAdmin && !fixedOwner && <OwnerField value={owner} onChange={chooseOwner} />}
        <RoleSelect value={role} onChange={setRole} roles={rolesUpTo(bounds.role)} />
        <ToolPicker label={t('tokens.tools')} description={t('tokens.toolsHelp')} emptyText={t(isOwned ? 'tokens.toolsOfOwner' : 'connect.allTools')} value={tools} onChange={setTools} onOpened={onPicking} />
        <Select label={t('tokens.lifetime')} placeholder={t('tokens.noExpiry')} clearable data={['12h', '7d', '30d', '90d', '365d']} value={lifetime} onChange={setLifetime} />
        {session.platform && !isOwned && <TextInput label={t('tokens.tenant')} placeholder={session.tenant} value={tenant} onChange={(event) => setTenant(event.currentTarget.value)} />}
        {mayAdmin && <RateField value={rate} onChange={setRate} />}
        {session.platform && hasRole(role, 'admin') && !isOwned && <Checkbox label={t('account.platform')} description={t('tokens.platformHelp')} checked={platform} onChange={(event) => setPlatform(event.currentTarget.checked)} />}
        {bounds.elevated && <Checkbox label={t('account.elevated')} checked={elevated} onChange={(event) => setElevated(event.currentTarget.checked)} />}
        <Group justify="flex-end"><Button type="submit" loading={create.isPending}>{t('palette.newToken')}</Button></Group>
      </Stack>
    </form>
  );
}

interface TokenDialogProps {
  opened: boolean;
  owner?: Actor | undefined;
  /** The token that was just created or got a new value. */
  made: CreatedToken | undefined;
  onMade: (token: CreatedToken) => void;
  onClose: () => void;
}

/** Asks for a new token, then shows its value. */
export function TokenDialog({ opened, owner, made, onMade, onClose }: TokenDialogProps) {
  const t = useT();
  const [isPicking, setPicking] = useState(false);
  return (
    <Modal opened={opened || made !== undefined} onClose={onClose} closeOnEscape={!isPicking} title={t(made ? 'tokens.made' : 'palette.newToken')}>
      {made ? <Stack><Text fw={600}>{visibleText(made.name)}</Text><ShownOnce value={made.token} /><Group justify="flex-end"><Button onClick={onClose}>{t('common.close')}</Button></Group></Stack> : <TokenForm owner={owner} onDone={onMade} onPicking={setPicking} />}
    </Modal>
  );
}
