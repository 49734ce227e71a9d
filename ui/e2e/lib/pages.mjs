// The addresses that walks look at: every page of the navigation, and the details that have an address.
import { readFileSync } from 'node:fs';

const source = readFileSync(new URL('../../src/app/pages.ts', import.meta.url), 'utf8');
export const NAVIGATION = [...source.matchAll(/\{ to: '([^']+)'.*/g)].map((match) => match[1]);
if (NAVIGATION.length < 15) throw new Error('src/app/pages.ts is not read as it is written');

const TOOL = '/tools/user-created:orders@1.0.0';
export const DETAILS = [
  '/tools?open=user-created:orders@1.0.0', TOOL, `${TOOL}?tab=try`, `${TOOL}?tab=definition`, `${TOOL}?tab=calls`, `${TOOL}?tab=versions`,
  '/tools/new', '/tools/new?type=http', '/servers?new=1', '/bundles?open=user-created', '/recipes?recipe=weather', '/policy?tab=explain', '/people?new=1', '/groups?new=1', '/service-accounts?new=1', '/tokens?new=1',
  '/accounts?new=1', '/applications?view=clients', '/applications?view=clients&new=1',
  '/agents?open=order-helper', '/agents/order-helper?tab=definition', '/agents/order-helper?tab=tools', '/agents/order-helper?tab=revisions', '/agents/new', '/retrieval/handbook', '/retrieval/handbook?tab=try', '/retrieval/handbook?tab=settings',
  '/retrieval?new=1', '/artifacts/word-count', '/artifacts/word-count?tab=versions', '/artifacts/new', '/tools/new?type=steps', '/tools/new?type=artifact',
];

// Pages of toolsets and workspaces, after `World.example`.
export const EXAMPLE_PATHS = ['/toolsets?open=my-toolset', '/toolsets?new=1', '/workspaces/demo', '/workspaces/demo?file=README.md', '/workspaces/demo?file=src%2Fapp%2Fmain.py', '/workspaces/demo?tab=timeline&state=STATE', '/workspaces/empty'];
