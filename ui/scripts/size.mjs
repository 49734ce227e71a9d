// What a browser loads, gzipped: the first view (index.html and what it names), and the largest chunks.
import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
const dist = new URL('../dist/', import.meta.url).pathname;
const size = (file) => gzipSync(readFileSync(dist + file)).length;
const html = readFileSync(`${dist}index.html`, 'utf8');
const first = [...html.matchAll(/(?:src|href)="\/ui\/(assets\/[^"]+)"/g)].map((match) => match[1]);
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
const entry = first.reduce((sum, file) => sum + size(file), 0);
process.stdout.write(`entry (${first.length} files): ${kib(entry)}\n`);
for (const [file, bytes] of readdirSync(`${dist}assets`).map((file) => [file, size(`assets/${file}`)]).sort((a, b) => b[1] - a[1]).slice(0, 12)) process.stdout.write(`${kib(bytes).padStart(10)}  ${file}\n`);
