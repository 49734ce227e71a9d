import type { Chat } from '@/api/run-types';
import { useMay, useSession } from '@/api/session';

/** Whether somebody may write in a chat: the owner, and admins. The server decides; the page leaves out what it would reject. */
export function useIsMine(chat: Chat | undefined): boolean {
  const session = useSession();
  const isAdmin = useMay('admin');
  return chat !== undefined && (isAdmin || chat.owner_id === session.owner_id);
}
