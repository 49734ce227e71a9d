/** The claims of a trial, as text. */
import type { JsonObject } from '@/api/types';

export const EXAMPLE_CLAIMS = JSON.stringify({ sub: '00u1', name: 'Ann Smith', email: 'ann@example.com', email_verified: true, groups: ['engineering'] }, null, 2);

/** Reads claims; undefined if the text is not a JSON object. */
export function readClaims(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}
