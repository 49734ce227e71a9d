"""Runs one agent with 50 tool calls against a local model server; prints the seconds of each run as JSON.

usage: agent_loops.py langgraph|pydantic_ai|openai_agents BASE_URL RUNS
"""

import asyncio
import json
import os
import sys
import time

os.environ.setdefault("LANGSMITH_TRACING", "false")
PEER, BASE_URL, RUNS = sys.argv[1], sys.argv[2], int(sys.argv[3])
QUESTION = "Call the tool until you are done."
LIMIT = 200


def noop(city: str, days: int = 1) -> dict:
    """Returns its arguments."""
    return {"city": city, "days": days}


def langgraph():
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="instant", base_url=BASE_URL, api_key="none", max_retries=0)
    agent = create_agent(model, [noop])

    async def run():
        message = {"messages": [{"role": "user", "content": QUESTION}]}
        result = await agent.ainvoke(message, {"recursion_limit": LIMIT})
        return result["messages"][-1].content

    return run


def pydantic_ai():
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.usage import UsageLimits

    model = OpenAIChatModel("instant", provider=OpenAIProvider(base_url=BASE_URL, api_key="none"))
    agent = Agent(model, tools=[noop])

    async def run():
        result = await agent.run(QUESTION, usage_limits=UsageLimits(request_limit=LIMIT))
        return result.output

    return run


def openai_agents():
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=BASE_URL, api_key="none", max_retries=0)
    model = OpenAIChatCompletionsModel(model="instant", openai_client=client)
    agent = Agent(name="bench", model=model, tools=[function_tool(noop)])

    async def run():
        result = await Runner.run(agent, QUESTION, max_turns=LIMIT)
        return result.final_output

    return run


async def main():
    run = {"langgraph": langgraph, "pydantic_ai": pydantic_ai, "openai_agents": openai_agents}[PEER]()
    times = []
    for _ in range(RUNS + 1):
        started = time.perf_counter()
        answer = await run()
        times.append(time.perf_counter() - started)
        if answer != "done after 50 calls":
            sys.exit(f"unexpected answer: {answer!r}")
    # The first run imports and compiles.
    print(json.dumps(times[1:]))


asyncio.run(main())
