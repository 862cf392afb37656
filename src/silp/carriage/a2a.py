"""Payloads in A2A messages and artifacts (protocol section 7.3), with the official SDK. Needs `silp-codec[a2a]`.

Lives here: the extension, parts that carry an IR, an interceptor for clients, a base class for executors, and the HTTP
layer that echoes the extension. Not here: the envelope (envelope).

A part that carries an IR is a text part that says the same in English, with the envelope in its metadata under the URI
of the extension: an agent without SILP reads the text.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

from silp.carriage.envelope import META, Unwrapped, unwrap, wrap
from silp.errors import ErrorCode, Finding, SilpError
from silp.frontends import compile
from silp.ir import SilpIR
from silp.negotiation import CHAIN, Problem, choose
from silp.receiving import Policy
from silp.strict_json import parse_json, write_json

try:
    from a2a.client import ClientCallContext
    from a2a.client.interceptors import AfterArgs, BeforeArgs, ClientCallInterceptor
    from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
    from a2a.extensions.common import HTTP_EXTENSION_HEADER, find_extension_by_uri, get_requested_extensions
    from a2a.server.agent_execution import AgentExecutor, RequestContext
    from a2a.server.events import EventQueue
    from a2a.server.tasks import TaskUpdater
    from a2a.types import (
        AgentCard,
        AgentExtension,
        Artifact,
        ExtensionSupportRequiredError,
        Message,
        Part,
        Task,
        TaskState,
    )
    from google.protobuf.json_format import MessageToDict, ParseDict
except ImportError as error:
    raise ImportError("silp.carriage.a2a needs the extra: pip install 'silp-codec[a2a]'") from error

__all__ = ["URI", "SilpExecutor", "SilpInterceptor", "SilpLayer", "declare", "ir_parts", "part_of", "problem_in"]

URI = "urn:silp:payload:v1"
"""The extension. Its version is part of the URI: another version is another extension."""

_LOSSLESS = CHAIN[:-1]


def declare(card: AgentCard, *, frontends: Sequence[str] = _LOSSLESS, required: bool = False) -> None:
    """Declare in an agent's card that it reads payloads, in these frontends, best first."""
    extension = AgentExtension(uri=URI, description="Tasks as SILP payloads", required=required)
    ParseDict({"frontends": list(frontends)}, extension.params)
    card.capabilities.extensions.append(extension)


def part_of(ir: SilpIR | Mapping[str, Any], *, frontend: str = "code") -> Part:
    """Return the part that carries an IR; raises SilpError as `wrap` does."""
    envelope = wrap(ir, frontend=frontend)
    # Metadata is a protobuf Struct, which knows no integers: meta travels as text.
    part = Part(text=compile(ir, "natural"), media_type="text/plain")
    ParseDict({URI: {**envelope, META: write_json(envelope[META])}}, part.metadata)
    return part


def ir_parts(carrier: Message | Artifact, *, policy: Policy | None = None) -> list[Unwrapped]:
    """Return what the parts of a message or an artifact carry, in order; nothing for parts without a payload.

    A part whose text says something else than its payload has a finding `text_differs`, and is refused (decode_failed)
    by a strict policy. Raises SilpError as `unwrap` does.
    """
    return [opened for part in carrier.parts if (opened := _open(part, policy)) is not None]


def _open(part: Part, policy: Policy | None) -> Unwrapped | None:
    if URI not in part.metadata:
        return None
    envelope = MessageToDict(part.metadata)[URI]
    if not isinstance(envelope, dict):
        raise SilpError(ErrorCode.INVALID_SYNTAX, f"the metadata {URI} of a part is no object with an envelope")
    if isinstance(meta := envelope.get(META), str):
        envelope[META] = parse_json(meta)
    opened = unwrap(envelope, policy=policy)
    if opened is None:
        raise SilpError(ErrorCode.INVALID_SYNTAX, f"the metadata {URI} of a part has none of the fields of an envelope")
    if part.text == compile(opened.ir, "natural"):
        return opened
    message = "the text of the part, which people read, is not what its payload says"
    if policy is not None and policy.strict:
        raise SilpError(ErrorCode.DECODE_FAILED, f"refused: {message}")
    return replace(opened, findings=(*opened.findings, Finding("text_differs", "$", message)))


