import { Badge, Button, Group, Skeleton, Tabs, Text, Title } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { Suspense, useEffect } from 'react';
import { toolQuery, toolRef } from '@/api/queries';
import { useMay } from '@/api/session';
import type { Tool } from '@/api/types';
import { useT, type MessageKey } from '@/i18n';
import { Chip, CopyButton, ErrorPanel, Mono } from '@/parts/basics';
import { visibleText } from '@/parts/format';
import { lazyPart } from '@/parts/lazy';
import { Drawer, Loading } from '@/parts/page';
import classes from '@/parts/parts.module.css';
import { StatusBadge } from '@/parts/status';
import { useUrlState } from '@/parts/url-state';
import { Overview } from './overview';
import { getSubtypeLabel, shownStatus } from './taxonomy';
import { ToolMenu } from './tool-actions';
import { ToolCalls } from './tool-calls';
import { Versions } from './versions';

// The tester and the editor bring their forms and CodeMirror with them.
const TryPanel = lazyPart(async () => (await import('./try')).loadTryPanel());
const DefinitionPanel = lazyPart(async () => (await import('./definition')).DefinitionPanel);

const TABS = ['overview', 'try', 'definition', 'calls', 'versions'] as const;

function Heading({ tool, isPage }: { tool: Tool; isPage: boolean }) {
  const t = useT();
  return (
    <div>
      <Group gap="sm" wrap="nowrap">
        <Title order={isPage ? 1 : 2} style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(tool.name)}</Mono></Title>
        <CopyButton text={toolRef(tool)} />
      </Group>
      <Group gap="sm" mt={2}>
        <StatusBadge status={tool.ready ? shownStatus(tool) : 'not_ready'} />
        <Chip>{getSubtypeLabel(tool.implementation_type, t)}</Chip>
        <Text c="dimmed">{visibleText(tool.bundle)}</Text>
        <Text c="dimmed"><Mono>{tool.version}</Mono></Text>
      </Group>
    </div>
  );
}

function Body({ tool }: { tool: Tool }) {
  const t = useT();
  const [url, setUrl] = useUrlState();
  const mayCall = useMay('caller');
  const visible = TABS.filter((name) => name !== 'try' || mayCall);
  const tab = visible.find((name) => name === url['tab']) ?? 'overview';
  return (
    <Tabs value={tab} onChange={(next) => setUrl({ tab: next === 'overview' || next === null ? undefined : next })}>
      <Tabs.List mb="lg">
        {visible.map((name) => (
          <Tabs.Tab key={name} value={name} rightSection={name === 'calls' && tool.usage.call_count > 0 ? <Badge size="xs" variant="default">{tool.usage.call_count.toLocaleString()}</Badge> : undefined}>
            {t(`tools.tab.${name}` as MessageKey)}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      <Suspense fallback={<Loading rows={5} />}>
        <Tabs.Panel value="overview"><Overview tool={tool} /></Tabs.Panel>
        <Tabs.Panel value="try"><TryPanel key={toolRef(tool)} tool={tool} /></Tabs.Panel>
        <Tabs.Panel value="definition"><DefinitionPanel key={toolRef(tool)} tool={tool} /></Tabs.Panel>
        <Tabs.Panel value="calls"><ToolCalls tool={tool} /></Tabs.Panel>
        <Tabs.Panel value="versions"><Versions tool={tool} /></Tabs.Panel>
      </Suspense>
    </Tabs>
  );
}

function TryButton({ tool }: { tool: Tool }) {
  const t = useT();
  const [url, setUrl] = useUrlState();
  const mayCall = useMay('caller');
  if (!mayCall || url['tab'] === 'try') return null;
  return <Button leftSection={<IconPlayerPlay size={14} />} onClick={() => setUrl({ tab: 'try' })} disabled={!tool.ready}>{t('tools.try')}</Button>;
}

export function ToolDrawer({ target, onClose }: { target: string; onClose: () => void }) {
  const navigate = useNavigate();
  const [url] = useUrlState();
  const { data: tool, error, refetch } = useQuery(toolQuery(target));
  const expand = () => void navigate({ to: '/tools/$ref', params: { ref: target } as never, search: (url['tab'] ? { tab: url['tab'] } : {}) as never });
  return (
    <Drawer label={target} title={tool ? <Heading tool={tool} isPage={false} /> : <Skeleton h={22} w={200} />} onClose={onClose} onExpand={expand}
      actions={tool && <><TryButton tool={tool} /><ToolMenu tool={tool} onDeleted={onClose} /></>}>
      {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : tool ? <Body tool={tool} /> : <Loading />}
    </Drawer>
  );
}

export function ToolPage() {
  const navigate = useNavigate();
  const { ref: target = '' }: { ref?: string } = useParams({ strict: false });
  const { data: tool, error, refetch } = useQuery(toolQuery(target));
  useEffect(() => {
    if (tool) document.title = document.title.replace(/^((?:\(\d+\) )?).*$/, `$1${tool.name} · haft`);
  }, [tool]);
  return (
    <div className={classes.page}>
      <header className={classes.pageHeader}>
        <div className={classes.pageHeading}>{tool ? <Heading tool={tool} isPage /> : <Title order={1}><Mono>{visibleText(target)}</Mono></Title>}</div>
        {tool && <><TryButton tool={tool} /><ToolMenu tool={tool} onDeleted={() => void navigate({ to: '/tools' })} /></>}
      </header>
      <div className={classes.scroll}>
        {error ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : tool ? <Body tool={tool} /> : <Loading />}
      </div>
    </div>
  );
}
