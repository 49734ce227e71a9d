/** The list page of agents, pipelines and artifacts: filter, broken files, table, drawer, and deleted resources. */
import { Alert, Button, Group, Text } from '@mantine/core';
import { IconRestore, IconTrash, type Icon } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo, type ReactNode } from 'react';
import { deletedQuery, type BrokenFile, type Deleted, type ResourcePath } from '@/api/resources';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel, Mono } from './basics';
import { DataTable, type Column } from './data-table';
import { notify, useAction } from './feedback';
import { ClearFilters, FilterInput } from './filters';
import { visibleText } from './format';
import { Loading, Page, Split, Toolbar } from './page';
import { StatusBadge } from './status';
import { Time } from './time';
import { useUrlState } from './url-state';

/** Files with errors: their definitions are missing or outdated. */
export function BrokenFiles({ files }: { files: readonly BrokenFile[] }) {
  const t = useT();
  if (files.length === 0) return null;
  return (
    <Alert color="red" variant="light" mx="md" mb="sm" title={t('agents.brokenFiles', { n: files.length })}>
      {files.map((file) => <Text key={file.path} style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(file.path)}</Mono>: {visibleText(file.error)}</Text>)}
    </Alert>
  );
}

/** Shows the deleted resources instead of the list; for editors. */
export function DeletedToggle() {
  const t = useT();
  const mayEdit = useMay('editor');
  const [url, setUrl] = useUrlState();
  const isShown = url['deleted'] !== undefined;
  if (!mayEdit) return null;
  return <Button variant={isShown ? 'light' : 'subtle'} color="gray" leftSection={<IconTrash size={14} />} aria-pressed={isShown} onClick={() => setUrl({ deleted: isShown ? undefined : '1', open: undefined })}>{t('resources.deleted')}</Button>;
}

interface DeletedProps {
  path: ResourcePath | 'tools';
  all: readonly unknown[];
  undelete: (id: string) => Promise<unknown>;
  q: string;
}

/** The resources deleted in the last 48 hours, each with a button that restores it. */
export function DeletedList({ path, all, undelete, q }: DeletedProps) {
  const t = useT();
  const { data, error, refetch } = useQuery(deletedQuery(path, all));
  const restore = useAction((row: Deleted) => undelete(row.id), { invalidates: [all], done: (_, row) => notify(t('resources.restored', { name: visibleText(row.name) })) });
  const { mutate, isPending, variables } = restore;
  const columns = useMemo<Column<Deleted>[]>(() => [
    { key: 'name', header: t('common.name'), width: 'minmax(8rem, 1fr)', render: (row) => visibleText(row.name) },
    { key: 'reference', header: t('resources.reference'), width: 'minmax(8rem, 1.2fr)', render: (row) => <Mono>{visibleText(row.reference)}</Mono> },
    { key: 'status', header: t('common.status'), width: '8rem', secondary: true, render: (row) => <StatusBadge status={row.status} /> },
    { key: 'deleted', header: t('resources.deleted'), width: '8rem', align: 'end', render: (row) => <Time at={row.deletedAt} /> },
    { key: 'restore', header: '', width: '9rem', align: 'end', render: (row) => <Button variant="default" size="compact-xs" leftSection={<IconRestore size={13} />} loading={isPending && variables?.id === row.id} onClick={() => mutate(row)}>{t('tools.restore')}</Button> },
  ], [t, mutate, isPending, variables]);
  if (error) return <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div>;
  if (!data) return <Loading rows={6} />;
  const rows = data.filter((row) => `${row.name} ${row.reference}`.toLowerCase().includes(q.toLowerCase()));
  return (
    <DataTable label={t('resources.deleted')} rows={rows} columns={columns} rowKey={(row) => row.id} rowName={(row) => row.name}
      empty={<EmptyState icon={IconTrash} title={t('resources.noneDeleted')}>{t('resources.noneDeletedHint')}</EmptyState>}
      phone={(row) => (
        <Group wrap="nowrap" gap="sm">
          <div style={{ flex: 1, minWidth: 0 }}><Text truncate>{visibleText(row.name)}</Text><Text size="xs" c="dimmed" truncate><Mono>{visibleText(row.reference)}</Mono> · <Time at={row.deletedAt} /></Text></div>
          <Button variant="default" size="compact-xs" onClick={() => mutate(row)}>{t('tools.restore')}</Button>
        </Group>
      )} />
  );
}

