"""The no-op tool as a server of the Python SDK or of FastMCP, and FastMCP as a proxy, each in its fastest setting.

Prints the address, and then that there is no token, as the servers of the benchmark do.

    server.py sdk
    server.py fastmcp
    server.py fastmcp-proxy URL
    server.py fastmcp-proxy COMMAND ARGUMENT
"""

import socket
import sys
from typing import Any

import uvicorn


def noop(city: str, days: int) -> dict[str, Any]:
    """Returns its arguments"""
    return {"city": city, "days": days}


def sdk():
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("noop", log_level="ERROR")
    server.add_tool(noop)
    return server.streamable_http_app(json_response=True, stateless_http=True)


def fastmcp():
    from fastmcp import FastMCP

    server = FastMCP("noop")
    server.tool(noop)
    return server.http_app(json_response=True, stateless_http=True)


def fastmcp_proxy(target: str, *words: str):
    from fastmcp.client.transports import StdioTransport
    from fastmcp.server import create_proxy

    behind = StdioTransport(target, list(words)) if words else target
    return create_proxy(behind).http_app(json_response=True, stateless_http=True)


def main() -> None:
    kinds = {"sdk": sdk, "fastmcp": fastmcp, "fastmcp-proxy": fastmcp_proxy}
    app = kinds[sys.argv[1]](*sys.argv[2:])
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print("{}:{}\nnone".format(*listener.getsockname()), flush=True)
    config = uvicorn.Config(
        app, loop="uvloop", http="httptools", ws="none", lifespan="on", log_level="error", access_log=False
    )
    uvicorn.Server(config).run(sockets=[listener])


main()
