// Comparing and exporting calls.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

const GREET = 'name: greet\ndescription: Greets a person\nparams: [{name: who, type: string, required: true}]\nimplementation: {type: exec, command: "echo Hello, {{who}}"}\n';

async function greetings(world, ...people) {
  await world.haft.api('POST', '/tools', GREET, { type: 'application/yaml', allow: [409] });
  for (const who of people) await world.haft.invoke('greet', { who });
}

/** The text of the file that the menu item downloads. */
async function download(page, item) {
  await page.getByRole('main').getByRole('button', { name: 'More actions' }).or(page.getByRole('main').getByRole('button', { name: 'More' })).first().click();
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: item }).click()]);
  return { name: file.suggestedFilename(), text: await readFile(await file.path(), 'utf8') };
}

export const tests = {
  async 'two calls side by side'(world) {
    await greetings(world, 'Ada', 'Grace');
    const page = await world.open('/calls?tool=user-created:greet@1.0.0');
    for (const who of ['Ada', 'Grace']) await page.getByRole('row').filter({ hasText: who }).getByRole('checkbox').check();
    await page.getByRole('button', { name: 'Compare', exact: true }).click();
    await page.waitForURL(/\/calls\/compare\?/);
    for (const text of ['"who": "Ada"', '"who": "Grace"', 'Hello, Ada', 'Hello, Grace']) await page.getByRole('main').getByText(text).first().waitFor();
    // A call has no differences to itself.
    const left = new URL(page.url()).searchParams.get('left');
    await world.go(page, `/calls/compare?left=${left}&right=${left}`);
    await page.getByText('No differences.').nth(2).waitFor();
  },

  async 'the list as CSV and as JSON Lines'(world) {
    await greetings(world, '=1+1', 'a "quoted", word');
    const page = await world.open('/calls?tool=user-created:greet@1.0.0');
    await page.getByRole('row').filter({ hasText: 'quoted' }).waitFor();
    const total = (await world.haft.api('GET', '/calls?tool=greet')).total;
    const csv = await download(page, /CSV/);
    assert.equal(csv.name, 'calls.csv');
    const lines = csv.text.split('\n');
    assert.equal(lines[0], 'id,started_at,tool,caller,surface,status,duration_ms,error,args');
    assert.equal(lines.length, total + 1);
    const json = await download(page, /JSON Lines/);
    assert.equal(json.name, 'calls.jsonl');
    const calls = json.text.split('\n').map((line) => JSON.parse(line));
    assert.equal(calls.length, total);
    assert.ok(calls.some((call) => call.args.who === 'a "quoted", word'));
  },
};
