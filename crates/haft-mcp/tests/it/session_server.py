"""An MCP server over HTTP with sessions. Its arguments are a port and the status that it returns for an unknown session.

It prints its port. The tool `forget` ends all sessions, and `grow` adds a tool without an announcement."""
import http.server
import json
import sys
import uuid

unknown_session = int(sys.argv[2])
sessions = set()
tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "forget", "grow")]
calls = 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, message=None, **headers):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode() if message else b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(405)

    def do_DELETE(self):
        sessions.discard(self.headers.get("mcp-session-id"))
        self.reply(204)

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, id = request["method"], request.get("id")
        if method == "server/discover":
            return self.reply(400, {"id": id, "error": {"code": -32600, "message": "not initialized"}})
        if method == "initialize":
            session = str(uuid.uuid4())
            sessions.add(session)
            return self.reply(200, {"id": id, "result": {
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "sessions", "version": "1"}}}, mcp_session_id=session)
        if self.headers.get("mcp-session-id") not in sessions:
            error = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
            return self.reply(unknown_session, {"id": "server-error", "error": error})
        if id is None:
            return self.reply(202)
        if method == "tools/list":
            return self.reply(200, {"id": id, "result": {"tools": tools}})
        if method != "tools/call":
            return self.reply(200, {"id": id, "result": {}})
        global calls
        calls += 1
        name = request["params"]["name"]
        if name == "forget":
            sessions.clear()
        elif name == "grow":
            tools.append({"name": f"new-{len(tools)}", "inputSchema": {"type": "object"}})
        self.reply(200, {"id": id, "result": {"content": [{"type": "text", "text": f"call {calls}"}]}})


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(server.server_port, flush=True)
server.serve_forever()
