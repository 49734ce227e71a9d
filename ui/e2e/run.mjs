// The browser tests: HAFT_BIN=…/haft node e2e/run.mjs [part of a file or test name …]
//
// One file per walk, each with a fresh server; E2E_WORKERS walks run at a time (default: 2), each in a browser of its own. A
// failed test leaves a screenshot of each open page, the console and the log of the server in the folder E2E_OUT (default:
// e2e-results). With E2E_REPEAT=1, a walk that failed runs once more, from the beginning and on a server of its own. If it
// passes then, the run passes and names it as unstable: it has a defect, or found one. E2E_SET=smoke runs the tests that
// e2e/smoke.mjs names.
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Browser } from './lib/browser.mjs';
import { sleep } from './lib/haft.mjs';
import { World } from './lib/world.mjs';
import { SMOKE, checkSmoke } from './smoke.mjs';

const out = process.env.E2E_OUT ?? new URL('../e2e-results', import.meta.url).pathname;
const TEST_MS = Number(process.env.E2E_TIMEOUT_MS ?? 600_000);
const CLOSE_MS = 15_000;
const REPEATS = Number(process.env.E2E_REPEAT ?? 0);
const WORKERS = Math.max(1, Number(process.env.E2E_WORKERS ?? 2));
const LOG_LINES = 15;
const SET = process.env.E2E_SET ?? 'all';
const filters = process.argv.slice(2);
const say = (text) => process.stdout.write(`${text}\n`);

if (!['all', 'smoke'].includes(SET)) {
  say(`e2e: E2E_SET is ${SET}; expected all or smoke`);
  process.exit(2);
}
if (!existsSync(new URL('../dist/index.html', import.meta.url))) {
  say('e2e: the page is not built; run `npm run build` first');
  process.exit(2);
}
rmSync(out, { recursive: true, force: true });

const folder = new URL('walks/', import.meta.url);
const walks = [];
const known = new Map();
const inSet = (walk, test) => SET === 'all' || SMOKE[walk] === true || (SMOKE[walk] ?? []).includes(test);
const isChosen = (walk, test) => filters.length === 0 || filters.some((part) => walk.includes(part) || test.includes(part));
for (const file of readdirSync(folder).filter((name) => name.endsWith('.mjs')).sort()) {
  const { tests, options } = await import(new URL(file, folder));
  const name = file.replace('.mjs', '');
  known.set(name, Object.keys(tests));
  const chosen = Object.entries(tests).filter(([test]) => inSet(name, test) && isChosen(name, test));
  if (chosen.length > 0) walks.push({ name, tests: chosen, options, attempt: 1 });
}
checkSmoke(known);
if (walks.length === 0) {
  say(`e2e: no test matches ${filters.join(' ')}`);
  process.exit(2);
}

function withTimeout(work) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`not finished after ${TEST_MS / 1000} s`)), TEST_MS); });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

async function saveEvidence(world, browser, name) {
  mkdirSync(out, { recursive: true });
  const stem = join(out, name.replaceAll(/[^\w-]+/g, '-').slice(0, 80));
  const files = [];
  for (const [index, page] of browser.pages().entries()) {
    const file = `${stem}-${index + 1}.png`;
    await page.screenshot({ path: file, timeout: 5_000 }).then(() => files.push(file), () => undefined);
  }
  writeFileSync(`${stem}.log`, [...browser.pages().map((page) => `page: ${page.url()}`), '', 'console:', ...browser.console, '', 'server:', world ? world.haft.log(200) : ''].join('\n'));
  return [...files, `${stem}.log`];
}

/** Closes the pages of a test; where a page does not let go, ends the browser. */
async function closes(used) {
  const done = used.closePages().then(() => used.chromium.isConnected(), () => false);
  const isClosed = await Promise.race([done, sleep(CLOSE_MS).then(() => false)]);
  if (!isClosed) await Promise.race([used.close().catch(() => undefined), sleep(CLOSE_MS)]);
  return isClosed;
}

const started = Date.now();
const failed = [];
const unstable = [];
let passed = 0;
const seconds = (since) => ((Date.now() - since) / 1000).toFixed(1);

/** What a failed test says: the error, what the page reported, the files with the evidence, the end of the server's log. */
async function reportFailure(name, start, error, world, browser) {
  const lines = [`FAIL  ${name} (${seconds(start)} s)`, String(error.stack ?? error).slice(0, 4000)];
  if (browser.problems.length > 0) lines.push(`the page reported:\n${[...new Set(browser.problems)].join('\n').slice(0, 2000)}`);
  for (const file of await saveEvidence(world, browser, name).catch(() => [])) lines.push(`      ${file}`);
  if (world) lines.push('the server reported last:', world.haft.log(LOG_LINES));
  // At once, so that the lines of another worker do not come between them.
  say(lines.join('\n'));
}

/** Counts what a walk did, or puts it at the end of the list for its repetition. */
function settle(walk, good, broken) {
  if (broken.length > 0 && walk.attempt <= REPEATS) {
    walks.push({ ...walk, attempt: walk.attempt + 1, failedBefore: broken });
    return;
  }
  passed += good;
  failed.push(...broken);
  if (walk.attempt > 1 && broken.length === 0) unstable.push(...walk.failedBefore);
}

/** Runs the tests of a walk one after the other; returns the browser for the next walk. */
async function runWalk(walk, browser) {
  let used = browser;
  let world;
  const broken = [];
  let good = 0;
  const mark = walk.attempt > 1 ? ' (repeated)' : '';
  for (const [test, run] of walk.tests) {
    const name = `${walk.name}: ${test}${mark}`;
    const start = Date.now();
    used.forget();
    try {
      world ??= await World.create(used, walk.options);
      await withTimeout(run(world));
      if (used.problems.length > 0) throw new Error(`the page reported:\n${[...new Set(used.problems)].join('\n')}`);
      good += 1;
      say(`ok    ${name} (${seconds(start)} s)`);
    } catch (error) {
      broken.push(`${walk.name}: ${test}`);
      await reportFailure(name, start, error, world, used);
    }
    if (!(await closes(used))) {
      used = await Browser.launch();
      if (world) world.browser = used;
    }
  }
  await world?.end();
  settle(walk, good, broken);
  return used;
}

/** Takes walks from the list until none is left; the worker that adds a repetition runs it, if no other does. */
async function work() {
  let browser = await Browser.launch();
  for (let walk = walks.shift(); walk !== undefined; walk = walks.shift()) browser = await runWalk(walk, browser);
  await browser.close();
}

// Long walks first: a short one at the end keeps no worker waiting.
walks.sort((a, b) => (b.options?.weight ?? 1) - (a.options?.weight ?? 1));
await Promise.all(Array.from({ length: Math.min(WORKERS, walks.length) }, work));
say(`\n${passed} passed, ${failed.length} failed, ${unstable.length} unstable in ${seconds(started)} s`);
for (const name of unstable) say(`  UNSTABLE  ${name} (failed once, passed when repeated)`);
for (const name of failed) say(`  FAIL  ${name}`);
process.exit(failed.length === 0 ? 0 : 1);
