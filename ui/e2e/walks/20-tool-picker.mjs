// The tool picker: the field for a list of tools, in the form of a token and on the page for clients.
import assert from 'node:assert/strict';

const tool = (name, more = '') => `name: ${name}\ndescription: The tool ${name}\n${more}params: [{name: text, type: string, description: What to say}]\nimplementation: {type: exec, command: echo ok}\n`;

async function prepare(world) {
  for (const name of ['pick-one', 'pick-two', 'pick-three']) await world.haft.api('POST', '/tools', tool(name, name === 'pick-three' ? 'requires_confirmation: true\ntags: [picked]\n' : ''), { type: 'application/yaml', allow: [409] });
}

const dialog = (page, name = 'Tools') => page.getByRole('dialog', { name, exact: true });

export const tests = {
  async 'tools are searched, looked at and chosen; the token is limited to them'(world) {
    await prepare(world);
    const page = await world.open('/tokens?new=1');
    await page.getByRole('textbox', { name: 'Name' }).fill('limited');
    await page.getByText('All tools', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Choose tools' }).click();
    const picker = dialog(page);
    // Groups: built-in tools and the own bundle.
    await picker.getByRole('button', { name: /Built-in/ }).waitFor();
    await picker.getByRole('textbox', { name: 'Search tools' }).fill('pick-');
    await picker.getByRole('checkbox', { name: 'pick-one', exact: true }).check();
    await picker.getByText('1 tool selected').waitFor();
    await picker.getByText(/about \d+ tokens/).waitFor();
    // A tool that asks for approval is marked, and its details say more.
    await picker.getByRole('img', { name: 'Asks for approval' }).waitFor();
    assert.equal(await picker.getByRole('img', { name: 'Asks for approval' }).count(), 1);
    await picker.getByRole('button', { name: 'About pick-three' }).click();
    const facts = picker.getByRole('complementary', { name: 'pick-three' });
    await facts.getByText('What to say').waitFor();
    await facts.getByText(/about \d+ tokens/).waitFor();
    await picker.getByRole('button', { name: 'Close details' }).click();
    // A pattern selects as well; a wrong one is refused in words.
    const pattern = picker.getByRole('textbox', { name: 'Add a pattern' });
    await pattern.fill('a:b:c');
    await picker.getByText('Write name, bundle:name').waitFor();
    await pattern.fill('tag:picked');
    await pattern.press('Enter');
    await picker.getByText('2 tools selected').waitFor();
    assert.equal(await picker.getByRole('checkbox', { name: 'pick-three', exact: true }).isChecked(), true);
    // Escape closes the picker, and the form behind it keeps what was filled in.
    await page.keyboard.press('Escape');
    await picker.waitFor({ state: 'detached' });
    assert.equal(await page.getByRole('textbox', { name: 'Name' }).inputValue(), 'limited');
    await dialog(page, 'Create token').getByRole('button', { name: 'Create token' }).click();
    await dialog(page, 'Token').getByRole('button', { name: 'Close' }).last().waitFor();
    const made = (await world.haft.api('GET', '/tokens')).tokens.find((token) => token.name === 'limited');
    assert.deepEqual(made.tools, ['user-created:pick-one', 'tag:picked']);
  },

  async 'a whole bundle is one entry; taking one tool out of it keeps the others'(world) {
    await prepare(world);
    const page = await world.open('/tokens?new=1');
    await page.getByRole('button', { name: 'Choose tools' }).click();
    const picker = dialog(page);
    await picker.getByRole('checkbox', { name: 'All tools of user-created' }).check();
    const rule = picker.getByText('user-created:*', { exact: true });
    await rule.waitFor();
    await picker.getByRole('textbox', { name: 'Search tools' }).fill('pick-');
    await picker.getByRole('checkbox', { name: 'pick-two', exact: true }).uncheck();
    await rule.waitFor({ state: 'detached' });
    await picker.getByText('2 tools selected').waitFor();
    assert.equal(await picker.getByRole('checkbox', { name: 'pick-one', exact: true }).isChecked(), true);
    await picker.getByRole('button', { name: 'Clear all' }).click();
    await picker.getByText('All tools', { exact: true }).waitFor();
  },

  async 'filters by origin and type, in German'(world) {
    await prepare(world);
    const page = await world.open('/connect', { locale: 'de-DE' });
    await page.getByRole('button', { name: 'Tools auswählen' }).click();
    const picker = dialog(page, 'Tools des neuen Tokens');
    await picker.getByPlaceholder('Herkunft').click();
    await page.getByRole('option', { name: 'Eigene Tools' }).click();
    await picker.getByText('Tools des neuen Tokens').click();
    await picker.getByRole('checkbox', { name: 'pick-one', exact: true }).waitFor();
    await picker.getByRole('button', { name: /Eingebaut/ }).waitFor({ state: 'detached' });
    await picker.getByRole('checkbox', { name: 'pick-one', exact: true }).check();
    await picker.getByText('1 Tool ausgewählt').waitFor();
    await picker.getByText(/etwa \d+ Token/).waitFor();
    await picker.getByRole('button', { name: 'Fertig' }).click();
    await page.getByRole('button', { name: /^Token für .* erstellen$/ }).click();
    await page.getByText('Wartet auf den ersten Aufruf').waitFor();
    assert.ok((await world.haft.api('GET', '/tokens')).tokens.some((token) => token.tools?.[0] === 'user-created:pick-one'));
  },

  async 'on a phone: the details cover the list'(world) {
    await prepare(world);
    const page = await world.open('/tokens?new=1', { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
    await page.getByRole('button', { name: 'Choose tools' }).tap();
    const picker = dialog(page);
    await picker.getByRole('textbox', { name: 'Search tools' }).fill('pick-two');
    await picker.getByRole('button', { name: 'About pick-two' }).tap();
    await picker.getByRole('complementary', { name: 'pick-two' }).waitFor();
    assert.equal(await picker.getByRole('checkbox', { name: 'pick-two', exact: true }).isVisible(), false);
    await picker.getByRole('button', { name: 'Close details' }).tap();
    await picker.getByRole('checkbox', { name: 'pick-two', exact: true }).tap();
    await picker.getByText('1 tool selected').waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth) <= 0);
  },
};
