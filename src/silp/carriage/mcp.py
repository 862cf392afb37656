"""Payloads in MCP tool calls (protocol section 7.2), with the official SDK. Needs the extra `silp-codec[mcp]`.

Lives here: `SilpServer`, an extension and a middleware that let the tools of a server be called with payloads, and
`SilpClient`, which calls them. Not here: the envelope (envelope), negotiation (negotiation).

A payload travels in `_meta`, under the name of the extension, since that is what MCP keeps free for such things; a
server also takes it from the arguments or from beside them. A peer without SILP never sees one: the client asks first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NoReturn, cast

from silp.carriage.envelope import FIELDS, Unwrapped, unwrap, wrap
from silp.errors import ErrorCode, SilpError
from silp.frontends import compile, list_frontends
from silp.ir import SilpIR, as_ir
from silp.negotiation import CHAIN, Agreed, Failed, Peer, Problem, Reply
from silp.receiving import Policy

try:
    from mcp import Client, MCPError
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.extension import Extension, MethodBinding
    from mcp.server.mcpserver import MCPServer
    from mcp_types import (
        METHOD_NOT_FOUND,
        CallToolResult,
        Request,
        RequestParams,
        RequestParamsMeta,
        Result,
        TextContent,
    )
except ImportError as error:
    raise ImportError("silp.carriage.mcp needs the extra: pip install 'silp-codec[mcp]'") from error

__all__ = [
    "IDENTIFIER",
    "LOSSLESS",
    "PING_METHOD",
    "SilpClient",
    "SilpServer",
    "arguments_of",
    "error_result",
    "fill",
    "take",
]

IDENTIFIER = "org.silp/payload"
"""The name of the extension, and the key of its data in `_meta`."""

PING_METHOD: Final = "silp/ping"
"""The method that answers a ping: MCP's own ping is gone in its stateless revision, and never carried anything."""

LOSSLESS = CHAIN[:-1]
"""What a tool call can carry: a tool has no use for prose."""


class _TextParams(RequestParams):
    text: str


class _TextResult(Result):
    text: str


class _Ping(Request[_TextParams, Literal["silp/ping"]]):
    method: Literal["silp/ping"] = PING_METHOD
    params: _TextParams


