// The routes of toolsets, workspaces and render plans, as the contract describes them, in memory. They answer in place of a
// server that does not have them yet; everything else goes to the real server.
import { createHash } from 'node:crypto';

const json = (data, status = 200) => ({ status, contentType: 'application/json', body: JSON.stringify(status < 400 ? { status: 'success', data } : data) });
const failure = (status, code, message, details = {}) => json({ status: 'error', error: { code, message, details }, request_id: 'r-1' }, status);
const hash = (bytes) => createHash('sha256').update(bytes).digest('hex');
// As the server: what could run a script is text.
const TYPES = { png: 'image/png' };

/** One workspace with all its states. */
class FakeWorkspace {
  constructor(name, files = {}) {
    this.name = name;
    this.manifests = [];
    this.commit(new Map(Object.entries(files).map(([path, content]) => [path, Buffer.from(content)])), 'user_upload');
  }

  get current() { return this.manifests[0]; }
  state(id) { return id ? this.manifests.find((manifest) => manifest.id === id) : this.current; }

  commit(files, source, ref = null) {
    const id = `m${this.manifests.length + 1}`;
    const at = new Date(Date.now() - 3_600_000 + this.manifests.length * 300_000).toISOString();
    this.manifests.unshift({ id, parent_id: this.current?.id ?? null, created_at: at, source, source_ref: ref, created_by: 'local', files });
    return id;
  }

  /** A call that changes files: `null` removes one. */
  call(id, changes) {
    const before = this.current.files;
    const files = new Map(before);
    for (const [path, content] of Object.entries(changes)) if (content === null) files.delete(path); else files.set(path, Buffer.from(content));
    this.commit(files, 'tool_run', id);
  }

  summary() {
    return { name: this.name, files: this.current.files.size, bytes: size(this.current.files), manifest_id: this.current.id, created_at: this.manifests.at(-1).created_at, modified_at: this.current.created_at };
  }
}

const described = ({ files, ...manifest }) => ({ ...manifest, files: files.size, bytes: size(files) });
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
    /** What the packages of installed toolsets contain. */
    this.contents = new Map();
    this.servers = [];
    /** Definitions that were stored. */
    this.stored = [];
  }

  workspace(name, files) {
    const made = new FakeWorkspace(name, files);
    this.workspaces.set(name, made);
    return made;
  }

  async attach(page) {
    await page.route(/\/api\/workspaces(?:[/?]|$)/, (route) => this.answer(route, (url, request) => this.workspaceRoute(url, request)));
    await page.route(/\/api\/toolsets(?:[/?]|$)/, (route) => this.answer(route, (url, request) => this.toolsetRoute(url, request)));
    await page.route((url) => url.pathname === '/api/tools' && this.contents.has(url.searchParams.get('bundle_ids')), (route) => this.answer(route, (url) => json({ tools: this.toolRows(url.searchParams.get('bundle_ids')), total: 1, ready: 1, failed: 0, next_page_token: null })));
    await page.route((url) => this.contents.has(decodeURIComponent(url.pathname).split(/[/:]/)[3]) && url.pathname.startsWith('/api/tools/'), (route) => this.answer(route, (url, request) => this.toolRoute(url, request)));
    await page.route(/\/api\/mcp-servers(?:\?|$)/, (route) => this.answer(route, () => json({ mcp_servers: this.servers, total: this.servers.length, next_page_token: null })));
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
    if (part === 'files' && rest.length === 0) return json({ manifest: described(state), files: [...state.files].map(([path, bytes]) => ({ path, kind: 'file', size: bytes.length, hash: hash(bytes), executable: path.endsWith('.sh') })), total: state.files.size });
    if (part === 'files') return this.fileRoute(workspace, state, rest.join('/'), request);
    if (part === 'manifests') return json({ manifests: workspace.manifests.map(described), next_page_token: null });
    if (part === 'diff') return json({ changes: diff(workspace.state(url.searchParams.get('from')).files, workspace.state(url.searchParams.get('to')).files) });
    if (part === 'restore') return json({ manifest_id: workspace.commit(workspace.state(request.postDataJSON().manifest_id).files, 'restore') });
    return undefined;
  }

  fileRoute(workspace, state, path, request) {
    const bytes = state.files.get(path);
    const mark = bytes && `"${hash(bytes)}"`;
    if (request.method() === 'GET') return bytes && { status: 200, contentType: TYPES[path.split('.').at(-1)] ?? 'text/plain', headers: { etag: mark }, body: bytes };
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
    const change = (fields) => { this.toolsets[at] = { ...this.toolsets[at], ...fields }; return json(part === 'enable' ? this.toolsets[at] : { toolset: this.toolsets[at], added: [], changed: [], removed: [], warnings: [] }); };
    if (part === undefined && request.method() === 'GET') return json({ ...this.toolsets[at], content: this.contents.get(id) });
    if (part === undefined && request.method() === 'DELETE') return json(this.toolsets.splice(at, 1)[0]);
    if (part === 'enable') return change({ enabled: request.postDataJSON().enabled });
    if (part === 'update') return change({ version: '1.2.0', previous: 'hash-of-1.1.0' });
    if (part === 'rollback') return change({ version: '1.1.0', previous: null });
    if (part === 'export') return { status: 200, contentType: 'application/zip', body: 'PK' };
    return undefined;
  }

  importRoute(url, request) {
    const key = request.headers()['content-type']?.includes('zip') ? request.postDataBuffer().toString() : request.postDataJSON().url;
    const found = this.packages.get(key);
    if (!found) return failure(422, 'invalid_package', 'the package is not valid', { problems: [{ field: 'manifest_version', code: 'missing_field', message: 'missing required field' }, { field: 'tools.0.entrypoint', code: 'invalid_value', message: '`tools.none:run` does not exist' }] });
    const replaces = this.toolsets.find((toolset) => toolset.id === found.id) ?? null;
    if (url.searchParams.get('dry_run') === 'true') return json({ package: found, replaces });
    this.install(found);
    return json({ toolset: this.toolsets.at(-1), added: [], changed: [], removed: [], warnings: [] }, 201);
  }

  /** Installs a package as the server would. */
  install(found, fields = {}) {
    this.contents.set(found.id, found);
    this.toolsets = [...this.toolsets.filter((toolset) => toolset.id !== found.id), installed(found, fields)];
  }

  toolRows(id) {
    return this.contents.get(id).tools.map((each) => ({
      id: null, bundle: id, name: each.id, version: '1.0.0', display_name: each.name, description: each.description, tags: [], tool_type: 'custom', implementation_type: 'python', policy: 'allow', status: 'published', enabled: each.enabled,
      built_in: false, ready: true, source: 'toolset', modified_at: now(), callable: true, warning_count: 0, requires_confirmation: each.requires_confirmation,
    }));
  }

  /** A tool of a toolset: read, its source, a new definition, publish. */
  toolRoute(url, request) {
    const [, , , ref, part] = decodeURIComponent(url.pathname).split('/');
    const [id, name] = ref.replace(/@.*$/, '').split(':');
    const found = this.toolRows(id).find((each) => each.name === name);
    const definition = { name, description: found.description, implementation: { type: 'python', entrypoint: 'tools.x:run' }, renderers: [{ renderer: 'code', priority: 0, config: { content: '$return' } }] };
    if (request.method() === 'PUT') this.stored.push({ ref, definition: request.postDataJSON() });
    if (part === 'source') return json({ text: JSON.stringify(definition), form: 'json', path: null });
    return json({ ...found, ...definition, bundle_id: null, revision: 1, usage: { call_count: 0 }, warnings: [] });
  }
}

