"""Payloads in the tool calls of a FastMCP server. Needs the extra `silp-codec[fastmcp]`.

Lives here: a middleware for the framework of that name. Not here: what it does (mcp), which it shares.
"""

from __future__ import annotations

from typing import Any

from silp.carriage.mcp import IDENTIFIER, SilpServer, error_result, fill, take
from silp.errors import SilpError
from silp.receiving import Policy

try:
    from fastmcp import FastMCP
    from fastmcp.server.extensions import MethodBinding, ServerExtension
    from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
    from fastmcp.tools import ToolResult
    from mcp_types import CallToolRequestParams
except ImportError as error:
    raise ImportError("silp.carriage.fastmcp needs the extra: pip install 'silp-codec[fastmcp]'") from error

__all__ = ["attach"]


def attach(server: FastMCP[Any], *, preferred: str | None = None, policy: Policy | None = None) -> None:
    """Let the tools of a FastMCP server be called with payloads, as `SilpServer` does for the official SDK.

    A payload is taken from the arguments or from `_meta`: FastMCP shows a middleware nothing else. Raises SilpError
    (unsupported_frontend) for a preference that cannot be met.
    """
    server.add_extension(_Extension(SilpServer(preferred=preferred)))
    server.add_middleware(_Payloads(policy))


class _Extension(ServerExtension):
    identifier = IDENTIFIER

    def __init__(self, same: SilpServer) -> None:
        self._same = same

    def settings(self) -> dict[str, Any]:
        return self._same.settings()

    def methods(self) -> list[MethodBinding]:
        return [MethodBinding(each.method, each.params_type, each.handler) for each in self._same.methods()]


class _Payloads(Middleware):
    def __init__(self, policy: Policy | None) -> None:
        self._policy = policy

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        message, surroundings = context.message, context.fastmcp_context
        request = surroundings.request_context if surroundings else None  # which has the _meta that the message lost
        params = {
            "name": message.name,
            "arguments": message.arguments or {},
            "_meta": request.meta if request else None,
        }
        try:
            without, opened = take(params, self._policy)
            if opened is None:
                return await call_next(context)
            tool = await surroundings.fastmcp.get_tool(message.name) if surroundings else None
            filled = fill(dict(without["arguments"]), tool.parameters if tool else {}, opened.ir)
        except SilpError as error:
            refused = error_result(error, params)
            return ToolResult(content=refused.content, meta=refused.meta, is_error=True)
        return await call_next(context.copy(message=message.model_copy(update={"arguments": filled})))
