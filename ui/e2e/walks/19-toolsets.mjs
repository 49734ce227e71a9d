// The toolset manager: packages are uploaded or loaded from a server of the walk.
import assert from 'node:assert/strict';
import http from 'node:http';
import { withMissingServer } from '../lib/example.mjs';
import { exampleFiles, install, signed, simpleFiles, zip } from '../lib/package.mjs';

const card = (page, name) => page.getByRole('article').filter({ hasText: name });
const upload = (bytes) => ({ name: 'package.zip', mimeType: 'application/zip', buffer: bytes });
const toolsets = async (world) => (await world.haft.api('GET', '/toolsets')).toolsets;
const find = async (world, id) => (await toolsets(world)).find((each) => each.id === id);

/** The files of App Builder in a version; a second tool less than the example has. */
function appBuilder(version) {
  const files = exampleFiles('app-builder');
  return { ...files, 'toolset.yaml': files['toolset.yaml'].replace('version: "1.0.0"', `version: "${version}"`) };
}

/** Serves packages by path; `packages` may be changed at any time. */
async function packageServer(world, packages) {
  const server = world.keep(http.createServer((request, response) => {
    const found = packages[request.url];
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/zip' });
    response.end(found ? zip(found) : '');
  }));
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return `http://127.0.0.1:${server.address().port}`;
}

const KIT = simpleFiles({
  id: 'weather-kit', name: 'Weather Kit', version: '2.0.0', description: 'Forecasts and climate charts',
  tools: [{ id: 'climate_chart', more: '    renderer: {type: chart, rows: $return}\n' }, { id: 'fetch_forecast', more: '    requires_confirmation: true\n    permissions: {network: true, sandbox: false}\n' }],
  more: 'mcp_servers:\n  - {id: maps, command: no-such-program, args: ["-y", "@example/maps server"], enabled: false}\n',
});

