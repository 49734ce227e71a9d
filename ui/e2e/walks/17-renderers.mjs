// Every renderer, in the tester and on the page of a call. The plans are put into the answers of a real server.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { example } from '../lib/unreleased.mjs';

const shown = (page) => page.getByRole('tabpanel', { name: 'Rendered' });

/** Runs a tool whose calls have the plan, in the tester. */
async function rendered(world, name, plan, { context = {}, output = '{}' } = {}) {
  await world.haft.tool(`name: ${name}\ndescription: Has a render plan\nparams: []\nimplementation: {type: exec, argv: [echo, '${output}'], output: json}\n`);
  const fake = example();
  fake.plans[name] = () => ({ render_plan: plan, ...context });
  const page = await fake.attach(await world.open(undefined));
  await world.go(page, `/tools/user-created:${name}@1.0.0?tab=try`);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('main').getByText('Success', { exact: true }).first().waitFor();
  return { page, fake, panel: shown(page) };
}

const rows = [{ city: 'Berlin', people: 3_700_000 }, { city: 'Paris', people: 2_100_000 }, { city: 'Rome', people: 2_800_000 }, ...Array.from({ length: 9_997 }, (_, index) => ({ city: `Town ${index}`, people: index }))];

export const tests = {
  async 'code: shown with its language, edited, saved back, and a conflict is not overwritten'(world) {
    const { page, fake, panel } = await rendered(world, 'show-code', { renderer: 'code', config: { file: 'src/app/main.py', language: 'auto', editable: true } }, { context: { workspace: 'demo' } });
    const editor = panel.getByRole('textbox', { name: 'src/app/main.py' });
    await editor.getByText('def').first().waitFor();
    await page.waitForFunction(() => document.querySelectorAll('.cm-line span').length > 2);
    await editor.click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.insertText('# edited\n');
    await panel.getByText('Not saved').waitFor();
    await page.keyboard.press('Control+s');
    await page.getByText('Saved src/app/main.py').waitFor();
    assert.match(fake.workspaces.get('demo').current.files.get('src/app/main.py').toString(), /^# edited\ndef run/);
    // Somebody else changes the file; the next save says so.
    fake.workspaces.get('demo').call('other', { 'src/app/main.py': 'changed by a tool\n' });
    await editor.click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.insertText('# again\n');
    await panel.getByRole('button', { name: 'Save', exact: true }).click();
    await panel.getByText('The file has changed in the meantime').waitFor();
    assert.equal(fake.workspaces.get('demo').current.files.get('src/app/main.py').toString(), 'changed by a tool\n');
    await panel.getByRole('button', { name: 'Discard my edit' }).click();
    await editor.getByText('changed by a tool').waitFor();
    await panel.getByRole('link', { name: 'Open in workspace' }).click();
    await page.waitForURL(/\/workspaces\/demo\?file=/);
    await page.getByRole('heading', { name: 'src/app/main.py' }).waitFor();
  },

  async 'document: read, edited beside its preview, saved; HTML in it stays text'(world) {
    const { page, fake, panel } = await rendered(world, 'show-document', { renderer: 'document', config: { file: 'README.md', editable: true } }, { context: { workspace: 'demo' } });
    await panel.getByRole('heading', { name: 'Demo' }).waitFor();
    await panel.getByText('Edit', { exact: true }).click();
    const editor = panel.getByRole('textbox', { name: 'README.md' });
    await editor.click();
    await page.keyboard.press('Control+End');
    await page.keyboard.insertText('\n## Next\n\n<img src=x onerror="window.hacked = 1"> **bold**\n');
    await panel.getByRole('heading', { name: 'Next' }).waitFor();
    await panel.locator('strong', { hasText: 'bold' }).waitFor();
    assert.equal(await panel.locator('img').count(), 0);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    await panel.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved README.md').waitFor();
    assert.match(fake.workspaces.get('demo').current.files.get('README.md').toString(), /## Next/);
  },

  async 'html: runs in a frame of its own that cannot reach the page'(world) {
    await world.haft.tool('name: show-html\ndescription: Has a page\nparams: []\nimplementation: {type: exec, command: echo ok}\n');
    const fake = example();
    fake.plans['show-html'] = () => ({ render_plan: { renderer: 'html', config: { height: 200 } } });
    fake.documents.set('html', '<!doctype html><body><p id="out">waiting</p><script>let reach = "no"; try { void parent.document.body; reach = "yes"; } catch {} document.querySelector("#out").textContent = "origin " + window.origin + ", parent " + reach;</script>');
    const page = await fake.attach(await world.open(undefined));
    await world.go(page, '/tools/user-created:show-html@1.0.0?tab=try');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    const frame = page.locator('iframe');
    await frame.contentFrame().getByText('origin null, parent no').waitFor();
    assert.equal(await frame.getAttribute('sandbox'), 'allow-scripts');
  },

  async 'frame: only http and https'(world) {
    const { panel } = await rendered(world, 'show-frame', { renderer: 'frame', config: { url: 'javascript:alert(1)' } });
    await panel.getByText('Only http and https addresses').waitFor();
    assert.equal(await panel.locator('iframe').count(), 0);
  },

  async 'table: 10,000 rows are sorted, filtered and exported'(world) {
    const { page, panel } = await rendered(world, 'show-table', { renderer: 'table', config: { rows, columns: [{ key: 'city', label: 'City' }, { key: 'people', label: 'People' }] } });
    const table = panel.getByRole('table');
    const first = () => table.getByRole('row').nth(1).innerText();
    await table.getByRole('button', { name: 'People' }).click();
    assert.match(await first(), /Town 0/);
    await table.getByRole('button', { name: 'People' }).click();
    assert.match(await first(), /Berlin/);
    assert.equal(await table.getByRole('columnheader', { name: 'People' }).getAttribute('aria-sort'), 'descending');
    assert.ok(await table.getByRole('row').count() < 100);
    await panel.getByRole('textbox', { name: 'Filter rows' }).fill('town 99');
    await panel.getByText('277 of 10,000 rows').waitFor();
    const [file] = await Promise.all([page.waitForEvent('download'), panel.getByRole('button', { name: 'CSV' }).click()]);
    const lines = (await readFile(await file.path(), 'utf8')).split('\r\n');
    assert.equal(lines[0], 'City,People');
    assert.equal(lines.length, 278);
  },

  async 'chart: bars from a file, and the same figures as a table'(world) {
    const { panel } = await rendered(world, 'show-chart', { renderer: 'chart', config: { file: 'data/sales.csv', type: 'bar', x: 'month', y: ['sales', 'costs'], title: 'First quarter' } }, { context: { workspace: 'demo' } });
    await panel.getByRole('img', { name: /First quarter/ }).waitFor();
    assert.equal(await panel.locator('svg[role=img] rect').count(), 6);
    await panel.getByRole('button', { name: 'Show as table' }).click();
    await panel.getByRole('row').filter({ hasText: 'Feb' }).getByText('135').waitFor();
  },

  async 'chart: a line and a pie'(world) {
    const line = await rendered(world, 'show-line', { renderer: 'chart', config: { type: 'line', rows: [{ t: 'a', v: 1 }, { t: 'b', v: 5 }, { t: 'c', v: 3 }] } });
    await line.panel.locator('svg[role=img] path').waitFor();
    const pie = await rendered(world, 'show-pie', { renderer: 'chart', config: { type: 'pie', rows: [{ k: 'x', v: 3 }, { k: 'y', v: 1 }] } });
    await pie.panel.getByRole('listitem').filter({ hasText: '75%' }).waitFor();
  },

  async 'image, differences, terminal, JSON'(world) {
    const image = await rendered(world, 'show-image', { renderer: 'image', config: { file: 'assets/logo.svg', alt: 'The logo' } }, { context: { workspace: 'demo' } });
    await image.panel.getByRole('img', { name: 'The logo' }).waitFor();
    assert.ok(await image.panel.getByRole('img', { name: 'The logo' }).evaluate((element) => element.naturalWidth) > 0);
    const patch = await rendered(world, 'show-diff', { renderer: 'diff', config: { patch: '--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old line\n+new line\n' } });
    await patch.panel.getByText('new line').waitFor();
    const terminal = await rendered(world, 'show-terminal', { renderer: 'terminal', config: { content: '\u001B[32mpassed\u001B[0m <b>3 tests</b>\n10%\r100%\n' } });
    await terminal.panel.getByText('<b>3 tests</b>').waitFor();
    assert.equal(await terminal.panel.getByText('10%', { exact: true }).count(), 0);
    const color = await terminal.panel.getByText('passed', { exact: true }).evaluate((element) => getComputedStyle(element).color);
    const plain = await terminal.panel.getByText('100%', { exact: true }).evaluate((element) => getComputedStyle(element).color);
    assert.notEqual(color, plain);
    const tree = await rendered(world, 'show-json', { renderer: 'json', config: { value: { big: rows } } });
    await tree.panel.getByText('10,000 items').waitFor();
    assert.ok(await tree.page.evaluate(() => document.querySelectorAll('*').length) < 5_000);
  },

  async 'a plan with an error says why, and the result is there'(world) {
    const failed = await rendered(world, 'show-failed', { renderer: 'code', config: {}, error: '`$return.code` is missing' }, { output: '{"answer": 42}' });
    await failed.panel.getByRole('alert').getByText('`$return.code` is missing').waitFor();
    await failed.panel.getByText('42').waitFor();
    const unknown = await rendered(world, 'show-unknown', { renderer: 'hologram', config: {} });
    await unknown.panel.getByText('hologram').waitFor();
  },

  async 'the same on the page of the call'(world) {
    const { page } = await rendered(world, 'show-again', { renderer: 'table', config: { rows: rows.slice(0, 3) } }, { context: { workspace: 'demo', workspace_use: { name: 'demo', changes: [{ path: 'data/sales.csv', change: 'modified' }, { path: 'old.txt', change: 'removed' }], changed: 2 } } });
    await page.getByRole('link', { name: 'Open the call' }).click();
    await page.getByRole('complementary').getByRole('table').getByText('Berlin').waitFor();
    await page.getByRole('tab', { name: 'Raw' }).click();
    await page.getByRole('tabpanel', { name: 'Raw' }).waitFor();
    await page.getByText('Changed files: 2').waitFor();
    await page.getByRole('link', { name: 'data/sales.csv' }).click();
    await page.waitForURL(/\/workspaces\/demo\?file=/);
  },
};
