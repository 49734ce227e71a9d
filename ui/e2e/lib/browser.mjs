// Chromium, logged-in pages, and everything a page reports: policy violations, exceptions, console errors.
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

// Failed requests are listed by the browser, too; walks that cause them check what the page makes of them.
const EXPECTED = /Failed to load resource|net::ERR_|WebSocket connection|the server responded with a status of/;
// Long enough for a slow, busy machine; only a failing test waits this long.
const WAIT_MS = 60_000;

export class Browser {
  static async launch() {
    const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
    if (!existsSync(executablePath)) throw new Error(`${executablePath} is missing; \`tools/setup test\` installs it, or CHROMIUM names another one`);
    const browser = new Browser();
    browser.chromium = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
    browser.forget();
    return browser;
  }

  /** Forgets what earlier pages reported. */
  forget() {
    this.problems = [];
    this.console = [];
  }

  /** A page in a context of its own; the language, theme and width are options of Playwright's `newContext`. */
  async blank(base, options = {}) {
    const context = await this.chromium.newContext({ baseURL: base, viewport: { width: 1440, height: 900 }, locale: 'en-US', reducedMotion: 'reduce', ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(WAIT_MS);
    page.setDefaultNavigationTimeout(WAIT_MS * 2);
    await context.addInitScript(() => {
      // The console shows violations as well, but not those of a policy that only reports.
      document.addEventListener('securitypolicyviolation', (event) => {
        // oxlint-disable-next-line no-console -- read by the test
        console.error(`Content-Security-Policy: ${event.effectiveDirective} blocked ${event.blockedURI} (${event.sourceFile}:${event.lineNumber})`);
      });
    });
    page.on('console', (message) => {
      const text = message.text();
      this.console.push(`${message.type()}: ${text}`);
      if (/Content.Security.Policy|violates/i.test(text) || (message.type() === 'error' && !EXPECTED.test(text))) this.problems.push(`${new URL(page.url()).pathname}: ${text}`);
    });
    page.on('pageerror', (error) => this.problems.push(`${new URL(page.url()).pathname}: ${error.stack ?? error.message}`));
    page.on('dialog', (dialog) => { this.problems.push(`a dialog appeared: ${dialog.message()}`); void dialog.dismiss(); });
    return page;
  }

  /** A page with a session, on the home page unless `path` says otherwise. */
  async open(base, token, { path, ...options } = {}) {
    const page = await this.blank(base, options);
    // By a request, which is faster than the form; the login walk uses the form.
    const answer = await page.request.post('/login', { form: { token }, headers: { Origin: base }, maxRedirects: 0 });
    if (answer.status() >= 400) throw new Error(`login answered ${answer.status()}: ${await answer.text()}`);
    if (path !== undefined) await go(page, path);
    return page;
  }

  pages() {
    return this.chromium.contexts().flatMap((context) => context.pages());
  }

  async closePages() {
    for (const context of this.chromium.contexts()) await context.close();
  }

  close() {
    return this.chromium.close();
  }
}

/** Waits until nothing in the page has changed for a moment: its data is there, and no skeleton is left. */
export function settled(page, { quietMs = 200, limitMs = 20_000 } = {}) {
  return page.evaluate(({ quiet, limit }) => new Promise((resolve) => {
    let timer;
    const observer = new MutationObserver(() => restart());
    const finish = () => { observer.disconnect(); clearTimeout(timer); resolve(); };
    const restart = () => { clearTimeout(timer); timer = setTimeout(finish, quiet); };
    observer.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
    // Live data may change it again and again.
    setTimeout(finish, limit);
    restart();
  }), { quiet: quietMs, limit: limitMs });
}

/** Goes to an address as a link does, without loading the document again. */
export async function visit(page, path) {
  await page.evaluate((address) => window.history.pushState({}, '', address), `/ui${path}`);
  await page.waitForFunction((address) => decodeURIComponent(document.querySelector('main')?.dataset.location ?? '') === address, decodeURIComponent(path));
  await page.locator('main :is(h1, h2):visible').first().waitFor();
  await settled(page);
}

/** Opens an address of the interface and waits for its heading. */
export async function go(page, path) {
  await page.goto(`/ui${path}`);
  await page.locator('main :is(h1, h2):visible').first().waitFor();
}
