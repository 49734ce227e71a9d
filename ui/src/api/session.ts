/** Who is logged in. The layout renders pages only after the session is known. */
import { useQuery } from '@tanstack/react-query';
import { sessionQuery } from './queries';
import type { Role, Session } from './types';

export const ROLES: readonly Role[] = ['viewer', 'caller', 'editor', 'admin'];

export function hasRole(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

/** Whether a person is logged in, not a token without an owner. */
export function isPerson(session: Session): boolean {
  return session.actor?.kind === 'person' && !session.actor.is_reduced;
}

const UNKNOWN: Session = {
  tenant: '', name: '', actor: null, owner_id: '', token_id: null, role: 'viewer', elevated: false, platform: false, tools: null, rate_limit: null,
  is_session: false, expires_at: null,
};

export function useSession(): Session {
  return useQuery(sessionQuery).data ?? UNKNOWN;
}

export function useMay(needed: Role): boolean {
  return hasRole(useSession().role, needed);
}
