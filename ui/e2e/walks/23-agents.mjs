// Agents: made by the form, checked while one types, saved, published, compared, tried.
import assert from 'node:assert/strict';

const tool = (name, more = '') => `name: ${name}\ndescription: The tool ${name}\n${more}params: [{name: city, type: string, required: true, description: Name of the city}]\nimplementation: {type: exec, command: "echo sunny in {{city}}"}\n`;

const SCRIPT = `turns:
  - when: {user: 'weather in (?<city>\\w+)'}
    calls:
      - tool: look-outside
        arguments: {city: "{{match.city}}"}
  - when: {tool: look-outside}
    text: It is sunny.
  - text: Ask me for the weather.
`;

let count = 0;
const agent = (fields = {}) => { count += 1; return { slug: `helper-${count}`, name: `Helper ${count}`, model: { name: 'scripted', script: SCRIPT }, instructions: 'Be brief.', tools: ['user-created:look-outside'], ...fields }; };

async function prepare(world) {
  await world.haft.api('POST', '/tools', tool('look-outside'), { type: 'application/yaml', allow: [409] });
  await world.haft.api('POST', '/tools', tool('close-window', 'requires_confirmation: true\n'), { type: 'application/yaml', allow: [409] });
}

async function made(world, fields) {
  await prepare(world);
  return world.haft.api('POST', '/agents', agent(fields));
}

/** Replaces the content of a code editor. */
async function code(page, label, text) {
  await page.getByRole('textbox', { name: label, exact: true }).first().click();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(text);
}

const narrow = (page) => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);

