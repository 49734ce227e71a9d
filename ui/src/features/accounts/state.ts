import type { Connectable } from '@/api/types';
import type { MessageKey } from '@/i18n';

/** What a person reads about an account, or about the lack of one. */
export function stateKey({ account, has_shared }: Pick<Connectable, 'account' | 'has_shared'>): MessageKey {
  if (account) return account.state === 'connected' ? 'accounts.state.connected' : 'accounts.state.expired';
  return has_shared ? 'accounts.state.shared' : 'accounts.state.missing';
}

/** The account that the address asks to connect, unless it is connected. */
export function requested(all: readonly Connectable[], provider: string | undefined): Connectable | undefined {
  const found = all.find((one) => one.provider === provider);
  return found?.account?.state === 'connected' ? undefined : found;
}
