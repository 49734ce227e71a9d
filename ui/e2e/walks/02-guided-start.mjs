import assert from 'node:assert/strict';

export const tests = {
  async 'an empty installation leads to a tool, a call and a connected agent'(world) {
    const page = await world.open('/');
    for (const name of ['Create a tool', 'Try it', 'Connect an agent']) await page.getByRole('heading', { name }).waitFor();
    // A recipe becomes a working tool.
    await page.getByRole('link', { name: /recipe/i }).first().click();
    await page.getByRole('button', { name: /Calculator/ }).click();
    await page.getByRole('button', { name: 'Create tool' }).click();
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('tab', { name: 'Rendered' }).waitFor();
    await page.getByRole('tab', { name: 'Steps' }).click();
    await page.getByText('Execute').waitFor();
    const { calls } = await world.haft.api('GET', '/calls');
    assert.equal(calls[0].status, 'success', JSON.stringify(calls[0]));
    // The guide offers the new tool, and a configuration with a token.
    await world.go(page, '/');
    await page.getByRole('link', { name: new RegExp(`Try ${calls[0].tool.split(':').at(-1).split('@')[0]}`) }).waitFor();
    await page.getByRole('button', { name: /Create a token for/ }).click();
    await page.getByText('Created the token').waitFor();
    const config = await page.locator('pre').last().textContent();
    const token = /haft_[\w-]+/.exec(config)[0];
    for (const client of ['Claude Desktop', 'Cursor', 'VS Code', 'curl']) {
      await page.getByRole('tab', { name: client }).click();
      await page.locator('pre', { hasText: token }).waitFor();
    }
    // The first call of the agent arrives without a reload.
    await world.haft.invoke('datetime_utils', { operation: 'now' }, token);
    await page.getByText('The first call has arrived').waitFor();
  },
};
