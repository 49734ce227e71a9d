/** All tools in groups, to choose from. */
import { Button, Checkbox, Group, Modal, Radio, Stack, Text, TextInput } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { IconChevronDown, IconChevronRight, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useMemo, useRef, useState } from 'react';
import type { ToolSummary } from '@/api/types';
import { toolRef } from '@/api/queries';
import { useT } from '@/i18n';
import { useAllTools } from '../all-tools';
import { Chip, EmptyState, ErrorPanel, Highlight, Mono } from '../basics';
import { ClearFilters, Facet, FilterInput } from '../filters';
import { visibleText } from '../format';
import { Loading } from '../page';
import { StatusBadge } from '../status';
import { filterTools, getSubtypeLabel, rankTools, shownStatus, TOOL_BUCKETS, TOOL_SUBTYPES } from '../taxonomy';
import { renderersQuery } from './cost';
import { ToolMarks } from './marks';
import { distinctTools, emptyRules, groupTools, isExclusion, isPattern, isRule, MAX_RULES, ruleOf, selectedTools, withoutTools, withTools, type ToolGroup } from './model';
import { RuleChip, SelectionSummary } from './summary';
import { ToolFacts } from './tool-facts';
import classes from './tool-picker.module.css';

const GROUP_HEIGHT = 38;
const TOOL_HEIGHT = 46;
/** More rows than this start folded. */
const FOLD_ABOVE = 60;

type Line = { kind: 'group'; group: ToolGroup<ToolSummary>; isFolded: boolean } | { kind: 'tool'; tool: ToolSummary };

interface ListProps {
  lines: Line[];
  query: string;
  chosen: Set<string>;
  renderers: ReadonlyMap<string, string>;
  openRef: string | undefined;
  /** One tool is chosen instead of several. */
  single: boolean;
  onFold: (bundle: string) => void;
  onOpen: (ref: string) => void;
  onToggle: (tools: ToolSummary[], isOn: boolean) => void;
}

function GroupLine({ group, isFolded, chosen, single, onFold, onToggle }: { group: ToolGroup<ToolSummary>; isFolded: boolean } & Pick<ListProps, 'chosen' | 'single' | 'onFold' | 'onToggle'>) {
  const t = useT();
  const count = group.tools.filter((tool) => chosen.has(ruleOf(tool))).length;
  const isAll = count === group.tools.length;
  const Arrow = isFolded ? IconChevronRight : IconChevronDown;
  return (
    <>
      {!single && <Checkbox size="xs" aria-label={t('picker.all', { name: group.bundle })} checked={isAll} indeterminate={count > 0 && !isAll} onChange={() => onToggle(group.tools, !isAll)} />}
      <button type="button" className={classes.fold} aria-expanded={!isFolded} onClick={() => onFold(group.bundle)}>
        <Arrow size={14} aria-hidden /><Text fw={600} truncate>{group.kind === 'builtin' ? t('picker.kind.builtin') : visibleText(group.bundle)}</Text>
        {group.kind !== 'builtin' && <Chip>{t(`picker.kind.${group.kind}`)}</Chip>}
      </button>
      <Text size="xs" c="dimmed" style={{ fontVariantNumeric: 'tabular-nums' }}>{count > 0 ? `${count.toLocaleString()} / ` : ''}{group.tools.length.toLocaleString()}</Text>
    </>
  );
}

function ToolLine({ tool, query, chosen, renderers, single, onOpen, onToggle }: { tool: ToolSummary } & Pick<ListProps, 'query' | 'chosen' | 'renderers' | 'single' | 'onOpen' | 'onToggle'>) {
  const t = useT();
  const isOn = chosen.has(ruleOf(tool));
  return (
    <>
      {single ? <Radio size="xs" aria-label={tool.name} checked={isOn} onChange={() => onToggle([tool], true)} /> : <Checkbox size="xs" aria-label={tool.name} checked={isOn} onChange={() => onToggle([tool], !isOn)} />}
      <button type="button" className={classes.open} aria-label={t('picker.detailOf', { name: tool.name })} onClick={() => onOpen(toolRef(tool))}>
        <Text truncate><Mono><Highlight text={tool.name} query={query} /></Mono></Text>
        <Text size="xs" c="dimmed" truncate><Highlight text={tool.description.slice(0, 200)} query={query} /></Text>
      </button>
      <ToolMarks renderer={renderers.get(toolRef(tool))} needsApproval={tool.requires_confirmation === true || tool.policy === 'elevated'} />
      {!(tool.ready && tool.enabled) && <StatusBadge status={tool.ready ? shownStatus(tool) : 'not_ready'} iconOnly />}
      <Chip>{getSubtypeLabel(tool.implementation_type, t)}</Chip>
    </>
  );
}

