/** What is selected: how many tools, what they cost, by which rules. */
import { ActionIcon, Group, Text, Tooltip } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { ToolSummary } from '@/api/types';
import { useT } from '@/i18n';
import { visibleText } from '../format';
import { costQuery, isCounted, MAX_COUNTED } from './cost';
import { isExclusion } from './model';
import classes from './tool-picker.module.css';

/** The number of tools, and the cost of their definitions. */
export function SelectionSummary({ rules, chosen, emptyText, needsPublished = false }: { rules: string[]; chosen: ToolSummary[]; emptyText: string; needsPublished?: boolean }) {
  const t = useT();
  const [settled] = useDebouncedValue(chosen, 250);
  const counted = useMemo(() => settled.filter(isCounted), [settled]);
  const cost = useQuery(costQuery(settled)).data;
  if (rules.length === 0) return <Text c="dimmed">{emptyText}</Text>;
  const idle = chosen.length - chosen.filter(isCounted).length;
  const unpublished = needsPublished ? chosen.filter((tool) => tool.status === 'draft').length : 0;
  return (
    <Group gap="md" aria-live="polite">
      <Text fw={600}>{t('picker.summary', { n: chosen.length })}</Text>
      {counted.length > MAX_COUNTED ? <Text c="dimmed">{t('picker.tooManyToCount', { n: MAX_COUNTED })}</Text>
        : counted.length > 0 && cost !== undefined && <Tooltip label={t('picker.costHint')} multiline w={260}><Text c="dimmed">{t('picker.cost', { n: cost })}</Text></Tooltip>}
      {idle > 0 && <Text c="var(--haft-warn)">{t('picker.idle', { n: idle })}</Text>}
      {unpublished > 0 && <Text c="var(--haft-warn)">{t('picker.unpublished', { n: unpublished })}</Text>}
    </Group>
  );
}

/** One rule that can be taken away. */
export function RuleChip({ rule, isEmpty, onRemove }: { rule: string; isEmpty: boolean; onRemove: () => void }) {
  const t = useT();
  return (
    <span className={classes.rule} data-empty={isEmpty} data-excluded={isExclusion(rule)} title={isEmpty ? t('picker.ruleEmpty') : isExclusion(rule) ? t('picker.excluded') : undefined}>
      <span className={classes.ruleText}>{visibleText(rule)}</span>
      <ActionIcon size="xs" variant="transparent" color="gray" aria-label={`${t('common.remove')} ${rule}`} onClick={onRemove}><IconX size={11} /></ActionIcon>
    </span>
  );
}
