"""The codec as an MCP server: `silp mcp`. Needs the extra `silp-codec[mcp]`.

Lives here: its tools, resources and prompt. Not here: payloads in the calls of other servers' tools (mcp).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from importlib.resources import files
from typing import Any, Literal, TypeVar

import silp
from silp.errors import SilpError, shown
from silp.frontends import compile, decode
from silp.ir import json_schema, req_id
from silp.receiving import inspect, receive
from silp.validation import validate
from silp.verbs import APPROVED

try:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
except ImportError as error:
    raise ImportError("silp.carriage.mcp_server needs the extra: pip install 'silp-codec[mcp]'") from error

__all__ = ["make_server"]

_INSTRUCTIONS = (
    "SILP payloads are one-line texts that carry a task: intent, arguments, conditions, alternatives. Use compile to "
    "write one from an IR (JSON, see silp://schema), decode to read one, and inspect before you trust one from outside."
)

_EXAMPLES = (
    "start(hike)",
    "if !rain(t+1): start(hike) else: start(cards@indoor)",
    'email(zhangsan,subject="the plan, revised"); notify(lisi)',
    "if budget<=500 and loc(me,Beijing,t+1am): book(hotel,city=Shanghai,nights=2) # priority=2",
)

Data = dict[str, Any]
Function = TypeVar("Function", bound=Callable[..., Any])


def _tool(server: MCPServer[Any], name: str) -> Callable[[Function], Function]:
    """Return a decorator that makes a function a tool, whose errors a model can read: the SDK hides all but its own."""

    def add(function: Function) -> Function:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except SilpError as error:
                raise ToolError(str(error)) from None

        server.tool(name=name)(run)
        return function

    return add


def make_server() -> MCPServer[Any]:
    """Return the server: tools compile, decode, validate, convert, inspect and explain, resources, and a prompt."""
    server = MCPServer("silp", version=silp.__version__, instructions=_INSTRUCTIONS)

    @_tool(server, "compile")
    def compile_tool(ir: Data, frontend: str = "code", meta: Literal["inline", "omit"] = "inline") -> Data:
        """Write the payload of an IR. `frontend` is code, math, json, natural or nl_json."""
        payload = compile(ir, frontend, meta=meta)
        return {"frontend": frontend, "payload": payload, "req_id": req_id(payload)}

    @_tool(server, "decode")
    def decode_tool(payload: str, frontend: str = "code") -> Data:
        """Read a payload exactly, and return its IR. `frontend` is code, math or json."""
        return decode(payload, frontend).to_dict()

    @_tool(server, "validate")
    def validate_tool(ir: Data, policy: Literal["strict", "advisory"] = "strict") -> Data:
        """Check an IR against the schema and the rules beyond it, and return errors and warnings with their paths."""
        return validate(ir, policy=policy).to_dict()

    @_tool(server, "convert")
    def convert_tool(payload: str, source: str = "code", target: str = "json") -> Data:
        """Write what a payload in the frontend `source` says in the frontend `target`."""
        converted = compile(decode(payload, source), target)
        return {"frontend": target, "payload": converted, "req_id": req_id(converted)}

    @_tool(server, "inspect")
    def inspect_tool(text: str, frontend: str | None = None) -> Data:
        """Show hidden characters and look-alikes in a text, and what a careful receiver makes of it."""
        found = [finding.to_dict() for finding in inspect(text, frontend)]
        try:
            received = receive(text, frontend)
        except SilpError as error:
            return {"text": shown(text), "found": found, "refused": error.to_dict()}
        findings = [finding.to_dict() for finding in received.findings]
        return {"text": shown(text), "found": found, "ir": received.ir.to_dict(), "findings": findings}

    @_tool(server, "explain")
    def explain_tool(payload: str, frontend: str = "code") -> str:
        """Say in English what a payload asks for."""
        return compile(decode(payload, frontend), "natural")

    @server.resource("silp://schema", mime_type="application/schema+json")
    def schema() -> str:
        """Return the JSON Schema of the IR."""
        return json.dumps(json_schema(), indent=2)

    @server.resource("silp://notations", mime_type="text/markdown")
    def notations() -> str:
        """Return the specification of the notations."""
        return (files("silp") / "data" / "notations.md").read_text("utf-8")

    @server.prompt()
    def write_payloads() -> str:
        """Teach a model to write payloads in code."""
        verbs = ", ".join(sorted(action[1:].lower() for action in APPROVED))
        examples = "\n".join(f"{payload}\n  means: {compile(decode(payload), 'natural')}" for payload in _EXAMPLES)
        return (
            "Write the task as one line of SILP code and nothing else.\n"
            "Form: if CONDITION and CONDITION: CALL; CALL else: CALL # META. Only the first call is required.\n"
            "A call is verb(argument,key=argument). A condition is type(value), type(value,time), !type(time), or a "
            "comparison such as price<=500. An alternative is verb(target@location).\n"
            'Quote an argument as a JSON string if it has one of " ( ) { } , = or a space at its ends.\n'
            f"Verbs: {verbs}.\n\n{examples}"
        )

    return server
