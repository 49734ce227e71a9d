import type { Translate } from '@/i18n';
import { visibleText } from '@/parts/format';

/** Why a call waits, from the notation of a grant: `requires_confirmation`, `elevated_policy` or `rule:NAME`. */
export function causeText(cause: string, t: Translate): string {
  if (cause === 'requires_confirmation' || cause === 'elevated_policy') return t(`approvals.cause.${cause}`);
  if (cause.startsWith('account:')) return t('approvals.cause.account', { name: visibleText(cause.replace(/^account:/, '')) });
  return t('approvals.cause.rule', { name: visibleText(cause.replace(/^rule:/, '')) });
}
