/** Remembered approvals: which calls no longer ask, and a way to make them ask again. */
import { Button, Group, Text } from '@mantine/core';
import { IconHistory } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { approvals as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { approvalGrantsQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import type { ApprovalGrant } from '@/api/types';
import { useT, type Translate } from '@/i18n';
import { EmptyState, ErrorPanel, Mono } from '@/parts/basics';
import { DataTable, type Column } from '@/parts/data-table';
import { notify, useAction } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { shortName, ToolLink } from '@/parts/links';
import { Loading } from '@/parts/page';
import { Time } from '@/parts/time';
import { causeText } from './cause';

const toolName = (grant: ApprovalGrant) => (grant.tool ? shortName(grant.tool) : grant.tool_id);
const reach = (grant: ApprovalGrant, t: Translate) => `${t(`approvals.scope.${grant.remember.scope}`)}, ${t(grant.remember.any_args ? 'approvals.grantAnyArgs' : 'approvals.grantSameArgs')}`;

function Forget({ grant }: { grant: ApprovalGrant }) {
  const t = useT();
  const forget = useAction(() => actions.forget(grant.id), { invalidates: [keys.approvals], done: () => notify(t('approvals.forgotten', { name: toolName(grant) })) });
  return <Button variant="default" size="compact-xs" loading={forget.isPending} aria-label={t('approvals.forgetOne', { name: toolName(grant) })} onClick={() => forget.mutate(undefined)}>{t('approvals.forget')}</Button>;
}

const Tool = ({ grant }: { grant: ApprovalGrant }) => (grant.tool ? <ToolLink tool={grant.tool}>{visibleText(grant.tool)}</ToolLink> : <Text c="dimmed" truncate><Mono>{grant.tool_id}</Mono></Text>);

export function Grants() {
  const t = useT();
  const mayCall = useMay('caller');
  const { data: grants, error, refetch } = useQuery(approvalGrantsQuery);
  const columns = useMemo<Column<ApprovalGrant>[]>(() => [
    { key: 'tool', header: t('calls.tool'), width: 'minmax(9rem, 1.2fr)', render: (grant) => <Tool grant={grant} /> },
    { key: 'reach', header: t('approvals.reach'), width: 'minmax(9rem, 1fr)', render: (grant) => reach(grant, t) },
    { key: 'cause', header: t('approvals.why'), width: 'minmax(9rem, 1.2fr)', secondary: true, render: (grant) => <Text c="dimmed" truncate>{causeText(grant.cause, t)}</Text> },
    { key: 'by', header: t('approvals.grantedBy'), width: 'minmax(6rem, 0.6fr)', secondary: true, render: (grant) => visibleText(grant.granted_by) },
    { key: 'at', header: t('approvals.decided'), width: '7rem', secondary: true, render: (grant) => <Time at={grant.created_at} /> },
    ...(mayCall ? [{ key: 'forget', header: '', width: '6rem', align: 'end' as const, render: (grant: ApprovalGrant) => <Forget grant={grant} /> }] : []),
  ], [t, mayCall]);
  if (error) return <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div>;
  if (!grants) return <Loading />;
  return (
    <DataTable label={t('approvals.remembered')} rows={grants} columns={columns} rowKey={(grant) => grant.id} rowName={toolName}
      empty={<EmptyState icon={IconHistory} title={t('approvals.noGrants')}>{t('approvals.noGrantsHint')}</EmptyState>}
      phone={(grant) => <Group gap="sm" wrap="nowrap"><div style={{ flex: 1, minWidth: 0 }}><Text truncate><Tool grant={grant} /></Text><Text size="xs" c="dimmed" truncate>{reach(grant, t)} · {visibleText(grant.granted_by)}</Text></div>{mayCall && <Forget grant={grant} />}</Group>} />
  );
}
