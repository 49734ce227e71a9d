// Every type that the form offers: created by the form, then run in the tester.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { echoServer, mcpServer, wasmThatPrints } from '../lib/servers.mjs';

export const options = { weight: 2 };

/** Chooses a type in the gallery and fills in the name. */
async function start(world, card, name) {
  const page = await world.open('/tools/new');
  await page.getByRole('button', { name: card }).click();
  await page.getByRole('textbox', { name: /^Name/ }).first().fill(name);
  return page;
}

async function create(page, name) {
  await page.getByRole('button', { name: 'Create tool' }).click();
  await page.waitForURL((url) => url.pathname.includes(name) && url.searchParams.get('tab') === 'try');
}

/** Runs the tool with the arguments, and waits for the text in its result. */
async function run(page, args, expected) {
  await page.getByRole('button', { name: 'Run', exact: true }).waitFor();
  for (const [name, value] of Object.entries(args)) await page.locator(`#arg_${name}`).fill(value);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('main').getByText('Success', { exact: true }).first().waitFor();
  await page.getByRole('tabpanel', { name: 'Rendered' }).getByText(expected).first().waitFor();
}

/** Replaces the content of a code editor. */
async function code(page, label, text) {
  await page.getByRole('textbox', { name: label, exact: true }).first().click();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(text);
}

function bundleFile(world, name, content) {
  const folder = join(world.haft.home, 'skills', 'user-created');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), content);
}

/** The tool exists, and its page says why it is not ready. */
async function cannotRun(world, page, name, reason) {
  const button = page.getByRole('button', { name: 'Run', exact: true });
  await button.waitFor();
  assert.equal(await button.isDisabled(), true);
  const tool = await world.haft.api('GET', `/tools/${name}`);
  assert.equal(tool.ready, false);
  assert.ok(tool.error.includes(reason), tool.error);
  await page.getByText(tool.error.slice(0, 40)).first().waitFor();
}

