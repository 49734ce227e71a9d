// The issuer `oidc-provider` on a free port of the loopback. It prints its address, then reads the redirect URI of its one
// client from standard input. Everybody logs in with whatever name and password they enter.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline/promises';
import { Provider } from 'oidc-provider';

let handle = (_request, response) => response.writeHead(503).end();
const server = createServer((request, response) => handle(request, response));
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
process.stdout.write(`${issuer}\n`);
const redirectUri = await createInterface({ input: process.stdin }).question('');
const provider = new Provider(issuer, {
  clients: [{
    client_id: 'haft',
    client_secret: 'the-secret-of-the-client',
    redirect_uris: [redirectUri],
    post_logout_redirect_uris: [new URL('/login', redirectUri).href],
  }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'], groups: ['groups'] },
  scopes: ['openid', 'email', 'profile', 'groups'],
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: `${id} of the provider`, email: `${id}@example.com`, email_verified: true, groups: ['ops'] }),
  }),
});
handle = provider.callback();
process.stdout.write('ready\n');
