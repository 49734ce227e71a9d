// Chats with an agent whose model is a script.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { agent, openChat, say } from '../lib/agents.mjs';

export const options = { weight: 2 };

const log = (page) => page.getByRole('log');
const answer = (page, text) => log(page).getByRole('article', { name: 'helper' }).getByText(text).last();
const idle = (page) => page.getByRole('button', { name: 'Send', exact: true }).waitFor();

export const tests = {
  async 'without an agent, the page says how to get one'(world) {
    const page = await world.open('/chat');
    await page.getByText('There is no agent to talk to').waitFor();
    await page.getByRole('link', { name: 'Go to agents' }).waitFor();
  },

  async 'a new chat from the navigation: an agent, a message, the answer, a title'(world) {
    await agent(world);
    const page = await world.open('/');
    await page.getByRole('navigation').first().getByRole('link', { name: 'Chat', exact: true }).click();
    await page.getByRole('radio', { name: /Helper/ }).click();
    await page.getByRole('textbox', { name: 'Message', exact: true }).fill('Hello there');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/ui\/chat\/[0-9a-f-]{36}/);
    await answer(page, 'You said: Hello there').waitFor();
    await page.getByRole('heading', { level: 1, name: 'Hello there' }).waitFor();
    await page.getByRole('list', { name: 'Chat' }).getByRole('link', { name: /Hello there/ }).waitFor();
    await page.reload();
    await answer(page, 'You said: Hello there').waitFor();
  },

  async 'a tool call has a card with its arguments, its state and its result'(world) {
    const { page } = await openChat(world);
    await say(page, 'The weather in Oslo?');
    await answer(page, 'Answer:').waitFor();
    const card = log(page).getByRole('region', { name: 'weather' });
    await card.getByRole('img', { name: 'Success' }).waitFor();
    await card.getByRole('button', { name: /weather/ }).click();
    await card.getByText('Oslo has 21 degrees').first().waitFor();
    await card.getByRole('link', { name: 'Open the call' }).or(card.getByRole('link', { name: /call/i })).first().waitFor();
    await idle(page);
    await page.reload();
    await log(page).getByRole('region', { name: 'weather' }).getByRole('img', { name: 'Success' }).waitFor();
  },

  async 'text arrives in pieces; stop keeps what has arrived'(world) {
    const { page } = await openChat(world);
    await say(page, 'Count slowly');
    await log(page).getByText(/one two three/).waitFor();
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await log(page).getByText(/Stopped/).waitFor();
    await idle(page);
    assert.equal(await log(page).getByText(/twenty/).count(), 0);
    await say(page, 'Go on');
    await answer(page, 'You said: Go on').waitFor();
  },

  async 'a reload in the middle follows the answer to its end'(world) {
    const { page } = await openChat(world);
    await say(page, 'Count slowly');
    await log(page).getByText(/one two/).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Stop', exact: true }).waitFor();
    await log(page).getByText(/nineteen twenty/).waitFor();
    await idle(page);
  },

  async 'an approval in the chat: approve, and the answer goes on'(world) {
    const { page } = await openChat(world);
    await say(page, 'Please release main');
    await page.getByRole('button', { name: 'Approve call' }).click();
    await answer(page, /Released: .*released main/).waitFor();
    await idle(page);
  },

  async 'an approval after a reload: deny with a reason, which the agent reads'(world) {
    const { page } = await openChat(world);
    await say(page, 'Please release broken');
    await page.getByRole('button', { name: 'Approve call' }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Deny', exact: true }).click();
    await page.getByRole('textbox', { name: 'Reason' }).fill('tests are red');
    await page.getByRole('button', { name: 'Deny', exact: true }).click();
    await answer(page, /Not released: .*tests are red/).waitFor();
  },

  async 'retry and edit make branches; the switcher goes between them'(world) {
    const { page } = await openChat(world);
    await say(page, 'First question');
    await answer(page, 'You said: First question').waitFor();
    await idle(page);
    await page.getByRole('button', { name: 'Answer again' }).click();
    await log(page).getByRole('article', { name: 'helper' }).getByText('2/2').waitFor();
    await idle(page);
    await page.getByRole('button', { name: 'Previous branch' }).click();
    await log(page).getByText('1/2').waitFor();
    await say(page, 'Second question');
    await answer(page, 'You said: Second question').waitFor();
    await idle(page);
    await log(page).getByRole('article', { name: 'You' }).last().getByRole('button', { name: 'Edit message' }).click();
    await page.getByRole('textbox', { name: 'Edit message' }).fill('Another question');
    await page.getByRole('button', { name: 'Send as a new branch' }).click();
    await answer(page, 'You said: Another question').waitFor();
    assert.equal(await log(page).getByText('Second question').count(), 0);
    await log(page).getByRole('article', { name: 'You' }).last().getByRole('button', { name: 'Previous branch' }).click();
    await answer(page, 'You said: Second question').waitFor();
    // The choice is kept.
    await page.reload();
    await answer(page, 'You said: Second question').waitFor();
  },

  async 'the first message can be edited, too'(world) {
    const { page } = await openChat(world);
    await say(page, 'Mistyepd');
    await answer(page, 'You said: Mistyepd').waitFor();
    await idle(page);
    await page.getByRole('button', { name: 'Edit message' }).click();
    await page.getByRole('textbox', { name: 'Edit message' }).fill('Well typed');
    await page.keyboard.press('Control+Enter');
    await answer(page, 'You said: Well typed').waitFor();
    assert.equal(await log(page).getByText('You said: Mistyepd').count(), 0);
  },

  async 'a failed answer says why, and the chat goes on'(world) {
    const { page } = await openChat(world);
    await say(page, 'Please fail');
    await log(page).getByRole('note').filter({ hasText: 'the key was rejected' }).waitFor();
    await idle(page);
    await say(page, 'Again');
    await answer(page, 'You said: Again').waitFor();
  },

  async 'a message that was not sent stays in the field'(world) {
    const { page } = await openChat(world);
    await page.route('**/api/chats/*/messages', (route) => (route.request().method() === 'POST' ? route.abort() : route.continue()));
    await say(page, 'Do not lose me');
    await page.getByText('The message was not sent').waitFor();
    assert.equal(await page.getByRole('textbox', { name: 'Message', exact: true }).inputValue(), 'Do not lose me');
    await page.unroute('**/api/chats/*/messages');
    await page.reload();
    await page.getByRole('textbox', { name: 'Message', exact: true }).waitFor();
    assert.equal(await page.getByRole('textbox', { name: 'Message', exact: true }).inputValue(), 'Do not lose me');
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await answer(page, 'You said: Do not lose me').waitFor();
  },

  async 'hostile Markdown is text'(world) {
    const { page } = await openChat(world);
    await say(page, 'Something hostile');
    await log(page).getByText('<script>alert(1)</script>').waitFor();
    await log(page).locator('strong').getByText('bold').waitFor();
    assert.equal(await log(page).locator('img[src="x"], script, a[href^="javascript"]').count(), 0);
  },

  async 'the + palette: find a tool, fill its form, run it in this chat'(world) {
    const { page } = await openChat(world);
    await page.getByRole('button', { name: 'Run a tool' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('combobox', { name: 'Search tools' }).fill('weather');
    await dialog.getByRole('option', { name: /weather/ }).first().waitFor();
    await page.keyboard.press('Enter');
    await dialog.locator('#arg_city').fill('Bergen');
    await dialog.getByRole('button', { name: 'Run in this chat' }).click();
    const card = log(page).getByRole('region', { name: 'weather' });
    await card.getByRole('img', { name: 'Success' }).waitFor();
    await card.getByRole('button', { name: /weather/ }).click();
    await card.getByText('Bergen has 21 degrees').first().waitFor();
    // The agent reads it with the next message.
    await say(page, 'Thanks');
    await answer(page, 'You said: Thanks').waitFor();
  },

  async 'files: an upload, the workspace beside the conversation, what a tool wrote'(world) {
    const { page } = await openChat(world, { search: '?files=1' });
    await page.getByText('The workspace is empty').waitFor();
    await page.locator('input[type=file]').setInputFiles([{ name: 'sales.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b\n1,2\n') }]);
    await page.getByRole('list', { name: 'Added files' }).getByText('sales.csv').waitFor();
    await say(page, 'Write a report about it');
    await log(page).getByRole('link', { name: 'sales.csv' }).waitFor();
    await answer(page, 'The report is written.').waitFor();
    const side = page.getByRole('complementary', { name: 'Workspace' });
    await side.getByRole('treeitem', { name: /report\.md/ }).click();
    await side.getByRole('heading', { name: 'Report', exact: true }).waitFor();
    await side.getByRole('button', { name: 'Back' }).click();
    await side.getByRole('treeitem', { name: /sales\.csv/ }).waitFor();
  },

  async 'rename, share, export, search, delete'(world) {
    const { page, chat } = await openChat(world);
    await say(page, 'About zebras');
    await answer(page, 'You said: About zebras').waitFor();
    await idle(page);
    const menu = async (name) => { await page.getByRole('main').getByRole('button', { name: 'More actions' }).click(); await page.getByRole('menuitem', { name }).click(); };
    await menu('Rename');
    await page.getByRole('dialog').getByRole('textbox', { name: 'Title' }).fill('Striped animals');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { level: 1, name: 'Striped animals' }).waitFor();
    const [file] = await Promise.all([page.waitForEvent('download'), menu('Export as Markdown')]);
    assert.match(readFileSync(await file.path(), 'utf8'), /About zebras/);
    await page.getByRole('textbox', { name: 'Search titles and messages' }).fill('zebras');
    await page.getByRole('list', { name: 'Chat' }).getByRole('link', { name: /Striped/ }).waitFor();
    await menu('Share');
    await page.getByRole('dialog').getByRole('switch').check();
    await page.getByText('The chat is shared', { exact: true }).waitFor();
    await page.keyboard.press('Escape');
    const reader = await world.open(`/chat/${chat.id}`, { as: 'viewer' });
    await log(reader).getByText('You said: About zebras').waitFor();
    assert.equal(await reader.getByRole('textbox', { name: 'Message', exact: true }).count(), 0);
    assert.equal(await reader.getByRole('button', { name: 'Answer again' }).count(), 0);
    await menu('Delete chat');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete chat' }).click();
    await page.waitForURL(/\/ui\/chat(\?|$)/);
    await page.getByText('Chat deleted').waitFor();
  },

  async 'on a phone: the list, the conversation, and back'(world) {
    await agent(world);
    const chat = await world.haft.api('POST', '/chats', { agent: 'helper', title: 'On the phone' });
    const page = await world.open('/chat', { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
    await page.getByRole('list', { name: 'Chat' }).getByRole('link', { name: /On the phone/ }).tap();
    await page.waitForURL(new RegExp(chat.id));
    await say(page, 'The weather in Rome?');
    await answer(page, 'Answer:').waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth) <= 0);
    const send = await page.getByRole('button', { name: 'Send', exact: true }).boundingBox();
    assert.ok(send.y + send.height <= 844 - 56 && send.x + send.width <= 390, JSON.stringify(send));
    await page.getByRole('link', { name: 'All chats' }).tap();
    await page.getByRole('list', { name: 'Chat' }).waitFor();
  },
};
