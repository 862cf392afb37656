"""Negotiation and degradation (protocol sections 5.1 and 5.3; wire format, section 6).

Two peers agree on a frontend, and a sender steps down when its payloads fail.

Lives here: the texts `//ping`, `//pong` and `//error`, and `Peer`, one side of a conversation. There is no I/O and no
clock: texts go in, events come out, and whoever carries the texts says when time is up. Not here: sessions.

Theory of operation. A peer is in one of four states, and `TRANSITIONS` is the whole automaton. Only a ping starts
anything, and only a ping is answered: pongs and errors never are, so no exchange can loop. A ping and its answer settle
one frontend, by a rule that both sides evaluate on the same two texts, so that they cannot disagree. A ping has an id,
which answers repeat, so that a late or repeated answer to an earlier ping is told from one to the latest; ids grow, so
that a late or repeated ping undoes nothing. Peers that know nothing of ids are served as well: an answer without one
counts while one is awaited. If both sides ping at once, the ping with the greater id goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from secrets import randbelow
from typing import Any, ClassVar, NamedTuple

from silp.errors import ErrorCode, Finding, SilpError, shown, syntax_error
from silp.frontends import MetaMode, compile, get_frontend
from silp.frontends.notation import CODE
from silp.ir import SILP_VERSION, SilpIR, as_ir, req_id
from silp.receiving import Policy, receive, require_size
from silp.strict_json import STRING_PATTERN, unquote
from silp.text import is_visible, quote, require_visible

__all__ = [
    "CHAIN",
    "MAX_MESSAGE_LENGTH",
    "MAX_PINGS",
    "MAX_UNSETTLED",
    "TRANSITIONS",
    "Agreed",
    "Arrived",
    "Degraded",
    "Event",
    "Failed",
    "Ignored",
    "Message",
    "Peer",
    "Ping",
    "Pong",
    "Problem",
    "Reply",
    "Signal",
    "State",
    "choose",
    "read_message",
    "state_diagram",
]

CHAIN = ("code", "math", "json", "natural")
"""The degradation chain (section 5.3)."""

MAX_MESSAGE_LENGTH = 8192
"""Characters of a message that is read: those that peers write have some hundred."""

MAX_PINGS = 3
"""How often a ping is sent before the other side counts as silent."""

MAX_UNSETTLED = 1296
"""Payloads that a peer keeps for sending again; the oldest is forgotten. As many as there can be sessions."""

_MAX_REASON = 500
"""Characters of an error's message that are sent."""

_WORD = re.compile("//([a-z]++)")
_VALUE = re.compile(rf" ({CODE.name})=(?:({STRING_PATTERN})|({CODE.name}(?:,{CODE.name})*+))")
_BARE = re.compile(CODE.name).fullmatch
_VERSION = re.compile("v[0-9]{1,9}").fullmatch
_NUMBER = re.compile("[0-9]{1,15}").fullmatch
_REQ_ID = re.compile("[a-f0-9]{4,8}").fullmatch


@dataclass(frozen=True)
class Message:
    """A message of the meta-protocol. `text` is its one line."""

    word: ClassVar[str] = ""

    @property
    def text(self) -> str:
        """Return the line; raises SilpError (invalid_syntax) if a name in a list is not a bare name."""
        pairs = [
            ("silp" if field.name == "versions" else field.name, getattr(self, field.name)) for field in fields(self)
        ]
        return f"//{self.word}" + "".join(f" {key}={_written(value)}" for key, value in pairs if value is not None)


@dataclass(frozen=True)
class Ping(Message):
    """The question which frontends the other side speaks, with those of this side, best first."""

    word: ClassVar[str] = "ping"
    versions: tuple[str, ...]
    frontends: tuple[str, ...]
    id: int | None = None


@dataclass(frozen=True)
class Pong(Message):
    """The answer to a ping."""

    word: ClassVar[str] = "pong"
    versions: tuple[str, ...]
    frontends: tuple[str, ...]
    preferred: str | None = None
    id: int | None = None


@dataclass(frozen=True)
class Problem(Message):
    """A payload-decode error (section 5.1): of a payload, which `req_id` names, or of a ping, which `id` names."""

    word: ClassVar[str] = "error"
    code: str
    frontend: str | None = None
    offset: int | None = None
    req_id: str | None = None
    message: str | None = None
    id: int | None = None

    @classmethod
    def of(cls, error: SilpError, *, frontend: str | None = None, payload: str | None = None) -> Problem:
        """Return the message that tells a sender what was wrong with its payload."""
        message = error.message if len(error.message) <= _MAX_REASON else error.message[: _MAX_REASON - 3] + "..."
        try:
            known = None if payload is None else req_id(payload)
        except SilpError:  # what cannot be encoded has no id
            known = None
        return cls(str(error.code), frontend, error.offset, known, message)

    @property
    def error(self) -> SilpError:
        """Return the error that the other side met, as one of ours."""
        return SilpError(
            ErrorCode(self.code), self.message or f"the other side answered {self.code}", offset=self.offset
        )


