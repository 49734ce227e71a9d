"""Logs in to haft with FastMCP, which knows nothing but the URL; prints what it reads as JSON.

The argument is the URL of the MCP server. A line `OPEN URL` asks for somebody who opens the URL in a browser; the next line
of standard input is the address to which the browser was led, which is a server of FastMCP.
"""

import asyncio
import json
import sys
import threading
import time
import urllib.request
import webbrowser

from fastmcp import Client


def follow():
    address = sys.stdin.readline().strip()
    # The server of FastMCP starts after the browser.
    for _ in range(200):
        try:
            urllib.request.urlopen(address, timeout=10).read()
            return
        except OSError:
            time.sleep(0.05)


def open_page(url):
    print("OPEN", url, flush=True)
    threading.Thread(target=follow, daemon=True).start()


webbrowser.open = open_page


async def main():
    async with Client(sys.argv[1], auth="oauth") as client:
        tools = await client.list_tools()
        result = await client.call_tool("worker", {"n": 21})
    read = {"tools": sorted(tool.name for tool in tools), "text": result.content[0].text}
    print("READ", json.dumps(read), flush=True)


asyncio.run(main())
