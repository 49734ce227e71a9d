// Names, descriptions and results of strangers: shown as text, never run, and the page stays usable.
import assert from 'node:assert/strict';
import { mcpServer } from '../lib/servers.mjs';

const HTML = '<img src=x onerror=window.hacked=1> **bold** <script>window.hacked=1</script> <svg onload=window.hacked=1> <iframe srcdoc="<script>parent.hacked=1</script>"></iframe> [link](javascript:window.hacked=1) <a href="javascript:window.hacked=1">x</a> <form action="//evil.example"><input></form> <style>*{display:none}</style>';
const yaml = (name, description, command) => `name: ${name}\ndescription: ${JSON.stringify(description)}\nparams: []\nexecution: {timeout_ms: 60000, limits: {max_response_bytes: 33554432}}\nimplementation: {type: exec, command: ${JSON.stringify(command)}}\n`;

async function assertHarmless(page) {
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  const bad = await page.locator('main').evaluate((main) => [...main.querySelectorAll('img[src="x"], a[href^="javascript"], iframe, form[action*="evil"], script, svg[onload]')].map((each) => each.outerHTML));
  assert.deepEqual(bad, []);
}

/** Fails if the page does not answer within the time: the main thread is free. */
async function assertResponsive(page, ms = 1500) {
  const start = Date.now();
  await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => resolve()); }));
  assert.ok(Date.now() - start < ms, `the page answered after ${Date.now() - start} ms`);
}

export const tests = {
  async 'HTML, scripts and marks that turn the text in a description and a result'(world) {
    await world.haft.tool(yaml('hostile', `${HTML} \u202Eevil`, `cat <<'EOF'\n${HTML}\nEOF`));
    const page = await world.open('/tools?q=hostile');
    await page.getByRole('row').nth(1).click();
    await page.getByText('U+202E').first().waitFor();
    await assertHarmless(page);
    await world.go(page, '/tools/user-created:hostile@1.0.0?tab=try');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('main').getByText('Success', { exact: true }).first().waitFor();
    for (const tab of ['Raw', 'Output', 'Rendered']) {
      await page.getByRole('tab', { name: new RegExp(`^${tab}`) }).click();
      await assertHarmless(page);
    }
    await world.go(page, '/calls');
    await page.getByRole('row').nth(1).click();
    await page.getByRole('complementary').getByText('bold').first().waitFor();
    await assertHarmless(page);
    await world.go(page, '/');
    await assertHarmless(page);
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').last().fill('hostile');
    await page.getByRole('option').first().waitFor();
    await assertHarmless(page);
  },

  async 'the same from an MCP server, in names and schemas'(world) {
    const server = await mcpServer(world, [{ name: 'x', title: HTML, description: HTML, inputSchema: { type: 'object', title: HTML, properties: { '<b onclick=alert(1)>k</b>': { type: 'string', title: HTML, description: HTML, enum: ['<script>window.hacked=1</script>', 'b'] }, __proto__: { type: 'string' }, constructor: { type: 'string' } } } }]);
    await world.haft.api('POST', '/mcp-servers', { id: 'stranger', url: server.url });
    const page = await world.open('/servers?open=stranger');
    await page.getByRole('complementary').getByRole('link', { name: 'x', exact: true }).click();
    await page.getByRole('tab', { name: 'Overview' }).waitFor();
    await assertHarmless(page);
    await page.getByRole('button', { name: 'Try', exact: true }).click();
    await page.getByRole('button', { name: 'Run', exact: true }).waitFor();
    await assertHarmless(page);
    assert.equal(await page.getByText('This part of the page failed').count(), 0);
  },

  async '10 MB of text'(world) {
    await world.haft.tool(yaml('large', 'Prints 10 MB', 'for i in $(seq 1 105000); do echo "line $i <b>of a very long text</b> xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; done'));
    const page = await world.open('/tools/user-created:large@1.0.0?tab=try');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('main').getByText('Success', { exact: true }).first().waitFor();
    const { calls } = await world.haft.api('GET', '/calls?tool=large');
    assert.equal(calls[0].status, 'success', JSON.stringify(calls[0].error));
    await page.getByText(/^line 1 /).first().waitFor();
    await assertResponsive(page);
    for (const tab of ['Raw', 'Output', 'Rendered']) {
      await page.getByRole('tab', { name: new RegExp(`^${tab}`) }).click();
      await assertResponsive(page);
    }
    assert.ok(await page.evaluate(() => document.querySelectorAll('*').length) < 5_000);
    await world.go(page, '/calls?tool=large');
    await page.getByRole('row').nth(1).click();
    await page.getByRole('complementary').getByText(/^line 1 /).first().waitFor();
    await assertResponsive(page);
  },

  async 'deep and wide JSON'(world) {
    await world.haft.tool(yaml('deep', 'Prints deep JSON', "printf '{\"deep\":'; printf '[%.0s' $(seq 120); printf ']%.0s' $(seq 120); printf ',\"wide\":['; for i in $(seq 50000); do printf '%s,' $i; done; printf '0]}'"));
    const page = await world.open('/tools/user-created:deep@1.0.0?tab=try');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('main').getByText('Success', { exact: true }).first().waitFor();
    await page.getByText('2 keys').first().waitFor();
    await assertResponsive(page);
    await page.getByRole('tab', { name: 'Raw' }).click();
    await assertResponsive(page);
    assert.ok(await page.evaluate(() => document.querySelectorAll('*').length) < 5_000);
  },

  async 'very long names do not break the layout'(world) {
    const name = `n${'a'.repeat(60)}`;
    await world.haft.tool(yaml(name, 'word'.repeat(500), 'echo ok'));
    for (const width of [1440, 390]) {
      const page = await world.open(`/tools?q=${name.slice(0, 20)}`, { viewport: { width, height: 844 } });
      await page.getByRole('row').last().click();
      await page.getByRole('tab', { name: 'Overview' }).waitFor();
      const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(over <= 0, `${over} pixels too wide at ${width}`);
    }
  },
};