def _written(value: object) -> str:
    if isinstance(value, tuple):
        for name in value:
            if not (_BARE(name) and is_visible(name)):
                message = f"{name!a} cannot stand in a list of names: it has a space, a delimiter or a hidden character"
                raise SilpError(ErrorCode.INVALID_SYNTAX, message)
        return ",".join(value)
    text = str(value)
    return text if _BARE(text) and is_visible(text) else quote(text)


def read_message(text: str) -> Message:
    """Return the Ping, Pong or Problem that a line is.

    Unknown keys are ignored. Raises SilpError (invalid_syntax) with the offset: not such a line, a repeated key, a
    missing or malformed value, a hidden character, more than MAX_MESSAGE_LENGTH characters.
    """
    if not isinstance(text, str):
        raise SilpError(ErrorCode.INVALID_SYNTAX, f"expected a message as str, found {type(text).__name__}")
    if len(text) > MAX_MESSAGE_LENGTH:
        message = f"a message has at most {MAX_MESSAGE_LENGTH} characters: send less"
        raise SilpError(ErrorCode.INVALID_SYNTAX, message, text=text, offset=MAX_MESSAGE_LENGTH)
    require_visible(text)
    word = _WORD.match(text)
    if not word or word[1] not in _FIELDS:
        raise syntax_error(text, 0, "//ping, //pong or //error")
    found: dict[str, _Found] = {}
    offset = word.end()
    while offset < len(text):
        match = _VALUE.match(text, offset)
        if not match:
            raise syntax_error(text, offset, "a space, and a pair such as silp=v1")
        key, quoted, names = match.groups()
        if key in found:
            raise syntax_error(text, match.start(1), f"a key other than {key}", "it has its value already")
        values = (unquote(text, match.start(2), quoted),) if quoted else tuple(names.split(","))
        found[key] = _Found(values, match.start(2 if quoted else 3))
        offset = match.end()
    kind, readers = _FIELDS[word[1]]
    read: dict[str, Any] = {}
    for name, (key, expected, reader) in readers.items():
        if key in found:
            try:
                read[name] = reader(found[key].values)
            except ValueError:
                raise syntax_error(text, found[key].offset, expected) from None
    try:
        return kind(**read)
    except TypeError:
        missing = next(key for name, (key, _, _) in readers.items() if name not in read)
        raise syntax_error(text, len(text), f"{missing}=...") from None


class _Found(NamedTuple):
    values: tuple[str, ...]
    offset: int


_Reader = Callable[[tuple[str, ...]], Any]


def _each(fits: Callable[[str], Any]) -> _Reader:
    def read(values: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(fits, values)):
            raise ValueError
        return values

    return read


def _one(fits: Callable[[str], Any], made: Callable[[str], Any] = str) -> _Reader:
    def read(values: tuple[str, ...]) -> Any:
        if len(values) != 1 or not fits(values[0]):
            raise ValueError
        return made(values[0])

    return read


_VERSIONS = ("silp", "versions such as v1", _each(_VERSION))
_FRONTENDS = ("frontends", "names of frontends, such as code,json", _each(_BARE))
_ID = ("id", "a number", _one(_NUMBER, int))
_FIELDS: dict[str, tuple[type[Message], dict[str, tuple[str, str, _Reader]]]] = {
    "ping": (Ping, {"versions": _VERSIONS, "frontends": _FRONTENDS, "id": _ID}),
    "pong": (
        Pong,
        {
            "versions": _VERSIONS,
            "frontends": _FRONTENDS,
            "preferred": ("preferred", "the name of a frontend", _one(_BARE)),
            "id": _ID,
        },
    ),
    "error": (
        Problem,
        {
            "code": ("code", "one of " + ", ".join(ErrorCode), _one(lambda code: code in tuple(ErrorCode))),
            "frontend": ("frontend", "the name of a frontend", _one(_BARE)),
            "offset": ("offset", "a number", _one(_NUMBER, int)),
            "req_id": ("req_id", "4 to 8 of the characters 0-9 and a-f", _one(_REQ_ID)),
            "message": ("message", "one string", _one(lambda _: True)),
            "id": _ID,
        },
    ),
}


