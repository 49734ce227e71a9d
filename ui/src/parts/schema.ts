/** A JSON Schema as rows that a person can read. */
export type Schema = Record<string, unknown>;

export interface SchemaRow {
  path: string;
  depth: number;
  name: string;
  type: string;
  required: boolean;
  description: string;
  notes: string[];
}

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null && !Array.isArray(value);

export function resolve(schema: Schema, root: Schema): Schema {
  let current = schema;
  for (let hops = 0; hops < 20; hops += 1) {
    const target = current['$ref'];
    if (typeof target !== 'string' || !target.startsWith('#')) return current;
    let found: unknown = root;
    for (const part of target.slice(1).split('/').filter(Boolean)) {
      const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
      found = isSchema(found) && Object.hasOwn(found, name) ? found[name] : undefined;
    }
    if (!isSchema(found)) return current;
    current = found;
  }
  return current;
}

export function typeName(schema: Schema, root: Schema): string {
  const own = resolve(schema, root);
  if (Array.isArray(own['enum'])) return 'enum';
  if ('const' in own) return 'const';
  for (const word of ['oneOf', 'anyOf']) {
    const variants = own[word];
    if (Array.isArray(variants)) {
      return [...new Set(variants.filter(isSchema).map((variant) => typeName(variant, root)))].join(' | ');
    }
  }
  const type = own['type'];
  if (type === 'array') return isSchema(own['items']) ? `${typeName(own['items'], root)}[]` : 'array';
  if (Array.isArray(type)) return type.join(' | ');
  if (typeof type === 'string') return type;
  return isSchema(own['properties']) ? 'object' : 'any';
}

const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

export function limits(schema: Schema): string[] {
  const notes: string[] = [];
  if (schema['format'] !== undefined) notes.push(text(schema['format']));
  if (schema['minimum'] !== undefined) notes.push(`≥ ${text(schema['minimum'])}`);
  if (schema['exclusiveMinimum'] !== undefined) notes.push(`> ${text(schema['exclusiveMinimum'])}`);
  if (schema['maximum'] !== undefined) notes.push(`≤ ${text(schema['maximum'])}`);
  if (schema['exclusiveMaximum'] !== undefined) notes.push(`< ${text(schema['exclusiveMaximum'])}`);
  if (schema['minLength'] !== undefined || schema['maxLength'] !== undefined) notes.push(`${text(schema['minLength'] ?? 0)}–${text(schema['maxLength'] ?? '∞')}`);
  if (schema['pattern'] !== undefined) notes.push(`/${text(schema['pattern'])}/`);
  return notes;
}

const MAX_ROWS = 400;

export function schemaRows(root: Schema, words: { default: (value: string) => string; oneOf: (values: string) => string }): SchemaRow[] {
  const rows: SchemaRow[] = [];
  const visit = (schema: Schema, path: string, depth: number) => {
    const own = resolve(schema, root);
    const properties = own['properties'];
    if (!isSchema(properties) || depth > 6) return;
    const required = new Set(Array.isArray(own['required']) ? own['required'] : []);
    for (const [name, child] of Object.entries(properties)) {
      if (rows.length >= MAX_ROWS || !isSchema(child)) continue;
      const target = resolve(child, root);
      const notes = limits(target);
      if (Array.isArray(target['enum'])) notes.push(words.oneOf(target['enum'].slice(0, 12).map((value) => JSON.stringify(value)).join(', ')));
      if (target['default'] !== undefined) notes.push(words.default(JSON.stringify(target['default'])));
      const full = path === '' ? name : `${path}.${name}`;
      const description = child['description'] ?? target['description'] ?? target['title'];
      rows.push({ path: full, depth, name, type: typeName(child, root), required: required.has(name), description: typeof description === 'string' ? description : '', notes });
      if (target['type'] === 'array' && isSchema(target['items'])) visit(target['items'], `${full}[]`, depth + 1);
      else visit(target, full, depth + 1);
    }
  };
  visit(root, '', 0);
  return rows;
}

/** Arguments to start with: the defaults of the schema, and nothing else. */
export function defaults(schema: Schema, root: Schema = schema): Record<string, unknown> {
  const own = resolve(schema, root);
  const result: Record<string, unknown> = {};
  const properties = own['properties'];
  if (!isSchema(properties)) return result;
  for (const [name, child] of Object.entries(properties)) {
    if (!isSchema(child)) continue;
    const target = resolve(child, root);
    if (target['default'] !== undefined) result[name] = target['default'];
    else if (target['const'] !== undefined) result[name] = target['const'];
  }
  return result;
}
