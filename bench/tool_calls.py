"""MCP tool calls with and without payloads, as a ratio in the same run, in memory and over stdio."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import MCPServer

import silp
from silp.carriage.mcp import SilpClient, SilpServer

ROUNDS, CALLS = 15, 30
IR = silp.decode("book(room,city=Bern,nights=2)")


def hotel() -> MCPServer[Any]:
    payloads = SilpServer()
    server = MCPServer("hotel", extensions=[payloads])
    payloads.attach(server)

    @server.tool()
    def book(city: str, nights: int) -> str:
        return f"{nights} nights in {city}"

    return server


async def compare(name: str, server: Any) -> None:
    async with Client(server) as client:
        caller = SilpClient(client)
        await caller.negotiate()
        ratios, plain_best = [], float("inf")
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for _ in range(CALLS):
                await client.call_tool("book", {"city": "Bern", "nights": 2})
            middle = time.perf_counter()
            for _ in range(CALLS):
                await caller.call_tool("book", IR)
            ratios.append((time.perf_counter() - middle) / (middle - start))
            plain_best = min(plain_best, (middle - start) / CALLS)
    ratio = statistics.median(ratios)
    verdict = "ok" if ratio <= 1.05 else "MISSED"
    print(f"  {name:8}{1 / plain_best:10,.0f} plain calls/s {ratio:8.2f}x  target 1.05  {verdict}")


async def main() -> None:
    print("MCP tool calls with a payload, against the same calls without")
    await compare("memory", hotel())
    await compare("stdio", StdioServerParameters(command=sys.executable, args=[__file__, "serve"]))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        hotel().run()
    else:
        asyncio.run(main())
