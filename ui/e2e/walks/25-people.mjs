// People: an invitation, a login with the link, rights by a group, own tokens, and the end of access.
import assert from 'node:assert/strict';

/** Chooses an option of a field; with a text to search for, among those that it finds. */
async function choose(page, field, option, search) {
  await field.click();
  if (search !== undefined) await field.fill(search);
  await page.getByRole('option', { name: option }).first().click();
}

/** Invites a person with the form; returns the link. */
async function invite(page, { name, email }) {
  await page.getByRole('button', { name: 'Invite person' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill(name);
  await dialog.getByRole('textbox', { name: 'E-mail' }).fill(email);
  await dialog.getByRole('button', { name: 'Create invitation' }).click();
  await dialog.getByText('Shown only once').waitFor();
  const link = new URL(await dialog.getByText(/\?invitation=/).innerText());
  await dialog.getByRole('button', { name: 'Copy' }).waitFor();
  await dialog.getByRole('button', { name: 'Close', exact: true }).last().click();
  await dialog.waitFor({ state: 'detached' });
  return link.pathname + link.search;
}

/** Opens a login link in a browser of its own, and presses its button. */
async function logIn(world, link) {
  const page = await world.blank();
  await page.goto(link);
  // Opening the link, as the preview of a messenger does, logs nobody in.
  assert.equal((await page.context().cookies()).length, 0);
  await page.getByRole('button').first().click();
  await page.waitForURL('**/ui/**');
  await page.getByRole('heading', { name: 'Home', exact: true }).waitFor();
  return page;
}

export const tests = {
  async 'a person is invited, logs in with the link, and is disabled'(world) {
    const admin = await world.open('/people');
    await admin.getByRole('row').filter({ hasText: 'local' }).waitFor();
    const link = await invite(admin, { name: 'Ann Smith', email: 'ann@example.com' });
    const row = admin.getByRole('row').filter({ hasText: 'Ann Smith' });
    await row.getByRole('img', { name: 'Invited' }).waitFor();

    const page = await logIn(world, link);
    await page.getByRole('button', { name: 'Account' }).click();
    await page.getByRole('menu').getByText('Ann Smith').waitFor();
    await page.getByRole('menu').getByText('ann@example.com').waitFor();
    await page.keyboard.press('Escape');
    // The link has been used.
    const second = await world.blank();
    await second.goto(link);
    const [answer] = await Promise.all([second.waitForResponse((each) => each.request().method() === 'POST'), second.getByRole('button').first().click()]);
    assert.ok(answer.status() >= 400, `a used link answered ${answer.status()}`);
    assert.equal((await second.context().cookies()).length, 0);

    // Without loading the page again.
    await row.getByRole('img', { name: 'Active' }).waitFor();
    await row.click();
    const drawer = admin.getByRole('complementary');
    await drawer.getByRole('button', { name: 'Disable', exact: true }).click();
    const dialog = admin.getByRole('dialog');
    await dialog.getByText('1 open session').waitFor();
    await dialog.getByRole('button', { name: 'Disable', exact: true }).click();
    await drawer.getByText('Disabled', { exact: true }).waitFor();
    assert.equal(await drawer.getByRole('button', { name: 'New login link' }).count(), 0);

    await page.getByRole('navigation').first().getByRole('link', { name: 'Calls', exact: true }).click();
    await page.getByRole('status').filter({ hasText: /session/i }).waitFor();
    await page.reload();
    await page.waitForURL('**/login**');
    assert.equal((await page.request.get('/api/session')).status(), 401);
  },

  async 'a group gives its members rights, and takes them away when it is deleted'(world) {
    const person = await world.haft.api('POST', '/people', { name: 'Grace', email: 'grace@example.com', role: 'viewer' });
    const admin = await world.open('/groups');
    await admin.getByRole('button', { name: 'New group' }).first().click();
    const dialog = admin.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill('builders');
    await choose(admin, dialog.getByRole('combobox', { name: 'Members' }), /^Grace/, 'grace@');
    // Closes the list of members, which covers the role.
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).click();
    await choose(admin, dialog.getByRole('combobox', { name: 'Role' }), /^Editor/);
    await dialog.getByRole('button', { name: 'Create group' }).click();
    const drawer = admin.getByRole('complementary');
    await drawer.getByRole('link', { name: 'Grace' }).waitFor();
    assert.equal((await world.haft.api('GET', `/people/${person.id}`)).rights.role, 'editor');
    await drawer.getByRole('link', { name: 'Grace' }).click();
    await drawer.getByRole('link', { name: 'builders' }).click();
    await drawer.getByRole('button', { name: 'Delete', exact: true }).click();
    await dialog.getByText('1 member loses the rights').waitFor();
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await admin.getByText('No groups yet').waitFor();
    assert.equal((await world.haft.api('GET', `/people/${person.id}`)).rights.role, 'viewer');
  },

  async 'a person who is no admin manages own tokens, and nothing else of the administration'(world) {
    const { invitation } = await world.haft.api('POST', '/people', { name: 'Edsger', email: 'edsger@example.com' });
    const { pathname, search } = new URL(invitation.url);
    const page = await logIn(world, pathname + search);
    await page.getByRole('navigation').first().getByRole('link', { name: 'My tokens' }).click();
    await page.getByRole('heading', { name: 'My tokens' }).waitFor();
    await page.getByRole('button', { name: 'Create token' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill('laptop');
    assert.equal(await dialog.getByRole('combobox', { name: 'Owner' }).count(), 0);
    await dialog.getByRole('button', { name: 'Create token' }).click();
    const value = await dialog.getByText(/^haft_/).innerText();
    await dialog.getByRole('button', { name: 'Close', exact: true }).last().click();
    assert.equal((await world.haft.api('GET', '/session', undefined, { as: value })).name, 'Edsger');
    await page.getByRole('row').filter({ hasText: 'laptop' }).click();
    const drawer = page.getByRole('complementary');
    await drawer.getByRole('button', { name: 'New value' }).waitFor();
    await drawer.getByRole('button', { name: 'Revoke' }).click();
    await dialog.getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('No tokens yet').waitFor();
    for (const path of ['/people', '/groups', '/service-accounts']) {
      await page.goto(`/ui${path}`);
      await page.getByText(/You need the role Admin/).first().waitFor();
    }
  },

  async 'a person whom an identity provider manages is marked, and disappears with it'(world) {
    const admin = await world.open('/people');
    const scim = async (method, path, body) => {
      const headers = { Authorization: `Bearer ${world.haft.token}`, 'Content-Type': 'application/scim+json' };
      const response = await fetch(`${world.haft.url}/scim/v2${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
      assert.ok(response.ok, `${method} ${path}: ${response.status}`);
      return response.status === 204 ? undefined : response.json();
    };
    const { id } = await scim('POST', '/Users', { userName: 'hedy@corp.example', externalId: '00u7', displayName: 'Hedy Lamarr' });
    const row = admin.getByRole('row').filter({ hasText: 'Hedy Lamarr' });
    await row.click();
    const drawer = admin.getByRole('complementary');
    await drawer.getByText('Managed by SCIM').waitFor();
    await drawer.getByText('hedy@corp.example').waitFor();
    await drawer.getByText('00u7').waitFor();
    await drawer.getByRole('button', { name: 'Edit' }).click();
    const dialog = admin.getByRole('dialog');
    await dialog.getByText('Your identity provider sets this').first().waitFor();
    await admin.keyboard.press('Escape');
    await scim('PATCH', `/Users/${id}`, { Operations: [{ op: 'Replace', path: 'active', value: 'False' }] });
    await drawer.getByText('Disabled', { exact: true }).waitFor();
    await scim('DELETE', `/Users/${id}`);
    await row.waitFor({ state: 'detached' });
  },

  async 'a service account gets a token, which ends with it'(world) {
    const admin = await world.open('/service-accounts');
    await admin.getByRole('button', { name: 'New service account' }).first().click();
    const dialog = admin.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill('nightly-report');
    await dialog.getByRole('textbox', { name: 'Purpose' }).fill('Sends the report each night');
    await dialog.getByRole('textbox', { name: 'Rate limit' }).fill('60');
    await dialog.getByRole('button', { name: 'Create service account' }).click();
    const drawer = admin.getByRole('complementary');
    await drawer.getByRole('heading', { name: 'nightly-report' }).waitFor();
    await drawer.getByText('60 / 1m').waitFor();
    await drawer.getByRole('button', { name: 'Create token' }).click();
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill('cron');
    await dialog.getByRole('button', { name: 'Create token' }).click();
    const value = await dialog.getByText(/^haft_/).innerText();
    await dialog.getByRole('button', { name: 'Close', exact: true }).last().click();
    await drawer.getByRole('row').filter({ hasText: 'cron' }).waitFor();
    const session = await world.haft.api('GET', '/session', undefined, { as: value });
    assert.deepEqual([session.name, session.actor.kind], ['nightly-report', 'service_account']);
    await world.haft.invoke('search_tools', { query: 'report' }, value);
    await drawer.getByRole('link', { name: 'Show all' }).click();
    await admin.getByRole('button', { name: 'By nightly-report' }).waitFor();
    await admin.goBack();
    await drawer.getByRole('button', { name: 'Delete', exact: true }).click();
    await dialog.getByText('1 token stops working at once').waitFor();
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await admin.getByText('No service accounts yet').waitFor();
    const answer = await fetch(`${world.haft.url}/api/session`, { headers: { Authorization: `Bearer ${value}` } });
    assert.equal(answer.status, 401);
  },

  async 'a person ends a session of another browser, and an admin the last one'(world) {
    const { id, invitation } = await world.haft.api('POST', '/people', { name: 'Alan', email: 'alan@example.com' });
    const { pathname, search } = new URL(invitation.url);
    const page = await logIn(world, pathname + search);
    const { url } = await world.haft.api('POST', `/people/${id}/invitation`);
    const again = new URL(url);
    const other = await logIn(world, again.pathname + again.search);
    await page.goto('/ui/settings');
    await page.getByText('this browser').waitFor();
    await page.getByRole('button', { name: 'End session' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End session' }).click();
    await page.getByText('Session ended').waitFor();
    assert.equal((await other.request.get('/api/session')).status(), 401);
    assert.equal((await page.request.get('/api/session')).status(), 200);

    const admin = await world.open(`/people?open=${id}`);
    const drawer = admin.getByRole('complementary');
    await drawer.getByText('No connected accounts.').waitFor();
    await drawer.getByText('No connected applications').waitFor();
    await drawer.getByRole('button', { name: 'End session' }).click();
    await admin.getByRole('dialog').getByRole('button', { name: 'End session' }).click();
    await drawer.getByText('No open sessions.').waitFor();
    assert.equal((await page.request.get('/api/session')).status(), 401);
  },
};
