import { expect, it } from 'vitest';
import type { ChatMessage } from '@/api/run-types';
import { branch, leafOf } from './branch';

let clock = 0;
const message = (id: string, parent: string | null, role: ChatMessage['role'] = 'user'): ChatMessage => {
  clock += 1;
  return { id, parent_id: parent, role, content: id, manifest_id: null, run_id: null, created_at: new Date(clock * 1000).toISOString() };
};
// q1 ─ a1 ─ q2 ─ a2
//    └ a1b     └ a2b      q1b is an edit of q1
const tree = [message('q1', null), message('a1', 'q1', 'assistant'), message('q2', 'a1'), message('a2', 'q2', 'assistant'), message('a1b', 'q1', 'assistant'), message('a2b', 'q2', 'assistant'), message('q1b', null)];
const ids = (leaf: string | null) => branch(tree, leaf).map((place) => place.message.id);

it('shows the branch of the leaf', () => {
  expect(ids('a2')).toEqual(['q1', 'a1', 'q2', 'a2']);
  expect(ids('a1b')).toEqual(['q1', 'a1b']);
  expect(ids('q1b')).toEqual(['q1b']);
});

it('counts the siblings of every message', () => {
  expect(branch(tree, 'a2b').map(({ at, siblings }) => `${at}/${siblings.length}`)).toEqual(['1/2', '1/2', '1/1', '2/2']);
});

it('a sibling leads to the newest leaf below it', () => {
  expect(leafOf(tree, 'a1')).toBe('a2b');
  expect(leafOf(tree, 'q1b')).toBe('q1b');
});

it('without a leaf that exists, the newest message', () => {
  expect(ids(null)).toEqual(['q1b']);
  expect(ids('gone')).toEqual(['q1b']);
  expect(branch([], null)).toEqual([]);
});

it('survives a lost parent and a circle', () => {
  expect(branch([message('x', 'lost')], 'x').map((place) => place.message.id)).toEqual(['x']);
  const circle = [message('a', 'b'), message('b', 'a')];
  expect(branch(circle, 'a').length).toBe(2);
  expect(leafOf(circle, 'a')).toBe('a');
});
