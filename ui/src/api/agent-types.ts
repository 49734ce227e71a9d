/** Agents as the server describes them. */
import type { components } from './schema';

type Schemas = components['schemas'];

export type Agent = Schemas['Agent'];
export type AgentCheck = Schemas['AgentCheck'];
export type AgentDefinition = Schemas['AgentDefinition'];
export type AgentPage = Schemas['AgentList'];
/** In lists, without the definition. */
export type AgentRevision = Schemas['AgentRevision'];
export type AgentTools = Schemas['AgentTools'];
export type ModelList = Schemas['ModelList'];
