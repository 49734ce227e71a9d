// Screenshots of the main pages at two widths and in both themes.
// Usage: HAFT_URL=http://127.0.0.1:18901 HAFT_TOKEN=… node e2e/screenshots.mjs [out]
import { mkdirSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { serve } from './serve.mjs';

const out = process.argv[2] ?? new URL('../screenshots', import.meta.url).pathname;
const only = process.env.ONLY?.split(',');
const pages = {
  home: '/', tools: '/tools', 'tool-drawer': '/tools?open=user-created:orders@1.0.0', 'tool-try': '/tools/user-created:orders@1.0.0?tab=try', 'tool-definition': '/tools/user-created:orders@1.0.0?tab=definition',
  'new-tool': '/tools/new', calls: '/calls', approvals: '/approvals', servers: '/servers', connect: '/connect', bundles: '/bundles?open=user-created', recipes: '/recipes', import: '/import',
  policy: '/policy', limits: '/limits', audit: '/audit', credentials: '/credentials', tokens: '/tokens', tenants: '/tenants', health: '/health', settings: '/settings',
};
mkdirSync(out, { recursive: true });
const server = await serve({ target: process.env.HAFT_URL ?? 'http://127.0.0.1:18901', port: 0 });
const base = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
for (const width of (process.env.WIDTHS ?? '1440,390').split(',').map(Number)) {
  for (const colorScheme of (process.env.THEMES ?? 'light,dark').split(',')) {
    const context = await browser.newContext({ viewport: { width, height: width > 600 ? 900 : 844 }, colorScheme, locale: process.env.LOCALE ?? 'en-US', reducedMotion: 'reduce' });
    const page = await context.newPage();
    page.on('pageerror', (error) => process.stdout.write(`page error: ${error.message}\n`));
    page.on('console', (message) => { if (/Content.Security|violates/.test(message.text())) process.stdout.write(`${message.text()}\n`); });
    await page.goto(`${base}/login`);
    await page.fill('input[name=token]', process.env.HAFT_TOKEN);
    await page.click('button[type=submit]');
    await page.waitForURL('**/ui/**');
    for (const [name, path] of Object.entries(pages)) {
      if (only && !only.includes(name)) continue;
      await page.goto(`${base}/ui${path}`, { waitUntil: 'load' });
      await page.waitForSelector('h1, h2');
      await page.waitForTimeout(700);
      await page.screenshot({ path: `${out}/${name}-${width}-${colorScheme}.png` });
    }
    await context.close();
  }
}
await browser.close();
server.close();
server.closeAllConnections();
