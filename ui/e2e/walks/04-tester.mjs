import assert from 'node:assert/strict';

const GREET = 'name: greet\ndescription: Greets a person\nparams:\n  - {name: who, type: string, required: true, description: Who to greet}\n  - {name: times, type: integer, minimum: 1, maximum: 9, default: 1}\nimplementation: {type: script, runtime: bash, body: "for i in $(seq $times); do echo \\"Hello, $who\\"; done"}\n';
const COUNT = 'name: count\ndescription: Counts slowly\nparams: [{name: to, type: integer, required: true}]\nimplementation: {type: exec, command: "for i in $(seq 1 {{to}}); do echo step $i; echo note $i >&2; sleep 0.3; done"}\n';

export const tests = {
  async 'form, JSON and back without loss; an invalid argument is shown at its field'(world) {
    await world.haft.tool(GREET);
    const page = await world.open('/tools/user-created:greet@1.0.0?tab=try');
    await page.locator('#arg_who').fill('Ada');
    await page.getByText('JSON', { exact: true }).click();
    const editor = page.locator('.cm-content').first();
    await page.waitForFunction(() => document.querySelector('.cm-content')?.textContent.includes('"Ada"'));
    await editor.fill('{"who": "Grace", "times": 20}');
    await page.getByText('Form', { exact: true }).click();
    assert.equal(await page.locator('#arg_who').inputValue(), 'Grace');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    // The words are the server's, and they are at the field.
    const field = page.locator('div', { has: page.locator('#arg_times') }).filter({ hasText: /maximum|9/ }).last();
    await field.getByText(/9/).first().waitFor();
    await page.locator('#arg_times').fill('2');
    await page.keyboard.press('Control+Enter');
    await page.getByText('Hello, Grace').first().waitFor();
  },

  async 'copy as curl is a command that works'(world) {
    await world.haft.tool(GREET.replace('greet', 'greet-two'));
    const page = await world.open('/tools/user-created:greet-two@1.0.0?tab=try');
    await page.locator('#arg_who').fill("O'Brien");
    for (const format of ['Python', 'TypeScript', 'MCP', 'CLI']) {
      await page.getByRole('tab', { name: new RegExp(format, 'i') }).first().click();
      await page.locator('pre', { hasText: 'Brien' }).first().waitFor();
    }
    await page.getByRole('tab', { name: 'curl' }).click();
    const command = (await page.locator('pre', { hasText: 'curl' }).first().textContent()).replace(/https?:\/\/[^/]+/, world.haft.url);
    const { spawnSync } = await import('node:child_process');
    const done = spawnSync('bash', ['-c', command], { env: { ...process.env, HAFT_TOKEN: world.haft.token }, encoding: 'utf8' });
    assert.match(done.stdout, /Hello, O'Brien/, `${command}\n${done.stderr}`);
  },

  async 'output streams while a call runs, and Esc cancels it'(world) {
    await world.haft.tool(COUNT);
    const page = await world.open('/tools/user-created:count@1.0.0?tab=try');
    await page.locator('#arg_to').fill('100');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('step 3', { exact: true }).waitFor();
    await page.getByText('note 3', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Cancel call' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('main').getByText('Cancelled', { exact: true }).first().waitFor();
    const { calls } = await world.haft.api('GET', '/calls?tool=count');
    assert.equal(calls[0].status, 'cancelled');
  },

  async 'a running call is cancelled from the list of calls'(world) {
    await world.haft.tool(COUNT.replace('name: count', 'name: count-on'));
    await world.haft.api('POST', '/tools/count-on/invoke?async=true', { args: { to: 100 } });
    const page = await world.open('/calls');
    await page.getByRole('row').filter({ hasText: 'count-on' }).first().click();
    await page.getByRole('complementary').getByRole('button', { name: 'Cancel call' }).click();
    await page.getByRole('complementary').getByText('Cancelled', { exact: true }).first().waitFor();
  },

  async 'run again, edit and run'(world) {
    await world.haft.tool(GREET.replace('greet', 'greet-again'));
    await world.haft.invoke('greet-again', { who: 'Ada' });
    await world.haft.invoke('greet-again', { who: 'Bob' });
    const page = await world.open('/calls?tool=greet-again');
    const drawer = page.getByRole('complementary');
    await page.getByRole('row').filter({ hasText: 'Ada' }).first().click();
    await drawer.getByRole('button', { name: 'Run again' }).click();
    await page.getByText('Called again').waitFor();
    await page.waitForFunction(() => document.querySelectorAll('[role=row]').length >= 4);
    assert.equal((await world.haft.api('GET', '/calls?tool=greet-again')).calls.length, 3);
    await drawer.getByRole('button', { name: 'Edit and run' }).click();
    await page.waitForURL(/tab=try/);
    await page.waitForFunction(() => document.querySelector('#arg_who')?.value === 'Ada');
    await page.locator('#arg_who').fill('Eve');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('Hello, Eve').first().waitFor();
  },

  async 'an example is saved and used'(world) {
    await world.haft.tool(GREET.replace('greet', 'greet-example'));
    const page = await world.open('/tools/user-created:greet-example@1.0.0?tab=try');
    await page.locator('#arg_who').fill('Ada');
    await page.getByRole('button', { name: /as an example/ }).click();
    await page.getByRole('textbox', { name: 'Name of the example' }).fill('ada');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.locator('#arg_who').fill('Bob');
    await page.getByRole('button', { name: 'ada', exact: true }).click();
    await page.waitForFunction(() => document.querySelector('#arg_who')?.value === 'Ada');
    await page.reload();
    await page.getByRole('button', { name: 'ada', exact: true }).waitFor();
  },
};
