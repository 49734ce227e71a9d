/** Code artifacts: what a new one starts with, and what is wrong with its inputs. */
import type { ArtifactFields, ArtifactInput, ArtifactRuntime, InputType } from '@/api/artifact-types';
import type { Json } from '@/api/types';

export const RUNTIMES: readonly ArtifactRuntime[] = ['bash', 'python', 'wasm'];
export const INPUT_TYPES: readonly InputType[] = ['string', 'integer', 'number', 'boolean', 'array', 'object', 'any'];

const SOURCES: Record<ArtifactRuntime, string> = {
  bash: 'echo "Hello, $who"\n',
  python: 'import json, os\n\nargs = json.loads(os.environ["HAFT_ARGS"])\nprint(json.dumps({"greeting": f"Hello, {args[\'who\']}"}))\n',
  wasm: '',
};

export function newArtifact(runtime: ArtifactRuntime): ArtifactFields {
  return { slug: '', name: '', description: '', runtime, source: SOURCES[runtime], inputs: [{ name: 'who', type: 'string', required: true, description: 'Who to greet' }] };
}

/** The source of a new artifact follows its language until somebody edits it. */
export function changeRuntime(fields: ArtifactFields, runtime: ArtifactRuntime): ArtifactFields {
  return { ...fields, runtime, source: fields.source === SOURCES[fields.runtime] || fields.source.trim() === '' ? SOURCES[runtime] : fields.source };
}

export function fieldsOf({ slug, name, description, runtime, source, inputs }: ArtifactFields): ArtifactFields {
  return { slug, name, description, runtime, source, inputs };
}

/** A default as text in a field, and back by the type of the input; `undefined` if the text is no such value. */
export const defaultText = (value: unknown): string => (value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value));

export function readDefault(text: string, type: InputType): Json | undefined {
  if (type === 'string') return text === '' ? undefined : text;
  try {
    const value = JSON.parse(text) as Json;
    if (type === 'any') return value;
    if (type === 'integer') return typeof value === 'number' && Number.isInteger(value) ? value : undefined;
    if (type === 'array') return Array.isArray(value) ? value : undefined;
    if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
    return typeof value === type ? value : undefined;
  } catch {
    // Of any type, text need not be quoted.
    return type === 'any' && text !== '' ? text : undefined;
  }
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The name that cannot be used, if there is one: programs get inputs as variables. */
export function wrongInput(inputs: readonly ArtifactInput[]): { index: number; reason: 'name' | 'twice' } | undefined {
  for (const [index, input] of inputs.entries()) {
    if (!NAME.test(input.name)) return { index, reason: 'name' };
    if (inputs.findIndex((other) => other.name === input.name) < index) return { index, reason: 'twice' };
  }
  return undefined;
}

/** A version as one text, to be compared. */
export function versionText({ name, description, runtime, source, inputs }: Pick<ArtifactFields, 'runtime' | 'source' | 'inputs'> & Partial<ArtifactFields>): string {
  const lines = inputs.map((input) => `input ${input.name}: ${input.type}${input.required ? ', required' : ''}${input.default === undefined ? '' : ` = ${defaultText(input.default)}`}${input.description ? `  # ${input.description}` : ''}`);
  return [...(name ? [`name ${name}`] : []), ...(description ? [`description ${description}`] : []), `runtime ${runtime}`, ...lines, '', source].join('\n');
}