const now = () => new Date().toISOString();
const installed = ({ id, name, version, description, mcp_servers: servers, dependencies, tools }, fields) => ({
  id, name, version, description, manifest_version: '1', source_type: 'zip', source_ref: null, package: 'hash', previous: null, signed_by: null, mcp_servers: servers.map((server) => server.id), dependencies,
  installed_at: now(), installed_by: 'local', enabled: true, tools: tools.length, ...fields,
});
export const tool = (id, description, fields = {}) => ({ id, name: id, description, category: '', implementation_type: 'python', enabled: true, requires_confirmation: false, renderers: [], permissions: { sandbox: true, network: false, policy: 'allow' }, ...fields });
export const server = (id, fields) => ({ id, variables: [], network: false, sandbox: true, enabled: true, ...fields });
export const content = (id, name, fields = {}) => ({
  id, name, version: '1.0.0', description: '', is_skill: false, hash: 'hash', tools: [], mcp_servers: [], dependencies: [], has_wheels: false, files: [{ path: 'toolset.yaml', kind: 'manifest', size: 18_240, sha256: '', executable: false }], total_bytes: 18_240,
  warnings: [], signature: { status: 'unsigned' }, ...fields,
});

/** The two toolsets of the documentation, a workspace, and a package to import. */
export function example() {
  const fake = new Unreleased();
  fake.install(content('app-builder', 'App Builder', {
    description: 'Build and preview web applications', version: '1.1.0', signature: { status: 'trusted', key_name: 'example', public_key: '9f2c71' },
    tools: [
      tool('write_file', 'Write content to a file in the workspace', { renderers: ['code'] }), tool('read_file', 'Read a file from the workspace', { renderers: ['code'] }),
      tool('run_command', 'Run a shell command in the workspace', { requires_confirmation: true, renderers: ['terminal'] }),
    ],
  }), { source_type: 'url', source_ref: 'https://tools.example.com/app-builder.zip', previous: 'hash-of-1.0.0', signed_by: 'example' });
  fake.install(content('my-toolset', 'My Toolset', {
    description: 'Example toolset with analysis tools', dependencies: ['pandas==2.3.1'], warnings: [{ field: 'tools.0', code: 'no_output_schema', message: '`analyze_data` has no output schema' }],
    tools: [tool('analyze_data', 'Analyze a data file and return statistics', { renderers: ['html'] }), tool('transform_file', 'Transform a file using a template', { enabled: false })],
    mcp_servers: [server('my-mcp-server', { command: 'npx -y my-mcp-package', variables: ['API_KEY'] })],
  }), { enabled: false });
  fake.servers = [{ id: 'my-mcp-server', enabled: true, command: 'npx', args: ['-y', 'my-mcp-package'], state: { phase: 'error', error: '`npx` is not installed', tools: 0 } }];
  fake.packages.set('a package', content('weather-kit', 'Weather Kit', {
    description: 'Forecasts and climate charts', version: '2.0.0', signature: { status: 'unknown_key', public_key: 'ab12' }, dependencies: ['requests==2.32.4'],
    warnings: [{ field: 'tools.1.network', code: 'network', message: '`fetch_forecast` asks for network access' }],
    tools: [tool('climate_chart', 'Draws a chart of the climate of a place', { renderers: ['chart'] }), tool('fetch_forecast', 'Fetches the forecast', { requires_confirmation: true, permissions: { network: true, sandbox: false, policy: 'allow' } })],
    mcp_servers: [server('maps', { command: "npx -y '@example/maps server'" })],
  }));
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
