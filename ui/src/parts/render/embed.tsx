/** Documents of toolsets and of configured hosts, each in a frame that cannot reach this page. */
import { ActionIcon, Group, Stack, Text, Tooltip } from '@mantine/core';
import { IconRefresh } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { renderUrlQuery } from '@/api/rendering';
import { useT } from '@/i18n';
import { ErrorPanel } from '../basics';
import { visibleText } from '../format';
import { Loading } from '../page';
import classes from '../parts.module.css';
import { safeFrameUrl } from './plan';

const HEIGHT = 480;

/** The height that a plan asks for, within reason. */
export const frameHeight = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? Math.max(120, Math.min(1600, value)) : HEIGHT);

/** The document of an `html` renderer: scripts run, in an opaque origin, without forms, popups and navigation. */
export function HtmlFrame({ call, height, title }: { call: string; height: unknown; title: string }) {
  const t = useT();
  const query = useQuery(renderUrlQuery(call));
  if (query.error) return <ErrorPanel error={query.error} onRetry={() => void query.refetch()} />;
  if (!query.data) return <Loading rows={4} />;
  const address = safeFrameUrl(new URL(query.data.url, window.location.href).href);
  if (!address) return <Text c="dimmed">{t('render.badAddress')}</Text>;
  return (
    <div className={classes.frameBox}>
      <span className={classes.blockCopy}><Tooltip label={t('render.reload')}><ActionIcon size="sm" aria-label={t('render.reload')} onClick={() => void query.refetch()}><IconRefresh size={14} /></ActionIcon></Tooltip></span>
      <iframe key={query.dataUpdatedAt} src={address} sandbox="allow-scripts" referrerPolicy="no-referrer" title={title} className={classes.frame} style={{ height: frameHeight(height) }} />
    </div>
  );
}

/** A page of a host that the configuration allows; the server has decided that before. */
export function HostFrame({ url, height }: { url: unknown; height: unknown }) {
  const t = useT();
  const address = safeFrameUrl(url);
  if (!address) return <Text c="dimmed">{t('render.badAddress')}</Text>;
  // A page of this host gets no origin: with one, it could read this page and its session.
  const isForeign = new URL(address).origin !== window.location.origin;
  return (
    <Stack gap="xs">
      <Group gap="xs"><Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>{visibleText(address)}</Text></Group>
      <iframe src={address} sandbox={`allow-scripts allow-forms${isForeign ? ' allow-same-origin' : ''}`} referrerPolicy="no-referrer" title={address} className={classes.frame} style={{ height: frameHeight(height) }} />
    </Stack>
  );
}
