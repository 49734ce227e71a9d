import assert from 'node:assert/strict';

async function logIn(page, token) {
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Log in' }).click();
}

/** The cookies of a login; another one holds the language. */
async function sessions(page) {
  return (await page.context().cookies()).filter(({ name }) => name !== 'haft_language');
}

export const tests = {
  async 'the address of the server leads to the login, and the login back to the page'(world) {
    const page = await world.blank();
    await page.goto('/');
    await page.waitForURL('**/login**');
    await logIn(page, 'not-a-token');
    await page.getByText(/not accepted|unknown|invalid/i).first().waitFor();
    assert.deepEqual(await sessions(page), []);
    await page.goto('/ui/calls?status=error');
    await page.waitForURL('**/login**');
    await logIn(page, world.haft.token);
    await page.getByRole('heading', { name: 'Calls', exact: true }).waitFor();
    assert.match(page.url(), /\/ui\/calls\?status=error/);
    const [cookie] = await sessions(page);
    assert.equal(cookie.httpOnly, true);
    assert.equal(cookie.sameSite, 'Strict');
  },

  async 'a login link logs in once'(world) {
    const { url } = await world.haft.api('POST', '/login-links');
    const link = new URL(url);
    const page = await world.blank();
    await page.goto(link.pathname + link.search);
    await page.waitForURL('**/ui/**');
    await page.getByRole('heading', { name: 'Home', exact: true }).waitFor();
    const second = await world.blank();
    await second.goto(link.pathname + link.search);
    assert.equal((await second.context().cookies()).length, 0);
  },

  async 'log out ends the session'(world) {
    const page = await world.open('/tools');
    const cookies = await page.context().cookies();
    await page.getByRole('button', { name: 'Account' }).click();
    await page.getByRole('menuitem', { name: 'Log out' }).click();
    await page.waitForURL('**/login**');
    assert.equal((await sessions(page)).length, 0);
    await page.goto('/ui/tools');
    await page.waitForURL('**/login**');
    // The old cookie is worth nothing, either.
    const answer = await fetch(`${world.haft.url}/api/session`, { headers: { Cookie: cookies.map(({ name, value }) => `${name}=${value}`).join('; ') } });
    assert.equal(answer.status, 401);
  },
};