export const tests = {
  async 'a package is looked at before it is installed'(world) {
    await install(world.haft, appBuilder('1.0.0'));
    const page = await world.open('/');
    await page.getByRole('navigation').first().getByRole('link', { name: 'Toolsets' }).click();
    await card(page, 'App Builder').waitFor();
    const data = await page.evaluateHandle((bytes) => { const transfer = new DataTransfer(); transfer.items.add(new File([new Uint8Array(bytes)], 'weather-kit.zip', { type: 'application/zip' })); return transfer; }, [...zip(signed(KIT))]);
    await card(page, 'App Builder').dispatchEvent('drop', { dataTransfer: data });
    const dialog = page.getByRole('dialog');
    for (const text of ['Weather Kit', 'Starts a program as an MCP server', 'maps: no-such-program -y @example/maps server', 'Signed by an unknown key', 'climate_chart', 'fetch_forecast']) await dialog.getByText(text).first().waitFor();
    assert.equal((await toolsets(world)).length, 1);
    await dialog.getByRole('checkbox', { name: 'Let these tools run without the sandbox' }).waitFor();
    await dialog.getByRole('button', { name: 'Install toolset' }).click();
    await page.getByText('Installed Weather Kit').waitFor();
    assert.equal((await toolsets(world)).length, 2);
    await page.getByRole('complementary').getByRole('heading', { name: 'Weather Kit' }).waitFor();
  },

  async 'a broken package says everything that is wrong, and installs nothing'(world) {
    const before = (await toolsets(world)).length;
    const page = await world.open('/toolsets?new=1');
    const dialog = page.getByRole('dialog');
    const broken = { 'toolset.yaml': 'manifest_version: "1"\nid: broken\nname: Broken\ndescription: x\ntools:\n  - id: run\n    description: x\n    entrypoint: tools.none:run\n    input_schema: {type: object}\n' };
    await dialog.locator('input[type=file]').setInputFiles(upload(zip(broken)));
    await dialog.getByText(/\d errors in the package/).waitFor();
    await dialog.getByText('`tools/none.py` is not in the package').waitFor();
    assert.equal(await dialog.getByRole('button', { name: 'Install toolset' }).count(), 0);
    // A wrong signature blocks as well.
    const forged = signed(simpleFiles({ id: 'forged', name: 'Forged', tools: [{ id: 'run' }] }));
    await dialog.getByRole('button', { name: 'Back' }).click();
    await dialog.locator('input[type=file]').setInputFiles(upload(zip({ ...forged, 'tools/all.py': `${forged['tools/all.py']}\n# changed\n` })));
    await dialog.getByText('The signature is wrong').waitFor();
    assert.equal(await dialog.getByRole('button', { name: 'Install toolset' }).isDisabled(), true);
    assert.equal((await toolsets(world)).length, before);
  },

  async 'by an address: installed, updated, rolled back, exported, switched, uninstalled'(world) {
    const packages = { '/next.zip': simpleFiles({ id: 'remote-kit', name: 'Remote Kit', version: '1.1.0', tools: [{ id: 'first' }, { id: 'second' }, { id: 'third' }] }) };
    const base = await packageServer(world, packages);
    await install(world.haft, simpleFiles({ id: 'remote-kit', name: 'Remote Kit', version: '1.0.0', tools: [{ id: 'first' }, { id: 'old_one' }] }));
    const page = await world.open('/toolsets?new=1');
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Or an address' }).fill(`${base}/next.zip`);
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await dialog.getByText('Updates version 1.0.0 to 1.1.0').waitFor();
    await dialog.getByText('old_one').waitFor();
    await dialog.getByRole('button', { name: 'Update to 1.1.0' }).click();
    await page.getByText('Installed Remote Kit').waitFor();
    assert.equal((await find(world, 'remote-kit')).version, '1.1.0');
    const drawer = page.getByRole('complementary');
    packages['/next.zip'] = simpleFiles({ id: 'remote-kit', name: 'Remote Kit', version: '1.2.0', tools: [{ id: 'first' }, { id: 'second' }, { id: 'third' }] });
    await drawer.getByRole('button', { name: 'Check for an update' }).click();
    await page.getByText('Remote Kit now has version 1.2.0').waitFor();
    await drawer.getByRole('button', { name: 'Roll back' }).click();
    await page.getByRole('dialog').getByText('Roll back Remote Kit to the former version?').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click();
    await page.getByText('Remote Kit now has version 1.1.0').waitFor();
    const [file] = await Promise.all([page.waitForEvent('download'), drawer.getByRole('link', { name: 'Export ZIP' }).click()]);
    assert.match(file.suggestedFilename(), /^remote-kit.*\.zip$/);
    await card(page, 'Remote Kit').getByRole('switch').click({ force: true });
    await page.getByText('Disabled Remote Kit').waitFor();
    assert.equal((await find(world, 'remote-kit')).enabled, false);
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Enabled Remote Kit').waitFor();
    await drawer.getByRole('button', { name: 'Uninstall' }).click();
    await page.getByRole('dialog').getByText('its 3 tools').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Uninstall' }).click();
    await page.getByText('Uninstalled Remote Kit').waitFor();
    assert.equal(await find(world, 'remote-kit'), undefined);
  },

  async 'how results of a tool are shown can be set'(world) {
    await install(world.haft, appBuilder('1.1.0'));
    const page = await world.open('/toolsets?open=app-builder');
    const drawer = page.getByRole('complementary');
    await drawer.getByRole('button', { name: 'How results of read_file are shown' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Show results as' }).or(dialog.getByRole('combobox', { name: 'Show results as' })).first().click();
    await page.getByRole('option', { name: 'Table' }).click();
    assert.equal(await dialog.getByRole('textbox', { name: /^Priority/ }).inputValue(), '10');
    await dialog.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved', { exact: true }).waitFor();
    // The rest of the definition is kept.
    const tool = await world.haft.api('GET', '/tools/app-builder:read_file');
    assert.equal(tool.implementation.entrypoint, 'tools.files:read_file');
    assert.deepEqual(tool.renderers.map((each) => [each.renderer, each.priority]).toSorted(), [['code', 0], ['table', 10]]);
  },

  async 'a server that does not start is shown, and a viewer changes nothing'(world) {
    await install(world.haft, appBuilder('1.2.0'));
    await install(world.haft, withMissingServer());
    const page = await world.open('/toolsets?open=my-toolset', { as: 'viewer' });
    await page.getByRole('complementary').getByText(/no-such-program/).first().waitFor();
    assert.equal(await page.getByRole('button', { name: 'Import toolset' }).count(), 0);
    for (const name of ['Uninstall', 'Check for an update', 'Roll back']) assert.equal(await page.getByRole('button', { name }).count(), 0, name);
    assert.equal(await card(page, 'App Builder').getByRole('switch').isDisabled(), true);
  },
};
