/** The fields of each implementation type, as data for one form. */
import type { ImplementationType, JsonObject } from '@/api/types';
import type { MessageKey } from '@/i18n';

export interface FieldSpec {
  key: string;
  label: MessageKey;
  help?: MessageKey;
  /** `agent`, `artifact`, `pipeline` choose one of those that are stored; `steps` edits calls of other tools. */
  kind: 'text' | 'select' | 'map' | 'code' | 'number' | 'switch' | 'list' | 'json' | 'agent' | 'artifact' | 'pipeline' | 'steps';
  options?: string[];
  required?: boolean;
  advanced?: boolean;
  language?: 'bash' | 'python' | 'json';
}

export interface ImplementationSpec {
  type: ImplementationType;
  label: MessageKey;
  hint: MessageKey;
  fields: FieldSpec[];
  /** What a new tool of this type starts with. */
  template: JsonObject;
}

const output: FieldSpec = { key: 'output', label: 'impl.output', kind: 'select', options: ['auto', 'text', 'json'], advanced: true };
const environment: FieldSpec = { key: 'env', label: 'impl.env', kind: 'map', advanced: true };
const city = [{ name: 'city', type: 'string', required: true, description: 'Name of the city' }];

export const IMPLEMENTATIONS: ImplementationSpec[] = [
  {
    type: 'http', label: 'impl.http', hint: 'impl.http.hint',
    fields: [
      { key: 'method', label: 'impl.method', kind: 'select', options: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'] },
      { key: 'url', label: 'impl.url', help: 'impl.url.help', kind: 'text', required: true },
      { key: 'query', label: 'impl.query', kind: 'map' },
      { key: 'headers', label: 'impl.headers', help: 'impl.secret.help', kind: 'map' },
      { key: 'body', label: 'impl.body', kind: 'json' },
      { key: 'extract', label: 'impl.extract', help: 'impl.extract.help', kind: 'text' },
      { key: 'auth', label: 'impl.auth', kind: 'json', advanced: true },
      { key: 'success_codes', label: 'impl.successCodes', kind: 'json', advanced: true },
      { key: 'response', label: 'impl.response', kind: 'select', options: ['json', 'text'], advanced: true },
      { key: 'error_mode', label: 'impl.errorMode', kind: 'select', options: ['fail', 'empty'], advanced: true },
      { key: 'timeout_ms', label: 'impl.timeoutMs', kind: 'number', advanced: true },
      { key: 'steps', label: 'impl.steps', kind: 'json', advanced: true },
    ],
    template: { params: city, implementation: { type: 'http', method: 'GET', url: 'https://wttr.in/{{city}}', query: { format: 'j1' } } },
  },
  {
    type: 'script', label: 'impl.script', hint: 'impl.script.hint',
    fields: [{ key: 'runtime', label: 'impl.runtime', kind: 'select', options: ['bash', 'python'], required: true }, { key: 'body', label: 'impl.scriptBody', help: 'impl.scriptBody.help', kind: 'code', language: 'bash', required: true }, output],
    template: { params: [{ name: 'who', type: 'string', required: true, description: 'Who to greet' }], implementation: { type: 'script', runtime: 'bash', body: 'echo "Hello, $who"\n' } },
  },
  {
    type: 'exec', label: 'impl.exec', hint: 'impl.exec.hint',
    fields: [{ key: 'command', label: 'impl.command', help: 'impl.command.help', kind: 'code', language: 'bash' }, { key: 'argv', label: 'impl.argv', help: 'impl.argv.help', kind: 'list' }, { key: 'stdin', label: 'impl.stdin', kind: 'text', advanced: true }, { ...environment }, output],
    template: { params: [{ name: 'folder', type: 'string', required: true, description: 'Folder to list' }], implementation: { type: 'exec', command: 'ls -la {{folder}}' } },
  },
  {
    type: 'python', label: 'impl.python', hint: 'impl.python.hint',
    fields: [{ key: 'entrypoint', label: 'impl.entrypoint', help: 'impl.entrypoint.help', kind: 'text', required: true }],
    template: { params: [], implementation: { type: 'python', entrypoint: 'tools:run' } },
  },
  {
    type: 'file_read', label: 'impl.file_read', hint: 'impl.file_read.hint',
    fields: [{ key: 'path', label: 'impl.path', kind: 'text', required: true }, { key: 'root', label: 'impl.root', kind: 'text' }, { key: 'encoding', label: 'impl.encoding', kind: 'select', options: ['utf-8', 'base64', 'binary'], advanced: true }],
    template: { params: [{ name: 'path', type: 'string', required: true, description: 'Path in the workspace' }], implementation: { type: 'file_read', path: '{{path}}' } },
  },
  {
    type: 'file_write', label: 'impl.file_write', hint: 'impl.file_write.hint',
    fields: [
      { key: 'path', label: 'impl.path', kind: 'text', required: true }, { key: 'content', label: 'impl.content', kind: 'code', required: true }, { key: 'root', label: 'impl.root', kind: 'text' },
      { key: 'mkdir', label: 'impl.mkdir', kind: 'switch' }, { key: 'encoding', label: 'impl.encoding', kind: 'select', options: ['utf-8', 'base64', 'binary'], advanced: true },
    ],
    template: { params: [{ name: 'path', type: 'string', required: true, description: 'Path in the workspace' }, { name: 'text', type: 'string', required: true, description: 'Content of the file' }], implementation: { type: 'file_write', path: '{{path}}', content: '{{text}}', mkdir: true } },
  },
  {
    type: 'wasm', label: 'impl.wasm', hint: 'impl.wasm.hint',
    fields: [{ key: 'file', label: 'impl.file', kind: 'text' }, { key: 'function', label: 'impl.functionName', kind: 'text' }, { key: 'base64', label: 'impl.base64', kind: 'text', advanced: true }, { ...environment }, { key: 'files', label: 'impl.files', kind: 'json', advanced: true }],
    template: { params: [], implementation: { type: 'wasm', file: 'tool.wasm' } },
  },
  {
    type: 'mcp', label: 'impl.mcp', hint: 'impl.mcp.hint',
    fields: [{ key: 'server_url', label: 'impl.serverUrl', kind: 'text' }, { key: 'server', label: 'impl.server', kind: 'text' }, { key: 'tool_name', label: 'impl.toolName', kind: 'text', required: true }, { key: 'headers', label: 'impl.headers', help: 'impl.secret.help', kind: 'map' }],
    template: { input_schema: { type: 'object', properties: {} }, implementation: { type: 'mcp', server_url: 'https://mcp.example.com/mcp', tool_name: 'search' } },
  },
  {
    type: 'function', label: 'impl.function', hint: 'impl.function.hint',
    fields: [{ key: 'function', label: 'impl.functionName', kind: 'text', required: true }, { key: 'config', label: 'impl.config', kind: 'json' }],
    template: { params: [{ name: 'operation', type: 'string', required: true, description: 'What to do' }], implementation: { type: 'function', function: 'datetime_utils' } },
  },
  {
    type: 'agent_call', label: 'impl.agent_call', hint: 'impl.agent_call.hint',
    fields: [{ key: 'target_agent_slug', label: 'impl.agentSlug', help: 'impl.agentSlug.help', kind: 'agent', required: true }],
    template: { params: [{ name: 'input', type: 'string', required: true, description: 'The task' }], implementation: { type: 'agent_call', target_agent_slug: '' } },
  },
  {
    type: 'rag_retrieval', label: 'impl.rag_retrieval', hint: 'impl.rag_retrieval.hint',
    fields: [{ key: 'pipeline_id', label: 'impl.pipeline', help: 'impl.pipeline.help', kind: 'pipeline', required: true }, { key: 'config', label: 'impl.config', kind: 'json', advanced: true }],
    template: { params: [{ name: 'query', type: 'string', required: true, description: 'What to look for' }], implementation: { type: 'rag_retrieval', pipeline_id: '' } },
  },
  {
    type: 'artifact', label: 'impl.artifact', hint: 'impl.artifact.hint',
    fields: [{ key: 'artifact_id', label: 'impl.artifactId', help: 'impl.artifactId.help', kind: 'artifact', required: true }, { key: 'config', label: 'impl.config', kind: 'json', advanced: true }],
    template: { params: [], implementation: { type: 'artifact', artifact_id: '' } },
  },
  {
    type: 'steps', label: 'impl.stepsOf', hint: 'impl.stepsOf.hint',
    fields: [{ key: 'steps', label: 'impl.steps', kind: 'steps', required: true }, { key: 'max_parallel', label: 'steps.maxParallel', kind: 'number', advanced: true }],
    template: {
      params: [{ name: 'timezone', type: 'string', description: 'Such as Europe/Berlin' }],
      implementation: { type: 'steps', steps: [{ id: 'now', tool: 'builtin:datetime_utils', args: { operation: 'now' } }], output: { time: '$steps.now.value' } },
    },
  },
];

export function implementationSpec(type: unknown): ImplementationSpec | undefined {
  return IMPLEMENTATIONS.find((spec) => spec.type === type);
}

/** The key under which a definition has its implementation. */
export function implementationKey(doc: JsonObject): string {
  return ['implementation', 'impl', 'implementation_config'].find((key) => Object.hasOwn(doc, key)) ?? 'implementation';
}