class SilpServer(Extension):
    """Lets the tools of a server be called with payloads; calls without one go on as they are.

    ```
    silp = SilpServer()
    server = MCPServer("hotel", extensions=[silp])
    silp.attach(server)
    ```

    A tool gets the arguments that stand beside the payload. A parameter that is a SilpIR gets the IR; any other that is
    missing gets the value of the keyword argument of the same name. A payload that cannot be used is answered with a
    result whose `isError` is set: its text is JSON, and its `_meta` has the same error and the `//error` message.
    """

    identifier = IDENTIFIER

    def __init__(
        self, *, frontends: Sequence[str] = LOSSLESS, preferred: str | None = None, policy: Policy | None = None
    ) -> None:
        """Raises SilpError (unsupported_frontend) for a frontend that there is not, or a preference for another."""
        self._frontends, self._preferred, self._policy = tuple(frontends), preferred, policy
        self._peer()
        self._server: MCPServer[Any] | None = None

    def attach(self, server: MCPServer[Any]) -> None:
        """Read payloads out of the calls of this server's tools."""
        self._server = server
        server.middleware.append(self._on_message)

    def settings(self) -> dict[str, Any]:
        """Return what the server advertises: frontends, the preferred one, the version."""
        preferred = {} if self._preferred is None else {"preferred": self._preferred}
        return {"frontends": list(self._frontends), **preferred}

    def methods(self) -> list[MethodBinding]:
        """Return the method that answers pings."""
        return [MethodBinding(PING_METHOD, _TextParams, self._on_ping)]

    def _peer(self) -> Peer:
        """Return a peer for one ping: this side never sends payloads, so it has nothing to remember."""
        return Peer(self._frontends, preferred=self._preferred)

    async def _on_ping(self, ctx: ServerRequestContext[Any, Any], params: _TextParams) -> _TextResult:  # noqa: ARG002
        events = self._peer().receive(params.text)
        return _TextResult(text=next((event.text for event in events if isinstance(event, Reply)), ""))

    async def _on_message(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        params = ctx.params
        if ctx.method != "tools/call" or not isinstance(params, Mapping):
            return await call_next(ctx)
        try:
            without, opened = take(params, self._policy)
            if opened is None:
                return await call_next(ctx)
            tools = await self._server.list_tools() if self._server else []
            schema = next((tool.input_schema for tool in tools if tool.name == params.get("name")), {})
            filled = fill(dict(without.get("arguments") or {}), schema, opened.ir)
        except SilpError as error:
            return error_result(error, params)
        return await call_next(replace(ctx, params={**without, "arguments": filled}))


class SilpClient:
    """Calls the tools of a server with IRs, in whatever frontend both sides speak.

    ```
    async with Client("http://127.0.0.1:8000/mcp") as client:
        result = await SilpClient(client).call_tool("book", ir)
    ```
    """

    def __init__(self, client: Client, *, frontends: Sequence[str] = LOSSLESS) -> None:
        """`client` is a connected client of the SDK."""
        self._client = client
        self._peer = Peer(frontends, meta="omit")

    @property
    def frontend(self) -> str | None:
        """Return the frontend that is spoken, None before the first call."""
        return self._peer.frontend

    async def negotiate(self) -> str | None:
        """Ping the server, and return the frontend that was agreed, None if it does not speak SILP.

        Raises SilpError: unsupported_frontend or unsupported_version if the two have nothing in common.
        """
        advertised = self._client.server_capabilities.extensions
        if advertised is not None and IDENTIFIER not in advertised:
            return None
        ping = _Ping(params=_TextParams(text=self._peer.ping()))
        try:
            answer = await self._client.session.send_request(ping, _TextResult)
        except MCPError as error:
            if error.error.code != METHOD_NOT_FOUND:
                raise
            return None  # older revisions advertise no extensions: only asking tells
        for event in self._peer.receive(answer.text):
            if isinstance(event, Failed):
                raise event.error
            if isinstance(event, Agreed):
                return event.frontend
        raise SilpError(ErrorCode.DECODE_FAILED, "the server did not answer the ping with a pong")

    async def call_tool(
        self,
        name: str,
        ir: SilpIR | Mapping[str, Any],
        arguments: Mapping[str, Any] | None = None,
        *,
        prose_in: str | None = None,
    ) -> CallToolResult:
        """Call a tool with an IR, and with `arguments` beside it, and return the result as the SDK does.

        The first call negotiates. A payload that the server cannot use is sent again in the next frontend of the chain.
        To a server that does not speak SILP, the IR goes as prose in the argument `prose_in`. Raises SilpError:
        unsupported_frontend if there is no such argument, and what the server says of the last payload otherwise.
        """
        checked = as_ir(ir)
        if self._peer.frontend is None and await self.negotiate() is None:
            if prose_in is None:
                message = "the server does not speak SILP: call it without a payload, or name an argument for prose"
                raise SilpError(ErrorCode.UNSUPPORTED_FRONTEND, message)
            return await self._client.call_tool(name, {**(arguments or {}), prose_in: compile(checked, "natural")})
        frontend, _ = self._peer.send(checked)
        while True:
            envelope = wrap(checked, frontend=frontend)
            result = await self._client.call_tool(
                name, dict(arguments or {}), meta=cast("RequestParamsMeta", {IDENTIFIER: envelope})
            )
            problem = _problem_in(result)
            if problem is None:
                self._peer.settle(envelope["silp_meta"]["req_id"])
                return result
            frontend = self._peer.step_down(problem)


def arguments_of(ir: SilpIR) -> dict[str, str]:
    """Return the keyword arguments of the primary call of an IR, by id; raises SilpError for one that stands twice."""
    arguments: dict[str, str] = {}
    for entity in ir.entities:
        if entity.id == "act" or entity.action not in (None, ir.intent):
            continue
        if entity.id in arguments:
            _refuse(f"the argument {entity.id} stands twice in the payload: a tool takes one value")
        arguments[entity.id] = entity.value
    return arguments


def fill(arguments: dict[str, Any], schema: Mapping[str, Any], ir: SilpIR) -> dict[str, Any]:
    """Return the arguments of a tool with what an IR says for the parameters in its schema; raises SilpError."""
    own = arguments_of(ir)
    for parameter, kind in schema.get("properties", {}).items():
        if _is_ir(kind):
            arguments.setdefault(parameter, ir.to_dict())
        elif parameter in own and arguments.setdefault(parameter, own[parameter]) != own[parameter]:
            _refuse(f"the argument {parameter} stands beside the payload with another value")
    return arguments


def take(params: Mapping[str, Any], policy: Policy | None) -> tuple[dict[str, Any], Unwrapped | None]:
    """Return the params of a call without the envelope, and what that holds; None if there is none."""
    places = list(_places(params))
    carried = _carried(params)
    if carried is not None and not isinstance(carried, Mapping):
        _refuse(f"_meta[{IDENTIFIER!r}] is no object with the fields of an envelope")
    if not places:
        return dict(params), None
    if len(places) > 1:
        _refuse(f"there is a payload in {places[0][0]} and one in {places[1][0]}: send one")
    place, envelope = places[0]
    opened = unwrap(envelope, policy=policy)
    rest = opened.rest if opened else {}
    if place == "params":
        return rest, opened
    return ({**params, "arguments": rest} if place == "arguments" else dict(params)), opened


def _places(params: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield where in the params of a call an envelope stands, and the object that has its fields."""
    containers = (("arguments", params.get("arguments")), ("params", params), ("_meta", _carried(params)))
    for place, value in containers:
        if isinstance(value, Mapping) and any(name in value for name in FIELDS):
            yield place, value


def _carried(params: Mapping[str, Any]) -> Any:
    meta = params.get("_meta")
    return meta.get(IDENTIFIER) if isinstance(meta, Mapping) else None


def _is_ir(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    kinds = [schema, *schema.get("anyOf", ()), *schema.get("allOf", ())]
    return any(isinstance(kind, Mapping) and str(kind.get("$ref")).endswith("/SilpIR") for kind in kinds)


def error_result(error: SilpError, params: Mapping[str, Any]) -> CallToolResult:
    """Return the result that tells a client why its payload could not be used."""
    _, envelope = next(_places(params), ("", {}))
    frontend, payload = (envelope.get(name) for name in FIELDS[:2])
    spoken = frontend if isinstance(frontend, str) and frontend in list_frontends() else None
    problem = Problem.of(error, frontend=spoken, payload=payload if isinstance(payload, str) else None)
    data = error.to_dict()
    return CallToolResult(
        content=[TextContent(type="text", text=json.dumps(data, ensure_ascii=False))],
        is_error=True,
        _meta={IDENTIFIER: {"error": data, "message": problem.text}},
    )


def _problem_in(result: CallToolResult) -> str | None:
    """Return the `//error` message of a result that says that the payload could not be used."""
    data = (result.meta or {}).get(IDENTIFIER) if result.is_error else None
    message = data.get("message") if isinstance(data, Mapping) else None
    return message if isinstance(message, str) else None


def _refuse(message: str) -> NoReturn:
    raise SilpError(ErrorCode.INVALID_SYNTAX, message)
