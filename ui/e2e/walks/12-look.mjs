// German, dark mode, the phone, and the keyboard.
import assert from 'node:assert/strict';
import { DETAILS, NAVIGATION } from '../lib/pages.mjs';

export const options = { weight: 3 };

const PATHS = [...NAVIGATION, ...DETAILS.slice(0, 4), '/tools/new?type=http', '/approvals?status=remembered'];

export const tests = {
  async 'German on every page: no key and no English sentence is left'(world) {
    await world.demo();
    const more = await world.example();
    const page = await world.open('/tools', { locale: 'de-DE' });
    await page.getByRole('link', { name: 'Aufrufe', exact: true }).waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.lang), 'de');
    for (const path of [...PATHS, ...more]) {
      await world.visit(page, path);
      const text = await page.locator('nav, main h1, main h2, main h3, main button, main label').allInnerTexts();
      const left = text.join('\n').split('\n').filter((line) => /^(Create|Save|Delete|Cancel|Approve|Deny|Run|Add|Search|Settings|Calls|Approvals|Policy|Health)\b|\b(the|and|with|your)\b/.test(line));
      assert.deepEqual(left, [], path);
    }
    // The choice is kept.
    await page.getByRole('button', { name: 'Konto' }).click();
    await page.getByRole('menuitem', { name: 'English' }).click();
    await page.getByRole('link', { name: 'Calls', exact: true }).waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'Calls', exact: true }).waitFor();
  },

  async 'dark mode follows the system and can be chosen'(world) {
    const brightness = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 3);
    const page = await world.open('/tools', { colorScheme: 'dark' });
    assert.ok(await brightness(page) < 60);
    await page.getByRole('button', { name: /theme|light|dark/i }).first().click();
    await page.waitForFunction(() => document.documentElement.dataset.mantineColorScheme === 'light');
    assert.ok(await brightness(page) > 200);
    await page.reload();
    await page.locator('main h1').waitFor();
    assert.ok(await brightness(page) > 200);
  },

  async 'phone width: nothing is wider than the window, and every page can be reached'(world) {
    await world.demo();
    const more = await world.example();
    const page = await world.open('/', { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
    for (const path of [...PATHS, ...more]) {
      await world.visit(page, path);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(over <= 0, `${path} is ${over} pixels too wide`);
    }
    await world.go(page, '/');
    await page.getByRole('navigation').getByRole('link', { name: 'Tools', exact: true }).tap();
    await page.waitForURL(/\/ui\/tools/);
    await page.getByRole('navigation').getByRole('button', { name: 'More' }).tap();
    await page.getByRole('dialog').getByRole('link', { name: 'Settings' }).tap();
    await page.waitForURL(/\/ui\/settings/);
  },

  async 'with the keyboard alone: find a tool, run it, read the shortcuts'(world) {
    await world.demo();
    const page = await world.open('/');
    await page.keyboard.press('g');
    await page.keyboard.press('t');
    await page.waitForURL(/\/ui\/tools/);
    await page.getByRole('row').nth(2).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('greet');
    await page.getByRole('row').filter({ hasText: 'greet' }).first().waitFor();
    await page.keyboard.press('Escape');
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL(/open=/);
    await page.keyboard.press('Escape');
    await page.waitForURL((url) => !url.searchParams.has('open'));
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByRole('combobox').fill('orders');
    await page.getByRole('option').filter({ hasText: 'orders' }).first().waitFor();
    await page.keyboard.press('Control+Enter');
    await page.getByRole('dialog').locator('#arg_customer').focus();
    await page.keyboard.type('C-1');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('dialog').getByText('Success', { exact: true }).first().waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('Ctrl').first().waitFor();
  },
};