export const tests = {
  async 'http'(world) {
    const url = await echoServer(world);
    const page = await start(world, /HTTP request/, 'check-weather');
    await page.getByRole('textbox', { name: /^URL/ }).fill(`${url}/weather/{{city}}`);
    await create(page, 'check-weather');
    await run(page, { city: 'Berlin' }, 'sunny');
    await page.getByText('/weather/Berlin').first().waitFor();
  },
  async 'bash script'(world) {
    const page = await start(world, /^Script/, 'say-hello');
    await create(page, 'say-hello');
    await run(page, { who: 'Ada' }, 'Hello, Ada');
  },
  async 'python script'(world) {
    const page = await start(world, /^Script/, 'shout');
    await page.getByRole('combobox', { name: /^Language/ }).or(page.getByRole('textbox', { name: /^Language/ })).first().click();
    await page.getByRole('option', { name: 'python' }).click();
    await code(page, 'Script', "import os\nprint(os.environ['who'].upper() + '!')\n");
    await create(page, 'shout');
    await run(page, { who: 'grace' }, 'GRACE!');
  },
  async 'command'(world) {
    const page = await start(world, /^Command/, 'list-folder');
    await code(page, 'Shell command', 'echo listing {{folder}}');
    await create(page, 'list-folder');
    await run(page, { folder: 'a b; c' }, 'listing a b; c');
  },
  async 'python function'(world) {
    bundleFile(world, 'tools.py', 'def run(workspace, **kwargs):\n    return {"answer": 6 * 7}\n');
    const page = await start(world, /Python function/, 'answer');
    await create(page, 'answer');
    await run(page, {}, '42');
  },
  async 'write a file, read it'(world) {
    const page = await start(world, /Write a file/, 'save-note');
    await create(page, 'save-note');
    await run(page, { path: 'notes/today.txt', text: 'buy milk' }, 'notes/today.txt');
    const reader = await start(world, /Read a file/, 'read-note');
    await create(reader, 'read-note');
    await run(reader, { path: 'notes/today.txt' }, 'buy milk');
  },
  async 'webassembly'(world) {
    bundleFile(world, 'tool.wasm', wasmThatPrints('{"from":"wasm"}'));
    const page = await start(world, /WebAssembly/, 'compute');
    await create(page, 'compute');
    await run(page, {}, 'wasm');
  },
  async 'mcp'(world) {
    const server = await mcpServer(world, [{ name: 'look_up', description: 'Looks a word up', inputSchema: { type: 'object', properties: {} } }]);
    const page = await start(world, /MCP tool/, 'look-up');
    await page.getByRole('textbox', { name: /^URL of the server/ }).fill(server.url);
    await page.getByRole('textbox', { name: /^Name of the tool/ }).fill('look_up');
    await create(page, 'look-up');
    await run(page, {}, 'look_up got {}');
  },
  async 'function'(world) {
    const page = await start(world, /^Function/, 'clock');
    await create(page, 'clock');
    await run(page, { operation: 'now' }, /20\d\d/);
  },
  // What they refer to may come later, except for a pipeline.
  async 'agent call without its agent is stored and says why it cannot run'(world) {
    const page = await start(world, /Agent call/, 'ask-researcher');
    await page.getByRole('combobox', { name: /^Agent/ }).fill('researcher');
    await create(page, 'ask-researcher');
    await cannotRun(world, page, 'ask-researcher', 'agent `researcher` not found');
  },
  async 'retrieval without its pipeline is refused at its field'(world) {
    const page = await start(world, /^Retrieval/, 'find-papers');
    await page.getByRole('combobox', { name: /^Pipeline/ }).fill('papers');
    await page.getByText('pipeline `papers` not found').first().waitFor();
    await page.getByRole('button', { name: 'Create tool' }).click();
    await page.getByRole('alert').filter({ hasText: 'pipeline `papers` not found' }).waitFor();
    const { error } = await world.haft.api('GET', '/tools/find-papers', undefined, { allow: [404] });
    assert.equal(error.code, 'not_found');
  },
  async 'artifact without its code is stored and says why it cannot run'(world) {
    const page = await start(world, /^Artifact/, 'stored-code');
    await page.getByRole('combobox', { name: /^Code artifact/ }).fill('3f0c9c1e-6c55-4a58-9c1e-1b1f8a9b7c11');
    await create(page, 'stored-code');
    await cannotRun(world, page, 'stored-code', '3f0c9c1e');
  },
  async 'form and source are kept in step, and a problem is shown at its line'(world) {
    const page = await start(world, /^Script/, 'in-step');
    const source = page.getByRole('textbox', { name: 'Source', exact: true });
    await page.waitForFunction(() => [...document.querySelectorAll('.cm-content')].some((each) => each.textContent.includes('name: in-step')));
    await source.click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.press('Home');
    await page.keyboard.insertText('# a comment\n');
    await page.getByRole('textbox', { name: /^Description/ }).first().fill('Says it politely');
    await page.waitForFunction(() => [...document.querySelectorAll('.cm-content')].some((each) => each.textContent.includes('# a comment') && each.textContent.includes('Says it politely')));
    // From the source to the form.
    await source.click();
    await page.keyboard.press('Control+End');
    await page.keyboard.insertText('tags: [polite]\nparamz: 1\n');
    // Once in the source, and once as a problem.
    await page.getByText(/paramz/).nth(1).waitFor();
    await page.getByRole('button', { name: 'Create tool' }).click();
    await page.getByRole('alert').filter({ hasText: 'paramz' }).waitFor();
    await source.click();
    await page.keyboard.press('Control+End');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Shift+ArrowDown');
    await page.keyboard.press('Delete');
    await create(page, 'in-step');
    const tool = await world.haft.api('GET', '/tools/in-step');
    assert.deepEqual(tool.tags, ['polite']);
  },
};
