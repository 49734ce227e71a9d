/** The preview of an import that the server parsed: what would be created, a choice per item, and the result. */
import { ActionIcon, Button, Checkbox, Group, Stack, Table, Text } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Fragment, useState } from 'react';
import { keys } from '@/api/keys';
import type { ImportItem, ItemImportReport } from '@/api/types';
import { useT } from '@/i18n';
import { ErrorPanel } from './basics';
import { useAction } from './feedback';
import { visibleText } from './format';
import { chosenItems, importable } from './import-choice';
import { JsonView } from './json-view';
import { Mono } from './basics';
import { Loading } from './page';
import { StatusBadge } from './status';

interface ImportItemsProps {
  /** What the preview depends on. */
  source: readonly unknown[];
  run: (options: { dry_run: boolean; select?: string[] }) => Promise<ItemImportReport>;
  /** Called when every chosen item was imported. */
  onDone: (report: ItemImportReport) => void;
  label: (count: number) => string;
}

const ACTION_STATUS = { create: 'ok', replace: 'warning', skip: 'disabled', error: 'error' } as const;
const MAX_ROWS = 500;

function Row({ item, isChosen, onToggle, isResult }: { item: ImportItem; isChosen: boolean; onToggle: () => void; isResult: boolean }) {
  const t = useT();
  const [open, setOpen] = useState(false);
  return (
    <Fragment>
      <Table.Tr>
        <Table.Td w={30}>{!isResult && importable(item) && <Checkbox aria-label={t('common.selectRow', { name: item.name })} checked={isChosen} onChange={onToggle} />}</Table.Td>
        <Table.Td style={{ overflowWrap: 'anywhere' }}>
          <Mono>{visibleText(item.name)}</Mono>
          {item.message && <Text size="xs" c={item.action === 'error' ? 'var(--haft-bad)' : 'dimmed'} style={{ whiteSpace: 'pre-wrap' }}>{visibleText(item.message)}</Text>}
          {item.warnings.map((warning) => <Text key={warning.code + warning.field + warning.message} size="xs" c="var(--haft-warn)">{visibleText(warning.message)}</Text>)}
        </Table.Td>
        <Table.Td w={120}><StatusBadge status={ACTION_STATUS[item.action]} label={t(`importItem.${item.action}`)} /></Table.Td>
        <Table.Td w={36}>{item.definition && <ActionIcon size="sm" aria-expanded={open} aria-label={`${t('tools.tab.definition')} ${item.name}`} onClick={() => setOpen(!open)}>{open ? <IconChevronDown size={14} /> : <IconChevronRight size={14} />}</ActionIcon>}</Table.Td>
      </Table.Tr>
      {open && <Table.Tr><Table.Td colSpan={4}><JsonView value={item.definition} maxHeight={320} /></Table.Td></Table.Tr>}
    </Fragment>
  );
}

export function ImportItems({ source, run, onDone, label }: ImportItemsProps) {
  const t = useT();
  const [off, setOff] = useState<ReadonlySet<string>>(new Set());
  const preview = useQuery({ queryKey: ['import', ...source], queryFn: () => run({ dry_run: true }), retry: false, staleTime: 30_000, gcTime: 60_000, placeholderData: keepPreviousData });
  const apply = useAction((select: string[]) => run({ dry_run: false, select }), {
    invalidates: [keys.tools, keys.bundles, keys.servers], failed: () => undefined,
    done: (report) => { if (report.failed === 0) onDone(report); },
  });
  const report = apply.data ?? preview.data;
  const isResult = apply.data !== undefined;
  if (preview.error) return <ErrorPanel error={preview.error} onRetry={() => void preview.refetch()} />;
  if (!report) return <Loading />;
  const chosen = chosenItems(report.items, off);
  const toggle = (name: string) => setOff((current) => { const next = new Set(current); if (!next.delete(name)) next.add(name); return next; });
  return (
    <Stack>
      {report.items.length > 1 && <Text c="dimmed">{t('importItem.summary', { created: report.created, replaced: report.replaced, failed: report.failed })}</Text>}
      <Table verticalSpacing={6} layout="fixed">
        <Table.Tbody>{report.items.slice(0, MAX_ROWS).map((item, index) => <Row key={`${item.name} ${index}`} item={item} isResult={isResult} isChosen={!off.has(item.name)} onToggle={() => toggle(item.name)} />)}</Table.Tbody>
      </Table>
      {report.items.length > MAX_ROWS && <Text c="dimmed">{t('json.moreItems', { n: report.items.length - MAX_ROWS })}</Text>}
      {apply.error && <ErrorPanel error={apply.error} />}
      {!isResult && <Group><Button loading={apply.isPending} disabled={chosen.length === 0 || preview.isFetching} onClick={() => apply.mutate(chosen)}>{label(chosen.length)}</Button></Group>}
      {isResult && report.created + report.replaced > 0 && <Group><Button variant="default" onClick={() => onDone(report)}>{t('importItem.continue')}</Button></Group>}
    </Stack>
  );
}
