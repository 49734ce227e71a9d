import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const LONG_MS = 60_000;
const GITHUB = new URL('../../../target/test-data/github-openapi.json', import.meta.url).pathname;

/** An OpenAPI document with as many operations as asked for. */
function largeDocument(operations) {
  const paths = {};
  for (let index = 0; index < operations; index += 1) {
    paths[`/items${index}/{id}`] = { get: { operationId: `getItem${index}`, summary: `Returns item ${index}`, parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }], responses: { 200: { description: 'ok' } } } };
  }
  return JSON.stringify({ openapi: '3.1.0', info: { title: 'Large', version: '1.0.0' }, servers: [{ url: 'https://api.example.com' }], paths });
}

/** Chooses the file, looks at the preview, leaves one operation out and imports the rest. */
async function importAll(world, file, atLeast) {
  const page = await world.open('/import');
  await page.locator('input[type=file]').setInputFiles(file);
  await page.getByRole('button', { name: 'Preview', exact: true }).click({ timeout: LONG_MS });
  const start = page.getByRole('button', { name: /^Import [\d,]+ tools/ });
  await start.waitFor({ timeout: LONG_MS });
  const count = Number(/[\d,]+/.exec(await start.textContent())[0].replaceAll(',', ''));
  assert.ok(count >= atLeast, `${count} operations`);
  await page.getByRole('main').getByRole('checkbox').first().uncheck();
  await page.waitForFunction((n) => [...document.querySelectorAll('main button')].some((each) => each.textContent.replaceAll(',', '').includes(`Import ${n} tools`)), count - 1);
  await start.click();
  await page.waitForURL(/\/ui\/tools\?bundle=/, { timeout: LONG_MS });
  await page.getByRole('row').nth(5).waitFor();
  const { total } = await world.haft.api('GET', `/tools?page_size=1&bundle_ids=${new URL(page.url()).searchParams.get('bundle')}`);
  assert.equal(total, count - 1);
  return page;
}

const github = {
  async "GitHub's API description"(world) {
    const page = await importAll(world, GITHUB, 1000);
    await page.getByRole('textbox', { name: /Filter/ }).fill('list issues assigned');
    await page.getByRole('row').nth(1).waitFor();
  },
};

export const tests = {
  // It takes a debug build two minutes; `E2E_FULL=1` and an optimised binary are for this.
  ...(process.env.E2E_FULL && existsSync(GITHUB) ? github : {}),
  async 'an API description with 1,000 operations'(world) {
    const file = join(world.haft.home, 'large.json');
    writeFileSync(file, largeDocument(1000));
    const page = await importAll(world, file, 1000);
    await page.getByRole('textbox', { name: /Filter/ }).fill('getItem999');
    await page.getByRole('row').filter({ hasText: /getitem.?999/i }).first().waitFor();
  },

  async 'a curl command; its secret is not stored'(world) {
    const page = await world.open('/import');
    await page.getByLabel('Text or URL').fill("curl 'https://api.example.com/v1/search?q=shoes' -H 'Authorization: Bearer secret-value'");
    await page.getByRole('button', { name: 'Create tool' }).click();
    await page.waitForURL(/\/ui\/tools/);
    const { tools } = await world.haft.api('GET', '/tools?page_size=50&q=search&bundle_ids=user-created');
    const tool = tools.find((each) => JSON.stringify(each).includes('api.example.com'));
    assert.ok(tool, JSON.stringify(tools).slice(0, 500));
    assert.ok(!JSON.stringify(await world.haft.api('GET', `/tools/${tool.name}/source`)).includes('secret-value'));
  },

  async 'a definition as YAML and as .skill'(world) {
    const page = await world.open('/import');
    await page.getByLabel('Text or URL').fill('name: from-yaml\ndescription: Says hello\nparams: []\nimplementation: {type: exec, command: echo hello}\n');
    await page.getByRole('button', { name: 'Import 1 tool' }).click();
    await page.waitForURL(/\/ui\/tools/);
    await world.haft.api('GET', '/tools/from-yaml');
    await world.go(page, '/import');
    await page.getByLabel('Text or URL').fill('---\nname: from-skill\ndescription: Says hello\nruntime: bash\n---\necho hello\n');
    await page.getByRole('button', { name: 'Import 1 tool' }).click();
    await page.waitForURL(/\/ui\/tools/);
    await world.haft.api('GET', '/tools/from-skill');
  },

  async 'an MCP client configuration'(world) {
    const page = await world.open('/import');
    await page.getByLabel('Text or URL').fill(JSON.stringify({ mcpServers: { first: { command: 'true' }, second: { url: 'http://127.0.0.1:9/mcp' } } }));
    await page.getByRole('checkbox', { name: /first/ }).uncheck();
    await page.getByRole('button', { name: /^Add \d* ?server/ }).click();
    await page.waitForURL(/\/ui\/servers/);
    const { mcp_servers: servers } = await world.haft.api('GET', '/mcp-servers');
    assert.deepEqual(servers.map((server) => server.id), ['second']);
  },

  async 'text that is nothing of the kind is answered with what is wrong'(world) {
    const page = await world.open('/import');
    await page.getByLabel('Text or URL').fill('neither this nor that');
    await page.getByRole('main').getByText('Error', { exact: true }).or(page.getByRole('main').getByRole('alert')).first().waitFor();
    assert.equal((await world.haft.api('GET', '/tools?page_size=50&q=neither')).total, 0);
  },
};
