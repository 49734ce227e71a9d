// Small servers that tools of the walks call: an HTTP service, and an MCP server whose tools can change.
import http from 'node:http';

const listen = (server) => new Promise((resolve) => { server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`)); });

const readJson = async (request) => {
  let text = '';
  for await (const part of request) text += part;
  return text === '' ? undefined : JSON.parse(text);
};

/** Answers every request with its method, path and headers as JSON. */
export async function echoServer(world) {
  const server = world.keep(http.createServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ method: request.method, path: request.url, weather: 'sunny' }));
  }));
  return listen(server);
}

/** An MCP server over HTTP. `tools` may be changed at any time; `tools/call` answers with its arguments. */
export async function mcpServer(world, tools) {
  const state = { tools };
  const answers = {
    initialize: (params) => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'walk', version: '1.0.0' } }),
    ping: () => ({}),
    'tools/list': () => ({ tools: state.tools }),
    'tools/call': (params) => ({ content: [{ type: 'text', text: `${params.name} got ${JSON.stringify(params.arguments)}` }] }),
  };
  const server = world.keep(http.createServer(async (request, response) => {
    const message = request.method === 'POST' ? await readJson(request) : undefined;
    if (message === undefined) return void response.writeHead(405).end();
    if (message.id === undefined) return void response.writeHead(202).end();
    const answer = answers[message.method];
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...(answer ? { result: answer(message.params ?? {}) } : { error: { code: -32601, message: `unknown method ${message.method}` } }) }));
  }));
  state.url = `${await listen(server)}/mcp`;
  return state;
}

/** A WASI command that prints a text: assembled by hand, so that no compiler is needed. */
export function wasmThatPrints(text) {
  const name = (value) => [value.length, ...Buffer.from(value)];
  const section = (id, bytes) => [id, ...leb(bytes.length), ...bytes];
  const data = [16, 0, 0, 0, text.length, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...Buffer.from(text)];
  // fd_write(1, 0, 1, 8): one buffer, described at address 0.
  const body = [0, 0x41, 1, 0x41, 0, 0x41, 1, 0x41, 8, 0x10, 0, 0x1a, 0x0b];
  return Buffer.from([
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, [2, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f, 0x60, 0, 0]),
    ...section(2, [1, ...name('wasi_snapshot_preview1'), ...name('fd_write'), 0, 0]),
    ...section(3, [1, 1]),
    ...section(5, [1, 0, 1]),
    ...section(7, [2, ...name('memory'), 2, 0, ...name('_start'), 0, 1]),
    ...section(10, [1, body.length, ...body]),
    ...section(11, [1, 0, 0x41, 0, 0x0b, ...leb(data.length), ...data]),
  ]);
}

function leb(value) {
  const bytes = [];
  do {
    bytes.push((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    value >>= 7;
  } while (value > 0);
  return bytes;
}
