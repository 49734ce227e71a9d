/** Choose a client, make a token for it, copy its configuration, see its first call arrive. */
import { Button, Group, Stack, Tabs, Text } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { tokens } from '@/api/actions';
import { keys } from '@/api/keys';
import { callListQuery } from '@/api/queries';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { CodeBlock, Mono, PermissionNote } from './basics';
import { clientSetup, CLIENT_LABELS, CLIENTS, type ClientName } from './clients';
import { useAction } from './feedback';
import { CallLink, shortName } from './links';
import { StatusBadge } from './status';
import { ToolPicker } from './tool-picker';

function FirstCall({ caller }: { caller: string }) {
  const t = useT();
  const call = useInfiniteQuery(callListQuery({ caller }, 1)).data?.pages[0]?.calls[0];
  if (!call) return <Group gap="sm"><StatusBadge status="pending" label={t('connect.waiting')} /></Group>;
  return <Group gap="sm"><StatusBadge status="success" label={t('connect.arrived')} /><CallLink id={call.id}><Mono>{shortName(call.tool)}</Mono></CallLink></Group>;
}

/** A name that tells the clients apart. */
function tokenName(client: ClientName): string {
  return `${client}-${new Date().toISOString().slice(5, 16).replaceAll(/[^0-9]/g, '')}`;
}

/** `choosesTools` lets one limit the new token to some tools. */
export function ConnectClient({ bundle, choosesTools = false }: { bundle?: string | undefined; choosesTools?: boolean }) {
  const t = useT();
  const mayAdmin = useMay('admin');
  const [client, setClient] = useState<ClientName>('claude-code');
  const [tools, setTools] = useState<string[]>([]);
  const [made, setMade] = useState<{ name: string; token: string }>();
  const create = useAction((name: string) => tokens.create({ name, role: 'caller', elevated: false, platform: false, ...(tools.length > 0 ? { tools } : {}) }), {
    invalidates: [keys.tokens], done: (token) => setMade({ name: token.name, token: token.token }),
  });
  const setup = clientSetup(client, window.location.origin, made?.token ?? '$HAFT_TOKEN', bundle);
  return (
    <Stack gap="md">
      <Tabs value={client} onChange={(next) => setClient((next ?? 'claude-code') as ClientName)}>
        <Tabs.List>{CLIENTS.map((name) => <Tabs.Tab key={name} value={name}>{CLIENT_LABELS[name]}</Tabs.Tab>)}</Tabs.List>
      </Tabs>
      {choosesTools && mayAdmin && !made && <ToolPicker label={t('connect.tools')} description={t('connect.toolsHelp')} emptyText={t('connect.allTools')} value={tools} onChange={setTools} />}
      {made ? <Text>{t('connect.tokenMade', { name: made.name })}</Text> : mayAdmin
        ? <Group gap="sm"><Button leftSection={<IconKey size={14} />} loading={create.isPending} onClick={() => create.mutate(tokenName(client))}>{t('connect.makeToken', { client: CLIENT_LABELS[client] })}</Button><Text c="dimmed">{t('connect.makeTokenHint')}</Text></Group>
        : <PermissionNote needs="admin" />}
      <div><Text size="xs" c="dimmed" mb={4}>{setup.place === 'shell' ? t('connect.shell') : setup.place}</Text><CodeBlock text={setup.text} maxHeight="22rem" /></div>
      {made && <FirstCall caller={made.name} />}
    </Stack>
  );
}
