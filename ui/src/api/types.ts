/** Short names for the generated types. Features import types from here, never from `schema.d.ts`. */
import type { components } from './schema';

type Schemas = components['schemas'];

export type Approval = Schemas['Approval'];
export type ApprovalStatus = Schemas['ApprovalStatus'];
export type AuditRecord = Schemas['AuditRecord'];
export type Bundle = Schemas['BundleView'];
export type Call = Schemas['Call'];
export type CallError = Schemas['CallError'];
export type CallStatus = Schemas['CallStatus'];
export type CreatedToken = Schemas['CreatedToken'];
export type Credential = Schemas['CredentialView'];
export type ErrorBody = Schemas['ErrorBody'];
export type Explanation = Schemas['ExplanationView'];
export type ExplainBody = Schemas['ExplainBody'];
export type FieldChange = Schemas['FieldChange'];
export type ImplementationType = Schemas['ImplementationType'];
export type ImportBody = Schemas['ImportBody'];
export type ImportReport = Schemas['ImportReport'];
export type McpServer = Schemas['McpServerView'];
export type McpToolChange = Schemas['McpToolChange'];
export type NewServer = Schemas['NewServer'];
export type NewToken = Schemas['NewToken'];
export type Outcome = Schemas['Outcome'];
export type PolicyRule = Schemas['PolicyRule'];
export type Problem = Schemas['Problem'];
export type ProcessRecord = Schemas['ProcessRecord'];
export type Readiness = Schemas['Readiness'];
export type RememberScope = Schemas['RememberScope'];
export type Revision = Schemas['RevisionView'];
export type Role = Schemas['Role'];
export type ServerPatch = Schemas['ServerPatch'];
export type Session = Schemas['SessionView'];
export type SourceForm = Schemas['SourceForm'];
export type StepTimes = Schemas['StepTimes'];
export type Tenant = Schemas['TenantView'];
export type TenantPatch = Schemas['TenantPatch'];
export type Token = Schemas['TokenView'];
export type Tool = Schemas['ToolView'];
export type ToolStatus = Schemas['ToolStatus'];
export type ToolType = Schemas['ToolType'];
export type ValidationReport = Schemas['ValidationReport'];

/** Any JSON value, as a tool returns it. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };
