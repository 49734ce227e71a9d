// Serves `dist` under /ui with the headers that haft must send, and passes everything else on to a haft server.
// Usage: HAFT_URL=http://127.0.0.1:18901 PORT=18903 node e2e/serve.mjs
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import http from 'node:http';
import { randomBytes } from 'node:crypto';
import { extname, join, normalize } from 'node:path';

const DIST = new URL('../dist', import.meta.url).pathname;
const TYPES = { '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.html': 'text/html; charset=utf-8', '.map': 'application/json' };

export function policy(nonce) {
  return [
    "default-src 'none'", "script-src 'self'", `style-src 'self' 'nonce-${nonce}'`, "img-src 'self' data:", "font-src 'self'", "connect-src 'self'", "frame-src 'self'",
    "manifest-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'", "trusted-types dompurify haft",
  ].filter((part) => process.env.HAFT_TRUSTED_TYPES || !part.includes('trusted-types')).join('; ');
}

export function serve({ target, port }) {
  const upstream = new URL(target);
  const server = http.createServer((request, response) => {
    const path = new URL(request.url, 'http://x').pathname;
    if (path === '/') return void response.writeHead(303, { location: '/ui/' }).end();
    if (path === '/ui' || path.startsWith('/ui/')) return void page(path.slice(3), response);
    const proxied = http.request(
      { host: upstream.hostname, port: upstream.port, method: request.method, path: request.url, headers: { ...request.headers, host: request.headers.host } },
      (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      },
    );
    proxied.on('error', () => { if (!response.headersSent) response.writeHead(502); response.end(); });
    response.on('close', () => proxied.destroy());
    request.pipe(proxied);
  });
  return new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server)));
}

function page(path, response) {
  const file = normalize(join(DIST, path));
  const isAsset = file.startsWith(DIST) && path !== '/' && existsSync(file) && statSync(file).isFile();
  if (isAsset && !file.endsWith('index.html')) {
    const cache = path.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache';
    response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream', 'cache-control': cache, 'x-content-type-options': 'nosniff' });
    return createReadStream(file).pipe(response);
  }
  if (path.startsWith('/assets/')) return response.writeHead(404).end();
  const nonce = randomBytes(16).toString('base64');
  response.writeHead(200, {
    'content-type': TYPES['.html'], 'cache-control': 'no-cache', 'content-security-policy': policy(nonce),
    'x-content-type-options': 'nosniff', 'referrer-policy': 'same-origin',
  });
  response.end(readFileSync(join(DIST, 'index.html'), 'utf8').replace('{{nonce}}', nonce));
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const port = Number(process.env.PORT ?? 18903);
  const target = process.env.HAFT_URL ?? 'http://127.0.0.1:18901';
  await serve({ target, port });
  process.stdout.write(`http://127.0.0.1:${port}/ui/ -> ${target}\n`);
}
