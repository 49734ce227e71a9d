// The no-op tool as a server of the TypeScript SDK 1 (2025-11-25) with sessions, its fastest setting. Prints the
// address, and then that there is no token, as the servers of the benchmark do.
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const inputSchema = { city: z.string(), days: z.number().int() };
const sessions = new Map();

async function opened() {
  const server = new McpServer({ name: "noop", version: "1" });
  server.registerTool("noop", { description: "Returns its arguments", inputSchema }, async (args) => ({
    content: [{ type: "text", text: JSON.stringify(args) }],
    structuredContent: args,
  }));
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  await server.connect(transport);
  return transport;
}

const listener = createServer(async (request, response) => {
  const known = sessions.get(request.headers["mcp-session-id"]);
  await (known ?? (await opened())).handleRequest(request, response);
});
listener.listen(0, "127.0.0.1", () => console.log(`127.0.0.1:${listener.address().port}\nnone`));
