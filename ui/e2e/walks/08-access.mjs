// Tenants and roles: what one may not do is not offered, and an address typed by hand says why.
import assert from 'node:assert/strict';

const TOOL = 'name: secret-plan\ndescription: Of the first tenant\nparams: []\nimplementation: {type: exec, command: echo plan}\n';

/** The names of the pages in the navigation. */
const navigation = async (page) => {
  await page.getByRole('navigation').first().getByRole('link', { name: 'Tools', exact: true }).waitFor();
  return (await page.getByRole('navigation').first().getByRole('link').allTextContents()).map((text) => text.trim());
};

export const tests = {
  async 'a second tenant sees nothing of the first'(world) {
    const { haft } = world;
    await haft.tool(TOOL);
    await haft.invoke('secret-plan', {});
    await haft.api('PUT', '/credentials/FIRST_KEY', { value: 'first-value' });
    await haft.newToken({ name: 'first-agent', role: 'caller' });
    const callId = (await haft.api('GET', '/calls')).calls[0].id;
    await haft.api('POST', '/tenants', { id: 'acme', name: 'Acme' });
    const page = await world.open('/tools?q=secret-plan', { as: await haft.newToken({ name: 'acme-admin', role: 'admin', tenant: 'acme' }) });
    await page.getByText('No tool matches').waitFor();
    await page.goto('/ui/tools/user-created:secret-plan@1.0.0');
    await page.getByText('Not found', { exact: true }).waitFor();
    await page.goto(`/ui/calls?open=${callId}`);
    await page.getByText('Not found', { exact: true }).waitFor();
    for (const path of ['/calls', '/approvals', '/credentials', '/tokens', '/audit', '/bundles', '/servers', '/']) {
      await world.go(page, path);
      await page.waitForLoadState('networkidle').catch(() => undefined);
      const text = await page.getByRole('main').innerText();
      for (const word of ['secret-plan', 'FIRST_KEY', 'first-agent']) assert.ok(!text.includes(word), `${path} shows ${word}`);
    }
    assert.ok(!(await navigation(page)).includes('Tenants'));
    // What the second tenant makes, the first does not see.
    await haft.api('POST', '/tools', TOOL.replace('secret-plan', 'acme-plan'), { as: await haft.newToken({ name: 'acme-editor', role: 'editor', tenant: 'acme' }), type: 'application/yaml' });
    const first = await world.open('/tools?q=acme-plan');
    await first.getByText('No tool matches').waitFor();
  },

  async 'a viewer looks and changes nothing'(world) {
    const page = await world.open('/tools', { as: 'viewer' });
    await page.getByRole('row').nth(2).waitFor();
    const names = await navigation(page);
    for (const name of ['Recipes', 'Import', 'Policy', 'Credentials', 'Tokens', 'Tenants', 'Audit']) assert.ok(!names.includes(name), name);
    assert.equal(await page.getByRole('link', { name: 'New tool' }).count(), 0);
    await world.go(page, '/tools/datetime_utils?tab=try');
    await page.getByRole('tab', { name: 'Overview' }).waitFor();
    assert.equal(await page.getByRole('tab', { name: 'Try' }).count(), 0);
    for (const [path, role] of [['/tokens', 'Admin'], ['/tools/new', 'Editor'], ['/import', 'Editor'], ['/audit', 'Admin']]) {
      await page.goto(`/ui${path}`);
      await page.getByText(new RegExp(`You need the role ${role}`)).first().waitFor();
    }
  },

  async 'a caller runs tools and edits none'(world) {
    const page = await world.open('/tools/datetime_utils?tab=try', { as: 'caller' });
    await page.locator('#arg_operation').waitFor();
    await world.go(page, '/tools');
    await page.getByRole('row').nth(2).waitFor();
    assert.equal(await page.getByRole('link', { name: 'New tool' }).count(), 0);
    assert.equal(await page.getByRole('row').nth(1).getByRole('checkbox').count(), 0);
    await page.goto('/ui/tools/new');
    await page.getByText(/You need the role Editor/).first().waitFor();
  },

  async 'an editor makes tools and no tokens'(world) {
    const page = await world.open('/tools', { as: 'editor' });
    await page.getByRole('link', { name: 'New tool' }).first().waitFor();
    const names = await navigation(page);
    assert.ok(names.includes('Import') && names.includes('Policy'));
    assert.ok(!names.includes('Tokens') && !names.includes('Tenants'));
    await page.goto('/ui/tokens');
    await page.getByText(/You need the role Admin/).first().waitFor();
    await world.go(page, '/servers');
    assert.equal(await page.getByRole('button', { name: 'Add server' }).count(), 0);
  },
};
