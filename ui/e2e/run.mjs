// Drives the built page in a browser against a real haft server: HAFT_BIN=…/haft node e2e/run.mjs [filter]
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';
import { demo } from './demo.mjs';
import { serve } from './serve.mjs';

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const bin = process.env.HAFT_BIN;
if (!bin) throw new Error('HAFT_BIN must name a haft binary');
const filter = process.argv[2] ?? '';

const freePort = () => new Promise((resolve) => { const probe = net.createServer().listen(0, '127.0.0.1', () => { const { port } = probe.address(); probe.close(() => resolve(port)); }); });
const home = mkdtempSync(join(tmpdir(), 'haft-ui-'));
const port = await freePort();
const haftUrl = `http://127.0.0.1:${port}`;
let haft;

async function startHaft() {
  haft = spawn(bin, ['serve', '--home', home, '--addr', `127.0.0.1:${port}`], { stdio: 'ignore' });
  for (let tries = 0; tries < 150; tries += 1) {
    if (await fetch(`${haftUrl}/readyz`).then((answer) => answer.ok, () => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error('haft did not start');
}
const stopHaft = () => new Promise((resolve) => { haft.once('exit', resolve); haft.kill('SIGTERM'); });

await startHaft();
const token = readFileSync(join(home, 'tokens'), 'utf8').split('\n')[0].trim();
const server = await serve({ target: haftUrl, port: 0 });
const base = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const violations = [];

async function open(as = token, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-US', ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(12_000);
  page.on('console', (message) => { if (/Content.Security|violates/.test(message.text())) violations.push(message.text()); });
  page.on('pageerror', (error) => violations.push(`page error: ${error.message}`));
  await page.goto(`${base}/login`);
  await page.fill('input[name=token]', as);
  await page.click('button[type=submit]');
  await page.waitForURL('**/ui/**');
  return page;
}
const go = async (page, path) => { await page.goto(`${base}/ui${path}`); await page.waitForSelector('h1, h2'); };
const api = async (method, path, body, as = token) => (await fetch(`${haftUrl}/api${path}`, { method, headers: { Authorization: `Bearer ${as}` }, body: body && JSON.stringify(body) })).json();
const newToken = async (fields) => (await api('POST', '/tokens', fields)).data.token;

const tests = {
  async 'first run shows the guide'() {
    const page = await open();
    await page.getByRole('heading', { name: 'Create a tool' }).waitFor();
    await page.getByRole('heading', { name: 'Connect an agent' }).waitFor();
    await page.getByRole('button', { name: /Create a token for/ }).click();
    await page.getByText('Created the token').waitFor();
    const config = await page.locator('pre').last().textContent();
    const made = /haft_\w+/.exec(config)[0];
    await api('POST', '/tools/datetime_utils/invoke', { args: { operation: 'now' } }, made);
    await page.getByText('The first call has arrived').waitFor({ timeout: 15_000 });
    await page.context().close();
  },
  async 'create a script tool by form, run it, see the call'() {
    const page = await open();
    await go(page, '/tools/new?type=script');
    await page.getByLabel('Name', { exact: false }).first().fill('say-hello');
    await page.getByRole('button', { name: 'Create tool' }).click();
    await page.waitForURL(/say-hello.*tab=try/);
    await page.locator('#arg_who').fill('Ada');
    await page.keyboard.press('Control+Enter');
    await page.getByText('Hello, Ada').first().waitFor();
    await page.getByRole('tab', { name: 'Steps' }).click();
    await page.getByText('Execute').waitFor();
    await go(page, '/calls');
    await page.getByRole('row').filter({ hasText: 'say-hello' }).first().click();
    await page.getByRole('button', { name: 'Run again' }).click();
    await page.getByText('Called again').waitFor();
    await page.context().close();
  },
  async 'an invalid argument is shown at its field'() {
    const page = await open();
    await go(page, '/tools/datetime_utils?tab=try');
    await page.getByText('JSON', { exact: true }).click();
    await page.locator('.cm-content').fill('{"operation": "nonsense"}');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('is not one of').first().waitFor();
    await page.context().close();
  },
  async 'import a curl command'() {
    const page = await open();
    await go(page, '/import');
    await page.getByLabel('Text or URL').fill("curl 'https://api.example.com/v1/search?q=shoes' -H 'Authorization: Bearer secret-value'");
    await page.getByRole('button', { name: 'Create tool' }).click();
    await page.waitForURL(/get-v1-search/);
    const { data } = await api('GET', '/tools/get-v1-search');
    assert.ok(!JSON.stringify(data).includes('secret-value'));
    await page.context().close();
  },
  async 'stream output and cancel'() {
    await demo(haftUrl, token);
    const page = await open();
    await go(page, '/tools/user-created:count-slowly@1.0.0?tab=try');
    await page.locator('#arg_to').fill('60');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('step 3', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Cancel call' }).click();
    await page.getByText('Cancelled').first().waitFor();
    await page.context().close();
  },
  async 'an approval from two people'() {
    const caller = await newToken({ name: 'asker', role: 'caller' });
    const asker = await open(caller);
    await go(asker, '/tools/user-created:deploy@1.0.0?tab=try');
    await asker.locator('#arg_branch').fill('feature-x');
    await asker.getByRole('button', { name: 'Run', exact: true }).click();
    await asker.getByText('Waiting for approval').first().waitFor();
    const admin = await open();
    await go(admin, '/approvals');
    await admin.getByRole('row').filter({ hasText: 'feature-x' }).click();
    await admin.getByRole('button', { name: 'Approve call' }).click();
    await admin.getByText('Approved deploy').waitFor();
    await go(admin, '/calls?tool=deploy');
    await admin.getByRole('row').filter({ hasText: 'feature-x' }).getByRole('img', { name: 'Success' }).waitFor();
    await asker.context().close();
    await admin.context().close();
  },
  async 'a viewer sees only what it may do'() {
    const page = await open(await newToken({ name: 'viewer', role: 'viewer' }));
    await go(page, '/tools');
    await page.getByRole('row').nth(2).waitFor();
    assert.equal(await page.getByRole('link', { name: 'New tool' }).count(), 0);
    assert.equal(await page.getByRole('link', { name: 'Tokens' }).count(), 0);
    await go(page, '/tokens');
    await page.getByText('You need the role Admin').waitFor();
    await page.context().close();
  },
  async 'a second tenant sees nothing of the first'() {
    await api('POST', '/tenants', { id: 'acme', name: 'Acme' });
    const page = await open(await newToken({ name: 'acme', role: 'editor', tenant: 'acme' }));
    await go(page, '/tools?q=greet');
    await page.getByText('No tool matches').waitFor();
    await go(page, '/tools/user-created:greet@1.0.0');
    await page.getByText('Not found').waitFor();
    await page.context().close();
  },
  async 'hostile texts are shown as text'() {
    const yaml = 'name: hostile\ndescription: "<img src=x onerror=window.hacked=1> **b** <script>window.hacked=1</script> [l](javascript:window.hacked=1) \\u202Eevil"\nparams: []\nimplementation: {type: exec, command: "echo \'<script>window.hacked=1</script>\'"}\n';
    await fetch(`${haftUrl}/api/tools`, { method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/yaml' }, body: yaml });
    const page = await open();
    await go(page, '/tools/user-created:hostile@1.0.0');
    await page.getByText('U+202E').first().waitFor();
    await page.locator('strong', { hasText: 'b' }).first().waitFor();
    assert.equal(await page.locator('main img[src="x"], main a[href^="javascript"]').count(), 0);
    await go(page, '/tools/user-created:hostile@1.0.0?tab=try');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('Success').first().waitFor();
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    await page.context().close();
  },
  async 'an edit survives a restart of the server'() {
    const page = await open();
    await go(page, '/tools/user-created:greet@1.0.0?tab=definition');
    await page.getByLabel('Description', { exact: false }).first().fill('Greets somebody politely');
    await page.waitForTimeout(600);
    await stopHaft();
    await page.getByText('No connection to haft').waitFor({ timeout: 20_000 });
    await startHaft();
    await page.getByText('No connection to haft').waitFor({ state: 'detached', timeout: 20_000 });
    await page.reload();
    await page.getByText('Unsaved edits').waitFor();
    await page.getByRole('button', { name: 'Save draft' }).click();
    await page.getByText('Saved as a new revision').waitFor();
    await page.context().close();
  },
  async 'German, and the keyboard'() {
    const page = await open(token, { locale: 'de-DE' });
    await go(page, '/tools');
    await page.getByRole('link', { name: 'Aufrufe', exact: true }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('c');
    await page.getByRole('heading', { name: 'Aufrufe' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByRole('combobox').fill('orders');
    await page.getByRole('option').filter({ hasText: 'orders' }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/user-created.*orders/);
    await page.context().close();
  },
  async 'no serious accessibility violation'() {
    if (filter !== '') await demo(haftUrl, token);
    const paths = ['/', '/tools', '/tools?open=user-created:orders@1.0.0', '/tools/user-created:orders@1.0.0?tab=try', '/tools/user-created:orders@1.0.0?tab=definition', '/tools/user-created:orders@1.0.0?tab=versions', '/tools/new', '/calls', '/approvals', '/servers', '/servers?new=1', '/connect', '/bundles', '/recipes', '/import', '/policy', '/policy?tab=explain', '/limits', '/audit', '/credentials', '/tokens?new=1', '/tenants', '/health', '/settings'];
    const found = [];
    for (const colorScheme of ['light', 'dark']) {
      const page = await open(token, { colorScheme, reducedMotion: 'reduce' });
      for (const path of paths) {
        await go(page, path);
        await page.waitForTimeout(500);
        // The policy of the page allows no inline script; the debugger protocol is not bound by it.
        await page.evaluate(axeSource);
        const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
        for (const item of result.violations.filter((each) => ['serious', 'critical'].includes(each.impact))) found.push(`${colorScheme} ${path} ${item.id}: ${item.nodes.slice(0, 3).map((node) => `${node.target.join(' ')} ${node.html.slice(0, 110)} ${node.any[0]?.message?.slice(0, 140) ?? ''}`).join(' | ')}`);
      }
      await page.context().close();
    }
    assert.deepEqual(found, []);
  },
};

let failed = 0;
for (const [name, run] of Object.entries(tests)) {
  if (!name.includes(filter)) continue;
  const start = Date.now();
  try {
    await run();
    process.stdout.write(`ok    ${name} (${Date.now() - start} ms)\n`);
  } catch (error) {
    failed += 1;
    process.stdout.write(`FAIL  ${name}\n${error.message.slice(0, 6000)}\n`);
    for (const context of browser.contexts()) { await context.pages()[0]?.screenshot({ path: join(tmpdir(), `haft-ui-fail-${failed}.png`) }).catch(() => undefined); await context.close(); }
  }
}
if (violations.length > 0) { failed += 1; process.stdout.write(`FAIL  policy or page errors:\n${[...new Set(violations)].join('\n').slice(0, 3000)}\n`); }
await browser.close();
server.close();
server.closeAllConnections();
await stopHaft();
rmSync(home, { recursive: true, force: true });
process.exit(failed === 0 ? 0 : 1);
