/** The way to the page on which a person connects an account that a call needs. */
import { Button } from '@mantine/core';
import { IconPlugConnected } from '@tabler/icons-react';
import { useT } from '@/i18n';

/** The page, relative to this one: the server knows its own address only if it is configured. */
export function connectPath(provider: string): string {
  return `/ui/accounts?connect=${encodeURIComponent(provider)}`;
}

/** Opens it beside this page, which goes on by itself. */
export function ConnectAccount({ provider }: { provider: string }) {
  const t = useT();
  return <Button component="a" href={connectPath(provider)} target="_blank" rel="noopener" leftSection={<IconPlugConnected size={15} />}>{t('accounts.connectAccount')}</Button>;
}
