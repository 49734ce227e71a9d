"""Calls one tool that does nothing through LangChain and Pydantic-AI, and prints the median nanoseconds of a call.

Each library is called in the way that it is fastest: LangChain with a plain function, Pydantic-AI with an async one.
"""

import asyncio
import json
import statistics
import time

# Short batches: many are over before another process gets the processor.
ROUNDS, BATCH = 500, 5


def forecast(city: str, days: int) -> int:
    """Counts letters and days."""
    return len(city) + days


async def forecast_async(city: str, days: int) -> int:
    """Counts letters and days."""
    return len(city) + days


def median(batch) -> int:
    """Times a batch of calls ROUNDS times, after a warm-up."""
    batch()
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter_ns()
        batch()
        times.append((time.perf_counter_ns() - started) / BATCH)
    return round(statistics.median(times))


def plain() -> int:
    def batch():
        for _ in range(BATCH):
            assert forecast(city="Berlin", days=3) == 9

    return median(batch)


def langchain() -> int:
    from langchain_core.tools import StructuredTool

    tool = StructuredTool.from_function(forecast)

    def batch():
        for _ in range(BATCH):
            assert tool.invoke({"city": "Berlin", "days": 3}) == 9

    return median(batch)


def pydantic_ai() -> int:
    from pydantic_ai import FunctionToolset, RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.usage import RunUsage

    loop = asyncio.new_event_loop()
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    manager = loop.run_until_complete(ToolManager(FunctionToolset([forecast_async])).for_run_step(context))

    async def calls():
        for _ in range(BATCH):
            part = ToolCallPart("forecast_async", {"city": "Berlin", "days": 3})
            assert await manager.handle_call(part) == 9

    return median(lambda: loop.run_until_complete(calls()))


def main():
    times = {}
    for way in (plain, pydantic_ai, langchain):
        try:
            times[way.__name__] = way()
        except ImportError:
            pass
    print(json.dumps(times))


main()
