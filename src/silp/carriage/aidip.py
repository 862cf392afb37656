"""Payloads in AIDIP, discovery and invocation of agents over HTTP (protocol section 7.1). Needs `silp-codec[http]`.

Lives here: a server application for agents of your own, and a client. TLS and authentication are the deployer's: see
`make_app`. Not here: the envelope (envelope), degradation (negotiation).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

from silp.carriage.envelope import ENCODING, PAYLOAD, Unwrapped, unwrap, wrap
from silp.errors import ErrorCode, SilpError
from silp.frontends import compile, list_frontends
from silp.ir import SILP_VERSION, SilpIR, as_ir
from silp.negotiation import CHAIN, Failed, Peer, Pong, Problem
from silp.receiving import Policy
from silp.strict_json import parse_json

try:
    import httpx
    from fastapi import Depends, FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
    from starlette.exceptions import HTTPException
except ImportError as error:
    raise ImportError("silp.carriage.aidip needs the extra: pip install 'silp-codec[http]'") from error

__all__ = ["Agent", "AidipClient", "AidipError", "make_app"]

_LOSSLESS = CHAIN[:-1]


@dataclass(frozen=True)
class Agent:
    """An agent that `make_app` serves.

    `run` is called, and awaited if need be, with what the envelope held, None without one, and the other inputs. It
    returns JSON data, or an IR, which is sent in the frontend of the request.
    """

    id: str
    run: Callable[[Unwrapped | None, dict[str, Any]], Any]
    name: str = ""
    description: str = ""
    capabilities: Sequence[str] = ()
    supported_languages: Sequence[str] = ()
    tags: Sequence[str] = ()
    frontends: Sequence[str] = _LOSSLESS

    def describe(self) -> dict[str, Any]:
        """Return what others are told of the agent."""
        return {
            "id": self.id,
            "name": self.name or self.id,
            "description": self.description,
            "capabilities": list(self.capabilities),
            "supported_languages": list(self.supported_languages),
            "tags": list(self.tags),
            "metadata": {"silp": {"versions": [SILP_VERSION], "frontends": list(self.frontends)}},
        }


def _number(value: object) -> object:
    """Refuse what pydantic would take for a number and JSON Schema does not; 2.0 is an integer for both."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError("not a number")  # noqa: TRY004
    return value


_Count = Annotated[int, BeforeValidator(_number)]


class _Filters(BaseModel):
    capabilities: list[str] = []
    supported_languages: list[str] = []
    tags: list[str] = []


class _Search(BaseModel):
    query: str = ""
    filters: _Filters = Field(default_factory=_Filters)
    top: _Count = Field(10, ge=1, le=100)
    skip: _Count = Field(0, ge=0)


class _Results(BaseModel):
    results: list[dict[str, Any]]
    count: int
    top: int
    skip: int
    query: str


class _Invocation(BaseModel):
    """`{"operation": ..., "inputs": {...}}`, or the inputs themselves."""

    model_config = ConfigDict(extra="allow")
    operation: str | None = None


class _Outputs(BaseModel):
    outputs: Any


class _ErrorDetail(BaseModel):
    model_config = ConfigDict(extra="allow")
    code: str
    message: str


class _Error(BaseModel):
    error: _ErrorDetail


_BAD = {"model": _Error, "description": "The request cannot be used"}
_NONE = {"model": _Error, "description": "There is no such agent"}
_BROKEN = {"model": _Error, "description": "The agent failed"}


