"""Payloads in AIDIP: the server application, the client, both shapes of bodies and of answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import pytest
import schemathesis
from fastapi import FastAPI, HTTPException, Request
from hypothesis import settings

import silp
from silp.carriage.aidip import Agent, AidipClient, AidipError, make_app
from silp.carriage.envelope import Unwrapped, unwrap, wrap
from silp.errors import ErrorCode, Finding, SilpError

IR = silp.decode("if budget<=500: book(room,city=Bern) # priority=2")


def book(opened: Unwrapped | None, inputs: dict[str, Any]) -> Any:
    return {"asked": silp.compile(opened.ir) if opened else None, "inputs": inputs}


async def answer(opened: Unwrapped | None, inputs: dict[str, Any]) -> Any:
    return silp.decode("notify(booked)")


def burn(opened: Unwrapped | None, inputs: dict[str, Any]) -> Any:
    raise RuntimeError("a secret of the agent")


AGENTS = (
    Agent("hotel", book, "Grand Hotel", "books rooms", ["book"], ["de", "en"], ["travel"]),
    Agent("motel", book, "Motel", "books rooms, cheaply", ["book"], ["en"], ["travel"], frontends=["json"]),
    Agent("clerk", answer, "Clerk", "answers in kind"),
    Agent("stove", burn),
)


def run(work: Callable[[httpx.AsyncClient], Coroutine[Any, Any, Any]], app: Any = None) -> Any:
    async def connected() -> Any:
        transport = httpx.ASGITransport(app or make_app(AGENTS), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://agents") as http:
            return await work(http)

    return asyncio.run(connected())


def test_an_ir_reaches_the_agent_with_other_inputs_beside_it() -> None:
    async def work(http: httpx.AsyncClient) -> None:
        client = AidipClient(http)
        for operation in (None, "book"):
            outputs = await client.invoke("hotel", IR, {"wishes": "quiet"}, operation=operation)
            assert outputs == {"asked": silp.compile(IR), "inputs": {"wishes": "quiet"}}
        assert (await client.invoke("motel", IR))["asked"] == silp.compile(IR)
        opened = unwrap(await client.invoke("clerk", IR))
        assert opened is not None
        assert silp.compile(opened.ir) == "notify(booked)"

    run(work)


@pytest.mark.parametrize(
    "body",
    [
        {**wrap(IR), "wishes": "quiet"},
        {"inputs": {**wrap(IR), "wishes": "quiet"}},
        {"operation": "book", "inputs": {**wrap(IR), "wishes": "quiet"}},
        {"operation": "book", **wrap(IR), "wishes": "quiet"},
    ],
)
def test_both_shapes_of_a_body_are_read(body: dict[str, Any]) -> None:
    async def work(http: httpx.AsyncClient) -> None:
        response = await http.post("/agents/hotel/invoke", json=body)
        assert response.status_code == 200
        assert response.json() == {"outputs": {"asked": silp.compile(IR), "inputs": {"wishes": "quiet"}}}

    run(work)


def test_inputs_without_a_payload_are_inputs() -> None:
    async def work(http: httpx.AsyncClient) -> None:
        for body, inputs in (
            ({"inputs": {"a": 1}}, {"a": 1}),
            ({"a": 1}, {"a": 1}),
            ({"inputs": "x"}, {"inputs": "x"}),
        ):
            response = await http.post("/agents/hotel/invoke", json=body)
            assert response.json() == {"outputs": {"asked": None, "inputs": inputs}}

    run(work)


@pytest.mark.parametrize(
    ("content", "status", "code", "words"),
    [
        ('{"silp_encoding":"code","silp_payload":"book("}', 400, "InvalidInput", "expected an argument"),
        ('{"silp_encoding":"code"}', 400, "InvalidInput", "half an envelope"),
        ('{"a":1,"a":2}', 400, "InvalidInput", "stands twice in one object"),
        ('{"a":NaN}', 400, "InvalidInput", "expected a JSON value"),
        ("{", 400, "InvalidInput", "body"),
        ("[]", 400, "InvalidInput", "body"),
        ('{"operation":5}', 400, "InvalidInput", "operation"),
        (b"\xff", 400, "InvalidInput", ""),
    ],
)
def test_a_body_that_cannot_be_used_is_an_error_of_the_client(content: Any, status: int, code: str, words: str) -> None:
    async def work(http: httpx.AsyncClient) -> None:
        headers = {"content-type": "application/json"}
        response = await http.post("/agents/hotel/invoke", content=content, headers=headers)
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (status, code)
        assert words in error["message"]
        if "silp_encoding" in str(content):
            assert error["silp"]["line"].startswith("//error code=invalid_syntax")

    run(work)


def test_other_errors_have_their_status_and_tell_no_secrets() -> None:
    async def work(http: httpx.AsyncClient) -> None:
        client = AidipClient(http)
        with pytest.raises(AidipError) as missing:
            await client.describe("nobody")
        assert (missing.value.status, missing.value.code) == (404, "NotFound")
        with pytest.raises(AidipError) as failed:
            await client.invoke("stove", IR)
        assert (failed.value.status, failed.value.code) == (500, "InternalError")
        assert "secret" not in str(failed.value)
        wrong = await http.put("/agents/search")
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "MethodNotAllowed")
        assert "allow" in wrong.headers

    run(work)


def test_agents_are_found_by_words_and_filters() -> None:
    async def work(http: httpx.AsyncClient) -> None:
        client = AidipClient(http)

        async def ids(query: str, **options: Any) -> list[str]:
            return [agent["id"] for agent in await client.search(query, **options)]

        assert await ids("BOOKS rooms") == ["hotel", "motel"]
        assert await ids("rooms", filters={"supported_languages": ["de"]}) == ["hotel"]
        assert await ids("", filters={"tags": ["travel"], "capabilities": ["book"]}, top=1, skip=1) == ["motel"]
        assert await ids("nothing of the kind") == []
        whole = await http.post("/agents/search", json={"query": "rooms", "top": 1})
        assert {key: whole.json()[key] for key in ("count", "top", "skip", "query")} == {
            "count": 2, "top": 1, "skip": 0, "query": "rooms",
        }  # fmt: skip
        found = (await client.search("grand"))[0]
        assert found["metadata"]["silp"] == {"versions": ["v1"], "frontends": ["code", "math", "json"]}

    run(work)


class OnlyJson:
    def scan(self, ir: silp.SilpIR, text: str) -> list[Finding]:
        return [] if text.startswith("{") else [Finding("not_json", "$", "only json is read here")]


def test_a_payload_that_fails_is_sent_again_one_step_down() -> None:
    policy = silp.Policy(strict=True, verbs=None, scanners=(OnlyJson(),))

    async def work(http: httpx.AsyncClient) -> None:
        assert (await AidipClient(http).invoke("hotel", IR))["asked"] == silp.compile(IR)

    run(work, make_app(AGENTS, policy=policy))

    async def hopeless(http: httpx.AsyncClient) -> None:
        with pytest.raises(SilpError, match="!BOOK is not among the verbs") as refused:
            await AidipClient(http).invoke("hotel", IR)
        assert len(refused.value.findings) == 3

    run(hopeless, make_app(AGENTS, policy=silp.Policy(verbs=frozenset({"!EMAIL"}))))


def old_server(inputs: dict[str, Any]) -> FastAPI:
    """Return a server of an older draft: bare arrays, flat inputs, agents without SILP."""
    app = FastAPI()

    @app.post("/agents/search")
    def search() -> list[dict[str, Any]]:
        return [{"id": "old"}]

    @app.get("/agents/old")
    def describe() -> dict[str, Any]:
        return {"id": "old", "inputs": {"type": "object", "properties": inputs}}

    @app.post("/agents/old/invoke")
    async def invoke(request: Request) -> Any:
        return await request.json()

    return app


def test_an_older_server_without_silp_gets_prose_in_the_shape_of_its_schema() -> None:
    async def work(http: httpx.AsyncClient) -> Any:
        client = AidipClient(http)
        assert await client.search("x") == [{"id": "old"}]
        with pytest.raises(SilpError, match="does not say that it speaks SILP") as refused:
            await client.invoke("old", IR)
        assert refused.value.code is ErrorCode.UNSUPPORTED_FRONTEND
        return await client.invoke("old", IR, {"n": 1}, prose_in="task")

    prose = silp.compile(IR, "natural")
    assert run(work, old_server({"task": {}, "n": {}})) == {"n": 1, "task": prose}
    assert run(work, old_server({"inputs": {}})) == {"inputs": {"n": 1, "task": prose}}


def test_authentication_is_a_dependency_of_the_deployer() -> None:
    def authenticate(request: Request) -> None:
        if request.headers.get("authorization") != "Bearer right":
            raise HTTPException(401, "who are you?", {"WWW-Authenticate": "Bearer"})

    from fastapi import Depends

    async def work(http: httpx.AsyncClient) -> None:
        refused = await http.get("/agents/hotel")
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "Unauthorized")
        assert refused.headers["www-authenticate"] == "Bearer"
        http.headers["authorization"] = "Bearer right"
        assert (await http.get("/agents/hotel")).status_code == 200

    run(work, make_app(AGENTS, dependencies=[Depends(authenticate)]))


schema = schemathesis.openapi.from_asgi("/openapi.json", make_app(AGENTS[:3]))


@schema.parametrize()
@settings(max_examples=60, deadline=None, derandomize=True)
def test_the_application_is_what_its_openapi_says(case: Any) -> None:
    case.call_and_validate()
