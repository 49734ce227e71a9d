// Logs in to haft with the official TypeScript SDK, which knows nothing but the URL; prints what it reads as JSON.
//
// The arguments are the folder of the packages and the URL of the MCP server. A line `OPEN URL` asks for somebody who opens
// the URL in a browser; the next line of standard input is the address to which the browser was led.
import { createInterface } from 'node:readline/promises';
import { pathToFileURL } from 'node:url';

const [packages, url] = process.argv.slice(2);
const sdk = (path) => import(pathToFileURL(`${packages}/@modelcontextprotocol/sdk/dist/esm/client/${path}`));
const { Client } = await sdk('index.js');
const { StreamableHTTPClientTransport } = await sdk('streamableHttp.js');
const { UnauthorizedError } = await sdk('auth.js');

const saved = {};
let page;
const provider = {
  redirectUrl: 'http://127.0.0.1:7777/callback',
  clientMetadata: { client_name: 'TypeScript SDK', redirect_uris: ['http://127.0.0.1:7777/callback'], token_endpoint_auth_method: 'none', grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
  clientInformation: () => saved.client,
  saveClientInformation: (client) => { saved.client = client; },
  tokens: () => saved.tokens,
  saveTokens: (tokens) => { saved.tokens = tokens; },
  redirectToAuthorization: (address) => { page = address; },
  saveCodeVerifier: (verifier) => { saved.verifier = verifier; },
  codeVerifier: () => saved.verifier,
  saveDiscoveryState: (state) => { saved.discovery = state; },
  discoveryState: () => saved.discovery,
};

const lines = createInterface({ input: process.stdin });
const transport = () => new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
const first = transport();
try {
  await new Client({ name: 'test', version: '1' }).connect(first);
  throw new Error('connected without a login');
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
console.log('OPEN', page.href);
const { value } = await lines[Symbol.asyncIterator]().next();
const answer = new URL(value.trim()).searchParams;
if (first.finishAuth.length > 1) await first.finishAuth(answer.get('code'), answer.get('iss'));
else await first.finishAuth(answer.get('code'));
const client = new Client({ name: 'test', version: '1' });
await client.connect(transport());
const { tools } = await client.listTools();
const result = await client.callTool({ name: 'worker', arguments: { n: 21 } });
const read = { tools: tools.map((tool) => tool.name).sort(), text: result.content[0].text, refreshes: saved.tokens.refresh_token !== undefined, scope: saved.tokens.scope };
console.log('READ', JSON.stringify(read));
process.exit(0);