export const tests = {
  async 'an agent is made by the form: model, instructions with a variable, tools by the picker'(world) {
    await prepare(world);
    const page = await world.open('/agents');
    await page.getByRole('link', { name: 'New agent' }).first().click();
    await page.getByRole('textbox', { name: /^Slug/ }).fill('weather-helper');
    await page.getByRole('textbox', { name: /^Name$/ }).fill('Weather helper');
    await code(page, 'Script', SCRIPT);
    await code(page, 'Instructions', 'You help {{customer}}.');
    await page.getByRole('button', { name: 'Set a value for customer' }).click();
    await page.getByRole('textbox', { name: 'Variables: customer' }).fill('Ada');
    await page.getByRole('button', { name: 'Clear all' }).click();
    await page.getByRole('button', { name: 'Choose tools' }).click();
    const picker = page.getByRole('dialog', { name: 'Tools of the agent' });
    await picker.getByRole('checkbox', { name: 'All tools of user-created' }).check();
    await picker.getByRole('textbox', { name: 'Search tools' }).fill('close-window');
    // One tool of a pattern is excluded; the pattern stays.
    await picker.getByRole('checkbox', { name: 'close-window', exact: true }).uncheck();
    await picker.getByText('!user-created:close-window', { exact: true }).waitFor();
    await picker.getByText('user-created:*', { exact: true }).waitFor();
    await picker.getByRole('button', { name: 'Done' }).click();
    await page.getByText('The definition is valid').waitFor();
    await page.getByRole('button', { name: 'Create agent' }).click();
    await page.waitForURL(/\/agents\/weather-helper/);
    const stored = await world.haft.api('GET', '/agents/weather-helper');
    assert.deepEqual(stored.tools, ['user-created:*']);
    assert.deepEqual(stored.exclude_tools, ['user-created:close-window']);
    assert.equal(stored.variables.customer, 'Ada');
    await page.getByRole('tab', { name: 'Tools' }).click();
    await page.getByRole('link', { name: 'look-outside' }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'close-window' }).count(), 0);
  },

  async 'the check says what is wrong at its field before anything is saved'(world) {
    const { slug } = await made(world);
    const page = await world.open(`/agents/${slug}?tab=definition`);
    await page.getByRole('button', { name: 'Choose tools' }).click();
    const picker = page.getByRole('dialog', { name: 'Tools of the agent' });
    await picker.getByRole('textbox', { name: 'Add a pattern' }).fill('user-created:nothing-here');
    await picker.getByRole('textbox', { name: 'Add a pattern' }).press('Enter');
    await picker.getByRole('button', { name: 'Done' }).click();
    await page.getByText(/no tool matches `user-created:nothing-here`/).first().waitFor();
    assert.equal((await world.haft.api('GET', `/agents/${slug}`)).revision, 1);
  },

  async 'save, a conflict with another editor, and the way out of it'(world) {
    const { slug, ...rest } = await made(world);
    const page = await world.open(`/agents/${slug}?tab=definition`);
    await page.getByRole('textbox', { name: 'Description' }).fill('First edit');
    await page.getByRole('button', { name: 'Save draft' }).click();
    await page.getByText('Saved as a new revision').waitFor();
    assert.equal((await world.haft.api('GET', `/agents/${slug}`)).description, 'First edit');
    await page.getByRole('textbox', { name: 'Description' }).fill('Mine');
    // Somebody else is faster.
    await world.haft.api('PUT', `/agents/${slug}`, { slug, name: rest.name, model: rest.model, instructions: 'Theirs', tools: rest.tools });
    await page.getByRole('button', { name: 'Save draft' }).click();
    const alert = page.getByRole('alert').filter({ hasText: 'has been changed in the meantime' });
    await alert.waitFor();
    await alert.getByText('Theirs').first().waitFor();
    await alert.getByRole('button', { name: 'Save mine anyway' }).click();
    await alert.waitFor({ state: 'detached' });
    assert.equal((await world.haft.api('GET', `/agents/${slug}`)).description, 'Mine');
  },

  async 'publish names each tool that is not published, and leads to it'(world) {
    const { slug } = await made(world);
    const page = await world.open(`/agents/${slug}`);
    const publish = async () => {
      await page.getByRole('button', { name: 'More actions' }).click();
      await page.getByRole('menuitem', { name: 'Publish…' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click();
    };
    await publish();
    await page.getByRole('dialog').getByText('The agent cannot be published').waitFor();
    const link = page.getByRole('dialog').getByRole('link', { name: 'user-created:look-outside' });
    await link.waitFor();
    assert.match(await link.getAttribute('href'), /\/ui\/tools\/user-created/);
    await world.haft.api('POST', '/tools/look-outside/publish');
    await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click();
    await page.getByText(/^Published Helper/).waitFor();
    assert.equal((await world.haft.api('GET', `/agents/${slug}`)).status, 'published');
  },

  async 'revisions are compared and restored'(world) {
    const { slug, name, model, tools } = await made(world, { instructions: 'Answer in German.' });
    await world.haft.api('PUT', `/agents/${slug}`, { slug, name, model, tools, instructions: 'Answer in French.' });
    const page = await world.open(`/agents/${slug}?tab=revisions`);
    const diff = page.getByRole('region', { name: 'Revision 1 / Revision 2' });
    await diff.getByText(/Answer in German/).waitFor();
    await diff.getByText(/Answer in French/).waitFor();
    await page.getByRole('button', { name: 'Restore' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
    await page.getByText('Restored revision 1').waitFor();
    const stored = await world.haft.api('GET', `/agents/${slug}`);
    assert.equal(stored.instructions, 'Answer in German.');
    assert.equal(stored.revision, 3);
  },

  async 'switched off and on, deprecated, deleted with undo'(world) {
    const { slug, name } = await made(world);
    const page = await world.open(`/agents?open=${slug}`);
    const drawer = page.getByRole('complementary', { name });
    const act = async (item) => { await drawer.getByRole('button', { name: 'More actions' }).click(); await page.getByRole('menuitem', { name: item }).click(); };
    await act('Disable');
    await page.getByText(`Disabled ${name}`).waitFor();
    assert.equal((await world.haft.api('GET', `/agents/${slug}`)).enabled, false);
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText(`Enabled ${name}`).waitFor();
    await act('Delete…');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText(`Deleted ${name}`).waitFor();
    await page.getByText(`Deleted ${name}`).locator('..').getByRole('button', { name: 'Undo' }).click();
    await page.getByText(`Restored ${name}`).waitFor();
    assert.equal((await world.haft.api('GET', `/agents/${slug}`)).name, name);
  },

  async 'Try opens a chat with it, and its runs are listed'(world) {
    const { slug } = await made(world);
    await world.haft.api('POST', `/agents/${slug}/runs?mode=debug`, { input: 'What is the weather in Oslo?' });
    const page = await world.open(`/agents/${slug}?tab=runs`);
    await page.getByText('It is sunny').waitFor();
    assert.match(await page.getByRole('link', { name: 'Try' }).getAttribute('href'), new RegExp(`/ui/chat\\?agent=${slug}`));
    await page.getByRole('link', { name: 'Try' }).click();
    await page.waitForURL(/\/ui\/chat/);
  },

  async 'a viewer reads the definition and changes nothing; on a phone nothing is too wide'(world) {
    const { slug } = await made(world);
    const page = await world.open(`/agents/${slug}?tab=definition`, { as: 'viewer' });
    await page.getByText(/You need the role Editor/).waitFor();
    await page.getByRole('textbox', { name: 'Source' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Save draft' }).count(), 0);
    assert.equal(await page.getByRole('link', { name: 'Try' }).count(), 0);
    await page.goto('/ui/agents/new');
    await page.getByText(/You need the role Editor/).first().waitFor();
    const phone = await world.open(`/agents/${slug}`, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
    for (const tab of ['', '?tab=definition', '?tab=tools', '?tab=runs', '?tab=revisions']) {
      await world.visit(phone, `/agents/${slug}${tab}`);
      assert.ok(await narrow(phone) <= 0, tab);
    }
  },

  async 'in German, from the palette'(world) {
    const page = await world.open('/agents', { locale: 'de-DE' });
    await page.getByRole('heading', { name: 'Agenten' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByRole('combobox').fill('Agent erstellen');
    await page.getByRole('option', { name: 'Agent erstellen' }).click();
    await page.waitForURL(/\/agents\/new/);
    await page.getByRole('textbox', { name: /^Slug/ }).waitFor();
  },
};
