// The routes of toolsets, workspaces and render plans, as the contract describes them, in memory. They answer in place of a
// server that does not have them yet; everything else goes to the real server.
import { createHash } from 'node:crypto';

const json = (data, status = 200) => ({ status, contentType: 'application/json', body: JSON.stringify(status < 400 ? { status: 'success', data } : data) });
const failure = (status, code, message, details = {}) => json({ status: 'error', error: { code, message, details }, request_id: 'r-1' }, status);
const hash = (bytes) => createHash('sha256').update(bytes).digest('hex');
const TYPES = { png: 'image/png', svg: 'image/svg+xml', json: 'application/json', md: 'text/markdown', html: 'text/plain' };

/** One workspace with all its states. */
class FakeWorkspace {
  constructor(name, files = {}) {
    this.name = name;
    this.manifests = [];
    this.last = { call_id: null, changes: [] };
    this.commit(new Map(Object.entries(files).map(([path, content]) => [path, Buffer.from(content)])), 'user_upload');
  }

  get current() { return this.manifests[0]; }
  state(id) { return id ? this.manifests.find((manifest) => manifest.id === id) : this.current; }

  commit(files, source, ref = null) {
    const id = `m${this.manifests.length + 1}`;
    const at = new Date(Date.now() - 3_600_000 + this.manifests.length * 300_000).toISOString();
    this.manifests.unshift({ id, parent_id: this.current?.id ?? null, created_at: at, source, source_ref: ref, files });
    return id;
  }

  /** A call that changes files: `null` removes one. */
  call(id, changes) {
    const before = this.current.files;
    const files = new Map(before);
    for (const [path, content] of Object.entries(changes)) if (content === null) files.delete(path); else files.set(path, Buffer.from(content));
    this.commit(files, 'tool_run', id);
    this.last = { call_id: id, changes: diff(before, files) };
  }

  summary() {
    return { name: this.name, chat_id: null, title: null, files: this.current.files.size, bytes: size(this.current.files), manifest_id: this.current.id, modified_at: this.current.created_at };
  }
}

const size = (files) => [...files.values()].reduce((sum, bytes) => sum + bytes.length, 0);

function diff(before, after) {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths.flatMap((path) => {
    if (!before.has(path)) return [{ path, change: 'added' }];
    if (!after.has(path)) return [{ path, change: 'removed' }];
    return before.get(path).equals(after.get(path)) ? [] : [{ path, change: 'modified' }];
  });
}

export class Unreleased {
  constructor() {
    this.workspaces = new Map();
    this.toolsets = [];
    /** What `dry_run` finds in a package, by the name of its content. */
    this.packages = new Map();
    /** Render plans by the name of a tool: `(call) => ({ render_plan, workspace, … })`. */
    this.plans = {};
    this.documents = new Map();
    this.renderers = [];
  }

  workspace(name, files) {
    const made = new FakeWorkspace(name, files);
    this.workspaces.set(name, made);
    return made;
  }

  async attach(page) {
    await page.route(/\/api\/workspaces(?:[/?]|$)/, (route) => this.answer(route, (url, request) => this.workspaceRoute(url, request)));
    await page.route(/\/api\/toolsets(?:[/?]|$)/, (route) => this.answer(route, (url, request) => this.toolsetRoute(url, request)));
    await page.route(/\/api\/tools\/[^/]+\/renderers$/, (route) => this.answer(route, (url, request) => { this.renderers.push({ tool: decodeURIComponent(url.pathname.split('/')[3]), ...request.postDataJSON() }); return json({}); }));
    await page.route(/\/api\/calls\/[^/?]+$/, (route) => this.callRoute(route));
    await page.route(/\/api\/calls\/[^/?]+\/render$/, (route) => this.answer(route, (url) => json({ url: `/render/${url.pathname.split('/')[3]}`, expires_at: new Date(Date.now() + 60_000).toISOString() })));
    await page.route(/\/render\/[^/]+$/, (route) => route.fulfill({ contentType: 'text/html', headers: { 'content-security-policy': "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'" }, body: this.documents.get('html') ?? '' }));
    return page;
  }

  async answer(route, handle) {
    const request = route.request();
    const result = handle(new URL(request.url()), request);
    await route.fulfill(result ?? failure(404, 'not_found', 'not found'));
  }

  async callRoute(route) {
    const response = await route.fetch();
    const body = await response.json();
    const name = body.data?.tool?.replace(/^.*:|@.*$/g, '');
    const extra = this.plans[name];
    await route.fulfill({ response, json: extra ? { ...body, data: { ...body.data, ...extra(body.data) } } : body });
  }

