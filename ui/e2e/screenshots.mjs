// Screenshots of the main pages, from a demo installation, into docs/images: HAFT_BIN=…/haft npm run screenshots [folder]
//
// With ALL=1, every page at two widths and in both themes, to look at; ALL=1440-dark,390-light makes these two of each.
import { spawnSync } from 'node:child_process';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Browser } from './lib/browser.mjs';
import { exampleFiles, install } from './lib/package.mjs';
import { Workspace } from './lib/workspace.mjs';
import { World } from './lib/world.mjs';

const out = process.argv[2] ?? new URL(process.env.ALL ? '../screenshots' : '../../docs/images', import.meta.url).pathname;
const WIDE = { width: 1440, height: 800 };
const PHONE = { width: 390, height: 844 };
const ORDERS = '/tools/user-created:orders@1.0.0';

async function run(page) {
  await page.locator('#arg_customer').fill('C-1007');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('main').getByText('Success', { exact: true }).first().waitFor();
}
const openFirst = async (page) => {
  await page.getByRole('row').filter({ hasText: 'release/2.4' }).first().click();
  await page.getByRole('button', { name: 'Approve call' }).waitFor();
};

const pick = async (page) => {
  await page.getByRole('button', { name: 'Choose tools' }).click();
  for (const name of ['read_file', 'orders']) {
    await page.getByRole('textbox', { name: 'Search tools' }).fill(name);
    await page.getByRole('checkbox', { name, exact: true }).first().check();
  }
  await page.getByRole('textbox', { name: 'Search tools' }).fill('');
  // Folded, so that the other groups are in sight.
  await page.getByRole('button', { name: /Built-in/ }).click();
  await page.getByRole('button', { name: 'About run_command' }).click();
  await page.getByRole('complementary', { name: 'run_command' }).getByRole('table').waitFor();
};

const DOCUMENTED = [
  { name: 'home', path: '/' }, { name: 'home-dark', path: '/', theme: 'dark' },
  { name: 'tools', path: '/tools?open=user-created:orders@1.0.0' }, { name: 'tools-dark', path: '/tools?open=user-created:orders@1.0.0', theme: 'dark' },
  { name: 'try', path: `${ORDERS}?tab=try`, act: run },
  { name: 'calls', path: '/calls' }, { name: 'approvals', path: '/approvals', act: openFirst }, { name: 'approvals-phone', path: '/approvals', viewport: PHONE, act: openFirst },
  { name: 'connect', path: '/connect' }, { name: 'policy', path: '/policy' }, { name: 'tool-picker', path: '/tokens?new=1', act: pick },
  { name: 'chat', path: '/chat/CHAT' }, { name: 'run', path: '/runs/RUN' },
  { name: 'toolsets', path: '/toolsets?open=app-builder' }, { name: 'workspace', path: '/workspaces/demo?file=README.md' },
];
const EVERYTHING = Object.entries({
  home: '/', tools: '/tools', 'tool-drawer': '/tools?open=user-created:orders@1.0.0', tool: ORDERS, 'tool-try': `${ORDERS}?tab=try`, 'tool-definition': `${ORDERS}?tab=definition`, 'tool-versions': `${ORDERS}?tab=versions`,
  'new-tool': '/tools/new', 'new-http': '/tools/new?type=http', calls: '/calls', approvals: '/approvals', servers: '/servers', connect: '/connect', bundles: '/bundles?open=user-created', recipes: '/recipes', import: '/import',
  policy: '/policy', limits: '/limits', audit: '/audit', credentials: '/credentials', tokens: '/tokens', tenants: '/tenants', health: '/health', settings: '/settings', webhooks: '/webhooks', remembered: '/approvals?status=remembered', explain: '/policy?tab=explain', recipe: '/recipes?recipe=weather',
  toolsets: '/toolsets', toolset: '/toolsets?open=my-toolset', 'toolset-import': '/toolsets?new=1', workspaces: '/workspaces', workspace: '/workspaces/demo', 'workspace-file': '/workspaces/demo?file=src%2Fapp%2Fmain.py', 'workspace-document': '/workspaces/demo?file=README.md', 'workspace-timeline': '/workspaces/demo?tab=timeline',
  chat: '/chat/CHAT', 'chat-new': '/chat', runs: '/runs', run: '/runs/RUN',
  agents: '/agents', agent: '/agents/order-helper', 'agent-definition': '/agents/order-helper?tab=definition', 'agent-tools': '/agents/order-helper?tab=tools', 'agent-new': '/agents/new',
  retrieval: '/retrieval', 'retrieval-documents': '/retrieval/handbook', 'retrieval-try': '/retrieval/handbook?tab=try', 'retrieval-settings': '/retrieval/handbook?tab=settings', 'retrieval-new': '/retrieval?new=1',
  artifacts: '/artifacts', artifact: '/artifacts/word-count', 'artifact-new': '/artifacts/new', 'new-steps': '/tools/new?type=steps', 'new-artifact': '/tools/new?type=artifact',
}).flatMap(([name, path]) => [WIDE, PHONE].flatMap((viewport) => ['light', 'dark'].map((theme) => ({ name: `${name}-${viewport.width}-${theme}`, path, viewport, theme }))));

/** Makes a file smaller where the machine has a program for it. */
function compress(file) {
  spawnSync('pngquant', ['--force', '--skip-if-larger', '--quality=70-95', '--strip', '--output', file, file]);
}

const only = process.env.ONLY?.split(',');
const variants = process.env.ALL && process.env.ALL !== '1' ? process.env.ALL.split(',') : undefined;
const browser = await Browser.launch();
const world = await World.create(browser);
let failed = false;
try {
  mkdirSync(out, { recursive: true });
  const { chat, run } = await world.demo();
  if (process.env.ALL) {
    await world.example();
  } else {
    await install(world.haft, exampleFiles('app-builder'));
    await Workspace.create(world.haft, 'demo');
  }
  for (const shot of process.env.ALL ? EVERYTHING : DOCUMENTED) {
    if (variants && !variants.some((part) => shot.name.endsWith(part))) continue;
    if (only && !only.some((part) => shot.name.startsWith(part))) continue;
    const { name, path, viewport = WIDE, theme = 'light', act } = shot;
    const page = await world.open(undefined, { viewport, colorScheme: theme, locale: process.env.LOCALE ?? 'en-US', ...(viewport === PHONE && !process.env.ALL ? { deviceScaleFactor: 2 } : {}) });
    await world.go(page, path.replace('CHAT', chat).replace('RUN', run));
    await act?.(page);
    await page.mouse.move(0, 0);
    // Data and charts; the live stream never lets the network become idle.
    await page.waitForTimeout(900);
    const file = join(out, `${name}.png`);
    await page.screenshot({ path: file, caret: 'hide', animations: 'disabled' });
    compress(file);
    process.stdout.write(`${file} ${(statSync(file).size / 1024).toFixed(0)} KiB\n`);
    await page.context().close();
  }
  if (browser.problems.length > 0) {
    failed = true;
    process.stdout.write(`the pages reported:\n${[...new Set(browser.problems)].join('\n')}\n`);
  }
} finally {
  await world.end();
  await browser.close();
}
process.exit(failed ? 1 : 0);