function ToolLines(props: ListProps) {
  const t = useT();
  const { lines, chosen, openRef, single, onFold, onToggle } = props;
  const scroll = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: lines.length, getScrollElement: () => scroll.current, overscan: 12,
    estimateSize: (index) => (lines[index]?.kind === 'group' ? GROUP_HEIGHT : TOOL_HEIGHT),
    getItemKey: (index) => { const line = lines[index]; return line === undefined ? index : line.kind === 'group' ? `group ${line.group.bundle}` : toolRef(line.tool); },
  });
  return (
    <div ref={scroll} className={classes.list} role="group" aria-label={t('nav.tools')}>
      <div className={classes.space} style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, key, start, size }) => {
          const line = lines[index];
          if (!line) return null;
          const style = { height: size, transform: `translateY(${start}px)` };
          return line.kind === 'group'
            ? <div key={key} className={`${classes.line} ${classes.group}`} style={style}><GroupLine group={line.group} isFolded={line.isFolded} chosen={chosen} single={single} onFold={onFold} onToggle={onToggle} /></div>
            : <div key={key} className={`${classes.line} ${classes.tool}`} data-open={toolRef(line.tool) === openRef} style={style}><ToolLine {...props} tool={line.tool} /></div>;
        })}
      </div>
    </div>
  );
}

function AddRule({ exclusions, onAdd }: { exclusions: boolean; onAdd: (rule: string) => void }) {
  const t = useT();
  const [text, setText] = useState('');
  const rule = text.trim();
  const isWrong = rule !== '' && !isRule(rule, exclusions);
  const add = () => { if (rule !== '' && !isWrong) { onAdd(rule); setText(''); } };
  return (
    <TextInput w={{ base: '100%', sm: 300 }} aria-label={t('picker.addRule')} placeholder={t(exclusions ? 'picker.addExclusionHint' : 'picker.addRuleHint')} value={text} error={isWrong && t('picker.ruleWrong')} onChange={(event) => setText(event.currentTarget.value)}
      onKeyDown={(event) => { if (event.key === 'Enter') { event.preventDefault(); add(); } }}
      rightSection={<Button variant="subtle" size="compact-xs" px={4} aria-label={t('common.add')} disabled={rule === '' || isWrong} onClick={add}><IconPlus size={14} /></Button>} />
  );
}

/** The filtered tools as lines; a search opens every group. */
function useLines(tools: ToolSummary[], filters: { q: string; bucket: string[]; subtype: string[] }, folds: ReadonlyMap<string, boolean>): Line[] {
  return useMemo(() => {
    const shown = rankTools(filterTools(tools, filters), filters.q);
    const isSearch = filters.q !== '' || filters.bucket.length > 0 || filters.subtype.length > 0;
    return groupTools(shown).flatMap((group): Line[] => {
      const isFolded = folds.get(group.bundle) ?? (!isSearch && shown.length > FOLD_ABOVE);
      return [{ kind: 'group', group, isFolded }, ...(isFolded ? [] : group.tools.map((tool): Line => ({ kind: 'tool', tool })))];
    });
  }, [tools, filters, folds]);
}

interface DialogProps {
  title: string;
  emptyText: string;
  value: string[];
  onChange: (rules: string[]) => void;
  onClose: () => void;
  /** One tool is chosen, which ends the dialog. */
  single?: boolean;
  exclusions?: boolean;
  needsPublished?: boolean;
}

