"""A degraded exchange: the server finds fault with every notation but json, and the client steps down to it.

Run it: python examples/degraded.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from mcp import Client
from mcp.server.mcpserver import MCPServer

import silp
from silp.carriage.mcp import SilpClient, SilpServer


class OnlyJson:
    """A scanner of this server's own: it finds fault with payloads that are not json."""

    def scan(self, ir: silp.SilpIR, text: str) -> Iterator[silp.Finding]:
        if not text.startswith("{"):
            print(f"refused: {text.splitlines()[0]}")
            yield silp.Finding("not_json", "$", "only json is read here")


async def main() -> None:
    payloads = SilpServer(policy=silp.Policy(strict=True, scanners=(OnlyJson(),)))
    server = MCPServer("hotel", extensions=[payloads])
    payloads.attach(server)

    @server.tool()
    def book(task: silp.SilpIR) -> str:
        return silp.compile(task, "natural")

    async with Client(server) as client:
        caller = SilpClient(client)
        result = await caller.call_tool("book", silp.decode("if budget<=500: book(room,city=Bern)"))
        print(f"understood in {caller.frontend}: {result.content[0].model_dump()['text']}")


if __name__ == "__main__":
    asyncio.run(main())
