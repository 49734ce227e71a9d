import { describe, expect, it } from 'vitest';
import { IMPLEMENTATIONS } from './implementations';
import { readParameters, readSource, toYaml, writeBody, writeParameters, writeSource } from './source';

const YAML = '# greets\nname: greet # the name\ndescription: Says hello\nparams:\n  - { name: who, type: string, required: true }\nimplementation:\n  type: script\n  runtime: bash\n  body: echo hi\n';

describe('source and form', () => {
  it('keeps comments when the form changes a value', () => {
    const next = writeSource(YAML, 'yaml', ['description'], 'Greets');
    expect(next).toContain('# greets');
    expect(next).toContain('# the name');
    expect(readSource(next, 'yaml').doc['description']).toBe('Greets');
  });
  it('writes nested values and removes them', () => {
    const next = writeSource(YAML, 'yaml', ['execution', 'timeout_ms'], 500);
    expect(readSource(next, 'yaml').doc['execution']).toEqual({ timeout_ms: 500 });
    expect(readSource(writeSource(next, 'yaml', ['execution'], undefined), 'yaml').doc['execution']).toBeUndefined();
  });
  it('reports the line of a mistake and leaves the text alone', () => {
    const broken = 'name: a\n  bad: [\n';
    expect(readSource(broken, 'yaml').error).toBeTruthy();
    expect(writeSource(broken, 'yaml', ['name'], 'b')).toBe(broken);
    expect(readSource('{"a":', 'json').error).toBeTruthy();
    expect(readSource('[1]', 'json').error).toBeTruthy();
  });
  it('splits a skill into fields and script', () => {
    const skill = '---\nname: a\nruntime: bash\n---\necho "---"\n';
    expect(readSource(skill, 'skill')).toMatchObject({ doc: { name: 'a' }, body: 'echo "---"\n' });
    expect(readSource(writeBody(skill, 'exit 1\n'), 'skill').body).toBe('exit 1\n');
    expect(readSource(writeSource(skill, 'skill', ['name'], 'b'), 'skill')).toMatchObject({ doc: { name: 'b' }, body: 'echo "---"\n' });
    expect(readSource('name: a', 'skill').error).toBeTruthy();
  });
  it('reads and writes parameters of both notations', () => {
    expect(readParameters(readSource(YAML, 'yaml').doc)).toEqual([{ name: 'who', type: 'string', description: '', required: true, rest: {} }]);
    const json = JSON.stringify({ name: 'a', input_schema: { type: 'object', properties: { n: { type: 'integer', minimum: 1 } }, required: ['n'], additionalProperties: false } });
    const parameters = readParameters(readSource(json, 'json').doc) ?? [];
    expect(parameters).toEqual([{ name: 'n', type: 'integer', description: '', required: true, rest: { minimum: 1 } }]);
    const next = readSource(writeParameters(json, 'json', [...parameters, { name: 'm', type: 'any', description: 'x', required: false, rest: {} }]), 'json').doc;
    expect(next['input_schema']).toEqual({ type: 'object', additionalProperties: false, properties: { n: { type: 'integer', minimum: 1 }, m: { description: 'x' } }, required: ['n'] });
  });
  it('leaves schemas with variants to the source', () => expect(readParameters({ input_schema: { oneOf: [] } })).toBeUndefined());
  it('has a template for every implementation type', () => {
    for (const spec of IMPLEMENTATIONS) expect(readSource(toYaml({ name: 'x', ...spec.template }), 'yaml').doc['implementation']).toMatchObject({ type: spec.type });
  });
});
