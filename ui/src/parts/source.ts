/**
 * The text of a definition is the truth; the form reads values out of it and writes values into it, so that comments
 * and layout stay. Forms: JSON, YAML, and `.skill` (YAML front matter, then a script).
 */
import { isMap, parseDocument, stringify, type Document } from 'yaml';
import type { Json, JsonObject, SourceForm } from '@/api/types';

export interface Source {
  doc: JsonObject;
  /** The script of a `.skill`. */
  body: string;
  error: string | undefined;
  line: number | undefined;
}

const FRONT = /^---\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/;

function splitSkill(text: string): { front: string; body: string } | undefined {
  const match = FRONT.exec(text);
  return match ? { front: match[1] ?? '', body: text.slice(match[0].length) } : undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fail(error: string, line?: number): Source {
  return { doc: {}, body: '', error, line };
}

function readYaml(text: string, body: string): Source {
  const doc = parseDocument(text);
  const problem = doc.errors[0];
  if (problem) return fail(problem.message.split('\n')[0] ?? 'invalid YAML', problem.linePos?.[0].line);
  const value: unknown = doc.toJS({ maxAliasCount: 100 });
  return isObject(value) ? { doc: value, body, error: undefined, line: undefined } : fail('The definition must be a map of fields.');
}

export function readSource(text: string, form: SourceForm): Source {
  try {
    if (form === 'json') {
      const value: unknown = JSON.parse(text);
      return isObject(value) ? { doc: value, body: '', error: undefined, line: undefined } : fail('The definition must be an object.');
    }
    if (form === 'skill') {
      const parts = splitSkill(text);
      return parts ? readYaml(parts.front, parts.body) : fail('A skill starts with `---`, its fields, and `---`.', 1);
    }
    return readYaml(text, '');
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
}

export type Path = (string | number)[];

export function getPath(value: unknown, path: Path): unknown {
  let current = value;
  for (const part of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, part)) return undefined;
    current = (current as Record<string | number, unknown>)[part];
  }
  return current;
}

function setJson(doc: JsonObject, path: Path, value: Json | undefined): void {
  let current: Record<string | number, Json> = doc;
  for (const part of path.slice(0, -1)) {
    if (!isObject(current[part]) && !Array.isArray(current[part])) current[part] = {};
    current = current[part] as Record<string | number, Json>;
  }
  const last = path.at(-1);
  if (last === undefined) return;
  if (value === undefined) delete current[last];
  else current[last] = value;
}

function setYaml(doc: Document, path: Path, value: Json | undefined): void {
  if (value === undefined) {
    if (doc.hasIn(path)) doc.deleteIn(path);
    return;
  }
  for (let length = 1; length < path.length; length += 1) {
    const parent = path.slice(0, length);
    if (!isMap(doc.getIn(parent)) && !Array.isArray(getPath(doc.toJS(), parent))) doc.setIn(parent, doc.createNode({}));
  }
  doc.setIn(path, doc.createNode(value));
}

/** Writes one value; `undefined` removes it. Text that does not parse is returned unchanged. */
export function writeSource(text: string, form: SourceForm, path: Path, value: Json | undefined): string {
  const source = readSource(text, form);
  if (source.error !== undefined) return text;
  if (form === 'json') {
    const doc = structuredClone(source.doc);
    setJson(doc, path, value);
    return `${JSON.stringify(doc, null, 2)}\n`;
  }
  const front = form === 'skill' ? (splitSkill(text)?.front ?? '') : text;
  const doc = parseDocument(front);
  setYaml(doc, path, value);
  const written = doc.toString({ lineWidth: 0 });
  return form === 'skill' ? `---\n${written.trimEnd()}\n---\n${source.body}` : written;
}

export function writeBody(text: string, body: string): string {
  const parts = splitSkill(text);
  return parts ? `---\n${parts.front}\n---\n${body}` : text;
}

export function toYaml(doc: JsonObject): string {
  return stringify(doc, { lineWidth: 0 });
}

/** One parameter, from a `params` list or from the properties of a schema. */
export interface Parameter {
  name: string;
  type: string;
  description: string;
  required: boolean;
  /** The other keywords, kept as they are. */
  rest: JsonObject;
}

const SCHEMA_KEYS = ['input_schema', 'parameters', 'params', 'argSchema', 'inputSchema', 'args_schema'];

export function parametersKey(doc: JsonObject): string {
  return SCHEMA_KEYS.find((key) => Object.hasOwn(doc, key)) ?? 'params';
}

function toParameter(name: string, schema: JsonObject, required: boolean): Parameter {
  const { type, description, name: _name, required: _required, ...rest } = schema;
  return { name, type: typeof type === 'string' ? type : 'any', description: typeof description === 'string' ? description : '', required, rest };
}

/** The parameters, or `undefined` where the schema is more than a list of properties. */
export function readParameters(doc: JsonObject): Parameter[] | undefined {
  const value = doc[parametersKey(doc)];
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value.filter(isObject).map((item) => toParameter(String(item['name'] ?? ''), item, item['required'] === true));
  if (!isObject(value)) return undefined;
  if (['oneOf', 'anyOf', 'allOf', '$ref', 'if'].some((key) => key in value)) return undefined;
  const properties = isObject(value['properties']) ? value['properties'] : {};
  const required = Array.isArray(value['required']) ? value['required'] : [];
  return Object.entries(properties).map(([name, schema]) => toParameter(name, isObject(schema) ? schema : {}, required.includes(name)));
}

export function writeParameters(text: string, form: SourceForm, parameters: Parameter[]): string {
  const { doc } = readSource(text, form);
  const key = parametersKey(doc);
  const schemaOf = ({ type, description, rest }: Parameter): JsonObject => ({ ...(type === 'any' ? {} : { type }), ...(description ? { description } : {}), ...rest });
  const current = doc[key];
  if (current === undefined || Array.isArray(current)) {
    return writeSource(text, form, [key], parameters.map((item) => ({ name: item.name, ...schemaOf(item), ...(item.required ? { required: true } : {}) })));
  }
  const required = parameters.filter((item) => item.required).map((item) => item.name);
  const { required: _, ...kept } = isObject(current) ? current : {};
  return writeSource(text, form, [key], {
    type: 'object', ...kept, properties: Object.fromEntries(parameters.map((item) => [item.name, schemaOf(item)])), ...(required.length > 0 ? { required } : {}),
  });
}
