// One haft server with a home folder of its own, and requests to it.
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const START_MS = 120_000;

export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = net.createServer().once('error', reject).listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

export const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

export class Haft {
  /** Starts the binary that `HAFT_BIN` names. `env` holds settings such as `HAFT_SERVER_SESSION_LIFETIME`. */
  static async start({ env = {}, bin = process.env.HAFT_BIN } = {}) {
    if (!bin) throw new Error('HAFT_BIN must name a haft binary, such as target/debug/haft');
    const haft = new Haft();
    haft.bin = bin;
    haft.home = mkdtempSync(join(tmpdir(), 'haft-ui-'));
    chmodSync(haft.home, 0o700);
    haft.logFile = join(haft.home, 'server.log');
    haft.env = env;
    haft.port = await freePort();
    haft.url = `http://127.0.0.1:${haft.port}`;
    try {
      await haft.launch();
    } catch (error) {
      await haft.remove();
      throw error;
    }
    haft.token = readFileSync(join(haft.home, 'tokens'), 'utf8').split('\n')[0].trim();
    return haft;
  }

  async launch() {
    const log = openSync(this.logFile, 'a');
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HAFT_')));
    // Walks reach their own test servers on this machine.
    this.process = spawn(this.bin, ['serve', '--home', this.home, '--addr', `127.0.0.1:${this.port}`],
      { stdio: ['ignore', log, log], env: { ...env, HAFT_EGRESS_PRIVATE_HOSTS: '127.0.0.1', ...this.env } });
    this.exited = new Promise((resolve) => { this.process.once('exit', resolve); });
    const end = Date.now() + START_MS;
    while (Date.now() < end && this.process.exitCode === null) {
      if (await fetch(`${this.url}/readyz`).then((answer) => answer.ok, () => false)) return;
      await sleep(50);
    }
    throw new Error(`haft did not start:\n${this.log()}`);
  }

  async stop() {
    if (this.process?.exitCode !== null || this.process.signalCode !== null) return;
    this.process.kill('SIGTERM');
    const killer = setTimeout(() => this.process.kill('SIGKILL'), 15_000);
    await this.exited;
    clearTimeout(killer);
  }

  async remove() {
    await this.stop();
    rmSync(this.home, { recursive: true, force: true });
  }

  log(lines = 40) {
    return readFileSync(this.logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  }

  /** Sends a request to the API; fails unless it succeeds. `body` is an object for JSON, or text with `type`. */
  async api(method, path, body, { as = this.token, type = 'application/json', allow = [] } = {}) {
    const response = await fetch(`${this.url}/api${path}`, {
      method, headers: { Authorization: `Bearer ${as}`, 'Content-Type': type },
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok && !allow.includes(response.status)) throw new Error(`${method} ${path} answered ${response.status}: ${text.slice(0, 500)}`);
    const parsed = text === '' ? undefined : JSON.parse(text);
    return parsed?.data ?? parsed;
  }

  /** Creates a tool from YAML. */
  tool(yaml) {
    return this.api('POST', '/tools', yaml, { type: 'application/yaml' });
  }

  invoke(tool, args, as) {
    return this.api('POST', `/tools/${tool}/invoke`, { args }, { as, allow: [202, 400, 403, 409, 422, 500, 502] });
  }

  async newToken(fields) {
    return (await this.api('POST', '/tokens', fields)).token;
  }
}
