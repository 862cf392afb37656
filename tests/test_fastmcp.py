"""Payloads in the tool calls of a FastMCP server: its own client, and the official SDK's over stdio."""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from mcp import Client as OfficialClient
from mcp import StdioServerParameters

import silp
from silp.carriage.envelope import wrap
from silp.carriage.fastmcp import attach
from silp.carriage.mcp import IDENTIFIER, SilpClient
from silp.errors import SilpError

IR = silp.decode("if budget<=500: book(room,city=Bern,nights=2) # priority=2")


def hotel(**options: Any) -> FastMCP[Any]:
    server: FastMCP[Any] = FastMCP("hotel")
    attach(server, **options)

    @server.tool
    def book(city: str, nights: int = 1, task: silp.SilpIR | None = None) -> str:
        return f"{nights} nights in {city}" + (f": {silp.compile(task)}" if task else "")

    return server


def test_a_tool_gets_the_ir_and_the_arguments_of_the_same_names() -> None:
    async def work() -> None:
        async with Client(hotel()) as client:
            expected = f"2 nights in Bern: {silp.compile(IR)}"
            inside = await client.call_tool("book", wrap(IR))
            assert inside.data == expected
            carried = await client.call_tool("book", {}, meta={IDENTIFIER: wrap(IR)})
            assert carried.data == expected
            assert (await client.call_tool("book", {"city": "Rome"})).data == "1 nights in Rome"

    asyncio.run(work())


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"silp_encoding": "code", "silp_payload": "book("}, "invalid_syntax"),
        ({"silp_encoding": "code", "city": "Rome"}, "invalid_syntax"),
        ({**wrap(IR), "city": "Rome"}, "invalid_syntax"),
        ({"silp_encoding": "code", "silp_payload": "escalate()"}, "decode_failed"),
    ],
)
def test_a_payload_that_cannot_be_used_is_a_tool_error(arguments: dict[str, Any], code: str) -> None:
    async def work() -> None:
        async with Client(hotel()) as client:
            result = await client.call_tool("book", arguments, raise_on_error=False)
            assert result.is_error
            assert json.loads(result.content[0].model_dump()["text"])["code"] == code
            assert (result.meta or {})[IDENTIFIER]["message"].startswith(f"//error code={code}")

    asyncio.run(work())


def test_a_preference_that_cannot_be_met_is_refused() -> None:
    with pytest.raises(SilpError, match="there is no frontend"):
        hotel(preferred="nope")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_client_of_the_official_sdk_negotiates_with_it(mode: Any) -> None:
    script = textwrap.dedent("""
        from fastmcp import FastMCP
        from silp.carriage.fastmcp import attach
        server = FastMCP("hotel")
        attach(server, preferred="json")
        @server.tool
        def book(city: str, nights: int) -> str:
            return f"{nights} nights in {city}"
        server.run(show_banner=False)
    """)

    async def work() -> None:
        command = StdioServerParameters(command=sys.executable, args=["-c", script])
        async with OfficialClient(command, mode=mode) as client:
            caller = SilpClient(client)
            result = await caller.call_tool("book", IR)
            assert result.content[0].model_dump()["text"] == "2 nights in Bern"
            assert caller.frontend == "json"

    asyncio.run(work())
