// The workspace browser.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { Workspace } from '../lib/workspace.mjs';

let count = 0;

/** A workspace of its own for each test; `DEMO` in the address is its name. */
async function open(world, path, options) {
  count += 1;
  const demo = await Workspace.create(world.haft, `demo-${count}`);
  const page = await world.open(path.replace('DEMO', demo.name), options);
  return { page, demo };
}

const item = (page, name) => page.getByRole('treeitem', { name });

export const tests = {
  async 'from the navigation to a file; the address leads back to it'(world) {
    const { page, demo } = await open(world, '/');
    await page.getByRole('navigation').first().getByRole('link', { name: 'Workspaces' }).click();
    await page.getByRole('row').filter({ hasText: demo.name }).click();
    await page.waitForURL(`**/workspaces/${demo.name}**`);
    // What the last call changed comes first.
    await page.getByText('What the last call changed').waitFor();
    await page.getByRole('button', { name: /index\.html/ }).click();
    await page.getByRole('region', { name: 'Before / After' }).getByText('Hello, world').waitFor();
    await item(page, /main\.py/).click();
    await page.getByRole('textbox', { name: 'src/app/main.py' }).waitFor();
    await page.reload();
    await page.getByRole('textbox', { name: 'src/app/main.py' }).waitFor();
  },

  async 'with the keyboard: the tree, a filter, a folder'(world) {
    const { page } = await open(world, '/workspaces/DEMO');
    await item(page, /README/).waitFor();
    await page.getByRole('tree').focus();
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowLeft');
    await page.waitForFunction(() => document.querySelector('[role=treeitem]')?.getAttribute('aria-expanded') === 'false');
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    await page.waitForURL(/file=README\.md/);
    await page.getByRole('heading', { name: 'Demo' }).waitFor();
    await page.getByRole('textbox', { name: 'Filter files' }).fill('chart');
    await item(page, /chart\.py/).waitFor();
    await item(page, /README/).waitFor({ state: 'detached' });
  },

  async 'edit and save, delete and undo'(world) {
    const { page, demo } = await open(world, '/workspaces/DEMO?file=src%2Fapp%2Fmain.py');
    const editor = page.getByRole('textbox', { name: 'src/app/main.py' });
    await editor.getByText('def').first().waitFor();
    await editor.click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.insertText('# mine\n');
    await page.keyboard.press('Control+s');
    await page.getByText('Saved src/app/main.py').waitFor();
    assert.match(await demo.text('src/app/main.py'), /^# mine/);
    await page.getByRole('main').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('Deleted src/app/main.py').waitFor();
    assert.equal(await demo.text('src/app/main.py'), undefined);
    await page.getByRole('button', { name: 'Undo' }).click();
    await item(page, /main\.py/).waitFor();
    assert.match(await demo.text('src/app/main.py'), /^# mine/);
  },

  async 'a new file is created and opened'(world) {
    const { page, demo } = await open(world, '/workspaces/DEMO');
    await item(page, /README/).waitFor();
    await page.getByRole('main').getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'New file' }).click();
    const dialog = page.getByRole('dialog');
    const create = dialog.getByRole('button', { name: 'Create file' });
    for (const path of ['../outside', 'README.md', 'folder/']) {
      await dialog.getByRole('textbox', { name: 'Path' }).fill(path);
      assert.equal(await create.isDisabled(), true, path);
    }
    await dialog.getByRole('textbox', { name: 'Path' }).fill('notes/today.md');
    await create.click();
    await page.getByRole('heading', { name: 'notes/today.md' }).waitFor();
    assert.equal(await demo.text('notes/today.md'), '');
  },

  async 'an unsaved edit survives a reload'(world) {
    const { page } = await open(world, '/workspaces/DEMO?file=src%2Fapp%2Fmain.py');
    const editor = page.getByRole('textbox', { name: 'src/app/main.py' });
    await editor.getByText('def').first().waitFor();
    await editor.click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.insertText('# not saved yet\n');
    await page.waitForFunction(() => Object.keys(localStorage).some((key) => (localStorage.getItem(key) ?? '').includes('not saved yet')));
    await page.reload();
    await editor.getByText('# not saved yet').waitFor();
    await page.getByRole('button', { name: 'Discard edits' }).click();
    await editor.getByText('# not saved yet').waitFor({ state: 'detached' });
  },

  async 'upload by choice and by drop; a replacement is asked for'(world) {
    const { page, demo } = await open(world, '/workspaces/DEMO');
    await item(page, /README/).waitFor();
    await page.locator('input[type=file]').setInputFiles([{ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('first') }]);
    await page.getByText('Uploaded 1 file').waitFor();
    assert.equal(await demo.text('notes.txt'), 'first');
    const data = await page.evaluateHandle(() => { const transfer = new DataTransfer(); transfer.items.add(new File(['second'], 'notes.txt')); transfer.items.add(new File(['x'], 'other file.txt')); return transfer; });
    await page.getByRole('tree').dispatchEvent('dragover', { dataTransfer: data });
    await page.getByText('Drop to upload into /').waitFor();
    await page.getByRole('tree').dispatchEvent('drop', { dataTransfer: data });
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Replace 1 file?').waitFor();
    await dialog.getByRole('button', { name: 'Replace' }).click();
    await page.getByText('Uploaded 2 files').waitFor();
    assert.equal(await demo.text('notes.txt'), 'second');
    await item(page, /other file/).waitFor();
  },

  async 'the timeline: differences, a look at the past, restore and undo'(world) {
    const { page, demo } = await open(world, '/workspaces/DEMO?tab=timeline');
    // Before the call.
    const past = (await demo.states())[1].id;
    await page.getByRole('button', { name: /Call of a tool/ }).click();
    await page.getByRole('button', { name: /Removed.*build\.sh|build\.sh/ }).click();
    await page.getByText('echo building').waitFor();
    await page.getByRole('button', { name: /^Upload 7 files/ }).click();
    await page.getByRole('button', { name: 'Look at this state' }).click();
    await page.waitForURL(new RegExp(`manifest=${past}`));
    await page.getByText('You see the state of').waitFor();
    await item(page, /build\.sh/).click();
    await page.getByRole('textbox', { name: 'scripts/build.sh' }).waitFor();
    // The past cannot be edited.
    assert.equal(await page.getByRole('button', { name: 'Save', exact: true }).count(), 0);
    assert.equal(await page.getByRole('button', { name: 'Upload files' }).count(), 0);
    await page.getByRole('button', { name: 'Restore' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
    await page.getByText('Restored the state').waitFor();
    assert.match(await demo.text('scripts/build.sh'), /echo building/);
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.waitForFunction(() => ![...document.querySelectorAll('[role=treeitem]')].some((each) => each.textContent.includes('build.sh')));
    assert.equal(await demo.text('scripts/build.sh'), undefined);
  },

  async 'an image, bytes, a download, and the whole as a ZIP'(world) {
    const { page, demo } = await open(world, '/workspaces/DEMO?file=assets%2Flogo.svg');
    await page.getByRole('img', { name: 'assets/logo.svg' }).waitFor();
    await item(page, /raw\.bin/).click();
    await page.getByText('This file is no text (4 B)').waitFor();
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('main').getByRole('link', { name: 'Download' }).first().click()]);
    assert.equal(file.suggestedFilename(), 'raw.bin');
    await page.getByRole('main').getByRole('button', { name: 'More actions' }).click();
    const [archive] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: 'Download as ZIP' }).click()]);
    assert.equal(archive.suggestedFilename(), `${demo.name}.zip`);
    const list = spawnSync('python3', ['-c', 'import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; print(sum(not name.endswith("/") for name in z.namelist()), z.read("data/raw.bin"))', await archive.path()], { encoding: 'utf8' });
    assert.equal(list.stdout.trim(), String.raw`7 b'\x00\x01\x02\x03'`, list.stderr);
  },

  async 'a viewer reads and changes nothing'(world) {
    const { page } = await open(world, '/workspaces/DEMO?file=src%2Fapp%2Fmain.py', { as: 'viewer' });
    await page.getByRole('textbox', { name: 'src/app/main.py' }).waitFor();
    for (const name of ['Upload files', 'Save', 'Delete']) assert.equal(await page.getByRole('main').getByRole('button', { name, exact: true }).count(), 0, name);
    await page.getByRole('tab', { name: 'Timeline' }).click();
    await page.getByRole('button', { name: /^Upload 7 files/ }).click();
    await page.getByRole('button', { name: 'Look at this state' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Restore' }).count(), 0);
  },

  async 'empty, and on a phone'(world) {
    const empty = new Workspace(world.haft, 'empty');
    await empty.put('first.txt', 'first');
    await empty.request('DELETE', 'first.txt');
    const page = await world.open('/workspaces/empty');
    await page.getByText('The workspace is empty').waitFor();
    const phone = await open(world, '/workspaces/DEMO', { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
    await item(phone.page, /README/).tap();
    await phone.page.getByRole('heading', { name: 'Demo' }).waitFor();
    assert.equal(await phone.page.getByRole('tree').isVisible(), false);
    assert.ok(await phone.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth) <= 0);
    await phone.page.getByRole('button', { name: 'Back' }).tap();
    await phone.page.getByRole('tree').waitFor();
  },
};
