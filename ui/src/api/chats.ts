/** Chats: reads, writes, and the stream of an answer. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { request, stream } from './client';
import type { Chat, ChatMessage, MessageReply, RunEvent } from './run-types';
import { readEvents } from './sse';

export const chatKeys = {
  all: ['chats'] as const,
  lists: ['chats', 'list'] as const,
  one: (id: string) => ['chats', 'one', id] as const,
  messages: (id: string) => ['chats', 'one', id, 'messages'] as const,
};

const address = (id: string) => `/api/chats/${encodeURIComponent(id)}`;

/** The name of the workspace of a chat. */
export const chatWorkspace = (id: string): string => `chat:${id}`;

export interface ChatFilters {
  q?: string;
  shared?: string;
}

interface ChatPage {
  chats: Chat[];
  next_page_token: string | null;
}

export const chatListQuery = (filters: ChatFilters) =>
  infiniteQueryOptions({
    queryKey: [...chatKeys.lists, filters],
    queryFn: ({ pageParam, signal }) => request<ChatPage>(`/api/chats?${new URLSearchParams({ ...filters, page_size: '50', ...(pageParam === null ? {} : { page_token: pageParam }) } as Record<string, string>)}`, { signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_page_token,
    placeholderData: keepPreviousData,
  });

export const chatQuery = (id: string) => queryOptions({ queryKey: chatKeys.one(id), queryFn: ({ signal }) => request<Chat>(address(id), { signal }), retry: false });

const MAX_PAGES = 50;

/** Every message of every branch. */
export const messagesQuery = (id: string) =>
  queryOptions({
    queryKey: chatKeys.messages(id),
    queryFn: async ({ signal }) => {
      const all: ChatMessage[] = [];
      let token: string | null = null;
      for (let count = 0; count < MAX_PAGES; count += 1) {
        const query = new URLSearchParams({ page_size: '200', ...(token === null ? {} : { page_token: token }) });
        const page: { messages: ChatMessage[]; next_page_token: string | null } = await request(`${address(id)}/messages?${query}`, { signal });
        all.push(...page.messages);
        token = page.next_page_token;
        if (token === null) break;
      }
      return all;
    },
    retry: false,
  });

export interface ChatPatch {
  title?: string;
  active_leaf?: string;
  shared?: boolean;
  agent?: string;
}

export interface NewMessage {
  content: unknown;
  /** `null`: the start of the chat. Default: the last message of the branch that is shown. */
  parent_id?: string | null;
  /** `false` stores the message and answers nothing. */
  answer?: boolean;
}

export type AnswerEvent = RunEvent | { type: 'message'; message: ChatMessage };

type OnEvent = (event: AnswerEvent) => void;

async function answer(path: string, json: unknown, signal: AbortSignal, onEvent: OnEvent): Promise<void> {
  const response = await stream(path, { method: 'POST', json, signal });
  if (response.headers.get('content-type')?.includes('text/event-stream') !== true) {
    const { data } = (await response.json()) as { data: ChatMessage | MessageReply };
    onEvent({ type: 'message', message: 'message' in data ? data.message : data });
    return;
  }
  await readEvents(response, ({ event, data }) => {
    const body = JSON.parse(data) as RunEvent | ChatMessage | { message: ChatMessage };
    if (event === 'message') onEvent({ type: 'message', message: 'message' in body ? body.message : (body as ChatMessage) });
    else onEvent(body as RunEvent);
  });
}

export const chats = {
  create: (fields: { agent?: string; title?: string }) => request<Chat>('/api/chats', { method: 'POST', json: fields }),
  patch: (id: string, patch: ChatPatch) => request<Chat>(address(id), { method: 'PATCH', json: patch }),
  remove: (id: string) => request<unknown>(address(id), { method: 'DELETE' }),
  stop: (id: string) => request<unknown>(`${address(id)}/stop`, { method: 'POST' }),
  /** Stores a message without an answer. */
  note: (id: string, message: NewMessage) => request<unknown>(`${address(id)}/messages`, { method: 'POST', json: { ...message, answer: false } }),
  /** Writes a message and follows its answer. */
  send: (id: string, message: NewMessage, signal: AbortSignal, onEvent: OnEvent) => answer(`${address(id)}/messages`, message, signal, onEvent),
  /** Answers a message again, in a branch of its own. */
  retry: (id: string, message: string, signal: AbortSignal, onEvent: OnEvent) => answer(`${address(id)}/answer`, { message_id: message }, signal, onEvent),
  exportUrl: (id: string, format: 'markdown' | 'json') => `${address(id)}/export?format=${format}`,
};
