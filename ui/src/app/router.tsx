import { createRootRoute, createRoute, createRouter } from '@tanstack/react-router';
import type { ComponentType } from 'react';
import { lazyPart } from '@/parts/lazy';
import { parseSearch, stringifySearch } from '@/parts/url-state';
import { Layout, NotFound } from './layout';

const root = createRootRoute({ component: Layout, notFoundComponent: NotFound });

// Each feature is a chunk of its own; the first view loads only what it shows.
const page = (path: string, load: () => Promise<Record<string, unknown>>, name: string) =>
  createRoute({ getParentRoute: () => root, path, component: lazyPart(async () => (await load())[name] as ComponentType) });

const routes = [
  page('/', () => import('@/features/home'), 'HomePage'),
  page('/tools', () => import('@/features/tools'), 'ToolsPage'),
  page('/tools/new', () => import('@/features/tools'), 'NewToolPage'),
  page('/tools/$ref', () => import('@/features/tools'), 'ToolPage'),
  page('/agents', () => import('@/features/agents'), 'AgentsPage'),
  page('/agents/new', () => import('@/features/agents'), 'NewAgentPage'),
  page('/agents/$ref', () => import('@/features/agents'), 'AgentPage'),
  page('/retrieval', () => import('@/features/retrieval'), 'PipelinesPage'),
  page('/retrieval/$ref', () => import('@/features/retrieval'), 'PipelinePage'),
  page('/artifacts', () => import('@/features/artifacts'), 'ArtifactsPage'),
  page('/artifacts/new', () => import('@/features/artifacts'), 'NewArtifactPage'),
  page('/artifacts/$ref', () => import('@/features/artifacts'), 'ArtifactPage'),
  page('/bundles', () => import('@/features/bundles'), 'BundlesPage'),
  page('/toolsets', () => import('@/features/toolsets'), 'ToolsetsPage'),
  page('/workspaces', () => import('@/features/workspaces'), 'WorkspacesPage'),
  page('/workspaces/$name', () => import('@/features/workspaces'), 'WorkspacePage'),
  page('/calls', () => import('@/features/calls'), 'CallsPage'),
  page('/calls/compare', () => import('@/features/calls'), 'ComparePage'),
  page('/chat', () => import('@/features/chat'), 'ChatPage'),
  page('/chat/$id', () => import('@/features/chat'), 'ChatPage'),
  page('/runs', () => import('@/features/runs'), 'RunsPage'),
  page('/runs/$id', () => import('@/features/runs'), 'RunPage'),
  page('/approvals', () => import('@/features/approvals'), 'ApprovalsPage'),
  page('/servers', () => import('@/features/servers'), 'ServersPage'),
  page('/connect', () => import('@/features/connect'), 'ConnectPage'),
  page('/import', () => import('@/features/import'), 'ImportPage'),
  page('/recipes', () => import('@/features/recipes'), 'RecipesPage'),
  page('/policy', () => import('@/features/policy'), 'PolicyPage'),
  page('/accounts', () => import('@/features/accounts'), 'AccountsPage'),
  page('/limits', () => import('@/features/limits'), 'LimitsPage'),
  page('/audit', () => import('@/features/audit'), 'AuditPage'),
  page('/credentials', () => import('@/features/admin'), 'CredentialsPage'),
  page('/people', () => import('@/features/admin'), 'PeoplePage'),
  page('/groups', () => import('@/features/admin'), 'GroupsPage'),
  page('/service-accounts', () => import('@/features/admin'), 'ServiceAccountsPage'),
  page('/sign-on', () => import('@/features/admin'), 'SignOnPage'),
  page('/tokens', () => import('@/features/admin'), 'TokensPage'),
  page('/applications', () => import('@/features/admin'), 'ApplicationsPage'),
  page('/webhooks', () => import('@/features/admin'), 'WebhooksPage'),
  page('/tenants', () => import('@/features/admin'), 'TenantsPage'),
  page('/health', () => import('@/features/admin'), 'HealthPage'),
  page('/settings', () => import('@/features/admin'), 'SettingsPage'),
];

export const router = createRouter({
  routeTree: root.addChildren(routes),
  basepath: '/ui',
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  scrollRestoration: true,
});
