// A session that runs out.
export const options = { env: { HAFT_SERVER_SESSION_LIFETIME: '5s' } };

export const tests = {
  async 'an expired session shows a banner, and an expired page leads to the login'(world) {
    const page = await world.open('/calls');
    await page.getByRole('status').filter({ hasText: /session/i }).waitFor();
    await page.reload();
    await page.waitForURL('**/login**');
  },
};
