/** Chats, runs and their events, as the server sends them. */
import type { components } from './schema';

type Schemas = components['schemas'];

export type Chat = Schemas['Chat'];
export type ChatMessage = Schemas['ChatMessage'];
export type MessageReply = Schemas['AnsweredMessage'];
export type Run = Schemas['Run'];
export type RunEvent = Schemas['RunEvent'];
export type RunPage = Schemas['RunList'];
export type RunStatus = Schemas['RunStatus'];
export type RunStep = Schemas['RunStep'];
export type StepBody = Schemas['StepBody'];
export type StepError = Schemas['StepError'];

/** Without a price, the server leaves the cost out; the generated type has it because it has a default. */
export type RunUsage = Omit<Schemas['RunUsage'], 'cost' | 'currency'> & { cost?: number | null; currency?: string | null };

const FINAL: readonly RunStatus[] = ['success', 'error', 'cancelled'];

export const isFinal = (status: RunStatus): boolean => FINAL.includes(status);