def problem_in(task: Task) -> SilpError | None:
    """Return what a failed task says of a payload that it could not use; None if it failed otherwise, or not."""
    metadata = MessageToDict(task.status.message.metadata)
    data = metadata.get(URI)
    if task.status.state != TaskState.TASK_STATE_FAILED or not isinstance(data, dict):
        return None
    try:
        return SilpError(ErrorCode(str(data.get("code"))), str(data.get("message")), offset=_whole(data.get("offset")))
    except ValueError:
        return None


def _whole(number: object) -> int | None:
    return int(number) if isinstance(number, float) else None


class SilpInterceptor(ClientCallInterceptor):
    """Activates the extension for messages that carry payloads, if the agent declares it.

    Payloads are written in a frontend that the agent reads. To an agent that does not declare the extension, the parts
    go as the English text that they are; with `prose=False` such a call raises SilpError (unsupported_frontend).
    """

    def __init__(self, *, prose: bool = True) -> None:
        self._prose = prose

    async def before(self, args: BeforeArgs) -> None:
        """Prepare a call: the SDK calls this."""
        message = getattr(args.input, "message", None)
        if not isinstance(message, Message):
            return
        parts = [part for part in message.parts if URI in part.metadata]
        if not parts:
            return
        extension = find_extension_by_uri(args.agent_card, URI)
        if extension is None:
            if not self._prose:
                raise SilpError(ErrorCode.UNSUPPORTED_FRONTEND, "the agent does not declare that it reads payloads")
            for part in parts:
                del part.metadata[URI]
            return
        spoken = MessageToDict(extension.params).get("frontends") or list(_LOSSLESS)
        for part in parts:
            _translate(part, spoken)
        if URI not in message.extensions:
            message.extensions.append(URI)
        context = args.context or ClientCallContext()
        context.service_parameters = ServiceParametersFactory.create_from(
            context.service_parameters, [with_a2a_extensions([URI])]
        )
        args.context = context

    async def after(self, args: AfterArgs) -> None:
        """Do nothing: `ir_parts` and `problem_in` read what came back."""


def _translate(part: Part, spoken: Sequence[str]) -> None:
    opened = _open(part, Policy(verbs=None))
    if opened is None or opened.frontend in spoken:
        return
    frontend = choose(_LOSSLESS, spoken, None)
    if frontend is None:
        message = f"no common frontend: {','.join(map(str, spoken))} there, {','.join(_LOSSLESS)} here"
        raise SilpError(ErrorCode.UNSUPPORTED_FRONTEND, message)
    part.CopyFrom(part_of(opened.ir, frontend=frontend))


class SilpExecutor(AgentExecutor):
    """An executor that gets IRs. Implement `run`: a payload that cannot be used has become a failed task before.

    Where the card requires the extension, a call that does not activate it is an ExtensionSupportRequiredError of A2A.
    """

    def __init__(self, card: AgentCard, *, policy: Policy | None = None) -> None:
        extension = find_extension_by_uri(card, URI)
        self._required, self._policy = extension is not None and extension.required, policy

    @abstractmethod
    async def run(self, payloads: list[Unwrapped], context: RequestContext, task: TaskUpdater) -> None:
        """Do what the payloads ask for, and end the task. Without any, the message is plain text."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Read the payloads, and run: the SDK calls this."""
        from a2a.helpers import new_task_from_user_message

        if self._required and URI not in context.requested_extensions:
            raise ExtensionSupportRequiredError(f"name {URI} in the header {HTTP_EXTENSION_HEADER}")
        if context.message is None or context.task_id is None or context.context_id is None:
            return
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        task = TaskUpdater(event_queue, context.task_id, context.context_id)
        try:
            payloads = ir_parts(context.message, policy=self._policy)
        except SilpError as error:
            data = error.to_dict()
            text = Part(text=json.dumps(data, ensure_ascii=False), media_type="application/json")
            await task.failed(task.new_agent_message([text], metadata={URI: {**data, "error": Problem.of(error).text}}))
            return
        await self.run(payloads, context, task)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancel the task."""
        if context.task_id is not None and context.context_id is not None:
            await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class SilpLayer:
    """An ASGI layer around an agent's application that echoes the extension to those who activate it, as A2A wants."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection: the server calls this."""
        header = HTTP_EXTENSION_HEADER.lower().encode()
        values = [value.decode("latin-1") for name, value in scope.get("headers", ()) if name == header]

        async def echo(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), (header, URI.encode())]}
            await send(message)

        await self._app(scope, receive, echo if URI in get_requested_extensions(values) else send)
