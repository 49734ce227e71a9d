// The toolset manager, against the routes of the contract.
import assert from 'node:assert/strict';
import { content, example, tool } from '../lib/unreleased.mjs';

async function open(world, path, options) {
  const fake = example();
  const page = await fake.attach(await world.open(undefined, options));
  await world.go(page, path);
  return { page, fake };
}

const card = (page, name) => page.getByRole('article').filter({ hasText: name });
const zip = (text) => ({ name: 'package.zip', mimeType: 'application/zip', buffer: Buffer.from(text) });

export const tests = {
  async 'a package is looked at before it is installed'(world) {
    const { page, fake } = await open(world, '/');
    await page.getByRole('navigation').first().getByRole('link', { name: 'Toolsets' }).click();
    await card(page, 'App Builder').waitFor();
    const data = await page.evaluateHandle(() => { const transfer = new DataTransfer(); transfer.items.add(new File(['a package'], 'weather-kit.zip', { type: 'application/zip' })); return transfer; });
    await card(page, 'App Builder').dispatchEvent('drop', { dataTransfer: data });
    const dialog = page.getByRole('dialog');
    for (const text of ['Weather Kit', 'Starts a program as an MCP server', "maps: npx -y '@example/maps server'", 'Signed by an unknown key', 'requests==2.32.4', 'asks for network access', 'climate_chart']) await dialog.getByText(text).first().waitFor();
    assert.equal(fake.toolsets.length, 2);
    await dialog.getByRole('checkbox', { name: 'Let these tools run without the sandbox' }).waitFor();
    await dialog.getByRole('button', { name: 'Install toolset' }).click();
    await page.getByText('Installed Weather Kit').waitFor();
    assert.equal(fake.toolsets.length, 3);
    await page.getByRole('complementary').getByRole('heading', { name: 'Weather Kit' }).waitFor();
  },

  async 'a broken package says everything that is wrong, and installs nothing'(world) {
    const { page, fake } = await open(world, '/toolsets?new=1');
    const dialog = page.getByRole('dialog');
    await dialog.locator('input[type=file]').setInputFiles(zip('broken'));
    await dialog.getByText('2 errors in the package').waitFor();
    await dialog.getByText('`tools.none:run` does not exist').waitFor();
    assert.equal(await dialog.getByRole('button', { name: 'Install toolset' }).count(), 0);
    // A wrong signature blocks as well.
    fake.packages.set('forged', content('forged', 'Forged', { tools: [tool('x', '')], signature: { status: 'invalid', reason: 'the files were changed' } }));
    await dialog.getByRole('button', { name: 'Back' }).click();
    await dialog.locator('input[type=file]').setInputFiles(zip('forged'));
    await dialog.getByText('The signature is wrong').waitFor();
    assert.equal(await dialog.getByRole('button', { name: 'Install toolset' }).isDisabled(), true);
    assert.equal(fake.toolsets.length, 2);
  },

  async 'an update by an address keeps what was there'(world) {
    const { page, fake } = await open(world, '/toolsets?new=1');
    fake.packages.set('https://tools.example.com/next.zip', content('app-builder', 'App Builder', { version: '2.0.0', tools: [tool('write_file', 'Write'), tool('read_file', 'Read')] }));
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Or an address' }).fill('https://tools.example.com/next.zip');
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await dialog.getByText('Updates version 1.1.0 to 2.0.0').waitFor();
    await dialog.getByText('run_command').waitFor();
    await dialog.getByRole('button', { name: 'Update to 2.0.0' }).click();
    await page.getByText('Installed App Builder').waitFor();
    assert.equal(fake.toolsets.find((each) => each.id === 'app-builder').version, '2.0.0');
  },

  async 'switch, update, roll back, export, uninstall'(world) {
    const { page, fake } = await open(world, '/toolsets');
    const toolset = () => fake.toolsets.find((each) => each.id === 'app-builder');
    await card(page, 'App Builder').getByRole('switch').click({ force: true });
    await page.getByText('Disabled App Builder').waitFor();
    assert.equal(toolset().enabled, false);
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Enabled App Builder').waitFor();
    await card(page, 'App Builder').getByRole('button', { name: 'App Builder' }).click();
    const drawer = page.getByRole('complementary');
    await drawer.getByRole('button', { name: 'Check for an update' }).click();
    await page.getByText('App Builder now has version 1.2.0').waitFor();
    await drawer.getByRole('button', { name: 'Roll back' }).click();
    await page.getByRole('dialog').getByText('Roll back App Builder to the former version?').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click();
    await page.getByText('App Builder now has version 1.1.0').waitFor();
    const [file] = await Promise.all([page.waitForEvent('download'), drawer.getByRole('link', { name: 'Export ZIP' }).click()]);
    assert.equal(file.suggestedFilename(), 'app-builder.zip');
    await drawer.getByRole('button', { name: 'Uninstall' }).click();
    await page.getByRole('dialog').getByText('its 3 tools').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Uninstall' }).click();
    await page.getByText('Uninstalled App Builder').waitFor();
    assert.equal(toolset(), undefined);
  },

  async 'how results of a tool are shown can be set'(world) {
    const { page, fake } = await open(world, '/toolsets?open=app-builder');
    const drawer = page.getByRole('complementary');
    await drawer.getByRole('button', { name: 'How results of read_file are shown' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Show results as' }).or(dialog.getByRole('combobox', { name: 'Show results as' })).first().click();
    await page.getByRole('option', { name: 'Table' }).click();
    assert.equal(await dialog.getByRole('textbox', { name: /^Priority/ }).inputValue(), '10');
    await dialog.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved', { exact: true }).waitFor();
    // The rest of the definition is kept.
    assert.equal(fake.stored.length, 1);
    const [{ ref, definition }] = fake.stored;
    assert.equal(ref, 'app-builder:read_file@1.0.0');
    assert.equal(definition.implementation.entrypoint, 'tools.x:run');
    assert.deepEqual(definition.renderers, [{ renderer: 'table', priority: 10, config: { data: '$return' } }, { renderer: 'code', priority: 0, config: { content: '$return' } }]);
  },

  async 'a server that does not start is shown, and a viewer changes nothing'(world) {
    const { page } = await open(world, '/toolsets?open=my-toolset', { as: 'viewer' });
    await page.getByRole('complementary').getByText('`npx` is not installed').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Import toolset' }).count(), 0);
    for (const name of ['Uninstall', 'Check for an update', 'Roll back']) assert.equal(await page.getByRole('button', { name }).count(), 0, name);
    assert.equal(await card(page, 'App Builder').getByRole('switch').isDisabled(), true);
  },
};