interface Row {
  slug: string;
  name: string;
}

interface ListProps<T extends Row> {
  title: string;
  icon: Icon;
  kind: { path: ResourcePath; all: readonly unknown[] };
  undelete: (id: string) => Promise<unknown>;
  data: T[] | undefined;
  error: Error | null;
  onRetry: () => void;
  brokenFiles?: readonly BrokenFile[] | undefined;
  /** The text that the filter searches. */
  text: (row: T) => string;
  /** The rows that the other filters keep. */
  matches?: (row: T) => boolean;
  columns: (q: string) => Column<T>[];
  phone: (row: T) => ReactNode;
  /** The filters next to the text filter. */
  filters?: ReactNode;
  /** The parameters of these filters in the address. */
  filterKeys?: readonly string[];
  filterLabel?: string;
  add: ReactNode;
  empty: { title: string; hint: string; none: string };
  /** The content of the drawer. */
  drawer: (ref: string, close: () => void) => ReactNode;
  /** The parameters in the address that belong to the drawer. */
  drawerKeys?: readonly string[];
  children?: ReactNode;
}

const cleared = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, undefined]));

/** The list of a kind. */
export function ResourceListPage<T extends Row>(props: ListProps<T>) {
  const { title, icon, kind, data, error, columns: columnsOf, add, empty, filterKeys = [], drawerKeys = [], matches = () => true } = props;
  const t = useT();
  const mayEdit = useMay('editor');
  const [url, setUrl] = useUrlState();
  const openRef = url['open'];
  // In the drawer, `q` may filter something else.
  const q = openRef !== undefined && drawerKeys.includes('q') ? '' : (url['q'] ?? '');
  const isDeleted = mayEdit && url['deleted'] !== undefined;
  const rows = (data ?? []).filter((row) => props.text(row).toLowerCase().includes(q.toLowerCase()) && matches(row));
  const columns = useMemo(() => columnsOf(q), [columnsOf, q]);
  const isFiltered = q !== '' || filterKeys.some((key) => url[key] !== undefined);
  const clear = () => setUrl(cleared(['q', ...filterKeys]));
  const close = () => setUrl(cleared(['open', 'tab', ...drawerKeys]));
  return (
    <Page title={title} count={isDeleted ? undefined : isFiltered ? rows.length : data?.length} primary={add}>
      <Toolbar>
        <FilterInput value={q} onChange={(next) => setUrl({ q: next || undefined })} label={props.filterLabel ?? t('common.filter')} />
        {!isDeleted && props.filters}
        <DeletedToggle />
        <ClearFilters visible={isFiltered} onClear={clear} />
      </Toolbar>
      {props.brokenFiles && <BrokenFiles files={props.brokenFiles} />}
      <Split drawer={openRef && !isDeleted && props.drawer(openRef, close)}>
        {isDeleted ? <DeletedList path={kind.path} all={kind.all} undelete={props.undelete} q={q} /> : error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={props.onRetry} /></div> : !data ? <Loading rows={8} /> : (
          <DataTable label={title} rows={rows} columns={columns} rowKey={(row) => row.slug} rowName={(row) => row.name || row.slug} openKey={openRef}
            onOpen={(row) => setUrl({ ...cleared(drawerKeys), open: row.slug }, { push: openRef === undefined })}
            empty={isFiltered && data.length > 0 ? <EmptyState icon={icon} title={empty.none} action={<Button variant="default" onClick={clear}>{t('common.clearFilters')}</Button>} /> : <EmptyState icon={icon} title={empty.title} action={add}>{empty.hint}</EmptyState>}
            phone={props.phone} />
        )}
      </Split>
      {props.children}
    </Page>
  );
}
