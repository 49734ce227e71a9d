/** A call of an answer that waits for a person: decided here, or where approvals are listed. */
import { Button, Group, Stack, Text, Textarea } from '@mantine/core';
import { IconCheck, IconX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { approvals } from '@/api/actions';
import { keys } from '@/api/keys';
import { approvalQuery } from '@/api/queries';
import { runKeys } from '@/api/runs';
import { useT } from '@/i18n';
import { CodeBlock, ErrorPanel } from '@/parts/basics';
import { ConnectAccount } from '@/parts/connect-account';
import { notify, useAction } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { JsonView } from '@/parts/json-view';
import { PageLink, shortName } from '@/parts/links';
import { Loading } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';

export function ApprovalCard({ id, args }: { id: string; args: unknown }) {
  const t = useT();
  const { data: approval, error, refetch } = useQuery(approvalQuery(id));
  const [denying, setDenying] = useState(false);
  const [reason, setReason] = useState('');
  const invalidates = [keys.approvals, keys.calls, runKeys.all];
  const name = approval ? shortName(approval.tool) : '';
  const approve = useAction(() => approvals.approve(id, {}), { invalidates, done: () => notify(t('approvals.approvedNotice', { name })) });
  const deny = useAction(() => approvals.deny(id, reason || undefined), { invalidates, done: () => notify(t('approvals.deniedNotice', { name })) });
  if (error) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (!approval) return <Loading rows={2} />;
  if (approval.status !== 'waiting') {
    return <Group gap="sm"><StatusBadge status={approval.status} /><Text c="dimmed">{[approval.decided_by, approval.reason].filter(Boolean).map((each) => visibleText(String(each))).join(': ')}</Text></Group>;
  }
  if (approval.cause.kind === 'account') {
    const provider = approval.cause.name;
    return (
      <Stack gap="sm">
        <Text>{t('accounts.waits', { tool: visibleText(approval.tool), provider: visibleText(provider) })}</Text>
        <Group gap="sm"><ConnectAccount provider={provider} /></Group>
        <Text size="xs" c="dimmed">{t('approvals.expires')}: <Time at={approval.expires_at} /></Text>
      </Stack>
    );
  }
  return (
    <Stack gap="sm">
      <Text>{t('chat.asks', { tool: visibleText(approval.tool) })}</Text>
      <JsonView value={approval.args ?? args} maxHeight={220} />
      {approval.preview && <CodeBlock text={visibleText(approval.preview)} wrap maxHeight="12rem" />}
      {!approval.may_decide ? <Text c="dimmed">{t('approvals.mayNot')}</Text> : denying ? (
        <form onSubmit={(event) => { event.preventDefault(); deny.mutate(undefined); }}>
          <Stack gap="sm">
            <Textarea label={t('approvals.reason')} description={t('chat.reasonHelp')} value={reason} onChange={(event) => setReason(event.currentTarget.value)} autosize minRows={2} data-autofocus />
            <Group gap="sm"><Button type="submit" color="red.8" loading={deny.isPending}>{t('approvals.deny')}</Button><Button variant="default" onClick={() => setDenying(false)}>{t('common.cancel')}</Button></Group>
          </Stack>
        </form>
      ) : (
        <Group gap="sm">
          <Button leftSection={<IconCheck size={15} />} loading={approve.isPending} onClick={() => approve.mutate(undefined)}>{t('approvals.approve')}</Button>
          <Button variant="default" leftSection={<IconX size={15} />} onClick={() => setDenying(true)}>{t('approvals.deny')}</Button>
          <PageLink to="/approvals" search={{ open: id }}>{t('chat.moreAboutIt')}</PageLink>
        </Group>
      )}
      <Text size="xs" c="dimmed">{t('approvals.expires')}: <Time at={approval.expires_at} /></Text>
    </Stack>
  );
}
