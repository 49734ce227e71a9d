/** All pages: address, place in the navigation, who sees them. */
import {
  IconActivity, IconAdjustments, IconApps, IconBook2, IconBox, IconBuilding, IconChefHat, IconCode, IconFileImport, IconFileSearch, IconFolders, IconGauge, IconHandStop, IconHeartbeat,
  IconHome, IconKey, IconLink, IconListDetails, IconLogin2, IconMessages, IconPackage, IconPlugConnected, IconRobot, IconServer2, IconShieldLock, IconTimeline, IconTool, IconTicket, IconUser, IconUsersGroup, IconUserCog, IconWebhook, type Icon,
} from '@tabler/icons-react';
import { hasRole, isPerson } from '@/api/session';
import type { Role, Session } from '@/api/types';
import type { MessageKey } from '@/i18n';

export interface PageEntry {
  to: string;
  label: MessageKey;
  icon: Icon;
  section?: MessageKey;
  needs?: Role;
  platform?: boolean;
  /** What people without the role find there: their own things, under this name. */
  own?: MessageKey;
  /** The second key of `g …`. */
  go?: string;
}

export const PAGES: PageEntry[] = [
  { to: '/', label: 'nav.home', icon: IconHome, go: 'h' },
  { to: '/tools', label: 'nav.tools', icon: IconTool, go: 't' },
  { to: '/calls', label: 'nav.calls', icon: IconActivity, go: 'c' },
  { to: '/approvals', label: 'nav.approvals', icon: IconHandStop, go: 'a' },
  { to: '/chat', label: 'nav.chat', icon: IconMessages, go: 'm' },
  { to: '/runs', label: 'nav.runs', icon: IconTimeline, go: 'u' },
  { to: '/servers', label: 'nav.servers', icon: IconServer2, go: 's' },
  { to: '/connect', label: 'nav.connect', icon: IconPlugConnected, go: 'n' },
  { to: '/accounts', label: 'nav.accounts', icon: IconLink },
  { to: '/agents', label: 'nav.agents', icon: IconRobot, section: 'nav.section.build', go: 'e' },
  { to: '/retrieval', label: 'nav.retrieval', icon: IconFileSearch, section: 'nav.section.build', go: 'l' },
  { to: '/artifacts', label: 'nav.artifacts', icon: IconCode, section: 'nav.section.build', go: 'd' },
  { to: '/bundles', label: 'nav.bundles', icon: IconBox, section: 'nav.section.build', go: 'b' },
  { to: '/toolsets', label: 'nav.toolsets', icon: IconPackage, section: 'nav.section.build', go: 'o' },
  { to: '/workspaces', label: 'nav.workspaces', icon: IconFolders, section: 'nav.section.build', go: 'w' },
  { to: '/recipes', label: 'nav.recipes', icon: IconChefHat, section: 'nav.section.build', needs: 'editor', go: 'r' },
  { to: '/import', label: 'nav.import', icon: IconFileImport, section: 'nav.section.build', needs: 'editor', go: 'i' },
  { to: '/policy', label: 'nav.policy', icon: IconShieldLock, section: 'nav.section.govern', needs: 'editor', go: 'p' },
  { to: '/limits', label: 'nav.limits', icon: IconGauge, section: 'nav.section.govern' },
  { to: '/audit', label: 'nav.audit', icon: IconListDetails, section: 'nav.section.govern', needs: 'admin' },
  { to: '/credentials', label: 'nav.credentials', icon: IconKey, section: 'nav.section.admin', needs: 'editor' },
  { to: '/people', label: 'nav.people', icon: IconUser, section: 'nav.section.admin', needs: 'admin' },
  { to: '/groups', label: 'nav.groups', icon: IconUsersGroup, section: 'nav.section.admin', needs: 'admin' },
  { to: '/service-accounts', label: 'nav.serviceAccounts', icon: IconUserCog, section: 'nav.section.admin', needs: 'admin' },
  { to: '/sign-on', label: 'nav.signOn', icon: IconLogin2, section: 'nav.section.admin', needs: 'admin', platform: true },
  { to: '/tokens', label: 'nav.tokens', icon: IconTicket, section: 'nav.section.admin', needs: 'admin', own: 'nav.myTokens' },
  { to: '/applications', label: 'nav.applications', icon: IconApps, section: 'nav.section.admin' },
  { to: '/webhooks', label: 'nav.webhooks', icon: IconWebhook, section: 'nav.section.admin', needs: 'admin' },
  { to: '/tenants', label: 'nav.tenants', icon: IconBuilding, section: 'nav.section.admin', needs: 'admin', platform: true },
  { to: '/health', label: 'nav.health', icon: IconHeartbeat, section: 'nav.section.admin' },
  { to: '/settings', label: 'nav.settings', icon: IconAdjustments, section: 'nav.section.admin' },
];

/** The pages that somebody sees, as the navigation names them. */
export function visiblePages(session: Session): PageEntry[] {
  return PAGES.flatMap((page) => {
    if (page.platform === true && !session.platform) return [];
    if (!page.needs || hasRole(session.role, page.needs)) return [page];
    return page.own && isPerson(session) ? [{ ...page, label: page.own }] : [];
  });
}

export const API_REFERENCE = { href: '/docs', icon: IconBook2 };