export function PickerDialog({ title, emptyText, value, onChange, onClose, single = false, exclusions = false, needsPublished = false }: DialogProps) {
  const t = useT();
  const isPhone = useMediaQuery('(max-width: 48em)');
  const { rows, error, isLoading, refetch } = useAllTools();
  const tools = useMemo(() => distinctTools(rows), [rows]);
  const [filters, setFilters] = useState({ q: '', bucket: [] as string[], subtype: [] as string[] });
  const [folds, setFolds] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [openRef, setOpenRef] = useState<string>();
  const lines = useLines(tools, filters, folds);
  const chosen = useMemo(() => selectedTools(value, tools), [value, tools]);
  const chosenKeys = useMemo(() => new Set(chosen.map(ruleOf)), [chosen]);
  // What the boxes of the list cannot show.
  const shownRules = useMemo(() => value.filter((rule) => isPattern(rule) || isExclusion(rule)), [value]);
  const unknown = useMemo(() => new Set(emptyRules(shownRules, tools)), [shownRules, tools]);
  const toolsets = useMemo(() => groupTools(tools).filter((group) => group.kind === 'toolset').map((group) => group.bundle), [tools]);
  const renderers = useQuery(renderersQuery(toolsets)).data ?? new Map<string, string>();
  const open = rows.find((row) => toolRef(row) === openRef);
  const isFiltered = filters.q !== '' || filters.bucket.length > 0 || filters.subtype.length > 0;
  const change = (part: Partial<typeof filters>) => { setFilters({ ...filters, ...part }); setFolds(new Map()); };
  const fold = (bundle: string) => {
    const line = lines.find((each) => each.kind === 'group' && each.group.bundle === bundle);
    setFolds(new Map(folds).set(bundle, line?.kind === 'group' && !line.isFolded));
  };
  const toggle = (list: ToolSummary[], isOn: boolean) => onChange(single ? list.map(ruleOf) : isOn ? withTools(value, list, tools) : withoutTools(value, list, tools, exclusions));
  return (
    <Modal opened onClose={onClose} title={title} size="75rem" fullScreen={isPhone ?? false} zIndex={210}>
      <div className={classes.dialog}>
        <Group gap="sm" role="search">
          <FilterInput value={filters.q} onChange={(q) => change({ q })} label={t('picker.search')} />
          <Facet label={t('picker.bucket')} value={filters.bucket} onChange={(bucket) => change({ bucket })} choices={TOOL_BUCKETS.map(({ value: key, label }) => ({ value: key, label: t(label) }))} />
          <Facet label={t('tools.type')} value={filters.subtype} onChange={(subtype) => change({ subtype })} choices={TOOL_SUBTYPES.map(({ value: key, label }) => ({ value: key, label: t(label) }))} />
          <ClearFilters visible={isFiltered} onClear={() => change({ q: '', bucket: [], subtype: [] })} />
        </Group>
        <div className={classes.body} data-open={open !== undefined}>
          {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : isLoading ? <Loading rows={10} /> : lines.length === 0 ? <EmptyState title={t('tools.noneFound')}>{t('tools.noneFoundHint')}</EmptyState>
            : <ToolLines lines={lines} query={filters.q} chosen={chosenKeys} renderers={renderers} openRef={openRef} single={single} onFold={fold} onOpen={(ref) => setOpenRef(ref === openRef ? undefined : ref)} onToggle={toggle} />}
          {open && <ToolFacts key={openRef} row={open} onClose={() => setOpenRef(undefined)} />}
        </div>
        {single ? <Group justify="flex-end" className={classes.footer}><Button variant="default" onClick={onClose}>{t('common.cancel')}</Button></Group> : (
          <Stack gap="sm" className={classes.footer}>
            {shownRules.length > 0 && <Group gap={4}>{shownRules.map((rule) => <RuleChip key={rule} rule={rule} isEmpty={unknown.has(rule)} onRemove={() => onChange(value.filter((each) => each !== rule))} />)}</Group>}
            {value.length > MAX_RULES && <Text c="var(--haft-bad)">{t('picker.tooMany', { n: MAX_RULES })}</Text>}
            <Group justify="space-between" gap="sm">
              <SelectionSummary rules={value} chosen={chosen} emptyText={emptyText} needsPublished={needsPublished} />
              <Group gap="sm">
                <AddRule exclusions={exclusions} onAdd={(rule) => { if (!value.includes(rule)) onChange([...value, rule]); }} />
                <Button variant="default" disabled={value.length === 0} onClick={() => onChange([])}>{t('picker.clear')}</Button>
                <Button onClick={onClose}>{t('picker.done')}</Button>
              </Group>
            </Group>
          </Stack>
        )}
      </div>
    </Modal>
  );
}
