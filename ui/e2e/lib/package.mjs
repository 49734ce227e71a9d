// Packages of toolsets: the examples of the repository, small ones, and signed ones, as ZIP files.
import { spawnSync } from 'node:child_process';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const EXAMPLES = new URL('../../../examples/toolsets/', import.meta.url).pathname;

/** The files of an example, by path. */
export function exampleFiles(name) {
  const folder = join(EXAMPLES, name);
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  return Object.fromEntries(paths.map((path) => [path.slice(folder.length + 1), readFileSync(path, 'utf8')]));
}

/** A package of one Python tool per name, each of which returns its arguments. */
export function simpleFiles({ id, name, version = '1.0.0', description = '', tools, more = '' }) {
  const entries = tools.map((tool) => `  - id: ${tool.id}\n    name: ${tool.id}\n    description: ${tool.description ?? `The tool ${tool.id}`}\n    entrypoint: tools.all:${tool.id}\n    input_schema: {type: object, properties: {}}\n${tool.more ?? ''}`);
  return {
    'toolset.yaml': `manifest_version: "1"\nid: ${id}\nname: ${name}\nversion: ${version}\ndescription: ${description || name}\ntools:\n${entries.join('')}${more}`,
    'tools/all.py': tools.map((tool) => `def ${tool.id}(workspace, **args):\n    return args\n`).join('\n'),
  };
}

const sha256 = (data) => createHash('sha256').update(data).digest('hex');

/** The same files with a signature by a new key. */
export function signed(files) {
  const lines = Object.keys(files).toSorted().map((path) => `${sha256(files[path])} - ${path}\n`).join('');
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const key = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64');
  const signature = sign(null, Buffer.from(`haft toolset signature 1\n${sha256(lines)}\n`), privateKey).toString('base64');
  return { ...files, 'toolset.sig': `haft-signature: 1\nalgorithm: ed25519\npublic-key: ${key}\nsignature: ${signature}\n` };
}

/** The bytes of a ZIP file. */
export function zip(files) {
  const script = 'import io, json, sys, zipfile\nout = io.BytesIO()\nwith zipfile.ZipFile(out, "w") as z:\n    [z.writestr(path, text) for path, text in json.load(sys.stdin).items()]\nsys.stdout.buffer.write(out.getvalue())';
  const done = spawnSync('python3', ['-c', script], { input: JSON.stringify(files), maxBuffer: 64 * 1024 * 1024 });
  if (done.status !== 0) throw new Error(`the package was not made: ${done.stderr}`);
  return done.stdout;
}

/** Installs a package as an administrator does. */
export async function install(haft, files) {
  const response = await fetch(`${haft.url}/api/toolsets`, { method: 'POST', headers: { Authorization: `Bearer ${haft.token}`, 'Content-Type': 'application/zip' }, body: zip(files) });
  if (!response.ok) throw new Error(`the package was not installed: ${await response.text()}`);
  return (await response.json()).data.toolset;
}
