// axe-core on every page in both themes: no serious and no critical violation.
import assert from 'node:assert/strict';
import { severe } from '../lib/axe.mjs';
import { DETAILS, NAVIGATION } from '../lib/pages.mjs';

// It takes the longest, so it starts first.
export const options = { weight: 4 };

async function check(world, colorScheme, rules) {
  // One line per violation, with the first page that has it.
  const found = new Map();
  const note = (path, list) => { for (const text of list) { const key = text.replaceAll(/mantine-\w+/g, ''); if (!found.has(key)) found.set(key, `${path} ${text}`); } };
  const page = await world.open('/', { colorScheme });
  const paths = [...NAVIGATION, ...DETAILS, ...(await world.example()), '/approvals?status=remembered'];
  const call = (await world.haft.api('GET', '/calls')).calls[0].id;
  const approval = (await world.haft.api('GET', '/approvals')).approvals[0].id;
  paths.push(`/calls?open=${call}`, `/approvals?open=${approval}`);
  for (const path of paths) {
    await world.visit(page, path);
    note(path, await severe(page, rules));
  }
  await page.keyboard.press('Control+k');
  await page.getByRole('option').first().waitFor();
  note('palette', await severe(page, rules));
  assert.equal([...found.values()].join('\n'), '');
}

export const tests = {
  async 'light'(world) {
    await world.demo();
    await check(world, 'light');
  },
  async 'dark'(world) {
    await world.demo();
    // The same elements in other colours.
    await check(world, 'dark', ['color-contrast']);
  },
  async 'the login page'(world) {
    const page = await world.blank();
    await page.goto('/login');
    assert.equal((await severe(page)).join('\n'), '');
  },
};
