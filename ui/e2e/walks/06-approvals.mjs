import assert from 'node:assert/strict';

const DEPLOY = 'name: deploy\ndescription: Deploys a branch\nrequires_confirmation: true\nparams: [{name: branch, type: string, required: true}]\nimplementation: {type: exec, command: "echo deployed {{branch}}"}\n';

/** Asks for a call in one browser, as somebody who may not decide. */
async function ask(world, branch, tool = 'deploy') {
  await world.haft.api('POST', '/tools', DEPLOY, { type: 'application/yaml', allow: [409] });
  const page = await world.open(`/tools/user-created:${tool}@1.0.0?tab=try`, { as: 'caller' });
  await page.locator('#arg_branch').fill(branch);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText('Waiting for approval').first().waitFor();
  return page;
}

export const tests = {
  async 'one person asks, another approves; the count is live'(world) {
    const admin = await world.open('/approvals');
    await admin.getByText('Nothing waits for approval').or(admin.getByText(/No approval|Nothing/)).first().waitFor();
    await ask(world, 'feature-x');
    // Without a reload: the row, the number in the navigation, and the title.
    await admin.getByRole('row').filter({ hasText: 'feature-x' }).waitFor();
    await admin.waitForFunction(() => document.title.startsWith('(1)'));
    await admin.getByRole('row').filter({ hasText: 'feature-x' }).click();
    await admin.getByRole('button', { name: 'Approve call' }).click();
    await admin.getByText('Approved deploy').waitFor();
    await admin.waitForFunction(() => !document.title.startsWith('('));
    await world.go(admin, '/calls?tool=deploy');
    await admin.getByRole('row').filter({ hasText: 'feature-x' }).getByRole('img', { name: 'Success' }).waitFor();
  },

  async 'deny with a reason'(world) {
    await ask(world, 'bad-idea');
    const admin = await world.open('/approvals');
    await admin.getByRole('row').filter({ hasText: 'bad-idea' }).click();
    await admin.getByRole('button', { name: 'Deny', exact: true }).click();
    const dialog = admin.getByRole('dialog');
    await dialog.getByRole('textbox').fill('not on a Friday');
    await dialog.getByRole('button', { name: 'Deny', exact: true }).click();
    await admin.getByText('Denied deploy').waitFor();
    const { approvals } = await world.haft.api('GET', '/approvals?status=denied');
    assert.equal(approvals[0].reason, 'not on a Friday');
    const { calls } = await world.haft.api('GET', '/calls?tool=deploy&status=success');
    assert.equal(calls.filter((call) => JSON.stringify(call.args).includes('bad-idea')).length, 0);
  },

  async 'edit the arguments and approve'(world) {
    await ask(world, 'mian');
    const admin = await world.open('/approvals');
    await admin.getByRole('row').filter({ hasText: 'mian' }).click();
    await admin.getByRole('button', { name: /Edit/ }).click();
    await admin.locator('#arg_branch').fill('main');
    await admin.getByRole('button', { name: /Approve/ }).click();
    await admin.getByText('Approved deploy').waitFor();
    await world.go(admin, '/calls?tool=deploy');
    await admin.getByRole('row').filter({ hasText: '"main"' }).or(admin.getByRole('row').filter({ hasText: 'main' })).first().click();
    await admin.getByText('deployed main').first().waitFor();
  },

  async 'who may not decide sees the call, and no button'(world) {
    await world.haft.tool(DEPLOY.replace('name: deploy', 'name: deploy-elevated').replace('requires_confirmation: true', 'policy: elevated'));
    const asker = await ask(world, 'by-myself', 'deploy-elevated');
    await asker.getByRole('link', { name: /approval/i }).last().click();
    await asker.getByText('by-myself').first().waitFor();
    assert.equal(await asker.getByRole('button', { name: 'Approve call' }).count(), 0);
  },

  async 'a remembered approval covers the next call, until it is forgotten'(world) {
    await ask(world, 'every-night');
    const admin = await world.open('/approvals');
    await admin.getByRole('row').filter({ hasText: 'every-night' }).click();
    await admin.getByRole('textbox', { name: 'Remember' }).or(admin.getByRole('combobox', { name: 'Remember' })).first().click();
    await admin.getByRole('option', { name: 'For everyone' }).click();
    await admin.getByRole('button', { name: 'Approve call' }).click();
    await admin.getByText('Approved deploy').waitFor();
    const agent = await world.haft.newToken({ name: 'night-agent', role: 'caller' });
    const invoke = async () => {
      await world.haft.invoke('deploy', { branch: 'every-night' }, agent);
      return (await world.haft.api('GET', '/calls?caller=night-agent')).calls[0].status;
    };
    assert.equal(await invoke(), 'success');
    await admin.getByText('Remembered', { exact: true }).click();
    await admin.waitForURL(/status=remembered/);
    const row = admin.getByRole('row').filter({ hasText: 'deploy' });
    await row.getByText('For everyone, the same arguments').waitFor();
    await row.getByRole('button', { name: /^Forget/ }).click();
    await admin.getByText('No approval is remembered').waitFor();
    assert.equal(await invoke(), 'awaiting_approval');
  },

  async 'with one thumb'(world) {
    await ask(world, 'from-a-phone');
    const phone = await world.open('/approvals', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    await phone.getByText('from-a-phone').first().tap();
    const approve = phone.getByRole('button', { name: 'Approve call' });
    await approve.scrollIntoViewIfNeeded();
    const box = await approve.boundingBox();
    assert.ok(box.height >= 40 && box.x >= 0 && box.x + box.width <= 390, JSON.stringify(box));
    await approve.tap();
    await phone.getByText('Approved deploy').waitFor();
  },
};
