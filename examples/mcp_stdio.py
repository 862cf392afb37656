"""Two agents over MCP stdio: this program starts itself as a server, and calls its tool with payloads.

Run it: python examples/mcp_stdio.py
"""

from __future__ import annotations

import asyncio
import sys

from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import MCPServer

import silp
from silp.carriage.mcp import SilpClient, SilpServer


def hotel() -> MCPServer:
    payloads = SilpServer(preferred="json")
    server = MCPServer("hotel", extensions=[payloads])
    payloads.attach(server)

    @server.tool()
    def book(city: str, nights: int, task: silp.SilpIR) -> str:
        """Book a room."""
        return f"booked {nights} nights in {city}; asked: {silp.compile(task, 'natural')}"

    return server


async def travel_agent() -> None:
    this_program = StdioServerParameters(command=sys.executable, args=[__file__, "serve"])
    async with Client(this_program) as client:
        hotel_agent = SilpClient(client)
        ir = silp.decode("if budget<=500: book(room,city=Bern,nights=2) else: notify(boss)")
        result = await hotel_agent.call_tool("book", ir)
        print(f"agreed on {hotel_agent.frontend}; the hotel says: {result.structured_content['result']}")
        refused = await client.call_tool("book", {"silp_encoding": "code", "silp_payload": "book(room,city=Bern"})
        print(f"a broken payload: {refused.content[0].model_dump()['text']}")


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        hotel().run()
    else:
        asyncio.run(travel_agent())
