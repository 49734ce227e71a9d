import { Button, Group, Switch, Text } from '@mantine/core';
import { IconPackage, IconUpload } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState, type DragEvent } from 'react';
import { keys } from '@/api/keys';
import { serversQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import { toolsetKeys, toolsets as actions, toolsetsQuery } from '@/api/toolsets';
import type { Toolset } from '@/api/types';
import { useT } from '@/i18n';
import { EmptyState, ErrorPanel, Mono } from '@/parts/basics';
import { notify, useAction } from '@/parts/feedback';
import { FilterInput } from '@/parts/filters';
import { visibleText } from '@/parts/format';
import { Loading, Page, Split, Toolbar } from '@/parts/page';
import parts from '@/parts/parts.module.css';
import { StatusBadge } from '@/parts/status';
import { useUrlState } from '@/parts/url-state';
import { ImportDialog } from './import-dialog';
import { ToolsetDrawer } from './toolset-drawer';
import classes from './toolsets.module.css';

function Card({ toolset, isOpen, onOpen }: { toolset: Toolset; isOpen: boolean; onOpen: () => void }) {
  const t = useT();
  const mayEdit = useMay('editor');
  const enable = useAction((enabled: boolean) => actions.enable(toolset.id, enabled), {
    invalidates: [toolsetKeys.all, keys.tools, keys.bundles],
    done: (_, enabled) => notify(t(enabled ? 'bundles.enabled' : 'bundles.disabled', { name: toolset.name }), { label: t('common.undo'), run: () => enable.mutate(!enabled) }),
  });
  const servers = useQuery(serversQuery).data ?? [];
  const failing = servers.filter((server) => toolset.mcp_servers.includes(server.id) && server.state.phase === 'error').length;
  return (
    <article className={classes.card} data-open={isOpen} data-disabled={!toolset.enabled}>
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <button type="button" className={classes.name} onClick={onOpen}>{visibleText(toolset.name)}</button>
        <Switch aria-label={t('toolsets.enableTool', { name: toolset.name })} checked={toolset.enabled} disabled={!mayEdit || enable.isPending} onChange={(event) => enable.mutate(event.currentTarget.checked)} />
      </Group>
      <Text size="xs" c="dimmed"><Mono>{visibleText(toolset.id)}</Mono> · {toolset.version}</Text>
      <Text c="dimmed" lineClamp={2} mt="xs" mb="sm" style={{ flex: 1 }}>{visibleText(toolset.description)}</Text>
      <Group gap="md">
        <Text size="xs">{t('toolsets.toolCount', { n: toolset.tools })}</Text>
        {toolset.mcp_servers.length > 0 && <Text size="xs">{t('toolsets.serverCount', { n: toolset.mcp_servers.length })}</Text>}
        {failing > 0 && <StatusBadge status="error" label={t('toolsets.failing', { n: failing })} />}
        {toolset.signed_by && <StatusBadge status="ok" label={t('toolsets.signedBy', { name: visibleText(toolset.signed_by) })} />}
      </Group>
    </article>
  );
}

export function ToolsetsPage() {
  const t = useT();
  const mayEdit = useMay('editor');
  const [url, setUrl] = useUrlState();
  const { data: all, error, isPending, refetch } = useQuery(toolsetsQuery);
  const [dropped, setDropped] = useState<File>();
  const [over, setOver] = useState(false);
  const q = (url['q'] ?? '').toLowerCase();
  const rows = (all ?? []).filter((toolset) => `${toolset.id} ${toolset.name} ${toolset.description}`.toLowerCase().includes(q));
  const open = all?.find((toolset) => toolset.id === url['open']);
  const isImporting = url['new'] !== undefined;
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    const file = event.dataTransfer.files[0];
    if (!mayEdit || !file) return;
    setDropped(file);
    setUrl({ new: '1' });
  };
  const importButton = mayEdit && <Button leftSection={<IconUpload size={15} />} onClick={() => setUrl({ new: '1' })}>{t('toolsets.import')}</Button>;
  return (
    <Page title={t('nav.toolsets')} count={all?.length} primary={importButton}>
      <Toolbar><FilterInput value={url['q'] ?? ''} onChange={(next) => setUrl({ q: next || undefined })} label={t('common.filter')} /></Toolbar>
      <Split drawer={open && <ToolsetDrawer key={open.id} toolset={open} onClose={() => setUrl({ open: undefined })} />}>
        <div className={classes.drop} data-over={over} onDragOver={(event) => { event.preventDefault(); if (mayEdit) setOver(true); }} onDragLeave={(event) => { if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false); }} onDrop={drop}>
          {error ? <div style={{ padding: 24 }}><ErrorPanel error={error} onRetry={() => void refetch()} /></div> : isPending ? <Loading /> : rows.length === 0
            ? <EmptyState icon={IconPackage} title={t(all.length === 0 ? 'toolsets.empty' : 'toolsets.noneFound')} action={all.length === 0 && importButton}>{all.length === 0 && t('toolsets.emptyHint')}</EmptyState>
            : <div className={parts.cards}>{rows.map((toolset) => <Card key={toolset.id} toolset={toolset} isOpen={toolset.id === url['open']} onOpen={() => setUrl({ open: toolset.id }, { push: true })} />)}</div>}
          {over && <div className={classes.overlay}>{t('toolsets.dropHere')}</div>}
        </div>
      </Split>
      {isImporting && <ImportDialog key={dropped ? `${dropped.name} ${dropped.lastModified}` : ''} file={dropped} onClose={(installed) => { setDropped(undefined); setUrl({ new: undefined, ...(installed ? { open: installed } : {}) }); }} />}
    </Page>
  );
}
