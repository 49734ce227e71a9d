// A workspace with a few files, and a call that changes them.
const FILES = {
  'README.md': '# Demo\n\nA small web page, made by **App Builder**.\n\n- `index.html`: the page\n- `data/sales.csv`: the figures\n',
  'index.html': '<!doctype html>\n<html>\n  <head><title>Demo</title></head>\n  <body><h1>Hello</h1></body>\n</html>\n',
  'data/sales.csv': 'month,sales,costs\nJan,120,80\nFeb,135,82\nMar,158,90\n',
  'scripts/build.sh': '#!/bin/bash\nset -e\necho building\n',
  'src/app/main.py': 'def run(workspace):\n    return {"ok": True}\n',
  'assets/logo.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="120"><circle cx="60" cy="60" r="50" fill="teal"/></svg>',
  'data/raw.bin': Buffer.from([0, 1, 2, 3]),
};

const CHANGE = `name: improve-page
description: Adds a chart to the page
params: []
implementation:
  type: exec
  command: "sed -i 's/Hello/Hello, world/' index.html && echo 'import json' > src/app/chart.py && rm scripts/build.sh"
`;

export class Workspace {
  constructor(haft, name) {
    this.haft = haft;
    this.name = name;
  }

  /** Makes one of seven uploads and a call. */
  static async create(haft, name) {
    const made = new Workspace(haft, name);
    for (const [path, content] of Object.entries(FILES)) await made.put(path, content);
    await haft.api('POST', '/tools', CHANGE, { type: 'application/yaml', allow: [409] });
    const outcome = await haft.api('POST', '/tools/improve-page/invoke', { args: {}, workspace: name });
    if (outcome.workspace_use?.changed !== 3) throw new Error(`the call changed nothing: ${JSON.stringify(outcome).slice(0, 800)}`);
    return made;
  }

  request(method, path, body) {
    const address = path.split('/').map(encodeURIComponent).join('/');
    return fetch(`${this.haft.url}/api/workspaces/${this.name}/files/${address}`, { method, body, headers: { Authorization: `Bearer ${this.haft.token}`, 'Content-Type': 'application/octet-stream' } });
  }

  async put(path, content) {
    const response = await this.request('PUT', path, content);
    if (!response.ok) throw new Error(`${path} was not written: ${await response.text()}`);
  }

  /** The text of a file; `undefined` if there is none. */
  async text(path) {
    const response = await this.request('GET', path);
    return response.ok ? response.text() : undefined;
  }

  /** The states, newest first. */
  async states() {
    return (await this.haft.api('GET', `/workspaces/${this.name}/manifests`)).manifests;
  }
}
