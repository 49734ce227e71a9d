"""The official Python client against haft: lists and calls, and prints what came as JSON.

    client.py MODE http URL TOKEN WHAT
    client.py MODE stdio WHAT COMMAND [ARGUMENT ...]

MODE is `legacy` (sessions) or `auto` (stateless where the server can). WHAT is `tools`, a JSON object of tool names
and arguments, or `conformance`, for everything that the example `conformance_server` offers. The name `_answer` is no
tool: it makes the client support elicitation, and answer every question with that content (`null` declines).
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult


def shape(result):
    """The kinds of content, and what can be compared."""
    blocks = [block.model_dump(mode="json", exclude_none=True, by_alias=True) for block in result.content]
    for block in blocks:
        if "data" in block:
            block["data"] = len(block["data"])
    return {"error": bool(result.is_error), "content": blocks, "structured": result.structured_content}


async def conformance(client, seen):
    progress = []

    async def on_progress(done, total, _message):
        progress.append([done, total])

    plain = [
        "test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource",
        "test_multiple_content_types", "test_error_handling", "test_header_arguments",
    ]
    for name in plain:
        arguments = {"region": "eu"} if name == "test_header_arguments" else {}
        seen["calls"][name] = shape(await client.call_tool(name, arguments))
    await client.call_tool("test_tool_with_progress", {}, progress_callback=on_progress)
    seen["progress"] = progress
    seen["resources"] = [str(one.uri) for one in (await client.list_resources()).resources]
    read = await client.read_resource("test://static-text")
    seen["read"] = read.contents[0].text
    seen["prompts"] = [one.name for one in (await client.list_prompts()).prompts]
    prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
    seen["prompt"] = prompt.messages[0].content.text


def options(what, questions):
    """The options of a client that answers questions, or of one that cannot."""
    answers = {} if what == "conformance" else json.loads(what)
    if "_answer" not in answers:
        return {}

    async def on_question(_context, params):
        questions.append(params.message)
        content = answers["_answer"]
        if content is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=content)

    return {"elicitation_callback": on_question}


async def use(client, what, questions):
    tools = (await client.list_tools()).tools
    seen = {"version": client.protocol_version, "tools": sorted(tool.name for tool in tools), "calls": {}}
    if what == "conformance":
        await conformance(client, seen)
    else:
        for name, arguments in json.loads(what).items():
            if name == "_answer":
                continue
            seen["calls"][name] = shape(await client.call_tool(name, arguments))
    seen["questions"] = questions
    print(json.dumps(seen))


async def main():
    mode, transport, *rest = sys.argv[1:]
    questions = []
    if transport == "stdio":
        what, command, *arguments = rest
        # The environment of this process is what the test made for haft.
        import os

        server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
        async with Client(server, mode=mode, **options(what, questions)) as client:
            await use(client, what, questions)
        return
    url, token, what = rest
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http:
        connection = streamable_http_client(url, http_client=http)
        async with Client(connection, mode=mode, **options(what, questions)) as client:
            await use(client, what, questions)


asyncio.run(main())