def choose(own: Sequence[str], other: Sequence[str], preferred: str | None) -> str | None:
    """Return the frontend of two peers: the receiver's preferred one if both have it, else the first of CHAIN that both
    have, else None. It is the same seen from both sides."""
    common = [name for name in own if name in other]
    if preferred in common:
        return preferred
    return next((name for name in CHAIN if name in common), None)


class State(StrEnum):
    """What a peer knows about the other side."""

    IDLE = "idle"
    PINGED = "pinged"
    AGREED = "agreed"
    FAILED = "failed"


class Signal(StrEnum):
    """What moves a peer from one state to another."""

    PING_SENT = "ping sent"
    PING_FITS = "ping received, something in common"
    PING_UNFIT = "ping received, nothing in common"
    PONG_FITS = "pong received, something in common"
    PONG_UNFIT = "pong received, nothing in common"
    REFUSED = "error received for the ping"
    SILENCE = "last ping unanswered"


TRANSITIONS: Mapping[tuple[State, Signal], State] = {
    (State.IDLE, Signal.PING_SENT): State.PINGED,
    (State.IDLE, Signal.PING_FITS): State.AGREED,
    (State.IDLE, Signal.PING_UNFIT): State.FAILED,
    (State.PINGED, Signal.PING_SENT): State.PINGED,
    (State.PINGED, Signal.PING_FITS): State.AGREED,
    (State.PINGED, Signal.PING_UNFIT): State.FAILED,
    (State.PINGED, Signal.PONG_FITS): State.AGREED,
    (State.PINGED, Signal.PONG_UNFIT): State.FAILED,
    (State.PINGED, Signal.REFUSED): State.FAILED,
    (State.PINGED, Signal.SILENCE): State.FAILED,
    (State.AGREED, Signal.PING_SENT): State.PINGED,
    (State.AGREED, Signal.PING_FITS): State.AGREED,
    (State.AGREED, Signal.PING_UNFIT): State.FAILED,
    (State.FAILED, Signal.PING_SENT): State.PINGED,
    (State.FAILED, Signal.PING_FITS): State.AGREED,
    (State.FAILED, Signal.PING_UNFIT): State.FAILED,
}
"""The automaton. A signal that a state has no transition for, a late pong say, changes nothing."""


def state_diagram() -> str:
    """Return TRANSITIONS as a Mermaid state diagram."""
    edges = [f"    {state} --> {after}: {signal}" for (state, signal), after in TRANSITIONS.items()]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {State.IDLE}", *edges])


@dataclass(frozen=True)
class Reply:
    """A text to carry to the other side."""

    text: str


@dataclass(frozen=True)
class Agreed:
    """Both sides speak this frontend and this version from now on."""

    frontend: str
    version: str


@dataclass(frozen=True)
class Arrived:
    """A payload that was let in. `ir` is None for prose, which does not decode and is for a reader only."""

    frontend: str
    payload: str
    ir: SilpIR | None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Degraded:
    """The other side could not use a payload: carry the same IR to it as this payload, in this frontend."""

    frontend: str
    payload: str
    error: SilpError


@dataclass(frozen=True)
class Failed:
    """There is nothing left to try. `error` says why, with one finding for each try."""

    error: SilpError


@dataclass(frozen=True)
class Ignored:
    """A text that changed nothing: a late or repeated one, or a malformed answer, which is never answered."""

    reason: str


Event = Reply | Agreed | Arrived | Degraded | Failed | Ignored


_CURED_BY_ANOTHER_FRONTEND = (ErrorCode.INVALID_SYNTAX, ErrorCode.DECODE_FAILED, ErrorCode.UNSUPPORTED_FRONTEND)


class _Unsettled(NamedTuple):
    ir: SilpIR
    frontend: str
    tries: tuple[Finding, ...]


