// The page is built for the server that it runs on.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

export const tests = {
  async 'openapi.json is what the server serves'(world) {
    const served = await (await fetch(`${world.haft.url}/openapi.json`)).json();
    const stored = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));
    const names = (document) => Object.entries(document.paths).flatMap(([path, item]) => Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`)).sort();
    assert.deepEqual(names(stored), names(served), 'store it with: curl $HAFT_URL/openapi.json > openapi.json; npm run gen');
    assert.deepEqual(stored, served, 'store it with: curl $HAFT_URL/openapi.json > openapi.json; npm run gen');
  },

  async 'the page comes with its headers, and its files are cached'(world) {
    const page = await fetch(`${world.base}/ui/tools`);
    const policy = page.headers.get('content-security-policy');
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /script-src 'self'(;|$)/);
    assert.ok(!/unsafe-(inline|eval)/.test(policy), policy);
    assert.equal(page.headers.get('cache-control'), 'no-cache');
    const html = await page.text();
    assert.ok(!html.includes('{{nonce}}'));
    assert.ok(!/<script(?![^>]*\bsrc=)/.test(html), 'an inline script');
    assert.ok(!/(src|href)="https?:/.test(html), 'a file of another host');
    const script = /src="(\/ui\/assets\/[^"]+\.js)"/.exec(html)[1];
    assert.match((await fetch(world.base + script)).headers.get('cache-control'), /immutable/);
    assert.equal((await fetch(`${world.base}/ui/assets/missing.js`)).status, 404);
  },
};