  workspaceRoute(url, request) {
    const [, , , name, part, ...rest] = url.pathname.split('/').map(decodeURIComponent);
    if (name === undefined) return json({ workspaces: [...this.workspaces.values()].map((each) => each.summary()), total: this.workspaces.size, next_page_token: null });
    const workspace = this.workspaces.get(name);
    if (!workspace) return undefined;
    const state = workspace.state(url.searchParams.get('manifest'));
    if (part === 'files' && rest.length === 0) return json({ files: [...state.files].map(([path, bytes]) => ({ path, size: bytes.length, hash: hash(bytes), executable: path.endsWith('.sh') })), manifest_id: state.id, total: state.files.size });
    if (part === 'files') return this.fileRoute(workspace, state, rest.join('/'), request);
    if (part === 'manifests') return json({ manifests: workspace.manifests.map(({ files, ...manifest }) => ({ ...manifest, files: files.size, bytes: size(files) })), next_page_token: null });
    if (part === 'diff') return json({ changes: diff(workspace.state(url.searchParams.get('from') ?? 'none')?.files ?? new Map(), workspace.state(url.searchParams.get('to')).files) });
    if (part === 'changes') return json(workspace.last);
    if (part === 'archive') return { status: 200, contentType: 'application/zip', headers: { 'content-disposition': `attachment; filename="${name}.zip"` }, body: 'PK' };
    if (part === 'restore') return json({ manifest_id: workspace.commit(workspace.state(request.postDataJSON().manifest_id).files, 'restore') });
    return undefined;
  }

  fileRoute(workspace, state, path, request) {
    const bytes = state.files.get(path);
    const mark = bytes && `"${hash(bytes)}"`;
    if (request.method() === 'GET') return bytes && { status: 200, contentType: TYPES[path.split('.').at(-1)] ?? 'text/plain', headers: { etag: mark }, body: bytes };
    if (request.headers()['if-match'] && request.headers()['if-match'] !== mark) return failure(412, 'conflict', 'the file has changed');
    const files = new Map(workspace.current.files);
    if (request.method() === 'DELETE') files.delete(path);
    else files.set(path, request.postDataBuffer() ?? Buffer.alloc(0));
    workspace.commit(files, request.method() === 'DELETE' ? 'edit' : bytes ? 'edit' : 'user_upload');
    return json({ manifest_id: workspace.current.id });
  }

  toolsetRoute(url, request) {
    const [, , , id, part] = url.pathname.split('/').map(decodeURIComponent);
    if (id === undefined && request.method() === 'GET') return json({ toolsets: this.toolsets, total: this.toolsets.length, next_page_token: null });
    if (id === undefined) return this.importRoute(url, request);
    const at = this.toolsets.findIndex((toolset) => toolset.id === id);
    if (at < 0) return undefined;
    const change = (fields) => { this.toolsets[at] = { ...this.toolsets[at], ...fields }; return json(this.toolsets[at]); };
    if (part === undefined && request.method() === 'DELETE') return json(this.toolsets.splice(at, 1)[0]);
    if (part === 'enable') return change({ enabled: request.postDataJSON().enabled });
    if (part === 'update') return change({ version: '1.2.0', previous_version: this.toolsets[at].version });
    if (part === 'rollback') return change({ version: this.toolsets[at].previous_version, previous_version: null });
    if (part === 'export') return { status: 200, contentType: 'application/zip', body: 'PK' };
    return undefined;
  }

  importRoute(url, request) {
    const key = request.headers()['content-type']?.includes('zip') ? request.postDataBuffer().toString() : request.postDataJSON().url;
    const found = this.packages.get(key);
    if (!found) return failure(422, 'invalid_package', 'the package is not valid', { problems: [{ field: 'manifest_version', code: 'missing_field', message: 'missing required field' }, { field: 'tools.0.entrypoint', code: 'invalid_value', message: '`tools.none:run` does not exist' }] });
    if (url.searchParams.get('dry_run') === 'true') return json(found);
    const { action, installed_version, removed_tools, errors, files, bytes, ...content } = found;
    this.toolsets = [...this.toolsets.filter((toolset) => toolset.id !== content.id), installed(content)];
    return json(this.toolsets.at(-1));
  }
}

