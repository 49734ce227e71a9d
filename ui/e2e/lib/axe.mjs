// axe-core on a page that is open.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The serious and critical violations of a page, one line for each; `rules` limits what is checked. */
export async function severe(page, rules) {
  // The policy of the page allows no inline script; the debugger protocol is not bound by it.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(source);
  const result = await page.evaluate((only) => window.axe.run(document, { resultTypes: ['violations'], preload: false, ...(only ? { runOnly: only } : {}) }), rules);
  return result.violations.filter((each) => ['serious', 'critical'].includes(each.impact))
    .map((each) => `${each.id}: ${each.nodes.slice(0, 3).map((node) => `${node.target.join(' ')} ${node.html.slice(0, 120)} ${(node.any[0] ?? node.all[0] ?? node.none[0])?.message?.slice(0, 160) ?? ''}`).join(' | ')}`);
}