def make_app(
    agents: Iterable[Agent], *, policy: Policy | None = None, dependencies: Sequence[Any] | None = None
) -> FastAPI:
    """Return an application with POST /agents/search, POST /agents/{id}/invoke and GET /agents/{id}.

    It authenticates nobody: put it behind a proxy that does, or name FastAPI dependencies that raise HTTPException.
    Errors have a real 4xx or 5xx status and `{"error": {"code", "message"}}`; those of a payload have `silp` beside,
    the error and its `//error` line.
    """
    served = {agent.id: agent for agent in agents}
    app = FastAPI(title="SILP agents", dependencies=[*(dependencies or ()), Depends(_strict_body)])
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(SilpError, _on_silp_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_failure)

    @app.post("/agents/search", responses={400: _BAD})
    def search(body: _Search) -> _Results:
        """Find agents by words and filters."""
        found = [agent.describe() for agent in served.values() if _matches(agent, body)]
        page = found[body.skip : body.skip + body.top]
        return _Results(results=page, count=len(found), top=body.top, skip=body.skip, query=body.query)

    @app.get("/agents/{agent_id}", responses={400: _BAD, 404: _NONE})
    def describe(agent_id: str) -> dict[str, Any]:
        """Describe one agent."""
        return _find(served, agent_id).describe()

    @app.post("/agents/{agent_id}/invoke", responses={400: _BAD, 404: _NONE, 500: _BROKEN}, response_model=_Outputs)
    async def invoke(agent_id: str, body: _Invocation) -> Any:
        """Give an agent its inputs, with or without a payload among them."""
        agent, inputs = _find(served, agent_id), _inputs(body.model_extra or {})
        try:
            opened = unwrap(inputs, policy=policy)
            if opened and opened.frontend not in agent.frontends:
                message = f"{opened.frontend} is not spoken here: use one of {', '.join(agent.frontends)}"
                raise SilpError(ErrorCode.UNSUPPORTED_FRONTEND, message)  # noqa: TRY301
        except SilpError as error:
            return _payload_error(error, inputs)
        outputs = agent.run(opened, inputs if opened is None else opened.rest)
        outputs = await outputs if inspect.isawaitable(outputs) else outputs
        if isinstance(outputs, SilpIR):
            outputs = wrap(outputs, frontend=opened.frontend if opened else "code")
        return {"outputs": outputs}

    return app


def _find(served: Mapping[str, Agent], agent_id: str) -> Agent:
    if agent_id not in served:
        raise HTTPException(404, "there is no such agent: search for one")
    return served[agent_id]


def _matches(agent: Agent, search: _Search) -> bool:
    text = " ".join([agent.id, agent.name, agent.description, *agent.capabilities, *agent.tags]).casefold()
    return all(word in text for word in search.query.casefold().split()) and all(
        set(wanted) <= set(having)
        for wanted, having in (
            (search.filters.capabilities, agent.capabilities),
            (search.filters.supported_languages, agent.supported_languages),
            (search.filters.tags, agent.tags),
        )
    )


