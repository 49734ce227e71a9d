import { ActionIcon, Alert, Button, Group, Stack, Switch, Text, Title, Tooltip } from '@mantine/core';
import { IconAdjustments, IconArrowBackUp, IconDownload, IconRefresh, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { tools as toolActions } from '@/api/actions';
import { keys } from '@/api/keys';
import { bundleToolsQuery, serversQuery, toolRef, type ToolRow } from '@/api/queries';
import { useMay } from '@/api/session';
import { toolsetKeys, toolsetQuery, toolsets } from '@/api/toolsets';
import type { Toolset } from '@/api/types';
import { useT } from '@/i18n';
import { ErrorPanel, Facts, Mono, SectionTitle } from '@/parts/basics';
import { notify, useAction, useAsk } from '@/parts/feedback';
import { visibleText } from '@/parts/format';
import { PageLink, ToolLink } from '@/parts/links';
import { Drawer } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { Time } from '@/parts/time';
import { RendererSettings } from './renderer-settings';
import { RendererChip, SignatureBadge } from './toolset-parts';

const INVALIDATES: readonly (readonly unknown[])[] = [toolsetKeys.all, keys.tools, keys.bundles, keys.servers];

function Actions({ toolset, onClose }: { toolset: Toolset; onClose: () => void }) {
  const t = useT();
  const ask = useAsk();
  const mayEdit = useMay('editor');
  const { id, name } = toolset;
  const update = useAction(() => toolsets.update(id), { invalidates: INVALIDATES, done: (next) => notify(next.version === toolset.version ? t('toolsets.upToDate', { name }) : t('toolsets.updated', { name, version: next.version })) });
  const rollback = useAction(() => toolsets.rollback(id), { invalidates: INVALIDATES, done: (next) => notify(t('toolsets.updated', { name, version: next.version })) });
  const remove = useAction(() => toolsets.remove(id), { invalidates: INVALIDATES, done: () => { onClose(); notify(t('toolsets.uninstalled', { name })); } });
  const askRollback = async () => { if (await ask({ title: t('toolsets.rollbackTitle', { name }), body: t('toolsets.rollbackBody'), confirm: t('toolsets.rollback') })) rollback.mutate(undefined); };
  const askRemove = async () => { if (await ask({ title: t('toolsets.uninstallTitle', { name }), body: t('toolsets.uninstallBody', { tools: toolset.tools, servers: toolset.mcp_servers.length }), confirm: t('toolsets.uninstall'), danger: true })) remove.mutate(undefined); };
  return (
    <Group gap="sm">
      {mayEdit && toolset.source_ref && <Button variant="default" leftSection={<IconRefresh size={14} />} loading={update.isPending} onClick={() => update.mutate(undefined)}>{t('toolsets.update')}</Button>}
      {mayEdit && toolset.previous && <Button variant="default" leftSection={<IconArrowBackUp size={14} />} loading={rollback.isPending} onClick={() => void askRollback()}>{t('toolsets.rollback')}</Button>}
      <Button variant="default" leftSection={<IconDownload size={14} />} component="a" href={toolsets.exportUrl(id)} download={`${id}.zip`}>{t('toolsets.export')}</Button>
      {mayEdit && <Button variant="default" leftSection={<IconTrash size={14} />} loading={remove.isPending} onClick={() => void askRemove()}>{t('toolsets.uninstall')}</Button>}
    </Group>
  );
}

function ToolLine({ tool, renderer, onSettings }: { tool: ToolRow; renderer: string | undefined; onSettings: () => void }) {
  const t = useT();
  const mayEdit = useMay('editor');
  const ref = toolRef(tool);
  const enable = useAction((enabled: boolean) => toolActions.enable(ref, enabled), { invalidates: INVALIDATES });
  return (
    <Group gap="sm" wrap="nowrap">
      <Switch aria-label={t('toolsets.enableTool', { name: tool.name })} checked={tool.enabled} disabled={!mayEdit || enable.isPending} onChange={(event) => enable.mutate(event.currentTarget.checked)} />
      <div style={{ flex: 1, minWidth: 0 }}><ToolLink tool={ref}>{visibleText(tool.name)}</ToolLink><Text size="xs" c="dimmed" truncate>{visibleText(tool.description)}</Text></div>
      {tool.requires_confirmation && <StatusBadge status="approve" iconOnly label={t('tools.confirmation')} />}
      <RendererChip renderer={renderer} />
      {mayEdit && <Tooltip label={t('toolsets.rendererOf', { name: tool.name })}><ActionIcon aria-label={t('toolsets.rendererOf', { name: tool.name })} onClick={onSettings}><IconAdjustments size={15} /></ActionIcon></Tooltip>}
    </Group>
  );
}

export function ToolsetDrawer({ toolset, onClose }: { toolset: Toolset; onClose: () => void }) {
  const t = useT();
  const [settings, setSettings] = useState<string>();
  const detail = useQuery(toolsetQuery(toolset.id));
  const content = detail.data?.content;
  const tools = useQuery(bundleToolsQuery(toolset.id)).data?.tools ?? [];
  const servers = useQuery(serversQuery).data ?? [];
  return (
    <Drawer label={toolset.name} onClose={onClose} title={<div><Title order={2}>{visibleText(toolset.name)}</Title><Group gap="sm"><StatusBadge status={toolset.enabled ? 'enabled' : 'disabled'} /><Mono>{toolset.version}</Mono>{content && <SignatureBadge signature={content.signature} />}</Group></div>}>
      <Stack gap="sm">
        <Text>{visibleText(toolset.description)}</Text>
        <Actions toolset={toolset} onClose={onClose} />
        {detail.error && <ErrorPanel error={detail.error} onRetry={() => void detail.refetch()} />}
        {content && content.warnings.length > 0 && <Alert variant="light" color="yellow" title={t('toolsets.warnings', { n: content.warnings.length })}>{content.warnings.map((warning) => <Text key={warning.field + warning.message}>{visibleText(warning.message)}</Text>)}</Alert>}
        <SectionTitle>{t('nav.tools')} · {toolset.tools}</SectionTitle>
        <Stack gap="sm">{tools.map((tool) => <ToolLine key={toolRef(tool)} tool={tool} renderer={content?.tools.find((each) => each.id === tool.name)?.renderers[0]} onSettings={() => setSettings(toolRef(tool))} />)}</Stack>
        {toolset.mcp_servers.length > 0 && (
          <>
            <SectionTitle>{t('nav.servers')} · {toolset.mcp_servers.length}</SectionTitle>
            <Stack gap="sm">{toolset.mcp_servers.map((id) => {
              const declared = content?.mcp_servers.find((server) => server.id === id);
              const state = servers.find((server) => server.id === id)?.state;
              return (
                <div key={id}>
                  <Group gap="sm"><PageLink to="/servers" search={{ open: id }}>{visibleText(id)}</PageLink>{state && <StatusBadge status={state.phase} />}</Group>
                  {declared && <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(declared.url ?? declared.command ?? '')}</Mono></Text>}
                  {state?.error && <Text size="xs" c="var(--haft-bad)" style={{ overflowWrap: 'anywhere' }}>{visibleText(state.error)}</Text>}
                </div>
              );
            })}</Stack>
          </>
        )}
        <SectionTitle>{t('tools.about')}</SectionTitle>
        <Facts rows={[
          ['ID', <Mono key="i">{toolset.id}</Mono>], [t('toolsets.source'), toolset.source_ref ? <Mono key="s">{visibleText(toolset.source_ref)}</Mono> : t('toolsets.uploadedFile')],
          [t('toolsets.dependencies'), toolset.dependencies.length > 0 && <Mono key="d">{visibleText(toolset.dependencies.join(', '))}</Mono>], [t('toolsets.installedBy'), visibleText(toolset.installed_by)],
          [t('toolsets.installedAt'), <Time key="t" at={toolset.installed_at} />],
        ]} />
      </Stack>
      {settings && <RendererSettings target={settings} onClose={() => setSettings(undefined)} />}
    </Drawer>
  );
}
