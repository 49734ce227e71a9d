// Measures the built page: HAFT_BIN=…/haft npm run perf
//
// Reports the first view from a cold cache, its gzipped bytes, and the long tasks while a list of 10,000 tools scrolls, from
// the browser's trace. It asserts nothing: the figures depend on the machine.
import { availableParallelism, loadavg } from 'node:os';
import { gzipSync } from 'node:zlib';
import { Browser } from './lib/browser.mjs';
import { World } from './lib/world.mjs';

const TOOLS = 10_000;
const PAGE_SIZE = 500;
const LONG_TASK_MS = 50;
const RUNS = 5;
const say = (label, value) => process.stdout.write(`${label.padEnd(62)} ${value}\n`);
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** Times and bytes of one first view, in a context without a cache. */
async function firstView(world, path) {
  const page = await world.open(undefined);
  let bytes = 0;
  let requests = 0;
  const pending = [];
  page.on('response', (response) => {
    if (!new URL(response.url()).pathname.startsWith('/ui')) return;
    requests += 1;
    pending.push(response.body().then((body) => { bytes += gzipSync(body, { level: 6 }).length; }, () => undefined));
  });
  await page.goto(`/ui${path}`, { waitUntil: 'commit' });
  await page.locator('main h1').waitFor();
  const times = await page.evaluate(() => ({
    ready: performance.now(),
    paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN,
  }));
  await page.waitForLoadState('load');
  await Promise.all(pending);
  await page.context().close();
  return { ...times, bytes, requests };
}

async function reportFirstView(world, name, path) {
  const runs = [];
  for (let run = 0; run < RUNS; run += 1) runs.push(await firstView(world, path));
  say(`${name}: first contentful paint`, `${median(runs.map((each) => each.paint)).toFixed(0)} ms (median of ${RUNS})`);
  say(`${name}: heading of the page visible`, `${median(runs.map((each) => each.ready)).toFixed(0)} ms (median of ${RUNS})`);
  say(`${name}: bytes of the page, gzipped`, `${(runs[0].bytes / 1024).toFixed(0)} KiB in ${runs[0].requests} files`);
}

/** A row of the list. Rows are made here, so that the measurement is that of the browser and not of the import. */
function row(index) {
  const name = `tool-${String(index).padStart(5, '0')}`;
  return {
    id: null, tenant: 'default', bundle: `bundle-${index % 40}`, bundle_id: null, name, version: '1.0.0', display_name: '', description: `Does thing ${index} for a customer, and says what came of it`, category: '', tags: [`tag-${index % 25}`],
    tool_type: 'custom', implementation_type: ['http', 'script', 'exec', 'mcp'][index % 4], runtime: null, implementation: null, input_schema: null, output_schema: null, execution: null, policy: 'allow', requires_confirmation: false, sandbox: true, network: false,
    renderers: [], status: index % 3 === 0 ? 'published' : 'draft', enabled: true, built_in: false, ready: index % 50 !== 0, error: index % 50 === 0 ? 'not ready' : null, source: 'user', path: null, revision: 1, published_revision: null,
    usage: { call_count: index, last_called_at: index % 2 === 0 ? '2026-01-31T12:00:00Z' : null }, created_at: null, modified_at: '2026-01-31T12:00:00Z', published_at: null, warnings: [], warning_count: index % 70 === 0 ? 1 : 0,
  };
}

async function answerTools(route) {
  const query = new URL(route.request().url()).searchParams;
  const size = Math.min(Number(query.get('page_size') ?? 50), PAGE_SIZE);
  const start = Number(query.get('page_token') ?? 0);
  const end = Math.min(TOOLS, start + size);
  const tools = Array.from({ length: end - start }, (_, index) => row(start + index));
  await route.fulfill({ json: { status: 'success', data: { tools, total: TOOLS, ready: TOOLS, failed: 0, next_page_token: end < TOOLS ? String(end) : null } } });
}

/** The tasks of the main thread of the page: milliseconds that passed, and those that the processor spent on them. */
function mainThreadTasks(trace) {
  const { traceEvents } = JSON.parse(trace);
  const mains = new Set(traceEvents.filter((event) => event.name === 'thread_name' && event.args?.name === 'CrRendererMain').map((event) => `${event.pid}/${event.tid}`));
  return traceEvents.filter((event) => event.ph === 'X' && event.name === 'RunTask' && mains.has(`${event.pid}/${event.tid}`)).map((event) => ({ wall: event.dur / 1000, cpu: (event.tdur ?? event.dur) / 1000 }));
}

async function traced(browser, page, action) {
  await browser.chromium.startTracing(page, { categories: ['toplevel', 'disabled-by-default-devtools.timeline', 'devtools.timeline'] });
  await action();
  return mainThreadTasks((await browser.chromium.stopTracing()).toString());
}

function reportTasks(name, tasks) {
  for (const [kind, label] of [['wall', ''], ['cpu', ', processor time']]) {
    const times = tasks.map((task) => task[kind]);
    say(`${name}${label}`, `${times.filter((ms) => ms > LONG_TASK_MS).length} of ${times.length} tasks over ${LONG_TASK_MS} ms; longest ${Math.max(0, ...times).toFixed(0)} ms`);
  }
}

const browser = await Browser.launch();
const world = await World.create(browser);
say('load of the machine', `${loadavg()[0].toFixed(1)} on ${availableParallelism()} processors`);
try {
  await world.demo();
  await reportFirstView(world, 'home', '/');
  await reportFirstView(world, 'tools', '/tools');

  const page = await world.open(undefined);
  await page.route((url) => url.pathname === '/api/tools', answerTools);
  const start = Date.now();
  await world.go(page, '/tools');
  await page.getByRole('grid').and(page.locator(`[aria-rowcount="${TOOLS + 1}"]`)).waitFor();
  say(`${TOOLS.toLocaleString('en-US')} tools: all rows loaded`, `${Date.now() - start} ms`);
  const box = await page.getByRole('grid').boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.waitForTimeout(1000);
  reportTasks('10,000 tools: scrolling by wheel, 120 steps', await traced(browser, page, async () => {
    for (let step = 0; step < 120; step += 1) {
      await page.mouse.wheel(0, 400);
      await page.waitForTimeout(25);
    }
  }));
  reportTasks('10,000 tools: jumps through the whole list', await traced(browser, page, async () => {
    for (let step = 1; step <= 20; step += 1) {
      await page.getByRole('grid').locator('[role=rowgroup]').last().evaluate((element, part) => { element.scrollTop = element.scrollHeight * part; }, step / 20);
      await page.waitForTimeout(60);
    }
  }));
  reportTasks('10,000 tools: typing in the filter', await traced(browser, page, async () => {
    await page.getByRole('textbox', { name: /Filter/ }).pressSequentially('tool-09', { delay: 80 });
    await page.waitForTimeout(500);
  }));
} finally {
  await world.end();
  await browser.close();
}
