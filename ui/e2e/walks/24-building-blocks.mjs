// What tools are made of: retrieval pipelines, code artifacts, and steps.
import assert from 'node:assert/strict';

const HANDBOOK = '# Handbook\n\n## Vacation\n\nEverybody has thirty days of vacation. Ask your manager before you book.\n\n## Travel\n\nTrains are booked by the office. Keep the receipts.\n';

async function pipeline(world, slug) {
  await world.haft.api('POST', '/pipelines', { slug, name: slug }, { allow: [409] });
  await world.haft.api('POST', `/pipelines/${slug}/documents`, { name: 'handbook.md', text: HANDBOOK, metadata: { team: 'office' } });
  for (let tries = 0; tries < 100; tries += 1) {
    const { documents } = await world.haft.api('GET', `/pipelines/${slug}/documents`);
    if (documents.every((document) => document.state === 'done')) return;
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
  throw new Error('the document was not read');
}

const artifact = (slug) => ({ slug, name: slug, runtime: 'bash', source: 'echo "Hello, $who"\n', inputs: [{ name: 'who', type: 'string', required: true, description: 'Who to greet' }] });

async function code(page, label, text) {
  await page.getByRole('textbox', { name: label, exact: true }).first().click();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(text);
}

async function run(page, args, expected) {
  await page.getByRole('button', { name: 'Run', exact: true }).waitFor();
  for (const [name, value] of Object.entries(args)) await page.locator(`#arg_${name}`).fill(value);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('main').getByText('Success', { exact: true }).first().waitFor();
  await page.getByRole('tabpanel', { name: 'Rendered' }).getByText(expected).first().waitFor();
}

async function newTool(world, card, name) {
  const page = await world.open('/tools/new');
  await page.getByRole('button', { name: card }).click();
  await page.getByRole('textbox', { name: /^Name/ }).first().fill(name);
  return page;
}

async function create(page, name) {
  await page.getByRole('button', { name: 'Create tool' }).click();
  await page.waitForURL((url) => url.pathname.includes(name) && url.searchParams.get('tab') === 'try');
}

export const tests = {
  async 'a pipeline is created, filled by upload, text and drop, and asked'(world) {
    const page = await world.open('/retrieval');
    await page.getByRole('button', { name: 'New pipeline' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: /^Slug/ }).fill('handbook');
    await dialog.getByRole('button', { name: 'Create pipeline' }).click();
    await page.waitForURL(/\/retrieval\/handbook/);
    await page.getByText('No documents yet').waitFor();
    await page.locator('input[type=file]').setInputFiles([
      { name: 'handbook.md', mimeType: 'text/markdown', buffer: Buffer.from(HANDBOOK) },
      { name: 'photo.bin', mimeType: 'application/octet-stream', buffer: Buffer.from([0, 1, 2, 255, 254, 0, 0]) },
    ]);
    const row = (name) => page.getByRole('row').filter({ hasText: name });
    await row('handbook.md').getByText('Ready').waitFor();
    // What cannot be read says why, at the document or when it is sent.
    await page.getByRole('alert').filter({ hasText: /\S/ }).first().waitFor();
    await page.getByRole('button', { name: 'More ways to add documents' }).click();
    await page.getByRole('menuitem', { name: 'Add text' }).click();
    await dialog.getByRole('textbox', { name: /^Name/ }).fill('rules.md');
    await dialog.getByRole('textbox', { name: /^Text/ }).fill('# Rules\n\nThe kitchen is cleaned on Fridays.');
    await dialog.getByRole('button', { name: 'Add document' }).click();
    await row('rules.md').getByText('Ready').waitFor();
    await page.getByRole('tab', { name: 'Try' }).click();
    await page.getByRole('textbox', { name: 'Question' }).fill('How many days of vacation?');
    await page.keyboard.press('Enter');
    const hit = page.getByRole('article').first();
    await hit.getByText('thirty days').waitFor();
    await hit.locator('mark').filter({ hasText: 'vacation' }).first().waitFor();
    await hit.getByText(/BM25/).waitFor();
    await hit.getByText(/Vacation/).first().waitFor();
    // A document is deleted, and no longer found.
    await page.getByRole('tab', { name: 'Documents' }).click();
    await row('rules.md').getByRole('button', { name: 'Delete rules.md' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await row('rules.md').waitFor({ state: 'detached' });
  },

  async 'a filter by metadata, and publishing'(world) {
    await pipeline(world, 'office');
    const page = await world.open('/retrieval/office?tab=try');
    await page.getByRole('textbox', { name: 'Question' }).fill('vacation');
    await page.getByRole('button', { name: 'Filter by metadata' }).click();
    await page.getByRole('textbox', { name: 'Filter by metadata' }).fill('team = kitchen');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await page.getByText('Nothing found').waitFor();
    await page.getByRole('textbox', { name: 'Filter by metadata' }).fill('team = office');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await page.getByText('thirty days').waitFor();
    await page.getByRole('button', { name: 'Publish…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click();
    await page.getByText('Published office').waitFor();
    assert.equal((await world.haft.api('GET', '/pipelines/office')).status, 'published');
  },

  async 'a pipeline becomes a tool'(world) {
    await pipeline(world, 'guide');
    const page = await world.open('/retrieval/guide');
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'Create a tool from it' }).click();
    await page.getByRole('textbox', { name: /^Name/ }).first().fill('ask-guide');
    assert.equal(await page.getByRole('combobox', { name: /^Pipeline/ }).inputValue(), 'guide');
    await create(page, 'ask-guide');
    await run(page, { query: 'vacation' }, /thirty days/);
  },

  async 'a code artifact: created, changed, compared, restored'(world) {
    const page = await world.open('/artifacts/new');
    await page.getByRole('textbox', { name: /^Slug/ }).fill('greeter');
    await code(page, 'Source', 'echo "Hi, $who"\n');
    await page.getByRole('button', { name: 'Create artifact' }).click();
    await page.waitForURL(/\/artifacts\/greeter/);
    await page.getByRole('textbox', { name: 'Source', exact: true }).waitFor();
    await code(page, 'Source', 'echo "Good morning, $who"\n');
    await page.getByRole('button', { name: 'Add input' }).click();
    await page.getByRole('button', { name: 'Save new version' }).click();
    await page.getByText('Saved as version 2').waitFor();
    await page.getByRole('tab', { name: 'Versions' }).click();
    const diff = page.getByRole('region', { name: 'Version 1 / Version 2' });
    await diff.getByText(/Hi, \$who/).waitFor();
    await diff.getByText(/Good morning/).waitFor();
    await page.getByRole('button', { name: 'Restore' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
    await page.getByText('Saved as version 3').waitFor();
    assert.match((await world.haft.api('GET', '/code-artifacts/greeter')).source, /Hi, /);
  },

  async 'what was deleted is listed and restored'(world) {
    await world.haft.api('POST', '/code-artifacts', artifact('passing'));
    await world.haft.api('DELETE', '/code-artifacts/passing');
    const page = await world.open('/artifacts');
    await page.getByRole('button', { name: 'Deleted' }).click();
    const row = page.getByRole('row').filter({ hasText: 'passing' });
    await row.getByRole('button', { name: 'Restore' }).click();
    await page.getByText('Restored passing').waitFor();
    await row.waitFor({ state: 'detached' });
    assert.equal((await world.haft.api('GET', '/code-artifacts/passing')).version, 1);
  },

  async 'a tool runs an artifact, in a fixed version; the artifact knows it'(world) {
    await world.haft.api('POST', '/code-artifacts', artifact('hello'));
    const page = await newTool(world, /^Artifact/, 'say-hello');
    await page.getByRole('combobox', { name: /^Code artifact/ }).fill('hello');
    await page.getByRole('option', { name: 'hello' }).click();
    await page.getByRole('button', { name: 'Take them as arguments' }).click();
    await page.getByRole('combobox', { name: /^Version/ }).click();
    await page.getByRole('option', { name: 'Version 1' }).click();
    await create(page, 'say-hello');
    await run(page, { who: 'Ada' }, 'Hello, Ada');
    await world.go(page, '/artifacts/hello?tab=users');
    await page.getByRole('link', { name: 'say-hello' }).waitFor();
    // It is in use: deleting asks once more, and names the tool.
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'Delete…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByText('is in use').waitFor();
    await page.getByRole('dialog').getByText(/say-hello/).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    assert.equal((await world.haft.api('GET', '/code-artifacts/hello')).version, 1);
  },

  async 'an agent as a tool'(world) {
    await world.haft.api('POST', '/agents', { slug: 'echo', name: 'Echo', model: { name: 'scripted', script: 'turns:\n  - text: At your service.\n' }, tools: [] });
    const page = await newTool(world, /Agent call/, 'ask-echo');
    await page.getByRole('combobox', { name: /^Agent/ }).fill('echo');
    await page.getByRole('textbox', { name: /^Timeout in seconds/ }).fill('20');
    await page.getByText('In production mode the agent must be published').waitFor();
    await world.haft.api('POST', '/agents/echo/publish');
    await create(page, 'ask-echo');
    await run(page, { input: 'Hello' }, /At your service/);
    assert.equal((await world.haft.api('GET', '/tools/ask-echo')).execution.timeout_ms, 20_000);
  },

  async 'steps: tools by the picker, arguments with suggestions, a condition, and a circle that is refused'(world) {
    await world.haft.tool('name: first-part\ndescription: Says a part\nparams: [{name: text, type: string, required: true}]\nimplementation: {type: exec, command: "echo part {{text}}"}\n');
    const page = await newTool(world, /^Steps/, 'two-parts');
    const one = page.getByRole('region', { name: /^Step 1/ });
    await one.getByRole('textbox', { name: 'Name of the step' }).fill('one');
    await one.getByRole('button', { name: /^Choose a tool/ }).click();
    const picker = page.getByRole('dialog', { name: 'Choose a tool' });
    await picker.getByRole('textbox', { name: 'Search tools' }).fill('first-part');
    await picker.getByRole('radio', { name: 'first-part' }).click();
    await picker.waitFor({ state: 'detached' });
    const argument = (step) => step.getByRole('combobox', { name: 'Arguments of the tool: text' });
    // The former tool had another argument.
    await one.getByRole('button', { name: 'Remove operation' }).click();
    await argument(one).fill('$args.time');
    await page.getByRole('option', { name: '$args.timezone' }).click();
    await page.getByRole('button', { name: 'Add step' }).click();
    const two = page.getByRole('region', { name: /^Step 2/ });
    await two.getByRole('textbox', { name: 'Tool' }).fill('user-created:first-part');
    await argument(two).fill('$steps.nothing.value');
    await two.getByText('There is no step nothing').waitFor();
    await argument(two).fill('$steps.one.value');
    await two.getByText('Waits for: one').waitFor();
    await two.getByRole('button', { name: 'Condition, list, failure' }).click();
    await two.getByRole('combobox', { name: 'Only if' }).fill('$steps.one.ok');
    // A step that waits for one that waits for it.
    await argument(one).fill('$steps.step_2.value');
    await page.getByText(/These steps wait for each other/).waitFor();
    await argument(one).fill('$args.timezone');
    await page.getByText(/These steps wait for each other/).waitFor({ state: 'detached' });
    await page.getByRole('textbox', { name: 'Result' }).fill('{"both": "$steps.step_2.value", "first": "$steps.one.value"}');
    // A new name is followed by those that refer to the step.
    await one.getByRole('textbox', { name: 'Name of the step' }).fill('begin');
    await two.getByText('Waits for: begin').waitFor();
    await create(page, 'two-parts');
    const { implementation } = await world.haft.api('GET', '/tools/two-parts');
    assert.equal(implementation.steps[1].args.text, '$steps.begin.value');
    assert.equal(implementation.output.first, '$steps.begin.value');
    await run(page, { timezone: 'x' }, /part part x/);
  },

  async 'a viewer looks and changes nothing; phone and German'(world) {
    await pipeline(world, 'shared');
    await world.haft.api('POST', '/code-artifacts', artifact('shared-code'));
    const page = await world.open('/retrieval/shared', { as: 'viewer' });
    await page.getByText('handbook.md').waitFor();
    for (const name of ['Upload files', 'Publish…', 'Delete handbook.md']) assert.equal(await page.getByRole('button', { name }).count(), 0, name);
    await world.go(page, '/artifacts/shared-code');
    await page.getByText(/You need the role Editor/).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Save new version' }).count(), 0);
    const phone = await world.open('/retrieval', { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, locale: 'de-DE' });
    for (const path of ['/retrieval', '/retrieval/shared', '/retrieval/shared?tab=try', '/retrieval/shared?tab=settings', '/retrieval?new=1', '/artifacts', '/artifacts/shared-code', '/artifacts/shared-code?tab=versions', '/artifacts/new', '/tools/new?type=steps', '/tools/new?type=artifact']) {
      await world.visit(phone, path);
      assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth - window.innerWidth) <= 0, path);
    }
  },
};
