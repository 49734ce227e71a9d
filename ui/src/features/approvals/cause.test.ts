import { expect, it } from 'vitest';
import { translator } from '@/i18n';
import { causeText } from './cause';

it('says why a remembered approval was needed', () => {
  const t = translator('en');
  expect(causeText('requires_confirmation', t)).toBe('The tool asks a person before each call');
  expect(causeText('elevated_policy', t)).toContain('elevated');
  expect(causeText('rule:large-limits', t)).toBe('Policy rule large-limits');
  expect(causeText('account:mcp:mail', t)).toContain('mcp:mail');
});
