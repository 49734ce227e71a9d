"""A stateless MCP server over HTTP. It prints its port, and then events of the tool `slow`."""
import http.server
import json
import sys
import time

tools = [
    {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {"name": "watched", "inputSchema": {"type": "object"}},
    {"name": "headers", "inputSchema": {"type": "object"}},
    {"name": "regional", "inputSchema": {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"}}}},
    {"name": "slow", "inputSchema": {"type": "object"}},
    {"name": "breaks", "inputSchema": {"type": "object"}},
    {"name": "confused", "inputSchema": {"type": "object"}},
    {"name": "grow", "inputSchema": {"type": "object"}},
    {"name": "fails", "inputSchema": {"type": "object"}},
]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def respond(self, request, status=200, **fields):
        body = json.dumps({"jsonrpc": "2.0", "id": request.get("id"), **fields}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begin(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, **message):
        self.wfile.write(f"data: {json.dumps({'jsonrpc': '2.0', **message})}\n\n".encode())
        self.wfile.flush()

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = request["method"]
        if method == "server/discover":
            self.respond(request, result={
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": {"tools": {"listChanged": True}}})
        elif method == "tools/list":
            # The second page has an invalid tool and always announces another page.
            odd = [{"name": "broken", "inputSchema": "no schema"}]
            self.respond(request, result={
                "resultType": "complete", "tools": odd if request["params"].get("cursor") else tools,
                "nextCursor": "more", "ttlMs": 0, "cacheScope": "private"})
        elif method == "tools/call":
            self.call(request)
        else:
            self.respond(request, 404, error={"code": -32601, "message": "what?"})

    def call(self, request):
        name, args = request["params"]["name"], request["params"].get("arguments", {})
        done = lambda text: {"resultType": "complete", "content": [{"type": "text", "text": text}]}
        if name == "echo":
            self.respond(request, result=done(args["text"]))
        elif name == "headers":
            headers = [self.headers.get(key) for key in ("mcp-protocol-version", "mcp-method", "mcp-name")]
            meta = sorted(request["params"]["_meta"])
            self.respond(request, result=done(json.dumps([*headers, *meta])))
        elif name == "regional":
            self.respond(request, result=done(self.headers.get("mcp-param-region", "no header")))
        elif name == "watched":
            token = request["params"]["_meta"].get("progressToken")
            self.begin()
            self.event(method="notifications/progress", params={"progressToken": "another", "progress": 9})
            self.event(method="notifications/progress", params={
                "progressToken": token, "progress": 1, "total": 2, "message": "half, with " + self.headers["x-key"]})
            self.event(id=request["id"], result=done("watched"))
        elif name == "grow":
            tools.append({"name": f"new-{len(tools)}", "inputSchema": {"type": "object"}})
            self.begin()
            self.event(method="notifications/tools/list_changed")
            self.event(id=request["id"], result=done("grown"))
        elif name == "breaks":
            self.begin()
            self.event(method="notifications/message", params={"level": "info", "data": "soon"})
        elif name == "confused":
            self.respond({"id": "of another"}, result=done("not yours"))
        elif name == "fails":
            self.send_response(500)
            self.send_header("content-length", "0")
            self.end_headers()
        elif name == "slow":
            self.begin()
            print("slow call received", flush=True)
            try:
                while True:
                    self.wfile.write(b": still here\n\n")
                    time.sleep(0.05)
            except OSError:
                print("client disconnected", flush=True)
        else:
            self.respond(request, 400, error={"code": -32602, "message": "no such tool"})


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
