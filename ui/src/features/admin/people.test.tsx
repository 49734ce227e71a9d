import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { fireEvent, render, screen } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, describe, expect, it } from 'vitest';
import { foundPeopleQuery, peopleKeys } from '@/api/people';
import { sessionQuery, toolListQuery } from '@/api/queries';
import type { Actor, GroupOfActors, Rights, Session } from '@/api/types';
import { I18nProvider } from '@/i18n';
import { actorDraft, changedActor, changedGroup, groupDraft, ME, mayHoldToken, mergeOptions, newGroup, newPerson, newServiceAccount, NOBODY, rolesUpTo, tokenBounds, toOption } from './actor-draft';
import { ActorSelect } from './actor-select';
import { RightsFields } from './rights';

const rights = (change: Partial<Rights> = {}): Rights => ({ role: 'caller', elevated: false, platform: false, tools: null, ...change });
const actor = (change: Partial<Actor> = {}): Actor => ({
  id: 'ann', kind: 'person', name: 'Ann Smith', email: 'ann@example.com', description: '', responsible: null, status: 'active', tenant: 'default', membership: rights(),
  groups: [{ id: 'g1', name: 'finance' }], rights: rights({ role: 'editor' }), is_shared: false, is_suspended: false, provisioned: null, rate_limit: null, tokens: 0, sessions: 1, created_at: '2026-01-31T12:00:00Z', modified_at: '2026-01-31T12:00:00Z', last_seen_at: null, ...change,
});
const group = (change: Partial<GroupOfActors> = {}): GroupOfActors => ({
  id: 'g1', name: 'finance', description: '', tenant: 'default', rights: rights({ tools: ['bank:*'] }), members: [{ id: 'ann', kind: 'person', name: 'Ann Smith' }], is_provisioned: false,
  created_at: '2026-01-31T12:00:00Z', modified_at: '2026-01-31T12:00:00Z', ...change,
});
const session = (change: Partial<Session> = {}): Session => ({
  tenant: 'default', name: 'Bob', actor: { id: 'bob', kind: 'person', email: null, groups: [], is_reduced: false }, owner_id: 'bob', token_id: null, role: 'editor', elevated: false, platform: false, tools: null, rate_limit: null, is_session: true, expires_at: null, ...change,
});

describe('a change of a person', () => {
  it('holds only what differs', () => {
    expect(changedActor(actor(), actorDraft(actor()))).toEqual({});
    expect(changedActor(actor(), { ...actorDraft(actor()), rights: rights({ role: 'viewer' }) })).toEqual({ role: 'viewer' });
  });
  it('removes an address by an empty one', () => expect(changedActor(actor(), { ...actorDraft(actor()), email: '' })).toEqual({ email: '' }));
  it('tells all tools from none', () => {
    const known = actor({ membership: rights({ tools: [] }) });
    expect(changedActor(known, { ...actorDraft(known), rights: rights({ tools: null }) })).toEqual({ tools: null });
    expect(changedActor(actor(), { ...actorDraft(actor()), rights: rights({ tools: [] }) })).toEqual({ tools: [] });
  });
  it('does not depend on the order of groups', () => {
    const known = actor({ groups: [{ id: 'g1', name: 'a' }, { id: 'g2', name: 'b' }] });
    expect(changedActor(known, { ...actorDraft(known), groups: ['g2', 'g1'] })).toEqual({});
    expect(changedActor(known, { ...actorDraft(known), groups: [] })).toEqual({ groups: [] });
  });
  it('sets and removes the rate limit', () => {
    const known = actor({ rate_limit: { calls: 60, per: '1m' } });
    expect(changedActor(known, { ...actorDraft(known), rate: { calls: 60, per: '1m' } })).toEqual({});
    expect(changedActor(known, { ...actorDraft(known), rate: { calls: 60, per: '1h' } })).toEqual({ rate_limit: { calls: 60, per: '1h' } });
    expect(changedActor(known, { ...actorDraft(known), rate: null })).toEqual({ rate_limit: null });
  });
  it('takes the platform away with the role of an admin', () => {
    const known = actor({ membership: rights({ role: 'admin', platform: true }) });
    expect(changedActor(known, { ...actorDraft(known), rights: rights({ role: 'editor', platform: true }) })).toEqual({ role: 'editor', platform: false });
  });
});

