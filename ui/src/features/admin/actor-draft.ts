/** What the forms of people, service accounts and groups hold, and the bodies that they send. */
import { ROLES } from '@/api/session';
import type { Actor, ActorName, ActorPatch, GroupOfActors, GroupPatch, NewGroup, NewPerson, NewServiceAccount, RateLimit, Rights, Role, Session } from '@/api/types';

export interface ActorDraft {
  name: string;
  email: string;
  description: string;
  /** The id of the person who is responsible, or nothing. */
  responsible: string;
  rights: Rights;
  rate: RateLimit | null;
  /** Ids of groups. */
  groups: string[];
}

export interface GroupDraft {
  name: string;
  description: string;
  rights: Rights;
  /** Ids of people and service accounts. */
  members: string[];
}

export function actorDraft(actor?: Actor): ActorDraft {
  return {
    name: actor?.name ?? '',
    email: actor?.email ?? '',
    description: actor?.description ?? '',
    responsible: actor?.responsible?.id ?? '',
    rights: actor?.membership ?? { role: 'caller', elevated: false, platform: false, tools: null },
    rate: actor?.rate_limit ?? null,
    groups: actor?.groups.map((group) => group.id) ?? [],
  };
}

/** A new group gives nothing by itself: it is there for what its members get besides their own. */
export function groupDraft(group?: GroupOfActors): GroupDraft {
  return {
    name: group?.name ?? '',
    description: group?.description ?? '',
    rights: group?.rights ?? { role: 'viewer', elevated: false, platform: false, tools: [] },
    members: group?.members.map((member) => member.id) ?? [],
  };
}

function isSameSet(a: readonly string[] | null, b: readonly string[] | null): boolean {
  if (a === null || b === null) return a === b;
  return a.length === b.length && a.every((item) => b.includes(item));
}

function changedRights(known: Rights, next: Rights) {
  // Only admins administer the platform; a lower role takes it away.
  const platform = next.role !== known.role && next.role !== 'admin' ? false : next.platform;
  return {
    ...(next.role === known.role ? {} : { role: next.role }),
    ...(next.elevated === known.elevated ? {} : { elevated: next.elevated }),
    ...(platform === known.platform ? {} : { platform }),
    ...(isSameSet(next.tools, known.tools) ? {} : { tools: next.tools }),
  };
}

/** Only what changed: an admin of a tenant may not send the name of somebody who is a member of others, too. */
export function changedActor(actor: Actor, draft: ActorDraft): ActorPatch {
  const known = actorDraft(actor);
  return {
    ...(draft.name === known.name ? {} : { name: draft.name }),
    ...(draft.email === known.email ? {} : { email: draft.email }),
    ...(draft.description === known.description ? {} : { description: draft.description }),
    ...(draft.responsible === known.responsible ? {} : { responsible: draft.responsible }),
    ...changedRights(known.rights, draft.rights),
    ...(draft.rate?.calls === known.rate?.calls && draft.rate?.per === known.rate?.per ? {} : { rate_limit: draft.rate }),
    ...(isSameSet(draft.groups, known.groups) ? {} : { groups: draft.groups }),
  };
}

export function changedGroup(group: GroupOfActors, draft: GroupDraft): GroupPatch {
  const known = groupDraft(group);
  const { platform: _, ...rights } = changedRights(known.rights, { ...draft.rights, platform: known.rights.platform });
  return {
    ...(draft.name === known.name ? {} : { name: draft.name }),
    ...(draft.description === known.description ? {} : { description: draft.description }),
    ...rights,
    ...(isSameSet(draft.members, known.members) ? {} : { members: draft.members }),
  };
}

/** In another tenant there are other groups and other people. */
function common({ name, rights: { role, elevated, tools }, rate, groups }: ActorDraft, tenant: string) {
  return { name, role, elevated, ...(tools === null ? {} : { tools }), ...(rate ? { rate_limit: rate } : {}), ...(tenant ? { tenant } : groups.length > 0 ? { groups } : {}) };
}

export function newPerson(draft: ActorDraft, tenant: string): NewPerson {
  return {
    ...common(draft, tenant),
    ...(draft.email ? { email: draft.email } : {}),
    ...(draft.rights.platform && draft.rights.role === 'admin' ? { platform: true } : {}),
  };
}

export function newServiceAccount(draft: ActorDraft, tenant: string): NewServiceAccount {
  return {
    ...common(draft, tenant),
    ...(draft.description ? { description: draft.description } : {}),
    ...(draft.responsible && !tenant ? { responsible: draft.responsible } : {}),
  };
}

export function newGroup({ name, description, rights: { role, elevated, tools }, members }: GroupDraft): NewGroup {
  return { name, role, elevated, tools, ...(description ? { description } : {}), ...(members.length > 0 ? { members } : {}) };
}

/** To whom a new token belongs: to nobody, to whoever creates it, or to an actor by its id. */
export const NOBODY = 'nobody';
export const ME = 'me';

/** The most that a token may do: as much as its owner. */
export function tokenBounds(owner: string, known: readonly { value: string; rights?: Rights | undefined }[], session: Session): { role: Role; elevated: boolean } {
  if (owner === ME) return session;
  return known.find((option) => option.value === owner)?.rights ?? { role: 'admin', elevated: true };
}

export function rolesUpTo(role: Role): Role[] {
  return ROLES.slice(0, ROLES.indexOf(role) + 1);
}

/** Whether somebody may have the value of a token: nobody gets that of another person's token. */
export function mayHoldToken(owner: ActorName | null, session: Session): boolean {
  return owner?.kind !== 'person' || owner.id === session.actor?.id;
}

export interface ActorOption {
  value: string;
  label: string;
  kind: ActorName['kind'];
  /** Missing where only the name is known. */
  rights?: Rights | undefined;
}

export function toOption(actor: Actor | ActorName): ActorOption {
  const email = 'email' in actor ? actor.email : null;
  return { value: actor.id, label: email ? `${actor.name} (${email})` : actor.name, kind: actor.kind, rights: 'rights' in actor ? actor.rights : undefined };
}

/** What is chosen and what was found, each once: what is chosen stays, though a later search does not find it. */
export function mergeOptions(chosen: readonly ActorOption[], found: readonly ActorOption[]): ActorOption[] {
  const options = new Map(chosen.map((option) => [option.value, option]));
  for (const option of found) options.set(option.value, option);
  return [...options.values()].toSorted((a, b) => a.label.localeCompare(b.label));
}
