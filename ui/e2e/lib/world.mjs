// What a walk gets: a fresh haft server, the built page in front of it, and a browser.
import { readFileSync } from 'node:fs';
import { demo } from '../demo.mjs';
import { example } from './example.mjs';
import { go, visit } from './browser.mjs';
import { EXAMPLE_PATHS } from './pages.mjs';
import { Haft } from './haft.mjs';
import { serve } from '../serve.mjs';

const DIST = new URL('../../dist/', import.meta.url);

/** Whether the binary serves the page that was built here: one that was built in this tree does. */
async function servesThisPage(haft) {
  const script = /\/ui\/assets\/index-[\w-]+\.js/;
  const own = await fetch(`${haft.url}/ui/`).then((answer) => answer.text(), () => '');
  return script.exec(own)?.[0] === script.exec(readFileSync(new URL('index.html', DIST), 'utf8'))?.[0];
}

export class World {
  static async create(browser, options) {
    const world = new World();
    world.browser = browser;
    world.haft = await Haft.start(options);
    world.servers = [];
    if (await servesThisPage(world.haft)) {
      world.base = world.haft.url;
    } else {
      const server = await serve({ target: world.haft.url, port: 0 });
      world.servers.push(server);
      world.base = `http://127.0.0.1:${server.address().port}`;
    }
    return world;
  }

  /** A logged-in page, at the address if one is given: as the administrator, or as the token or the role that `as` names. */
  async open(path, { as, ...options } = {}) {
    const token = as === undefined ? this.haft.token : /^(viewer|caller|editor|admin)$/.test(as) ? await this.haft.newToken({ name: `${as}-${Math.random().toString(36).slice(2, 7)}`, role: as }) : as;
    return this.browser.open(this.base, token, { path, ...options });
  }

  blank(options) {
    return this.browser.blank(this.base, options);
  }

  go(page, path) {
    return go(page, path);
  }

  visit(page, path) {
    return visit(page, path);
  }

  /** Fills the installation with the demo, once. */
  demo() {
    this.demoDone ??= demo(this.haft.url, this.haft.token);
    return this.demoDone;
  }

  /** Installs two toolsets and makes a workspace, once; the addresses of their pages. */
  async example() {
    this.exampleDone ??= example(this.haft);
    const { state } = await this.exampleDone;
    return EXAMPLE_PATHS.map((path) => path.replace('STATE', state));
  }

  /** A server that ends with the walk. */
  keep(server) {
    this.servers.push(server);
    return server;
  }

  async end() {
    await this.browser.closePages();
    for (const server of this.servers) {
      server.close();
      server.closeAllConnections();
    }
    await this.haft.remove();
  }
}
