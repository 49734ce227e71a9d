import { useT, type MessageKey } from '@/i18n';
import { messages } from '@/i18n/messages';
import { visibleText } from '@/parts/format';

/** The interface that a run came through. */
export function Surface({ name }: { name: string }) {
  const t = useT();
  const key = `surface.${name}`;
  return <>{key in messages ? t(key as MessageKey) : visibleText(name)}</>;
}
