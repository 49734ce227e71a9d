/** What one tool does, beside the list. */
import { ActionIcon, Anchor, Group, Stack, Text, Title } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { toolQuery, toolRef } from '@/api/queries';
import type { ToolSummary } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, ErrorPanel, Facts, Mono, SectionTitle } from '../basics';
import { visibleText } from '../format';
import { Loading } from '../page';
import type { Schema } from '../schema';
import { SchemaTable } from '../schema-table';
import { StatusBadge } from '../status';
import { getSubtypeLabel, shownStatus } from '../taxonomy';
import { costQuery } from './cost';
import { RendererWord } from './marks';
import classes from './tool-picker.module.css';

export function ToolFacts({ row, onClose }: { row: ToolSummary; onClose: () => void }) {
  const t = useT();
  const { data: tool, error, refetch } = useQuery(toolQuery(toolRef(row)));
  const cost = useQuery(costQuery([row])).data;
  return (
    <aside className={classes.facts} aria-label={row.name}>
      <Group wrap="nowrap" align="flex-start" gap="sm">
        <Title order={3} flex={1} style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(row.name)}</Mono></Title>
        <ActionIcon aria-label={t('picker.closeDetail')} onClick={onClose}><IconX size={16} /></ActionIcon>
      </Group>
      <Group gap="sm" mb="sm"><StatusBadge status={row.ready ? shownStatus(row) : 'not_ready'} /><Chip>{getSubtypeLabel(row.implementation_type, t)}</Chip></Group>
      <Stack gap="sm">
        <Text style={{ overflowWrap: 'anywhere' }}>{visibleText(tool?.description ?? row.description)}</Text>
        {row.error && <Text c="var(--haft-bad)">{visibleText(row.error)}</Text>}
        <Facts rows={[
          [t('tools.bundle'), visibleText(row.bundle)],
          [t('common.version'), <Mono key="version">{row.version}</Mono>],
          [t('picker.confirmation'), row.requires_confirmation || row.policy === 'elevated' ? t('common.yes') : undefined],
          [t('picker.shownAs'), tool && tool.renderers.length > 0 && <RendererWord key="renderer" renderer={tool.renderers.toSorted((a, b) => b.priority - a.priority)[0]?.renderer ?? ''} />],
          [t('picker.costOne'), cost === undefined ? undefined : t('picker.cost', { n: cost })],
          [t('tools.tag'), row.tags.length > 0 && <Group key="tags" gap={4}>{row.tags.map((tag) => <Chip key={tag}>{visibleText(tag)}</Chip>)}</Group>],
        ]} />
        <SectionTitle>{t('calls.arguments')}</SectionTitle>
        {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : tool ? <SchemaTable schema={tool.input_schema as Schema} empty={t('schema.none')} /> : <Loading rows={3} />}
        {/* In a tab of its own: the form behind the dialog stays. */}
        <Anchor href={`/ui/tools/${encodeURIComponent(toolRef(row))}`} target="_blank">{t('picker.openTool')}</Anchor>
      </Stack>
    </aside>
  );
}
