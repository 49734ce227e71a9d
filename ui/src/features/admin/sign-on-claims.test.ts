import { describe, expect, it } from 'vitest';
import { EXAMPLE_CLAIMS, readClaims } from './sign-on-claims';

describe('claims', () => {
  it('are a JSON object', () => {
    expect(readClaims('{"sub": "1"}')).toEqual({ sub: '1' });
    for (const text of ['', '[]', 'null', '7', '"a"', '{sub: 1}']) expect(readClaims(text), text).toBeUndefined();
  });
  it('have an example that can be tried', () => expect(readClaims(EXAMPLE_CLAIMS)).toHaveProperty('sub'));
});
