/** The tree of messages: the branch that is shown, and the branches beside it. */
import type { ChatMessage } from '@/api/run-types';

export interface Place {
  message: ChatMessage;
  /** The number of the message among its siblings, from 1. */
  at: number;
  /** All messages with the same parent, in the order in which they were written; this one included. */
  siblings: ChatMessage[];
}

const byTime = (a: ChatMessage, b: ChatMessage) => a.created_at.localeCompare(b.created_at) || a.id.localeCompare(b.id);

function childrenOf(messages: readonly ChatMessage[]): Map<string | null, ChatMessage[]> {
  const ids = new Set(messages.map((message) => message.id));
  const children = new Map<string | null, ChatMessage[]>();
  for (const message of messages.toSorted(byTime)) {
    // A parent that is not there makes a root: nothing that was written disappears.
    const parent = message.parent_id !== null && ids.has(message.parent_id) ? message.parent_id : null;
    const list = children.get(parent);
    if (list) list.push(message);
    else children.set(parent, [message]);
  }
  return children;
}

/** The newest leaf below a message. */
export function leafOf(messages: readonly ChatMessage[], from: string): string {
  const children = childrenOf(messages);
  const seen = new Set<string>();
  let leaf = from;
  while (!seen.has(leaf)) {
    seen.add(leaf);
    const next = children.get(leaf)?.at(-1);
    if (!next) return leaf;
    leaf = next.id;
  }
  return leaf;
}

/** The messages from the first to the leaf. Without a leaf that exists, the branch of the newest message. */
export function branch(messages: readonly ChatMessage[], leaf: string | null): Place[] {
  const children = childrenOf(messages);
  const byId = new Map(messages.map((message) => [message.id, message]));
  let current = (leaf === null ? undefined : byId.get(leaf)) ?? messages.toSorted(byTime).at(-1);
  const path: Place[] = [];
  const seen = new Set<string>();
  while (current && !seen.has(current.id)) {
    const message: ChatMessage = current;
    seen.add(message.id);
    const parent: ChatMessage | undefined = message.parent_id === null ? undefined : byId.get(message.parent_id);
    const siblings = children.get(parent?.id ?? null) ?? [message];
    path.push({ message, at: siblings.indexOf(message) + 1, siblings });
    current = parent;
  }
  return path.toReversed();
}
