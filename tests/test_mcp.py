"""Payloads in MCP tool calls, with the official SDK: every transport, and both generations of the protocol."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.server.mcpserver import MCPServer

import silp
from silp.carriage.envelope import wrap
from silp.carriage.mcp import IDENTIFIER, SilpClient, SilpServer, arguments_of
from silp.carriage.mcp_server import make_server
from silp.errors import ErrorCode, Finding, SilpError

Mode = Literal["auto", "legacy"]
MODES: tuple[Mode, ...] = ("auto", "legacy")
EXAMPLES = Path(__file__).parents[1] / "examples"
IR = silp.decode("if budget<=500: book(room,city=Bern,nights=2) # priority=2")


def hotel(silp_server: SilpServer | None = None) -> MCPServer[Any]:
    server = MCPServer("hotel", extensions=[silp_server] if silp_server else [])
    if silp_server:
        silp_server.attach(server)

    @server.tool()
    def book(city: str, nights: int = 1, wishes: str = "") -> str:
        return f"{nights} nights in {city}{wishes}"

    @server.tool()
    def explain(task: silp.SilpIR, loud: bool = False) -> str:
        text = silp.compile(task)
        return text.upper() if loud else text

    @server.tool()
    def fail() -> str:
        raise ValueError("the hotel burned down")

    return server


def run(work: Callable[[Client], Coroutine[Any, Any, Any]], server: Any, mode: Mode = "auto") -> Any:
    async def connected() -> Any:
        outcome: Any = None
        async with Client(server, mode=mode) as client:
            try:
                outcome = await work(client)
            except (SilpError, MCPError) as error:  # raised outside of the SDK's task group, which would wrap it
                outcome = error
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return asyncio.run(connected())


def text_of(result: Any) -> str:
    return str(result.content[0].text)


@pytest.mark.parametrize("mode", MODES)
def test_a_tool_gets_the_ir_and_the_arguments_of_the_same_names(mode: Mode) -> None:
    async def work(client: Client) -> None:
        caller = SilpClient(client)
        assert text_of(await caller.call_tool("book", IR)) == "2 nights in Bern"
        assert caller.frontend == "code"
        assert text_of(await caller.call_tool("book", IR, {"wishes": "!"})) == "2 nights in Bern!"
        explained = await caller.call_tool("explain", IR, {"loud": False})
        assert silp.equivalent(silp.decode(text_of(explained)), IR)

    run(work, hotel(SilpServer()), mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_payload_is_taken_from_three_places_and_calls_without_one_go_on(mode: Mode) -> None:
    envelope = wrap(IR)

    async def work(client: Client) -> None:
        for arguments, meta in (({**envelope, "wishes": "!"}, None), ({"wishes": "!"}, {IDENTIFIER: envelope})):
            result = await client.call_tool("book", arguments, meta=meta)  # type: ignore[arg-type]
            assert text_of(result) == "2 nights in Bern!"
        assert text_of(await client.call_tool("book", {"city": "Rome"})) == "1 nights in Rome"
        beside = {"name": "book", "arguments": {"wishes": "!"}, **envelope}
        raw = await client.session._dispatcher.send_raw_request("tools/call", _stamped(client, beside), {})
        assert raw["content"][0]["text"] == "2 nights in Bern!"

    run(work, hotel(SilpServer()), mode)


def _stamped(client: Client, params: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {"method": "tools/call", "params": params}
    client.session._stamp(data, {})
    return dict(data["params"])


@pytest.mark.parametrize(
    ("envelope", "code", "offset"),
    [
        ({"silp_encoding": "code", "silp_payload": "book(room"}, "invalid_syntax", 9),
        ({"silp_encoding": "code"}, "invalid_syntax", None),
        ({"silp_encoding": "nope", "silp_payload": "book()"}, "unsupported_frontend", None),
        ({"silp_encoding": "natural", "silp_payload": "Book."}, "decode_failed", None),
        ({"silp_encoding": "code", "silp_payload": "escalate(x)"}, "decode_failed", None),
        (
            {"silp_encoding": "code", "silp_payload": "book(a)", "silp_meta": {"silp": "v9"}},
            "unsupported_version",
            None,
        ),
        ({"silp_encoding": "code", "silp_payload": "book(city=a,city=b)"}, "invalid_syntax", None),
        ({"silp_encoding": 5, "silp_payload": {}}, "invalid_syntax", None),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_a_payload_that_cannot_be_used_is_a_tool_error_and_never_a_protocol_error(
    envelope: dict[str, Any], code: str, offset: int | None, mode: Mode
) -> None:
    async def work(client: Client) -> None:
        for arguments, meta in ((envelope, None), ({"city": "Rome"}, {IDENTIFIER: envelope})):
            result = await client.call_tool("book", arguments, meta=meta)  # type: ignore[arg-type]
            assert result.is_error
            data = json.loads(text_of(result))
            assert (data["code"], data.get("offset")) == (code, offset)
            assert result.meta is not None
            assert result.meta[IDENTIFIER]["error"] == data
            assert result.meta[IDENTIFIER]["message"].startswith(f"//error code={code}")

    run(work, hotel(SilpServer()), mode)


@pytest.mark.parametrize("params", [{"arguments": []}, {"arguments": "silp_payload"}])
def test_malformed_calls_are_the_business_of_the_sdk(params: dict[str, Any]) -> None:
    async def work(client: Client) -> None:
        stamped = _stamped(client, {"name": "book", "arguments": {"city": "Rome"}})
        with pytest.raises(MCPError) as refused:
            await client.session._dispatcher.send_raw_request("tools/call", {**stamped, **params}, {})
        assert refused.value.error.code in (-32602, -32600)

    run(work, hotel(SilpServer()))


def test_contradictions_are_refused() -> None:
    async def work(client: Client) -> None:
        nothing = await client.call_tool("book", {"city": "Rome"}, meta={IDENTIFIER: "start()"})  # type: ignore[arg-type]
        assert "is no object with the fields of an envelope" in text_of(nothing)
        twice = await client.call_tool("book", {**wrap(IR)}, meta={IDENTIFIER: wrap(IR)})  # type: ignore[arg-type]
        assert "a payload in arguments and one in _meta" in text_of(twice)
        differs = await client.call_tool("book", {**wrap(IR), "city": "Rome"})
        assert "the argument city stands beside the payload with another value" in text_of(differs)
        same = await client.call_tool("book", {**wrap(IR), "city": "Bern"})
        assert text_of(same) == "2 nights in Bern"

    run(work, hotel(SilpServer()))


@pytest.mark.parametrize("mode", MODES)
def test_a_server_without_silp_gets_prose_or_nothing(mode: Mode) -> None:
    async def work(client: Client) -> None:
        caller = SilpClient(client)
        with pytest.raises(SilpError, match="does not speak SILP") as refused:
            await caller.call_tool("book", IR, {"city": "Bern"})
        assert refused.value.code is ErrorCode.UNSUPPORTED_FRONTEND
        result = await caller.call_tool("book", IR, {"city": "Bern"}, prose_in="wishes")
        assert text_of(result) == "1 nights in Bern" + silp.compile(IR, "natural")

    run(work, hotel(), mode)


@pytest.mark.parametrize("mode", MODES)
def test_the_server_names_what_it_prefers_and_peers_may_have_nothing_in_common(mode: Mode) -> None:
    async def prefers(client: Client) -> None:
        caller = SilpClient(client)
        assert await caller.negotiate() == "json"
        assert text_of(await caller.call_tool("book", IR)) == "2 nights in Bern"

    async def nothing(client: Client) -> None:
        with pytest.raises(SilpError, match="no common frontend") as refused:
            await SilpClient(client, frontends=["math"]).call_tool("book", IR, prose_in="wishes")
        assert refused.value.code is ErrorCode.UNSUPPORTED_FRONTEND

    run(prefers, hotel(SilpServer(preferred="json")), mode)
    run(nothing, hotel(SilpServer(frontends=["json"])), mode)


class OnlyJson:
    """A scanner that finds fault with every payload that is not json."""

    def scan(self, ir: silp.SilpIR, text: str) -> Iterator[Finding]:
        if not text.startswith("{"):
            yield Finding("not_json", "$", "only json is read here")


def test_a_payload_that_fails_is_sent_again_one_step_down() -> None:
    policy = silp.Policy(strict=True, verbs=None, scanners=(OnlyJson(),))

    async def work(client: Client) -> None:
        caller = SilpClient(client)
        assert text_of(await caller.call_tool("book", IR)) == "2 nights in Bern"
        assert caller.frontend == "json"

    async def exhausted(client: Client) -> None:
        with pytest.raises(SilpError, match="in every frontend that both sides speak") as refused:
            await SilpClient(client, frontends=["code", "math"]).call_tool("book", IR)
        assert [finding.message.partition(":")[0] for finding in refused.value.findings] == ["code", "math"]

    run(work, hotel(SilpServer(policy=policy)))
    run(exhausted, hotel(SilpServer(policy=policy)))


def test_other_errors_stay_what_they_are() -> None:
    async def work(client: Client) -> None:
        caller = SilpClient(client)
        for tool in ("fail", "none"):
            failed = await caller.call_tool(tool, silp.decode("book(x)"))
            assert failed.is_error
            assert IDENTIFIER not in (failed.meta or {})

    run(work, hotel(SilpServer()))


def test_the_extension_advertises_what_the_server_speaks() -> None:
    async def work(client: Client) -> Any:
        return client.server_capabilities.extensions

    advertised = run(work, hotel(SilpServer(preferred="math")))
    assert advertised == {IDENTIFIER: {"frontends": ["code", "math", "json"], "preferred": "math"}}


def test_arguments_are_those_of_the_primary_call() -> None:
    assert arguments_of(silp.decode("book(a,t+1,city=Bern); email(bob,subject=x)")) == {"time": "t+1", "city": "Bern"}
    with pytest.raises(SilpError, match="city stands twice"):
        arguments_of(silp.decode("book(city=a,city=b)"))


# --- The server of our own


@pytest.fixture(scope="module")
def http_server() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "silp", "mcp", "--http", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.05)
    yield f"http://127.0.0.1:{port}/mcp"
    process.terminate()
    process.wait(10)


@pytest.fixture(params=["memory", "stdio", "http"])
def codec(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return make_server()
    if request.param == "stdio":
        return StdioServerParameters(command=sys.executable, args=["-m", "silp", "mcp"])
    return request.getfixturevalue("http_server")


@pytest.mark.parametrize("mode", MODES)
def test_the_codec_is_a_server_over_every_transport(codec: Any, mode: Mode) -> None:
    async def call(client: Client, tool: str, **arguments: Any) -> Any:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, text_of(result)
        return result.structured_content

    async def work(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "compile", "decode", "validate", "convert", "inspect", "explain",
        }  # fmt: skip
        payload = silp.compile(IR)
        compiled = await call(client, "compile", ir=IR.to_dict())
        assert compiled == {"frontend": "code", "payload": payload, "req_id": silp.req_id(payload)}
        assert silp.equivalent(await call(client, "decode", payload=payload), IR)
        assert (await call(client, "validate", ir={"intent": "!NOPE", "meta": {"req_id": "0000"}}))["ok"] is False
        converted = await call(client, "convert", payload=payload, target="math")
        assert converted["payload"] == silp.compile(IR, "math")
        inspected = await call(client, "inspect", text="st\u0430rt(hi\u200bke)")
        assert [found["code_point"] for found in inspected["found"]] == ["U+0430", "U+200B"]
        assert inspected["ir"]["intent"] == "!START"
        assert await call(client, "explain", payload=payload) == {"result": silp.compile(IR, "natural")}
        failed = await client.call_tool("decode", {"payload": "start("})
        assert failed.is_error
        assert "expected an argument" in text_of(failed)
        schema = await client.read_resource("silp://schema")
        assert json.loads(schema.contents[0].text) == silp.json_schema()  # type: ignore[union-attr]
        notations = await client.read_resource("silp://notations")
        assert "```abnf" in notations.contents[0].text  # type: ignore[union-attr]
        prompt = await client.get_prompt("write_payloads")
        assert "start(hike)\n  means: start hike." in prompt.messages[0].content.text  # type: ignore[union-attr]

    run(work, codec, mode)


def test_two_agents_talk_over_stdio() -> None:
    done = subprocess.run([sys.executable, EXAMPLES / "mcp_stdio.py"], capture_output=True, text=True, check=True)
    agreed, broken = done.stdout.splitlines()
    assert agreed.startswith("agreed on json; the hotel says: booked 2 nights in Bern; asked: If budget")
    assert broken.startswith('a broken payload: {"code": "invalid_syntax"')


def test_the_examples_with_plain_peers_and_with_degradation_print_what_they_should() -> None:
    def output(name: str) -> list[str]:
        command = [sys.executable, str(EXAMPLES / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    assert output("plain_peers.py") == [
        "SILP client, plain server: somebody will read: If not rain at t+1, book room, city Bern.",
        "plain client, SILP server: booked in Rome",
    ]
    assert output("degraded.py") == [
        "refused: if budget<=500: book(room,city=Bern)",
        "refused: budget≤500 ⇒ book(room,city=Bern)",
        "understood in json: If budget is at most 500, book room, city Bern.",
    ]


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for hidden in ("mcp", "mcp.server.mcpserver"):
        monkeypatch.setitem(sys.modules, hidden, None)
    for module in ("silp.carriage.mcp", "silp.carriage.mcp_server"):
        monkeypatch.delitem(sys.modules, module)
        with pytest.raises(ImportError, match=r"silp-codec\[mcp\]"):
            __import__(module)