const now = () => new Date().toISOString();
export const installed = (content, fields = {}) => ({ enabled: true, source_ref: null, previous_version: null, installed_at: now(), modified_at: now(), ...content, ...fields });
export const tool = (name, description, fields = {}) => ({ name, description, enabled: true, requires_confirmation: false, sandbox: true, network: false, renderers: [], ...fields });
export const content = (id, name, fields = {}) => ({ id, name, version: '1.0.0', description: '', tools: [], mcp_servers: [], dependencies: [], warnings: [], signature: { state: 'unsigned' }, ...fields });
export const preview = (base, fields = {}) => ({ action: 'install', installed_version: null, removed_tools: [], errors: [], files: 6, bytes: 18_240, ...base, ...fields });

/** The two toolsets of the documentation, a workspace, and a package to import. */
export function example() {
  const fake = new Unreleased();
  fake.toolsets = [
    installed(content('app-builder', 'App Builder', {
      description: 'Build and preview web applications', version: '1.1.0', signature: { state: 'valid', key: 'ed25519:9f2c…71' },
      tools: [
        tool('write_file', 'Write content to a file in the workspace', { renderers: [{ renderer: 'code', priority: 0, config: { file: '$args.path', language: 'auto', editable: true } }] }),
        tool('read_file', 'Read a file from the workspace', { renderers: [{ renderer: 'code', priority: 0, config: { file: '$args.path', language: 'auto' } }] }),
        tool('run_command', 'Run a shell command in the workspace', { requires_confirmation: true, renderers: [{ renderer: 'terminal', priority: 0, config: { content: '$return.output' } }] }),
      ],
    }), { source_ref: 'https://tools.example.com/app-builder.zip', previous_version: '1.0.0' }),
    installed(content('my-toolset', 'My Toolset', {
      description: 'Example toolset with analysis tools', dependencies: ['pandas==2.3.1'], warnings: [{ field: 'tools.0', code: 'no_output_schema', message: '`analyze_data` has no output schema' }],
      tools: [tool('analyze_data', 'Analyze a data file and return statistics', { renderers: [{ renderer: 'html', priority: 0, config: { artifact: 'artifacts/results.html', data: '$return' } }] }), tool('transform_file', 'Transform a file using a template', { enabled: false })],
      mcp_servers: [{ id: 'my-mcp-server', command: 'npx', args: ['-y', 'my-mcp-package'], env: { API_KEY: '${MY_API_KEY}' }, phase: 'error', error: '`npx` is not installed' }],
    }), { enabled: false }),
  ];
  fake.packages.set('a package', preview(content('weather-kit', 'Weather Kit', {
    description: 'Forecasts and climate charts', version: '2.0.0', signature: { state: 'unknown_key', key: 'ed25519:ab…' }, dependencies: ['requests==2.32.4'],
    warnings: [{ field: 'tools.1.network', code: 'network', message: '`fetch_forecast` asks for network access' }],
    tools: [tool('climate_chart', 'Draws a chart of the climate of a place', { renderers: [{ renderer: 'chart', priority: 0, config: { type: 'bar', rows: '$return' } }] }), tool('fetch_forecast', 'Fetches the forecast', { network: true, requires_confirmation: true })],
    mcp_servers: [{ id: 'maps', command: 'npx', args: ['-y', '@example/maps server'] }],
  })));
  const workspace = fake.workspace('demo', {
    'README.md': '# Demo\n\nA small web page, made by **App Builder**.\n\n- `index.html`: the page\n- `data/sales.csv`: the figures\n',
    'index.html': '<!doctype html>\n<html>\n  <head><title>Demo</title></head>\n  <body><h1>Hello</h1></body>\n</html>\n',
    'data/sales.csv': 'month,sales,costs\nJan,120,80\nFeb,135,82\nMar,158,90\n', 'scripts/build.sh': '#!/bin/bash\nset -e\necho building\n', 'src/app/main.py': 'def run(workspace):\n    return {"ok": True}\n',
    'assets/logo.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="120"><circle cx="60" cy="60" r="50" fill="teal"/></svg>', 'data/raw.bin': Buffer.from([0, 1, 2, 3]),
  });
  workspace.call('018faf50-b7b6-7a01-9a05-a22a6e0af101', { 'index.html': '<!doctype html>\n<html>\n  <head><title>Demo</title></head>\n  <body><h1>Hello, world</h1><p>Sales rise.</p></body>\n</html>\n', 'src/app/chart.py': 'import json\n', 'scripts/build.sh': null });
  fake.workspace('empty');
  return fake;
}
