/** Who is logged in. The layout renders pages only after the session is known. */
import { useQuery } from '@tanstack/react-query';
import { sessionQuery } from './queries';
import type { Role, Session } from './types';

const ORDER: Role[] = ['viewer', 'caller', 'editor', 'admin'];

export function hasRole(role: Role, needed: Role): boolean {
  return ORDER.indexOf(role) >= ORDER.indexOf(needed);
}

const UNKNOWN: Session = {
  tenant: '', name: '', token_id: null, role: 'viewer', elevated: false, platform: false, tools: null, rate_limit: null,
  is_session: false, expires_at: null,
};

export function useSession(): Session {
  return useQuery(sessionQuery).data ?? UNKNOWN;
}

export function useMay(needed: Role): boolean {
  return hasRole(useSession().role, needed);
}
