// Bundles, webhooks, and changes of many tools at once.
import assert from 'node:assert/strict';
import http from 'node:http';
import { freePort } from '../lib/haft.mjs';

const tool = (name, bundle) => ({ yaml: `name: ${name}\ndescription: Says ${name}\nparams: []\nimplementation: {type: exec, command: echo ${name}}\n`, bundle });

async function create(world, { yaml, bundle }) {
  await world.haft.api('POST', `/tools${bundle ? `?bundle=${bundle}` : ''}`, yaml, { type: 'application/yaml' });
}

export const tests = {
  async 'a bundle is created, filled and published as a whole'(world) {
    const page = await world.open('/bundles');
    await page.getByRole('button', { name: 'New bundle' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: /^Short name/ }).fill('shop');
    await dialog.getByRole('textbox', { name: /^Display name/ }).fill('The shop');
    await dialog.getByRole('button', { name: 'Save' }).click();
    const drawer = page.getByRole('complementary');
    await drawer.getByRole('heading', { name: 'The shop' }).waitFor();
    await create(world, tool('open-shop', 'shop'));
    await create(world, tool('close-shop', 'shop'));
    await drawer.getByRole('link', { name: 'close-shop' }).waitFor();
    await drawer.getByRole('button', { name: 'Publish all' }).click();
    await dialog.getByText('2 to publish, 0 unchanged, 0 with errors').waitFor();
    await dialog.getByRole('button', { name: 'Publish 2 tools' }).click();
    await page.getByText('Published 2 tools of shop').waitFor();
    for (const name of ['open-shop', 'close-shop']) assert.equal((await world.haft.api('GET', `/tools/shop:${name}`)).status, 'published');
    // Nothing is left to publish.
    await drawer.getByRole('button', { name: 'Publish all' }).click();
    await dialog.getByText('0 to publish, 2 unchanged, 0 with errors').waitFor();
    assert.equal(await dialog.getByRole('button', { name: /^Publish 0/ }).isDisabled(), true);
  },

  async 'a bundle with a broken tool is not published, and the page says which one'(world) {
    await world.haft.api('PUT', '/tools/bundles/half', { slug: 'half', display_name: 'Half' });
    await create(world, tool('whole', 'half'));
    await create(world, { bundle: 'half', yaml: 'name: broken\ndescription: Has no function\nparams: []\nimplementation: {type: function, function: does_not_exist}\n' });
    const page = await world.open('/bundles?open=half');
    await page.getByRole('complementary').getByRole('button', { name: 'Publish all' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Fix the tools with errors first').waitFor();
    await dialog.getByRole('row').filter({ hasText: 'broken' }).getByText('Error', { exact: true }).waitFor();
    assert.equal(await dialog.getByRole('button', { name: /^Publish/ }).isDisabled(), true);
    assert.equal((await world.haft.api('GET', '/tools/half:whole')).status, 'draft');
  },

  async 'an event that was not delivered is delivered again'(world) {
    // Nobody listens at first.
    const port = await freePort();
    await create(world, tool('report-done'));
    const page = await world.open('/webhooks');
    await page.getByRole('button', { name: 'New webhook' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'URL' }).fill(`http://127.0.0.1:${port}/hook`);
    await dialog.getByRole('button', { name: 'Create webhook' }).click();
    await dialog.getByText('Signing secret').waitFor();
    await dialog.getByRole('button', { name: 'Close', exact: true }).last().click();
    await world.haft.invoke('report-done', {});
    const drawer = page.getByRole('complementary');
    const row = drawer.getByRole('row').filter({ hasText: 'call.finished' }).first();
    await row.getByText(/refused|connect/i).first().waitFor();
    const received = [];
    const server = world.keep(http.createServer(async (request, response) => {
      let text = '';
      for await (const part of request) text += part;
      received.push({ headers: request.headers, body: JSON.parse(text) });
      response.writeHead(200).end();
    }));
    await new Promise((resolve) => { server.listen(port, '127.0.0.1', resolve); });
    await row.getByRole('button', { name: 'Deliver again' }).click();
    await page.getByText('haft delivers the event again').waitFor();
    await drawer.getByText('Delivered', { exact: true }).first().waitFor();
    assert.ok(received.length >= 1);
    assert.match(received[0].headers['webhook-signature'], /^v1,/);
    await row.getByRole('button', { name: 'Show the payload' }).click();
    await drawer.getByText('webhook-id').waitFor();
  },

  async 'several tools are deleted, and come back as they were'(world) {
    for (const name of ['bulk-one', 'bulk-two', 'bulk-three']) await create(world, tool(name));
    await world.haft.api('POST', '/tools/bulk-one/publish');
    await world.haft.api('PATCH', '/tools/bulk-two', { enabled: false });
    const page = await world.open('/tools?q=bulk-');
    await page.getByRole('row').filter({ hasText: 'bulk-three' }).waitFor();
    for (const name of ['bulk-one', 'bulk-two']) await page.getByRole('checkbox', { name: `Select ${name}` }).check();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('Deleted 2 tools').waitFor();
    await page.getByRole('row').filter({ hasText: 'bulk-one' }).waitFor({ state: 'detached' });
    assert.equal((await world.haft.api('GET', '/tools?q=bulk-&page_size=50&include_disabled=true')).total, 1);
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Restored 2 tools').waitFor();
    await page.getByRole('row').filter({ hasText: 'bulk-one' }).waitFor();
    const [one, two] = [await world.haft.api('GET', '/tools/bulk-one'), await world.haft.api('GET', '/tools/bulk-two')];
    assert.deepEqual([one.status, one.enabled, two.status, two.enabled], ['published', true, 'draft', false]);
  },

  async 'long names stay within the preview of an import'(world) {
    const name = `get${'VeryLongName'.repeat(6)}`;
    const document = { openapi: '3.1.0', info: { title: 'Long', version: '1.0.0' }, servers: [{ url: 'https://api.example.com' }], paths: { [`/${'segment'.repeat(20)}/{id}`]: { get: { operationId: name, parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }], responses: { 200: { description: 'ok' } } } } } };
    for (const width of [1440, 390]) {
      const page = await world.open('/import', { viewport: { width, height: 844 } });
      await page.getByLabel('Text or URL').fill(JSON.stringify(document));
      await page.getByRole('button', { name: 'Preview', exact: true }).click();
      await page.getByRole('button', { name: 'Import 1 tool' }).waitFor();
      const over = await page.evaluate(() => Math.max(...[...document.querySelectorAll('main, main *')].filter((each) => each.closest('textarea, .cm-editor') === null).map((each) => each.getBoundingClientRect().right)) - window.innerWidth);
      assert.ok(over <= 0, `${over} pixels too wide at ${width}`);
    }
  },
};
