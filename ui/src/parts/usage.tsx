/** What a run used: tokens, and money where prices are configured. */
import { Text, Tooltip } from '@mantine/core';
import type { RunUsage } from '@/api/run-types';
import { useI18n, type Language } from '@/i18n';

const MIN_SHOWN = 0.0001;

export function cost(usage: Pick<RunUsage, 'cost' | 'currency'>, language: Language): string | undefined {
  if (usage.cost === undefined || usage.cost === null) return undefined;
  const amount = usage.cost > 0 && usage.cost < MIN_SHOWN ? MIN_SHOWN : usage.cost;
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 4 };
  try {
    const text = new Intl.NumberFormat(language, { style: 'currency', currency: usage.currency ?? 'USD', ...digits }).format(amount);
    return amount === usage.cost ? text : `< ${text}`;
  } catch {
    // Prices may be in a unit that is no currency.
    return `${amount.toLocaleString(language, digits)} ${usage.currency ?? ''}`.trim();
  }
}

export function addUsage(all: readonly RunUsage[]): RunUsage {
  const sum: RunUsage = { answers: 0, calls: 0, input_tokens: 0, output_tokens: 0, cached_tokens: 0, active_ms: 0 };
  for (const usage of all) {
    for (const key of ['answers', 'calls', 'input_tokens', 'output_tokens', 'cached_tokens', 'active_ms'] as const) sum[key] += usage[key];
    if (usage.cost !== undefined && usage.cost !== null) {
      sum.cost = (sum.cost ?? 0) + usage.cost;
      sum.currency = usage.currency ?? sum.currency ?? null;
    }
  }
  return sum;
}

export function Usage({ usage }: { usage: RunUsage }) {
  const { t, language } = useI18n();
  const money = cost(usage, language);
  const detail = t('usage.detail', { input: usage.input_tokens, output: usage.output_tokens, cached: usage.cached_tokens });
  return (
    <Tooltip label={detail}>
      <Text span size="xs" c="dimmed" style={{ whiteSpace: 'nowrap', fontVariantNumeric: 'tabular-nums' }}>{t('usage.tokens', { n: usage.input_tokens + usage.output_tokens })}{money && ` · ${money}`}</Text>
    </Tooltip>
  );
}
