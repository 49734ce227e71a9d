// A restart of the server, and a session that ends, in the middle of an edit.
import assert from 'node:assert/strict';

const GREET = 'name: greet\ndescription: Greets a person\nparams: []\nimplementation: {type: exec, command: echo hello}\n';
const LOST = 'No connection to haft';

const createGreet = (world) => world.haft.api('POST', '/tools', GREET, { type: 'application/yaml', allow: [409] });

export const tests = {
  async 'an edit survives a restart of the server and a reload'(world) {
    await createGreet(world);
    const page = await world.open('/tools/user-created:greet@1.0.0?tab=definition');
    await page.getByLabel('Description', { exact: false }).first().fill('Greets somebody politely');
    await page.waitForFunction(() => Object.keys(localStorage).some((key) => (localStorage.getItem(key) ?? '').includes('politely')));
    await world.haft.stop();
    await page.getByText(LOST).waitFor();
    assert.equal(await page.getByLabel('Description', { exact: false }).first().inputValue(), 'Greets somebody politely');
    await world.haft.launch();
    await page.getByText(LOST).waitFor({ state: 'detached' });
    await page.reload();
    await page.getByText('Unsaved edits').waitFor();
    await page.getByRole('button', { name: 'Save draft' }).click();
    await page.getByText('Saved as a new revision').waitFor();
    assert.equal((await world.haft.api('GET', '/tools/greet')).description, 'Greets somebody politely');
  },

  async 'live lists go on after a restart'(world) {
    const page = await world.open('/tools');
    await page.getByRole('row').nth(2).waitFor();
    await world.haft.stop();
    await page.getByText(LOST).waitFor();
    await world.haft.launch();
    await page.getByText(LOST).waitFor({ state: 'detached' });
    await world.haft.tool(GREET.replace('greet', 'after-the-restart'));
    await page.getByRole('row').filter({ hasText: 'after-the-restart' }).waitFor();
  },

  async 'a page that is not loaded yet opens when the server is back'(world) {
    const page = await world.open('/tools');
    await page.getByRole('row').nth(2).waitFor();
    // The page may come from a server in front of haft, which is gone as well.
    await page.route('**/ui/assets/**', (route) => route.abort());
    await world.haft.stop();
    await page.getByRole('navigation').first().getByRole('link', { name: 'Audit' }).click();
    await page.getByText('could not be loaded').waitFor();
    await page.getByText(LOST).waitFor();
    // The rest of the page works: back to what was loaded.
    await page.getByRole('navigation').first().getByRole('link', { name: 'Tools', exact: true }).click();
    await page.getByRole('row').nth(2).waitFor();
    await page.getByRole('navigation').first().getByRole('link', { name: 'Audit' }).click();
    await page.getByText('could not be loaded').waitFor();
    await world.haft.launch();
    await page.unroute('**/ui/assets/**');
    await page.getByRole('heading', { name: 'Audit', level: 1 }).waitFor();
    await page.getByText(LOST).waitFor({ state: 'detached' });
  },

  async 'a revoked token ends the session; after the login the edit is there'(world) {
    await createGreet(world);
    const made = await world.haft.api('POST', '/tokens', { name: 'short-lived', role: 'editor' });
    const page = await world.open('/tools/user-created:greet@1.0.0?tab=definition', { as: made.token });
    await page.getByLabel('Description', { exact: false }).first().fill('Edited before the end');
    await page.waitForFunction(() => Object.keys(localStorage).some((key) => (localStorage.getItem(key) ?? '').includes('before the end')));
    await world.haft.api('DELETE', `/tokens/${made.id}`);
    await page.getByRole('button', { name: 'Save draft' }).click();
    const banner = page.getByRole('status').filter({ hasText: /session/i });
    await banner.getByRole('button').click();
    await page.waitForURL('**/login**');
    await page.getByLabel('Token').fill(world.haft.token);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.waitForURL(/greet.*tab=definition/);
    await page.getByText('Unsaved edits').waitFor();
    assert.equal(await page.getByLabel('Description', { exact: false }).first().inputValue(), 'Edited before the end');
  },
};
