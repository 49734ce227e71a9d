// Runs of agents: the list, the trace, what belongs to them.
import assert from 'node:assert/strict';
import { agent } from '../lib/agents.mjs';

const ask = (world, input, query = '') => world.haft.api('POST', `/agents/helper/runs${query}`, { input });
const trace = (page) => page.getByRole('list', { name: 'Trace' });

export const tests = {
  async 'nothing has run yet'(world) {
    const page = await world.open('/runs');
    await page.getByText('No runs yet').waitFor();
  },

  async 'from the list to the trace: models, tools, tokens, the answer'(world) {
    await agent(world);
    const run = await ask(world, 'The weather in Oslo?');
    assert.equal(run.status, 'success', JSON.stringify(run));
    const page = await world.open('/runs');
    await page.getByRole('row').filter({ hasText: 'helper' }).first().click();
    await page.waitForURL(/open=/);
    await trace(page).getByRole('listitem').nth(2).waitFor();
    assert.equal(await trace(page).getByRole('listitem').count(), 3);
    await trace(page).getByRole('button', { name: /weather/ }).click();
    await page.getByText('Oslo has 21 degrees').first().waitFor();
    await page.getByRole('link', { name: /Open the call|call/i }).first().waitFor();
    await trace(page).getByRole('button').first().click();
    await page.getByText('I look it up.').first().waitFor();
    await page.getByRole('button', { name: 'Open as full page' }).click();
    await page.waitForURL(new RegExp(`/runs/${run.id}`));
    await page.getByRole('heading', { level: 1, name: 'Run of helper' }).waitFor();
    await trace(page).getByRole('button', { name: /weather/ }).waitFor();
  },

  async 'filters live in the address'(world) {
    await agent(world);
    await ask(world, 'Please fail');
    await ask(world, 'Hello');
    const page = await world.open('/runs?status=error');
    await page.getByRole('row').filter({ hasText: 'the key was rejected' }).first().waitFor();
    assert.equal(await page.getByRole('row').filter({ hasText: 'You said' }).count(), 0);
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await page.getByRole('row').filter({ hasText: 'You said' }).first().waitFor();
  },

  async 'a run that was started elsewhere appears without a reload, and so does its end'(world) {
    const slug = await agent(world, 'watched');
    const page = await world.open(`/runs?agent=${slug}`);
    await page.getByText('No run matches').waitFor();
    const run = await world.haft.api('POST', `/agents/${slug}/runs?async=true`, { input: 'Count slowly' });
    const row = page.getByRole('row').filter({ hasText: slug });
    await row.waitFor();
    await world.haft.api('POST', `/runs/${run.id}/cancel`);
    await row.filter({ hasText: 'the run was cancelled' }).waitFor();
  },

  async 'a run is watched while it runs, and cancelled'(world) {
    await agent(world);
    const run = await ask(world, 'Count slowly', '?async=true');
    const page = await world.open(`/runs/${run.id}`);
    await page.getByRole('main').getByText('Running', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Cancel run' }).click();
    await page.getByRole('main').getByText('Cancelled', { exact: true }).waitFor();
    assert.equal((await world.haft.api('GET', `/runs/${run.id}`)).status, 'cancelled');
    assert.equal(await page.getByRole('button', { name: 'Cancel run' }).count(), 0);
  },

  async 'a run that waits leads to its approval, and goes on after it'(world) {
    await agent(world);
    const run = await ask(world, 'Please release main', '?async=true');
    const page = await world.open(`/runs/${run.id}`);
    await page.getByText('Waiting for', { exact: true }).waitFor();
    const waiting = await world.haft.api('GET', `/runs/${run.id}`);
    assert.equal(waiting.waiting.length, 1);
    await world.haft.api('POST', `/approvals/${waiting.waiting[0].approval_id}/approve`, {});
    await page.getByRole('main').getByText('Success', { exact: true }).first().waitFor();
    await trace(page).getByRole('button', { name: /release/ }).first().waitFor();
  },

  async 'a caller sees own runs only'(world) {
    await agent(world);
    await ask(world, 'Hello');
    const page = await world.open('/runs', { as: 'caller' });
    await page.getByText('You see only your own runs.').waitFor();
  },

  async 'on a phone'(world) {
    await agent(world);
    const run = await ask(world, 'The weather in Oslo?');
    const page = await world.open(`/runs/${run.id}`, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
    await trace(page).getByRole('button', { name: /weather/ }).tap();
    await page.getByText('Oslo has 21 degrees').first().waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth) <= 0);
  },
};
