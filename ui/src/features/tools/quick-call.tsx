import { Modal, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Suspense } from 'react';
import { toolQuery, toolRef } from '@/api/queries';
import { ErrorPanel, Mono } from '@/parts/basics';
import { visibleText } from '@/parts/format';
import { lazyPart } from '@/parts/lazy';
import { Loading } from '@/parts/page';

const TryPanel = lazyPart(async () => (await import('./try')).loadTryPanel());

/** Calls a tool with a form, over whatever page is open. */
export function QuickCall({ target, onClose }: { target: string; onClose: () => void }) {
  const { data: tool, error, refetch } = useQuery(toolQuery(target));
  return (
    <Modal opened onClose={onClose} size="90rem" title={<div><Text fw={600} size="md"><Mono>{visibleText(tool?.name ?? target)}</Mono></Text>{tool && <Text c="dimmed" lineClamp={2}>{visibleText(tool.description)}</Text>}</div>}>
      {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : tool ? <Suspense fallback={<Loading />}><TryPanel key={toolRef(tool)} tool={tool} /></Suspense> : <Loading />}
    </Modal>
  );
}
