"""An MCP server over standard input and output whose tool tells which process it is, and how long its variable KEY is."""

import json
import os
import secrets
import sys

PROCESS = secrets.token_hex(8)
TOOLS = [{"name": "who", "description": "Tells who it is", "inputSchema": {"type": "object"}}]

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    match request["method"]:
        case "initialize":
            answer["result"] = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "own", "version": "1"},
            }
        case "tools/list":
            answer["result"] = {"tools": TOOLS}
        case "tools/call":
            who = {"process": PROCESS, "length": len(os.environ["KEY"])}
            answer["result"] = {"content": [{"type": "text", "text": json.dumps(who)}], "structuredContent": who}
        case "ping":
            answer["result"] = {}
        case _:
            answer["error"] = {"code": -32601, "message": "unknown method"}
    print(json.dumps(answer), flush=True)
