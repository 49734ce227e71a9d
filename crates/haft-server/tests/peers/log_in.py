"""Logs in to haft with the official Python SDK, which knows nothing but the URL; prints what it reads as JSON.

The argument is the URL of the MCP server. A line `OPEN URL` asks for somebody who opens the URL in a browser; the next line
of standard input is the address to which the browser was led.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlparse

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata


class Storage:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def open_page(url):
    print("OPEN", url, flush=True)


async def callback():
    line = await asyncio.to_thread(sys.stdin.readline)
    query = {name: values[0] for name, values in parse_qs(urlparse(line.strip()).query).items()}
    return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))


async def main():
    storage = Storage()
    metadata = OAuthClientMetadata(
        client_name="Python SDK",
        redirect_uris=["http://127.0.0.1:7777/callback"],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    url = sys.argv[1]
    provider = OAuthClientProvider(url, metadata, storage, open_page, callback)
    async with httpx2.AsyncClient(auth=provider, timeout=30) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            tools = await client.list_tools()
            result = await client.call_tool("worker", {"n": 21})
    read = {
        "tools": sorted(tool.name for tool in tools.tools),
        "text": result.content[0].text,
        "refreshes": storage.tokens.refresh_token is not None,
        "scope": storage.tokens.scope,
    }
    print("READ", json.dumps(read), flush=True)


asyncio.run(main())
