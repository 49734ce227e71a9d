import { describe, expect, it } from 'vitest';
import { changeRuntime, newArtifact, readDefault, versionText, wrongInput } from './artifact';

const input = (name: string) => ({ name, type: 'string' as const, required: false });

describe('code artifacts', () => {
  it('start with a source that follows the language until it is edited', () => {
    const fresh = newArtifact('bash');
    expect(changeRuntime(fresh, 'python').source).toContain('HAFT_ARGS');
    expect(changeRuntime({ ...fresh, source: 'mine' }, 'python')).toMatchObject({ runtime: 'python', source: 'mine' });
  });
  it('have names of inputs that are variables, each once', () => {
    expect(wrongInput([input('a'), input('b_2')])).toBeUndefined();
    expect(wrongInput([input('a'), input('2b')])).toEqual({ index: 1, reason: 'name' });
    expect(wrongInput([input('a'), input('a')])).toEqual({ index: 1, reason: 'twice' });
  });
  it('have defaults of the type of their input', () => {
    expect(readDefault('5', 'integer')).toBe(5);
    expect(readDefault('5.5', 'integer')).toBeUndefined();
    expect(readDefault('5', 'string')).toBe('5');
    expect(readDefault('true', 'boolean')).toBe(true);
    expect(readDefault('{"a":1}', 'object')).toEqual({ a: 1 });
    expect(readDefault('[]', 'object')).toBeUndefined();
    expect(readDefault('x', 'number')).toBeUndefined();
    expect(readDefault('x', 'any')).toBe('x');
    expect(readDefault('[1]', 'any')).toEqual([1]);
    expect(readDefault('', 'any')).toBeUndefined();
  });
  it('are compared with their inputs', () => {
    expect(versionText({ runtime: 'bash', source: 'echo\n', inputs: [{ name: 'n', type: 'integer', required: true, default: 3, description: 'How many' }] })).toBe('runtime bash\ninput n: integer, required = 3  # How many\n\necho\n');
  });
});