describe('new ones', () => {
  it('name what is set, and nothing of another kind', () => {
    const draft = { ...actorDraft(), name: 'Ann', email: 'ann@example.com', groups: ['g1'], description: 'x', responsible: 'bob' };
    expect(newPerson(draft, '')).toEqual({ name: 'Ann', email: 'ann@example.com', role: 'caller', elevated: false, groups: ['g1'] });
    expect(newServiceAccount(draft, '')).toEqual({ name: 'Ann', description: 'x', responsible: 'bob', role: 'caller', elevated: false, groups: ['g1'] });
  });
  it('have a rate limit where one is set', () => {
    const draft = { ...actorDraft(), name: 'x', rate: { calls: 5, per: '1s' } };
    expect(newPerson(draft, '')).toMatchObject({ rate_limit: { calls: 5, per: '1s' } });
    expect(newServiceAccount(draft, 'acme')).toMatchObject({ rate_limit: { calls: 5, per: '1s' } });
  });
  it('leave out groups and people of this tenant in another one', () => {
    const draft = { ...actorDraft(), name: 'x', groups: ['g1'], responsible: 'bob' };
    expect(newServiceAccount(draft, 'acme')).toEqual({ name: 'x', role: 'caller', elevated: false, tenant: 'acme' });
  });
  it('a platform admin is an admin', () => {
    expect(newPerson({ ...actorDraft(), name: 'x', rights: rights({ platform: true }) }, '')).not.toHaveProperty('platform');
    expect(newPerson({ ...actorDraft(), name: 'x', rights: rights({ role: 'admin', platform: true }) }, '')).toMatchObject({ platform: true });
  });
  it('a group gives nothing unless it says so', () => expect(newGroup({ ...groupDraft(), name: 'g' })).toEqual({ name: 'g', role: 'viewer', elevated: false, tools: [] }));
});

it('a change of a group holds only what differs', () => {
  expect(changedGroup(group(), groupDraft(group()))).toEqual({});
  expect(changedGroup(group(), { ...groupDraft(group()), members: [], rights: rights({ tools: ['bank:pay'] }) })).toEqual({ members: [], tools: ['bank:pay'] });
});

describe('a token', () => {
  it('does no more than its owner', () => {
    const robot = toOption(actor({ id: 'robot', kind: 'service_account', rights: rights({ role: 'viewer' }) }));
    expect(tokenBounds('robot', [robot], session())).toMatchObject({ role: 'viewer', elevated: false });
    expect(tokenBounds(ME, [], session())).toMatchObject({ role: 'editor' });
    expect(tokenBounds(NOBODY, [], session())).toEqual({ role: 'admin', elevated: true });
    expect(rolesUpTo('caller')).toEqual(['viewer', 'caller']);
  });
  it('of another person shows its value to that person only', () => {
    expect(mayHoldToken(null, session())).toBe(true);
    expect(mayHoldToken({ id: 'robot', kind: 'service_account', name: 'robot' }, session())).toBe(true);
    expect(mayHoldToken({ id: 'bob', kind: 'person', name: 'Bob' }, session())).toBe(true);
    expect(mayHoldToken({ id: 'ann', kind: 'person', name: 'Ann' }, session())).toBe(false);
    expect(mayHoldToken({ id: 'ann', kind: 'person', name: 'Ann' }, session({ actor: null }))).toBe(false);
  });
});

it('offers what is chosen and what was found, each once', () => {
  const known = toOption({ id: 'ann', kind: 'person', name: 'Ann Smith' });
  const options = mergeOptions([known], [toOption(actor()), toOption(actor({ id: 'abe', name: 'Abe', email: null }))]);
  expect(options.map((option) => option.label)).toEqual(['Abe', 'Ann Smith (ann@example.com)']);
});

const show = (node: React.ReactNode, by: Session) => {
  localStorage.setItem('haft.language', 'en');
  const queries = new QueryClient({ defaultOptions: { queries: { staleTime: Number.POSITIVE_INFINITY, retry: false } } });
  queries.setQueryData(sessionQuery.queryKey, by);
  queries.setQueryData(peopleKeys.serviceAccounts, []);
  queries.setQueryData(toolListQuery.queryKey, { pages: [{ tools: [], total: 0, failed: 0, next: null }], pageParams: [null] });
  queries.setQueryData(foundPeopleQuery('').queryKey, [actor(), actor({ id: 'eve', name: 'Eve', email: null, status: 'disabled' }), actor({ id: 'bob', name: 'Bob', email: null })]);
  return render(<MantineProvider env="test"><I18nProvider><QueryClientProvider client={queries}>{node}</QueryClientProvider></I18nProvider></MantineProvider>);
};
function Fields() {
  const [value, setValue] = useState(rights({ role: 'admin' }));
  return <RightsFields value={value} onChange={setValue} platform onPicking={() => undefined} />;
}

describe('fields', () => {
  afterEach(() => localStorage.clear());
  it('offer only what the admin may give', () => {
    show(<Fields />, session({ role: 'admin' }));
    expect(screen.queryAllByRole('checkbox')).toHaveLength(0);
    fireEvent.click(screen.getByRole('radio', { name: 'Selected tools' }));
    expect(screen.getByText('No tools')).toBeTruthy();
  });
  it('offer everything to a platform admin', () => {
    show(<Fields />, session({ role: 'admin', elevated: true, platform: true }));
    expect(screen.getAllByRole('checkbox')).toHaveLength(2);
  });
  it('choose among the people who may act, without the one that is left out', () => {
    const chosen: string[] = [];
    show(<ActorSelect label="Hand over to" value="" onChange={(id) => chosen.push(id)} except="bob" />, session({ role: 'admin' }));
    fireEvent.click(screen.getByLabelText('Hand over to', { selector: 'input' }));
    expect(screen.getAllByRole('option', { hidden: true }).map((option) => option.textContent)).toEqual(['Ann Smith (ann@example.com)']);
    fireEvent.click(screen.getByRole('option', { hidden: true }));
    expect(chosen).toEqual(['ann']);
  });
});
