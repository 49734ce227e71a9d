/** An image of a workspace. The server serves only some types as images; the others are put into the page as data. */
import { Image, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { fileQuery, fileUrl } from '@/api/workspaces';
import { useT } from '@/i18n';
import { ErrorPanel } from '../basics';
import { Loading } from '../page';
import { imageType } from './plan';

const SERVED = /\.(?:png|jpe?g|gif|webp)$/i;

function toDataUrl(bytes: Uint8Array, type: string): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCodePoint(...bytes.subarray(at, at + 8192));
  return `data:${type};base64,${btoa(text)}`;
}

export function FileImage({ workspace, path, manifest, alt, maxHeight }: { workspace: string; path: string; manifest?: string | undefined; alt: string; maxHeight: number | string }) {
  const t = useT();
  const isServed = SERVED.test(path);
  const query = useQuery({ ...fileQuery(workspace, path, manifest), enabled: !isServed });
  const [isBroken, setBroken] = useState(false);
  const source = useMemo(() => (isServed ? fileUrl(workspace, path, manifest) : query.data && toDataUrl(query.data.bytes, imageType(path) ?? '')), [isServed, workspace, path, manifest, query.data]);
  if (query.error) return <ErrorPanel error={query.error} onRetry={() => void query.refetch()} />;
  if (!source) return <Loading rows={4} />;
  if (isBroken) return <Text c="dimmed">{t('render.noImage')}</Text>;
  return <Image src={source} alt={alt} fit="contain" mah={maxHeight} onError={() => setBroken(true)} />;
}
