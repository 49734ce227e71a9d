// The browser tests: HAFT_BIN=…/haft node e2e/run.mjs [part of a file or test name …]
//
// One file per walk, one after the other, each with a fresh server. A failed test leaves a screenshot of each open page,
// the console and the log of the server in the folder E2E_OUT (default: e2e-results).
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Browser } from './lib/browser.mjs';
import { sleep } from './lib/haft.mjs';
import { World } from './lib/world.mjs';

const out = process.env.E2E_OUT ?? new URL('../e2e-results', import.meta.url).pathname;
const TEST_MS = Number(process.env.E2E_TIMEOUT_MS ?? 180_000);
const CLOSE_MS = 15_000;
const filters = process.argv.slice(2);
const say = (text) => process.stdout.write(`${text}\n`);

if (!existsSync(new URL('../dist/index.html', import.meta.url))) {
  say('e2e: the page is not built; run `npm run build` first');
  process.exit(2);
}
rmSync(out, { recursive: true, force: true });

const folder = new URL('walks/', import.meta.url);
const walks = [];
for (const file of readdirSync(folder).filter((name) => name.endsWith('.mjs')).sort()) {
  const { tests, options } = await import(new URL(file, folder));
  const name = file.replace('.mjs', '');
  const chosen = Object.entries(tests).filter(([test]) => filters.length === 0 || filters.some((part) => name.includes(part) || test.includes(part)));
  if (chosen.length > 0) walks.push({ name, tests: chosen, options });
}
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
let passed = 0;
let browser = await Browser.launch();
for (const walk of walks) {
  let world;
  for (const [test, run] of walk.tests) {
    const name = `${walk.name}: ${test}`;
    const start = Date.now();
    browser.forget();
    try {
      world ??= await World.create(browser, walk.options);
      await withTimeout(run(world));
      if (browser.problems.length > 0) throw new Error(`the page reported:\n${[...new Set(browser.problems)].join('\n')}`);
      passed += 1;
      say(`ok    ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed.push(name);
      say(`FAIL  ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)\n${String(error.stack ?? error).slice(0, 4000)}`);
      if (browser.problems.length > 0) say(`the page reported:\n${[...new Set(browser.problems)].join('\n').slice(0, 2000)}`);
      for (const file of await saveEvidence(world, browser, name).catch(() => [])) say(`      ${file}`);
    }
    if (!(await closes(browser))) {
      browser = await Browser.launch();
      if (world) world.browser = browser;
    }
  }
  await world?.end();
}
await browser.close();
say(`\n${passed} passed, ${failed.length} failed in ${((Date.now() - started) / 1000).toFixed(0)} s`);
for (const name of failed) say(`  FAIL  ${name}`);
process.exit(failed.length === 0 ? 0 : 1);
