"""Calls the tool `data` of haft with the official Python SDK, whose client opens pages and shows forms.

The arguments are the URL of the MCP server, a token, and how the client chooses the version of the protocol. A line
`ASK QUESTION` shows a question of the server; the next line of standard input is the answer. A line `READ RESULT` ends it.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult


async def ask(_context, params):
    print("ASK", params.model_dump_json(by_alias=True, exclude_none=True), flush=True)
    answer = json.loads(await asyncio.to_thread(sys.stdin.readline))
    return ElicitResult(action=answer["action"], content=answer.get("content"))


async def call(url, token, mode):
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=120) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=ask) as client:
            version = client.session.protocol_version
            try:
                result = await client.call_tool("data", {})
                read = {"error": result.is_error, "text": result.content[0].text}
            except RuntimeError as error:
                read = {"error": True, "text": str(error)}
            print("READ", json.dumps(read | {"version": version}), flush=True)


asyncio.run(call(*sys.argv[1:]))