class Peer:
    """One side of a conversation with one other side. It does no I/O: carry the texts that it returns.

    Attributes:
        state: what it knows about the other side.
        frontend: what it sends payloads in, None unless something was agreed. It goes down the chain when payloads
            fail, and up again only with a fresh ping, of either side.
        version: the version of the protocol that was agreed.
    """

    def __init__(
        self,
        frontends: Iterable[str] = CHAIN,
        *,
        preferred: str | None = None,
        versions: Iterable[str] = (SILP_VERSION,),
        policy: Policy | None = None,
        meta: MetaMode = "inline",
        random_below: Callable[[int], int] = randbelow,
    ) -> None:
        """`meta="omit"` is for a carrier that has meta beside the payload.

        Raises SilpError (unsupported_frontend) for a frontend that there is not, or a preference for another.
        """
        self._frontends = tuple(frontends)
        for name in (*self._frontends, *([] if preferred is None else [preferred])):
            get_frontend(name)
            if name not in self._frontends:
                raise SilpError(ErrorCode.UNSUPPORTED_FRONTEND, f"prefer one of {', '.join(self._frontends)}")
        self._preferred, self._versions = preferred, tuple(versions)
        self._policy, self._meta, self._random_below = policy or Policy(), meta, random_below
        self.state = State.IDLE
        self.frontend: str | None = None
        self.version: str | None = None
        self._common: tuple[str, ...] = ()
        self._ping = Ping(self._versions, self._frontends, 0)
        self._pings_left = 0
        self._heard = -1  # the id of the latest ping of the other side
        self._answer = ""
        self._unsettled: dict[str, _Unsettled] = {}

    def ping(self) -> str:
        """Start over, and return the text to carry to the other side."""
        self._move(Signal.PING_SENT)
        self._ping = replace(self._ping, id=max(self._ping.id or 0, self._heard) + 1 + self._random_below(2**16))
        self._pings_left = MAX_PINGS - 1
        return self._ping.text

    def silence(self) -> Reply | Failed | Ignored:
        """Return what to do when the other side did not answer in time: ping again, or give up (timeout)."""
        if self.state is not State.PINGED:
            return Ignored("no ping is waiting for an answer")
        if self._pings_left:
            self._pings_left -= 1
            return Reply(self._ping.text)
        self._move(Signal.SILENCE)
        message = f"the other side answered none of {MAX_PINGS} pings: it does not speak SILP, or cannot be reached"
        return Failed(SilpError(ErrorCode.TIMEOUT, message))

    def receive(self, text: str) -> tuple[Event, ...]:
        """Return what follows from a message of the other side. Raises nothing, whatever the text is."""
        try:
            message = read_message(text)
        except SilpError as error:
            if isinstance(text, str) and text.startswith(("//pong", "//error")):
                return (Ignored(f"a malformed answer: {error.message}"),)
            return (Reply(Problem.of(error).text),)
        if isinstance(message, Ping):
            return self._on_ping(message)
        return self._on_pong(message) if isinstance(message, Pong) else self._on_problem(message)  # type: ignore[arg-type]

    def receive_payload(self, payload: str, frontend: str) -> tuple[Event, ...]:
        """Return what follows from a payload that the carrier says is in this frontend: an Arrived, or the Reply that
        says what is wrong with it. Raises nothing, whatever the payload is."""
        if frontend not in self._frontends:
            message = f"this frontend is not spoken here: use one of {', '.join(self._frontends)}"
            error = SilpError(ErrorCode.UNSUPPORTED_FRONTEND, message)
            return (Reply(Problem.of(error, payload=payload).text),)
        try:
            if get_frontend(frontend).lossless:
                received = receive(payload, frontend, policy=self._policy)
                return (Arrived(frontend, payload, received.ir, received.findings),)
            require_size(payload, self._policy)
            require_visible(payload)
            return (Arrived(frontend, payload, None),)
        except SilpError as error:
            return (Reply(Problem.of(error, frontend=frontend, payload=payload).text),)

    def send(self, ir: SilpIR | Mapping[str, Any]) -> tuple[str, str]:
        """Return the frontend and the payload of an IR, to be carried together.

        The IR is kept, to be sent again if the payload fails, until `settle` is called with the req_id of the payload.
        Raises SilpError: unsupported_frontend if nothing was agreed, and whatever `silp.compile` raises.
        """
        if self.frontend is None:
            message = f"no frontend is agreed with the other side, which is {self.state}: ping it first"
            raise SilpError(ErrorCode.UNSUPPORTED_FRONTEND, message)
        return self.frontend, self._compiled(as_ir(ir), self.frontend, ())

    def step_down(self, problem: str) -> str:
        """Return the frontend to send a payload again in, for the `//error` that it was answered with.

        For carriers that wait for each answer; `receive` says the same in events. Raises SilpError: what the other side
        said, with the history, if there is nothing left to try; decode_failed for what is no error of a payload.
        """
        for event in self.receive(problem):
            if isinstance(event, Degraded):
                return event.frontend
            if isinstance(event, Failed):
                raise event.error
        raise SilpError(ErrorCode.DECODE_FAILED, f"the other side refused the payload: {shown(problem[:_MAX_REASON])}")

    def settle(self, payload_req_id: str) -> None:
        """Forget a payload that the other side has used."""
        self._unsettled.pop(payload_req_id, None)

    def _move(self, signal: Signal) -> bool:
        if (self.state, signal) not in TRANSITIONS:
            return False
        self.state = TRANSITIONS[self.state, signal]
        if self.state is not State.AGREED:
            self.frontend = self.version = None
        return True

    def _settle_on(self, other: Ping | Pong, preferred: str | None, fits: Signal, unfit: Signal) -> Agreed | Failed:
        version = max(set(self._versions) & set(other.versions), key=lambda each: int(each[1:]), default=None)
        frontend = choose(self._frontends, other.frontends, preferred)
        if version is None or frontend is None:
            self._move(unfit)
            return Failed(_nothing_common(other, version, self._versions, self._frontends))
        self._move(fits)
        self.version, self.frontend = version, frontend
        self._common = tuple(name for name in self._frontends if name in other.frontends)
        return Agreed(frontend, version)

    def _on_ping(self, ping: Ping) -> tuple[Event, ...]:
        if ping.id is not None:
            if self.state is State.PINGED and self._ping.id is not None and self._ping.id >= ping.id:
                return (Ignored("both sides pinged, and the ping of this side goes on"),)
            if ping.id < self._heard:
                return (Ignored("a late ping"),)
            if ping.id == self._heard:
                return (Reply(self._answer),)
            self._heard = ping.id
        outcome = self._settle_on(ping, self._preferred, Signal.PING_FITS, Signal.PING_UNFIT)
        if isinstance(outcome, Agreed):
            answer: Message = Pong((outcome.version,), self._frontends, self._preferred, ping.id)
        else:
            answer = replace(Problem.of(outcome.error), id=ping.id)
        self._answer = answer.text
        return Reply(self._answer), outcome

    def _on_pong(self, pong: Pong) -> tuple[Event, ...]:
        if self.state is not State.PINGED or pong.id not in (None, self._ping.id):
            return (Ignored("a late or repeated pong"),)
        return (self._settle_on(pong, pong.preferred, Signal.PONG_FITS, Signal.PONG_UNFIT),)

    def _on_problem(self, problem: Problem) -> tuple[Event, ...]:
        if problem.req_id is not None:
            failed = self._unsettled.get(problem.req_id)
            # Two frontends may have one text for an IR, and so one req_id: the error of the first try counts once.
            if failed is None or problem.frontend not in (None, failed.frontend):
                return (Ignored("an error of a payload that is not waiting for one"),)
            del self._unsettled[problem.req_id]
            return (self._degrade(failed, problem),)
        if self.state is State.PINGED and problem.id in (None, self._ping.id):
            self._move(Signal.REFUSED)
            return (Failed(problem.error),)
        return (Ignored(f"an error that no ping and no payload is waiting for: {problem.code}"),)

    def _degrade(self, failed: _Unsettled, problem: Problem) -> Degraded | Failed:
        error = problem.error
        tries = (*failed.tries, Finding(problem.code, "$", f"{failed.frontend}: {error.message}", problem.offset))
        below = CHAIN[CHAIN.index(failed.frontend) + 1 :] if failed.frontend in CHAIN else CHAIN
        lower = next((name for name in below if name in self._common), None)
        if lower is None or error.code not in _CURED_BY_ANOTHER_FRONTEND:
            how = "in every frontend that both sides speak" if lower is None else f"in {failed.frontend}"
            message = f"the payload failed {how}: {error.message}"
            return Failed(SilpError(error.code, message, findings=tries))
        if self.frontend == failed.frontend:
            self.frontend = lower
        return Degraded(lower, self._compiled(failed.ir, lower, tries), error)

    def _compiled(self, ir: SilpIR, frontend: str, tries: tuple[Finding, ...]) -> str:
        payload = compile(ir, frontend, meta=self._meta)
        while len(self._unsettled) >= MAX_UNSETTLED:
            del self._unsettled[next(iter(self._unsettled))]
        self._unsettled[req_id(payload)] = _Unsettled(ir, frontend, tries)
        return payload


def _nothing_common(
    other: Ping | Pong, version: str | None, versions: Sequence[str], frontends: Sequence[str]
) -> SilpError:
    if version is None:
        message = f"no common version: {','.join(other.versions)} there, {','.join(versions)} here"
        return SilpError(ErrorCode.UNSUPPORTED_VERSION, message)
    message = f"no common frontend: {','.join(other.frontends)} there, {','.join(frontends)} here"
    return SilpError(ErrorCode.UNSUPPORTED_FRONTEND, message)