def _inputs(body: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs of an invocation in either shape."""
    nested = body.get("inputs")
    return nested if isinstance(nested, dict) and len(body) == 1 else body


async def _strict_body(request: Request) -> None:
    """Refuse a body that two readers of JSON might read in two ways."""
    body = await request.body()
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise SilpError(ErrorCode.INVALID_SYNTAX, f"the body is not UTF-8: byte {error.start}") from None
    if text:
        parse_json(text)


def _error(status: int, code: str, message: str, **more: Any) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message, **more}}, status)


def _payload_error(error: SilpError, inputs: Mapping[str, Any]) -> JSONResponse:
    frontend, payload = inputs.get(ENCODING), inputs.get(PAYLOAD)
    problem = Problem.of(
        error,
        frontend=frontend if isinstance(frontend, str) and frontend in list_frontends() else None,
        payload=payload if isinstance(payload, str) else None,
    )
    return _error(400, "InvalidInput", error.message, silp={**error.to_dict(), "line": problem.text})


async def _on_silp_error(_: Request, error: Exception) -> JSONResponse:
    return _error(400, "InvalidInput", str(error))


async def _on_invalid(_: Request, error: Exception) -> JSONResponse:
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    places = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
    return _error(400, "InvalidInput", places or "the request cannot be used")


async def _on_http_error(_: Request, error: Exception) -> JSONResponse:
    status, detail = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "")
    code = "InvalidInput" if status == HTTPStatus.BAD_REQUEST else HTTPStatus(status).phrase.title().replace(" ", "")
    response = _error(status, code, str(detail))
    response.headers.update((error.headers or {}) if isinstance(error, HTTPException) else {})
    return response


async def _on_failure(_: Request, error: Exception) -> JSONResponse:  # noqa: ARG001
    return _error(500, "InternalError", "the agent failed")


class AidipError(Exception):
    """What a server answered instead of a result: its `status` and `code`, and the message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message = status, code, message


class AidipClient:
    """Finds agents and invokes them with IRs, in whatever frontend they speak.

    ```
    async with httpx.AsyncClient(base_url="https://agents.example.com") as http:
        outputs = await AidipClient(http).invoke("hotel", ir)
    ```
    """

    def __init__(self, http: httpx.AsyncClient) -> None:
        """`http` knows the address of the server, and whatever authenticates to it."""
        self._http = http

    async def search(
        self, query: str, *, filters: Mapping[str, Sequence[str]] | None = None, top: int = 10, skip: int = 0
    ) -> list[dict[str, Any]]:
        """Return the descriptions of agents; the filters are capabilities, supported_languages and tags.

        Raises AidipError for an error of the server.
        """
        body = {"query": query, "filters": dict(filters or {}), "top": top, "skip": skip}
        answer = await self._request("POST", "/agents/search", body)
        results = answer.get("results") if isinstance(answer, dict) else answer  # older drafts: the bare array
        return [each for each in results or () if isinstance(each, dict)]

    async def describe(self, agent_id: str) -> dict[str, Any]:
        """Return the description of an agent; raises AidipError."""
        answer = await self._request("GET", f"/agents/{quote(agent_id, safe='')}")
        return answer if isinstance(answer, dict) else {}

    async def invoke(
        self,
        agent_id: str,
        ir: SilpIR | Mapping[str, Any],
        inputs: Mapping[str, Any] | None = None,
        *,
        operation: str | None = None,
        prose_in: str | None = None,
    ) -> Any:
        """Return the outputs of an agent for an IR, with other inputs beside it.

        A payload that the agent cannot use is sent again in the next frontend of the chain. To an agent whose metadata
        does not say that it speaks SILP, the IR goes as prose in the input `prose_in`. Raises SilpError:
        unsupported_frontend if there is no such input or no common frontend, and what the agent says of the last
        payload; AidipError for any other error.
        """
        checked, others = as_ir(ir), dict(inputs or {})
        described = await self.describe(agent_id)
        peer = _peer_for(described)
        if peer is None:
            if prose_in is None:
                message = "the agent does not say that it speaks SILP: name an input for prose"
                raise SilpError(ErrorCode.UNSUPPORTED_FRONTEND, message)
            others[prose_in] = compile(checked, "natural")
            return await self._invoke(agent_id, described, others, operation)
        frontend, _ = peer.send(checked)
        while True:
            try:
                return await self._invoke(agent_id, described, wrap(checked, others, frontend=frontend), operation)
            except _RefusedError as refused:
                frontend = peer.step_down(refused.line)

    async def _invoke(
        self, agent_id: str, described: Mapping[str, Any], inputs: dict[str, Any], operation: str | None
    ) -> Any:
        properties = described.get("inputs", {}).get("properties", {}) if "inputs" in described else {"inputs": {}}
        body = {"inputs": inputs} if "inputs" in properties else inputs
        body = body if operation is None else {"operation": operation, **body}
        answer = await self._request("POST", f"/agents/{quote(agent_id, safe='')}/invoke", body)
        return answer["outputs"] if isinstance(answer, dict) and "outputs" in answer else answer

    async def _request(self, method: str, path: str, body: Any = None) -> Any:
        response = await self._http.request(method, path, json=body)
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if response.is_success:
            return answer
        error = answer.get("error") if isinstance(answer, dict) else None
        error = error if isinstance(error, dict) else {}
        silp = error.get("silp")
        if isinstance(silp, dict) and isinstance(silp.get("line"), str):
            raise _RefusedError(silp["line"])
        raise AidipError(
            response.status_code, str(error.get("code", "")), str(error.get("message", response.text[:200]))
        )


class _RefusedError(Exception):
    def __init__(self, line: str) -> None:
        super().__init__(line)
        self.line = line


def _peer_for(described: Mapping[str, Any]) -> Peer | None:
    """Return a peer that has agreed on a frontend with an agent, None if that does not speak SILP; raises SilpError."""
    metadata = described.get("metadata")
    silp = metadata.get("silp") if isinstance(metadata, Mapping) else None
    if not isinstance(silp, Mapping):
        return None
    peer = Peer(_LOSSLESS, meta="omit")
    peer.ping()
    pong = Pong(tuple(silp.get("versions") or (SILP_VERSION,)), tuple(silp.get("frontends") or _LOSSLESS))
    for event in peer.receive(pong.text):
        if isinstance(event, Failed):
            raise event.error
    return peer if peer.frontend else None
