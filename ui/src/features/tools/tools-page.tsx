import { Button, Group, Menu, Text } from '@mantine/core';
import { IconAlertTriangle, IconCheck, IconChevronDown, IconChefHat, IconFileImport, IconPlayerPause, IconPlus, IconRocket, IconTool, IconTrash } from '@tabler/icons-react';
import { Link, useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { tools as toolActions } from '@/api/actions';
import { keys } from '@/api/keys';
import { toolRef, type ToolRow } from '@/api/queries';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { useAllTools } from '@/parts/all-tools';
import { Chip, EmptyState, ErrorPanel, Highlight, Mono } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { ClearFilters, Facet, FilterInput, type Choice } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { Loading, Page, Split, Toolbar } from '@/parts/page';
import classes from '@/parts/parts.module.css';
import { DeletedList, DeletedToggle } from '@/parts/resource-list';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { readList, useUrlState, writeList } from '@/parts/url-state';
import { useEnable, useRemove } from './hooks';
import { filterTools, getSubtypeLabel, getToolBucket, rankTools, shownStatus, TOOL_BUCKETS, TOOL_SUBTYPES, type ToolFilters } from './taxonomy';
import { ToolDrawer } from './tool-detail';

function NewToolButton() {
  const t = useT();
  return (
    <Group gap={0}>
      <Button component={Link} to="/tools/new" leftSection={<IconPlus size={15} />} style={{ borderTopRightRadius: 0, borderBottomRightRadius: 0 }}>{t('tools.new')}</Button>
      <Menu position="bottom-end">
        <Menu.Target><Button px={6} ml={1} aria-label={t('common.more')} style={{ borderTopLeftRadius: 0, borderBottomLeftRadius: 0 }}><IconChevronDown size={15} /></Button></Menu.Target>
        <Menu.Dropdown>
          <Menu.Item component={Link} to="/recipes" leftSection={<IconChefHat size={15} />}>{t('tools.fromRecipe')}</Menu.Item>
          <Menu.Item component={Link} to="/import" leftSection={<IconFileImport size={15} />}>{t('tools.fromImport')}</Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </Group>
  );
}

function BucketCards({ rows, chosen, onChoose }: { rows: ToolRow[]; chosen: string[]; onChoose: (bucket: string) => void }) {
  const t = useT();
  const counts = useMemo(() => {
    const result = new Map<string, number>();
    for (const row of rows) result.set(getToolBucket(row), (result.get(getToolBucket(row)) ?? 0) + 1);
    return result;
  }, [rows]);
  return (
    <Group gap="sm" px="xl" pb="md" visibleFrom="sm" grow>
      {TOOL_BUCKETS.map((bucket) => (
        <button key={bucket.value} type="button" className={classes.cardButton} aria-pressed={chosen.includes(bucket.value)} onClick={() => onChoose(bucket.value)}>
          <Group justify="space-between" wrap="nowrap"><Text fw={600}>{t(bucket.label)}</Text><Text fw={600} style={{ fontVariantNumeric: 'tabular-nums' }}>{(counts.get(bucket.value) ?? 0).toLocaleString()}</Text></Group>
          <Text size="xs" c="dimmed" truncate>{t(bucket.hint)}</Text>
        </button>
      ))}
    </Group>
  );
}

function useColumns(q: string): Column<ToolRow>[] {
  const t = useT();
  return useMemo(() => [
    {
      key: 'state', header: '', width: '16px',
      render: (row) => (row.ready ? row.warning_count > 0 ? <StatusBadge status="warning" iconOnly label={t('tools.withWarnings', { n: row.warning_count })} /> : <StatusBadge status={shownStatus(row)} iconOnly />
        : <StatusBadge status="not_ready" iconOnly label={row.error ?? t('status.not_ready')} />),
    },
    { key: 'name', header: t('common.name'), width: 'minmax(9rem, 1.1fr)', render: (row) => <span title={visibleText(row.name)}><Mono><Highlight text={row.name} query={q} /></Mono></span> },
    { key: 'description', header: t('common.description'), width: 'minmax(8rem, 2.4fr)', secondary: true, render: (row) => <Text c="dimmed" truncate><Highlight text={row.description.slice(0, 200)} query={q} /></Text> },
    { key: 'type', header: t('tools.type'), width: '6.5rem', render: (row) => <Chip>{getSubtypeLabel(row.implementation_type, t)}</Chip> },
    { key: 'bundle', header: t('tools.bundle'), width: 'minmax(5rem, 0.6fr)', render: (row) => <Highlight text={row.bundle} query={q} /> },
    { key: 'status', header: t('common.status'), width: '7rem', secondary: true, render: (row) => <StatusBadge status={shownStatus(row)} /> },
    { key: 'version', header: t('common.version'), width: '4rem', secondary: true, render: (row) => <Mono>{row.version}</Mono> },
    { key: 'calls', header: t('tools.calls'), width: '4rem', align: 'end', secondary: true, render: (row) => (row.usage?.call_count ?? 0).toLocaleString() },
    { key: 'last', header: t('tools.lastCall'), width: '6rem', align: 'end', secondary: true, render: (row) => (row.usage?.last_called_at ? <Time at={row.usage.last_called_at} /> : <Text c="dimmed">—</Text>) },
  ], [t, q]);
}

function BulkBar({ rows, onDone }: { rows: ToolRow[]; onDone: () => void }) {
  const t = useT();
  const ask = useAsk();
  const enable = useEnable();
  const publish = useAction(async (targets: ToolRow[]) => { for (const row of targets) await toolActions.publish(toolRef(row)); return targets.length; },
    { invalidates: [keys.tools], done: (n) => notify(t('tools.publishedNotice', { n })) });
  const remove = useRemove(onDone);
  const own = rows.filter((row) => !row.built_in);
  const askDelete = async () => {
    const names = own.slice(0, 8).map((row) => row.name).join(', ');
    if (await ask({ title: t('tools.deleteMany', { n: own.length }), body: t('tools.deleteManyBody', { names }), confirm: t('common.delete'), danger: true })) remove.mutate(own);
  };
  return (
    <Group gap="xs">
      <Text>{t('common.selected', { n: rows.length })}</Text>
      <Button variant="default" leftSection={<IconCheck size={14} />} onClick={() => enable.mutate({ rows, enabled: true })}>{t('common.enable')}</Button>
      <Button variant="default" leftSection={<IconPlayerPause size={14} />} onClick={() => enable.mutate({ rows, enabled: false })}>{t('common.disable')}</Button>
      <Button variant="default" leftSection={<IconRocket size={14} />} disabled={own.length === 0} loading={publish.isPending} onClick={() => publish.mutate(own)}>{t('tools.publish')}</Button>
      <Button variant="default" leftSection={<IconTrash size={14} />} disabled={own.length === 0} loading={remove.isPending} onClick={() => void askDelete()}>{t('common.delete')}</Button>
      <Button variant="subtle" color="gray" onClick={onDone}>{t('common.cancel')}</Button>
    </Group>
  );
}

export function ToolsPage() {
  const t = useT();
  const navigate = useNavigate();
  const mayEdit = useMay('editor');
  const [url, setUrl] = useUrlState();
  const { rows, total, error, isLoading, refetch } = useAllTools();
  const [selected, setSelected] = useState(new Set<string>());
  const filters = useMemo<ToolFilters>(() => ({
    q: url['q'] ?? '', status: readList(url['status']), bucket: readList(url['bucket']), subtype: readList(url['subtype']), bundle: readList(url['bundle']), tag: readList(url['tag']), health: url['health'] ?? '',
  }), [url]);
  const shown = useMemo(() => rankTools(filterTools(rows, filters), filters.q), [rows, filters]);
  const warnings = useMemo(() => rows.filter((row) => row.ready && row.warning_count > 0).length, [rows]);
  const failed = useMemo(() => rows.filter((row) => !row.ready).length, [rows]);
  const choices = useMemo(() => {
    const distinct = (values: string[]): Choice[] => [...new Set(values)].toSorted().map((value) => ({ value, label: visibleText(value) }));
    return { bundle: distinct(rows.map((row) => row.bundle)), tag: distinct(rows.flatMap((row) => row.tags)) };
  }, [rows]);
  const columns = useColumns(filters.q ?? '');
  const isFiltered = shown.length !== rows.length || url['q'] !== undefined;
  const openRef = url['open'];
  const isDeleted = mayEdit && url['deleted'] !== undefined;
  const toggleHealth = (value: string) => setUrl({ health: url['health'] === value ? undefined : value });
  const selectedRows = useMemo(() => rows.filter((row) => selected.has(toolRef(row))), [rows, selected]);

  const empty = (
    <EmptyState icon={IconTool} title={t(isFiltered ? 'tools.noneFound' : 'tools.empty')}
      action={isFiltered ? <Button variant="default" onClick={() => void navigate({ to: '/tools' })}>{t('common.clearFilters')}</Button> : mayEdit && <NewToolButton />}>
      {t(isFiltered ? 'tools.noneFoundHint' : 'tools.emptyHint')}
    </EmptyState>
  );
  return (
    <Page title={t('nav.tools')} count={isDeleted ? undefined : isFiltered ? shown.length : (total ?? rows.length)} primary={mayEdit && <NewToolButton />}>
      {!isDeleted && <BucketCards rows={rows} chosen={filters.bucket ?? []} onChoose={(bucket) => setUrl({ bucket: filters.bucket?.includes(bucket) ? undefined : bucket })} />}
      <Toolbar>
        {selectedRows.length > 0 && !isDeleted ? <BulkBar rows={selectedRows} onDone={() => setSelected(new Set())} /> : (
          <>
            <FilterInput value={filters.q ?? ''} onChange={(q) => setUrl({ q: q || undefined })} label={t('tools.filter')} />
            <Facet label={t('common.status')} value={filters.status ?? []} onChange={(value) => setUrl({ status: writeList(value) })}
              choices={['draft', 'published', 'deprecated', 'disabled'].map((value) => ({ value, label: t(`status.${value}` as 'status.draft') }))} />
            <Facet label={t('tools.type')} value={filters.subtype ?? []} onChange={(value) => setUrl({ subtype: writeList(value) })} choices={TOOL_SUBTYPES.map(({ value, label }) => ({ value, label: t(label) }))} />
            <Facet label={t('tools.bundle')} value={filters.bundle ?? []} onChange={(value) => setUrl({ bundle: writeList(value) })} choices={choices.bundle} />
            {choices.tag.length > 0 && <Facet label={t('tools.tag')} value={filters.tag ?? []} onChange={(value) => setUrl({ tag: writeList(value) })} choices={choices.tag} />}
            {warnings > 0 && <Button variant={url['health'] === 'warnings' ? 'light' : 'subtle'} color="gray" leftSection={<IconAlertTriangle size={14} color="var(--haft-warn)" />} aria-pressed={url['health'] === 'warnings'} onClick={() => toggleHealth('warnings')}>{t('tools.warningCount', { n: warnings })}</Button>}
            {failed > 0 && <Button variant={url['health'] === 'failed' ? 'light' : 'subtle'} color="gray" leftSection={<IconAlertTriangle size={14} color="var(--haft-bad)" />} aria-pressed={url['health'] === 'failed'} onClick={() => toggleHealth('failed')}>{t('tools.failedCount', { n: failed })}</Button>}
            <DeletedToggle />
            <ClearFilters visible={isFiltered && !isDeleted} onClear={() => setUrl({ q: undefined, status: undefined, bucket: undefined, subtype: undefined, bundle: undefined, tag: undefined, health: undefined })} />
          </>
        )}
      </Toolbar>
      <Split drawer={openRef && !isDeleted && <ToolDrawer key={openRef} target={openRef} onClose={() => setUrl({ open: undefined, tab: undefined })} />}>
        {isDeleted ? <DeletedList path="tools" all={keys.tools} undelete={toolActions.undelete} q={filters.q ?? ''} /> : error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isLoading ? <Loading rows={12} /> : (
          <DataTable label={t('nav.tools')} rows={shown} columns={columns} rowKey={toolRef} rowName={(row) => row.name} openKey={openRef}
            onOpen={(row) => setUrl({ open: toolRef(row) }, { push: openRef === undefined })} empty={empty}
            {...(mayEdit ? { selection: { selected, onChange: setSelected } } : {})}
            phone={(row) => (
              <div>
                <Group gap={6} wrap="nowrap">{row.ready ? <StatusBadge status={row.warning_count > 0 ? 'warning' : shownStatus(row)} iconOnly /> : <StatusBadge status="not_ready" iconOnly />}<Text truncate flex={1}><Mono><Highlight text={row.name} query={filters.q ?? ''} /></Mono></Text><Chip>{getSubtypeLabel(row.implementation_type, t)}</Chip></Group>
                <Text size="xs" c="dimmed" truncate>{visibleText(row.bundle)} · {visibleText(row.description)}</Text>
              </div>
            )} />
        )}
      </Split>
    </Page>
  );
}
