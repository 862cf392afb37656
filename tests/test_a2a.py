"""Payloads in A2A messages and artifacts, with the official SDK over real HTTP: JSON-RPC and HTTP+JSON."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from a2a.client import A2AClientError, Client, ClientConfig, create_client
from a2a.server.agent_execution import RequestContext
from a2a.server.tasks import TaskUpdater
from a2a.types import AgentCard, Message, Part, Role, SendMessageRequest, Task, TaskState
from a2a.utils.errors import A2AError
from google.protobuf.json_format import ParseDict

import silp
from silp.carriage.a2a import URI, SilpExecutor, SilpInterceptor, declare, ir_parts, part_of, problem_in
from silp.carriage.envelope import Unwrapped
from silp.errors import ErrorCode, SilpError

PATH = Path(__file__).parents[1] / "examples" / "a2a_http.py"
spec = importlib.util.spec_from_file_location("a2a_http", PATH)
assert spec
assert spec.loader
example: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)

IR = silp.decode("if budget<=500: book(room,city=Bern) # priority=2, floor:=3, big:=1152921504606846977, half:=0.5")
BINDINGS = pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])


class Echo(SilpExecutor):
    """Answers with the IRs that it got, or with the text."""

    async def run(self, payloads: list[Unwrapped], context: RequestContext, task: TaskUpdater) -> None:
        if payloads:
            await task.add_artifact([part_of(opened.ir, frontend=opened.frontend) for opened in payloads])
        else:
            await task.add_artifact([Part(text=f"plain: {context.get_user_input()}")])
        await task.complete()


@asynccontextmanager
async def agent(binding: str = "JSONRPC", *, declared: bool = True, **options: Any) -> AsyncIterator[AgentCard]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    card: AgentCard = example.card_of(port, binding)
    del card.capabilities.extensions[:]
    if declared:
        declare(card, **options)
    config = uvicorn.Config(example.application(card, Echo(card)), port=port, log_level="error")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield card
    finally:
        server.should_exit = True
        await serving


async def ask(card: AgentCard, *parts: Part, interceptors: Any = None) -> Task:
    bindings = [card.supported_interfaces[0].protocol_binding]
    config = ClientConfig(streaming=False, supported_protocol_bindings=bindings)
    chosen = [SilpInterceptor()] if interceptors is None else interceptors
    client: Client = await create_client(card, config, interceptors=chosen)
    try:
        message = Message(message_id="1", role=Role.ROLE_USER, parts=parts)
        responses = [response async for response in client.send_message(SendMessageRequest(message=message))]
        return responses[-1].task
    finally:
        await client.close()


def raw_part(envelope: Any, text: str = "book") -> Part:
    part = Part(text=text)
    ParseDict({URI: envelope}, part.metadata)
    return part


@BINDINGS
def test_irs_go_there_and_back_with_their_integers(binding: str) -> None:
    async def work() -> None:
        async with agent(binding) as card:
            task = await ask(card, part_of(IR), Part(text="and this"), part_of(IR, frontend="math"))
            assert task.status.state == TaskState.TASK_STATE_COMPLETED
            opened = ir_parts(task.artifacts[0])
            assert [each.frontend for each in opened] == ["code", "math"]
            for each in opened:
                assert silp.equivalent(each.ir, IR)
                assert type(each.ir.meta.model_extra["floor"]) is int  # type: ignore[index]

    asyncio.run(work())


@BINDINGS
def test_an_agent_without_the_extension_gets_english_or_nothing(binding: str) -> None:
    async def work() -> None:
        async with agent(binding, declared=False) as card:
            task = await ask(card, part_of(IR))
            assert task.artifacts[0].parts[0].text == f"plain: {silp.compile(IR, 'natural')}"
            with pytest.raises(SilpError, match="does not declare") as refused:
                await ask(card, part_of(IR), interceptors=[SilpInterceptor(prose=False)])
            assert refused.value.code is ErrorCode.UNSUPPORTED_FRONTEND

    asyncio.run(work())


@BINDINGS
def test_a_client_without_the_extension_talks_to_an_agent_that_has_it(binding: str) -> None:
    async def work() -> None:
        async with agent(binding) as card:
            task = await ask(card, Part(text="a room in Bern"), interceptors=[])
            assert task.artifacts[0].parts[0].text == "plain: a room in Bern"

    asyncio.run(work())


@BINDINGS
def test_a_required_extension_is_enforced(binding: str) -> None:
    async def work() -> None:
        async with agent(binding, required=True) as card:
            assert (await ask(card, part_of(IR))).status.state == TaskState.TASK_STATE_COMPLETED
            with pytest.raises((A2AClientError, A2AError)) as refused:
                await ask(card, Part(text="a room in Bern"), interceptors=[])
            assert URI in str(refused.value) or "xtension" in str(refused.value)

    asyncio.run(work())


def test_the_header_is_echoed_to_those_who_activate_the_extension() -> None:
    async def work() -> None:
        async with agent() as card, httpx.AsyncClient() as client:
            url = card.supported_interfaces[0].url
            body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}}
            for header, echoed in (
                ({"A2A-Extensions": f"x:y, {URI}"}, URI),
                ({"A2A-Extensions": "x:y"}, None),
                ({}, None),
            ):
                response = await client.post(url, json=body, headers={**header, "A2A-Version": "1.0"})
                assert response.headers.get("A2A-Extensions") == echoed

    asyncio.run(work())


@pytest.mark.parametrize(
    ("envelope", "code", "offset"),
    [
        ({"silp_encoding": "code", "silp_payload": "book(room"}, "invalid_syntax", 9),
        ({"silp_encoding": "code"}, "invalid_syntax", None),
        ({}, "invalid_syntax", None),
        ("book(room)", "invalid_syntax", None),
        ({"silp_encoding": "code", "silp_payload": "book(a)", "silp_meta": "{"}, "invalid_syntax", 1),
        ({"silp_encoding": "natural", "silp_payload": "Book."}, "decode_failed", None),
        (
            {"silp_encoding": "code", "silp_payload": "book(a)", "silp_meta": {"silp": "v9"}},
            "unsupported_version",
            None,
        ),
    ],
)
@BINDINGS
def test_a_payload_that_cannot_be_used_is_a_failed_task(
    binding: str, envelope: Any, code: str, offset: int | None
) -> None:
    async def work() -> None:
        async with agent(binding) as card:
            task = await ask(card, raw_part(envelope), interceptors=[])
            assert task.status.state == TaskState.TASK_STATE_FAILED
            problem = problem_in(task)
            assert problem is not None
            assert (str(problem.code), problem.offset) == (code, offset)
            assert json.loads(task.status.message.parts[0].text)["code"] == code

    asyncio.run(work())


def test_a_text_that_says_something_else_than_the_payload_is_reported() -> None:
    honest, lying = part_of(IR), part_of(silp.decode("cancel(everything)"))
    lying.text = honest.text
    opened = ir_parts(Message(parts=[honest, lying]))
    assert [[finding.code for finding in each.findings] for each in opened] == [[], ["text_differs"]]
    strict = silp.Policy(strict=True)
    assert len(ir_parts(Message(parts=[honest]), policy=strict)) == 1
    with pytest.raises(SilpError, match="is not what its payload says"):
        ir_parts(Message(parts=[lying]), policy=strict)


def test_other_tasks_have_no_problem_with_a_payload() -> None:
    assert problem_in(Task()) is None
    failed = Task()
    failed.status.state = TaskState.TASK_STATE_FAILED
    assert problem_in(failed) is None
    ParseDict({URI: {"code": "other"}}, failed.status.message.metadata)
    assert problem_in(failed) is None


def test_payloads_are_written_in_a_frontend_that_the_agent_reads() -> None:
    async def work() -> None:
        async with agent(frontends=["json"]) as card:
            task = await ask(card, part_of(IR))
            assert ir_parts(task.artifacts[0])[0].frontend == "json"
            assert silp.equivalent(ir_parts(task.artifacts[0])[0].ir, IR)
        async with agent(frontends=["other"]) as card:
            with pytest.raises(SilpError, match="no common frontend"):
                await ask(card, part_of(IR))

    asyncio.run(work())


def test_two_agents_talk_over_http() -> None:
    done = subprocess.run([sys.executable, PATH], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "asks: If budget is at most 500, book room, city Bern, nights 2.",
        "the hotel answers in code: notify(booked,for=book)",
    ]


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "a2a.client", None)
    monkeypatch.delitem(sys.modules, "silp.carriage.a2a")
    with pytest.raises(ImportError, match=r"silp-codec\[a2a\]"):
        __import__("silp.carriage.a2a")
