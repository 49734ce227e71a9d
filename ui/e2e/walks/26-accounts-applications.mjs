// What admins define for everybody's own accounts and for hosted clients: providers and registered applications.
import assert from 'node:assert/strict';
import { severe } from '../lib/axe.mjs';

/** A person with a session, in a browser of its own. */
async function person(world, name, role) {
  const { invitation } = await world.haft.api('POST', '/people', { name, email: `${name.toLowerCase()}@example.com`, role });
  const { pathname, search } = new URL(invitation.url);
  const page = await world.blank();
  await page.goto(pathname + search);
  await page.getByRole('button').first().click();
  await page.waitForURL('**/ui/**');
  return page;
}

export const tests = {
  async 'a provider is defined, used, edited and deleted, which names who is affected'(world) {
    const admin = await world.open('/accounts');
    await admin.getByText('No providers yet.').waitFor();
    await admin.getByRole('button', { name: 'New provider' }).click();
    const dialog = admin.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill('tracker');
    await dialog.getByRole('textbox', { name: 'Display name' }).fill('Issue tracker');
    await dialog.getByRole('textbox', { name: 'Help' }).fill('Create a key in your settings.');
    await dialog.getByRole('combobox', { name: 'Shared credential' }).or(dialog.getByRole('textbox', { name: 'Shared credential' })).fill('TRACKER_KEY');
    assert.deepEqual(await severe(admin), []);
    await dialog.getByRole('button', { name: 'Create provider' }).click();
    await dialog.waitFor({ state: 'detached' });
    const stored = async () => (await world.haft.api('GET', '/account-providers')).providers.find((one) => one.name === 'tracker');
    assert.deepEqual(await stored(), { name: 'tracker', display_name: 'Issue tracker', help: 'Create a key in your settings.', shared: '${TRACKER_KEY}' });

    const ann = await person(world, 'Ann', 'caller');
    await ann.goto('/ui/accounts');
    await ann.getByText('Issue tracker').waitFor();
    // Only admins define providers.
    assert.equal(await ann.getByRole('button', { name: 'New provider' }).count(), 0);
    await ann.getByRole('button', { name: 'Connect Issue tracker' }).click();
    await ann.getByRole('dialog').getByText('Create a key in your settings.').waitFor();
    await ann.getByRole('dialog').getByLabel('API key').fill('key-of-ann');
    await ann.getByRole('dialog').getByRole('button', { name: 'Connect', exact: true }).click();
    await ann.getByText('Connected', { exact: true }).waitFor();

    // A login instead: the accounts with keys end, and the form says whose.
    await admin.getByRole('button', { name: 'Edit Issue tracker' }).click();
    await dialog.getByText('Login (OAuth)').click();
    await dialog.getByText(/\/api\/accounts\/callback$/).waitFor();
    await dialog.getByRole('textbox', { name: 'Issuer' }).fill('https://login.example.com');
    await dialog.getByRole('textbox', { name: 'Client id' }).fill('haft');
    await dialog.getByRole('textbox', { name: 'Scopes' }).fill('read write');
    await dialog.getByText('Ann').waitFor();
    assert.deepEqual(await severe(admin), []);
    await admin.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });

    await admin.getByRole('button', { name: 'Delete Issue tracker' }).click();
    await dialog.getByText('1 account ends').waitFor();
    await dialog.getByText('Ann').waitFor();
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await admin.getByText('No providers yet.').waitFor();
    assert.equal(await stored(), undefined);
  },

  async 'a provider with OAuth is stored, and an invalid one is explained'(world) {
    const admin = await world.open('/accounts?new=1');
    const dialog = admin.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill('Calendar!');
    await dialog.getByText('Login (OAuth)').click();
    await dialog.getByText('Endpoints', { exact: true }).click();
    await dialog.getByRole('textbox', { name: 'Authorization endpoint' }).fill('https://login.example.com/authorize');
    await dialog.getByRole('textbox', { name: 'Token endpoint' }).fill('https://login.example.com/token');
    await dialog.getByRole('textbox', { name: 'Client id' }).fill('haft');
    await dialog.getByRole('button', { name: 'Create provider' }).click();
    await dialog.getByRole('alert').getByText(/invalid name `Calendar!`/).waitFor();
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill('calendar');
    await dialog.getByRole('button', { name: 'Create provider' }).click();
    await dialog.waitFor({ state: 'detached' });
    const [provider] = (await world.haft.api('GET', '/account-providers')).providers;
    assert.deepEqual(provider.oauth, { authorization_endpoint: 'https://login.example.com/authorize', token_endpoint: 'https://login.example.com/token', client_id: 'haft' });
  },

  async 'a call without an account leads to the page that connects it'(world) {
    await world.haft.api('PUT', '/account-providers/tracker', { display_name: 'Issue tracker' });
    await world.haft.tool([
      'name: my_issues', 'description: The issues of the person who calls', 'params: []',
      'implementation:', '  type: http', '  url: http://127.0.0.1:9/issues', '  headers: {authorization: "Bearer ${account:tracker}"}',
    ].join('\n'));
    const page = await person(world, 'Bob', 'caller');
    await page.goto('/ui/tools/user-created:my_issues@1.0.0?tab=try');
    await page.getByRole('button', { name: /^Run/ }).first().click();
    const link = page.getByRole('link', { name: 'Connect account' }).first();
    await link.waitFor();
    assert.equal(await link.getAttribute('href'), '/ui/accounts?connect=tracker');
  },

  async 'an application is registered, shows its secret once, and is deleted'(world) {
    const admin = await world.open('/applications?view=clients');
    await admin.getByRole('button', { name: 'Register application' }).first().click();
    const dialog = admin.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill('Intranet');
    await dialog.getByRole('textbox', { name: 'Redirect URIs' }).fill('javascript:alert(1)');
    await dialog.getByRole('checkbox', { name: 'The application has a secret' }).check();
    await dialog.getByRole('button', { name: 'Register application' }).click();
    await dialog.getByRole('alert').waitFor();
    await dialog.getByRole('textbox', { name: 'Redirect URIs' }).fill('https://intranet.example.com/callback\nhttps://intranet.example.com/other');
    assert.deepEqual(await severe(admin), []);
    await dialog.getByRole('button', { name: 'Register application' }).click();
    await dialog.getByText('The client secret is shown only once').waitFor();
    assert.deepEqual(await severe(admin), []);
    await dialog.getByRole('button', { name: 'Close', exact: true }).last().click();
    await dialog.waitFor({ state: 'detached' });
    const [client] = (await world.haft.api('GET', '/application-clients')).clients;
    assert.deepEqual([client.name, client.confidential, client.redirect_uris.length], ['Intranet', true, 2]);
    await admin.getByRole('row').filter({ hasText: 'Intranet' }).click();
    const drawer = admin.getByRole('complementary');
    await drawer.getByText(client.client_id).waitFor();
    await drawer.getByRole('button', { name: 'Delete', exact: true }).click();
    await dialog.getByText('disconnected from everybody').waitFor();
    await dialog.getByText('Nobody has connected it.').waitFor();
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await admin.getByText('No registered applications').waitFor();
    assert.equal((await world.haft.api('GET', '/application-clients')).clients.length, 0);
  },

  async 'a viewer sees no forms of admins'(world) {
    const page = await world.open('/accounts?new=1', { as: 'viewer' });
    await page.getByRole('heading', { name: 'Accounts', exact: true }).waitFor();
    assert.equal(await page.getByRole('dialog').count(), 0);
    assert.equal(await page.getByRole('button', { name: 'New provider' }).count(), 0);
    await world.go(page, '/applications?view=clients&new=1');
    await page.getByRole('heading', { name: 'Applications', exact: true }).waitFor();
    assert.equal(await page.getByRole('dialog').count(), 0);
    assert.equal(await page.getByRole('button', { name: 'Register application' }).count(), 0);
  },
};
