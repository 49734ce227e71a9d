// The no-op tool as a server of the TypeScript SDK 2 (2026-07-28), in its fastest setting. Prints the address, and then
// that there is no token, as the servers of the benchmark do.
import { createServer } from "node:http";
import { McpServer, createMcpHandler } from "@modelcontextprotocol/server";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { z } from "zod";

const inputSchema = z.object({ city: z.string(), days: z.number().int() });

function server() {
  const server = new McpServer({ name: "noop", version: "1" });
  server.registerTool("noop", { description: "Returns its arguments", inputSchema }, async (args) => ({
    content: [{ type: "text", text: JSON.stringify(args) }],
    structuredContent: args,
  }));
  return server;
}

const handler = createMcpHandler(server, { legacy: "reject" });
const listener = createServer(toNodeHandler(handler));
listener.listen(0, "127.0.0.1", () => console.log(`127.0.0.1:${listener.address().port}\nnone`));
