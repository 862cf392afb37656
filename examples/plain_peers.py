"""A peer without SILP on either side: nobody breaks, and nobody is sent what they cannot read.

Run it: python examples/plain_peers.py
"""

from __future__ import annotations

import asyncio

from mcp import Client
from mcp.server.mcpserver import MCPServer

import silp
from silp.carriage.mcp import SilpClient, SilpServer

IR = silp.decode("if !rain(t+1): book(room,city=Bern)")


async def main() -> None:
    plain = MCPServer("plain hotel")

    @plain.tool()
    def ask(wish: str) -> str:
        return f"somebody will read: {wish}"

    async with Client(plain) as client:
        result = await SilpClient(client).call_tool("ask", IR, prose_in="wish")
        print(f"SILP client, plain server: {result.content[0].model_dump()['text']}")

    payloads = SilpServer()
    server = MCPServer("hotel", extensions=[payloads])
    payloads.attach(server)

    @server.tool()
    def book(city: str) -> str:
        return f"booked in {city}"

    async with Client(server) as client:
        result = await client.call_tool("book", {"city": "Rome"})
        print(f"plain client, SILP server: {result.content[0].model_dump()['text']}")


if __name__ == "__main__":
    asyncio.run(main())
