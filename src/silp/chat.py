"""`silp chat`: two peers that a person can watch: they ping, agree, exchange payloads, degrade, and renew a session.

Lives here: a conversation over lines of text, its demonstration, and a connection between two terminals of one machine.
Not here: the protocol (negotiation, sessions).

A line is a message of the meta-protocol, or a JSON object with the fields of the envelope (wire format, section 7).
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from threading import Thread

import click

from silp.errors import ErrorCode, SilpError, shown
from silp.frontends import compile, decode
from silp.ir import SilpIR
from silp.negotiation import CHAIN, Agreed, Arrived, Degraded, Event, Failed, Ignored, Peer, Problem, Reply
from silp.sessions import HEARTBEATS, MemoryStore, Sessions
from silp.strict_json import parse_json, write_json
from silp.terminal import write

__all__ = ["Conversation", "chat", "demo"]

HOST = "127.0.0.1"
MAX_LINE = 4 * 2**20

_DEMO = (
    "if !rain(t+1): start(hike) else: start(cards@indoor)",
    'email(zhangsan,subject="the plan, revised")',
    "book(hotel,city=Shanghai,nights=2)",
)


class Conversation:
    """One side: lines go in, lines for the other side come out of `outbox`, and `show` tells a person what happens."""

    def __init__(self, peer: Peer, show: Callable[[str], None], *, heartbeat: int = 5) -> None:
        self.peer, self.outbox = peer, deque[str]()
        self.failing = 0  # so many payloads are answered with an error, as if they could not be read
        self._show = show
        self._sessions = Sessions(MemoryStore(), heartbeat=heartbeat)
        self._session_id = ""

    def ping(self) -> None:
        """Ask the other side what it speaks."""
        self.outbox.append(self.peer.ping())

    def say(self, payload: str) -> None:
        """Send what a payload in code says, in the frontend that was agreed. Raises SilpError."""
        self._send(*self.peer.send(decode(payload)))

    def hear(self, line: str) -> None:
        """Take a line of the other side."""
        if not line.startswith("{"):
            self._follow(self.peer.receive(line))
            return
        try:
            envelope = parse_json(line)
            frontend, payload = envelope["silp_encoding"], envelope["silp_payload"]
        except (SilpError, KeyError) as error:
            self.outbox.append(Problem.of(SilpError(ErrorCode.INVALID_SYNTAX, f"no envelope: {error}")).text)
            return
        if self.failing:
            self.failing -= 1
            told = SilpError(ErrorCode.DECODE_FAILED, "told to fail")
            self.outbox.append(Problem.of(told, frontend=frontend, payload=payload).text)
            self._show("fails on purpose")
            return
        self._follow(self.peer.receive_payload(payload, frontend))

    def _send(self, frontend: str, payload: str) -> None:
        self.outbox.append(write_json({"silp_encoding": frontend, "silp_payload": payload}))

    def _follow(self, events: tuple[Event, ...]) -> None:
        for event in events:
            match event:
                case Reply(text):
                    self.outbox.append(text)
                case Agreed(frontend, version):
                    self._show(f"agreed on {frontend}, {version}")
                case Arrived(frontend, payload, ir):
                    self._arrived(frontend, payload, ir)
                case Degraded(frontend, payload, error):
                    self._show(f"steps down to {frontend}: {error.message}")
                    self._send(frontend, payload)
                case Failed(error):
                    self._show(f"gives up: {error}")
                case Ignored(reason):
                    self._show(f"ignores {reason}")

    def _arrived(self, frontend: str, payload: str, ir: SilpIR | None) -> None:
        turn = self._sessions.turn_or_reopen(self._session_id, "chat", payload)
        self._session_id = turn.session_id
        if turn.renewed:
            self._show("renews the context of the session")
        meaning = "prose, for a reader only" if ir is None else compile(ir, "natural")
        context = f"turn {turn.number}, {turn.context_length} before it in the context"
        self._show(f"reads {frontend}: {shown(meaning)} (session {turn.session_id}, {context})")


def demo() -> Iterator[str]:
    """Yield the lines of two peers that agree, exchange payloads, step down the whole chain, start over, and renew."""
    lines: deque[str] = deque()
    left, right = (
        Conversation(Peer(CHAIN), lambda text, name=name: lines.append(f"    {name} {text}"))  # type: ignore[misc]
        for name in ("A", "B")
    )

    def carry() -> Iterator[str]:
        while left.outbox or right.outbox:
            for sender, receiver, arrow in ((left, right, "A -> B"), (right, left, "B -> A")):
                while sender.outbox:
                    line = sender.outbox.popleft()
                    lines.append(f"{arrow}  {shown(line)}")
                    receiver.hear(line)
        while lines:
            yield lines.popleft()

    for title, failures, payloads in (
        ("They agree, and A sends a task.", 0, _DEMO[:1]),
        ("B cannot read what comes: A steps down, the task stays the same.", 3, _DEMO[1:2]),
        ("A fresh ping starts over, and after five turns the context is renewed.", 0, _DEMO * 2),
    ):
        yield title
        left.ping()
        yield from carry()
        right.failing = failures
        for payload in payloads:
            left.say(payload)
            yield from carry()
        yield ""


@click.command()
@click.option("--demo", "as_demo", is_flag=True, help="Show both sides in this terminal, with a forced failure.")
@click.option("--listen", type=int, metavar="PORT", help="Wait for the other terminal on this port of this machine.")
@click.option("--connect", type=int, metavar="PORT", help="Connect to the terminal that listens.")
@click.option(
    "--frontends",
    default=",".join(CHAIN),
    show_default=True,
    metavar="NAMES",
    help="What this side speaks, best first.",
)
@click.option("--prefer", metavar="NAME", help="What this side would rather receive.")
@click.option("--heartbeat", type=click.Choice(list(map(str, HEARTBEATS))), default="5", show_default=True)
def chat(
    as_demo: bool, listen: int | None, connect: int | None, frontends: str, prefer: str | None, heartbeat: str
) -> None:
    """Watch two peers negotiate, exchange payloads and degrade.

    In two terminals: 'silp chat --listen 7777' and 'silp chat --connect 7777'. Type payloads in code, or /ping to start
    over, /fail to answer the next payload with an error, /quit.
    """
    if as_demo:
        for line in demo():
            write(line)
        return
    if (listen is None) == (connect is None):
        raise click.UsageError("choose one of --demo, --listen PORT and --connect PORT")
    try:
        conversation = Conversation(
            Peer(frontends.split(","), preferred=prefer), lambda text: write(f"    {text}"), heartbeat=int(heartbeat)
        )
        asyncio.run(_listen(conversation, listen) if listen is not None else _connect(conversation, connect or 0))
    except OSError as error:
        click.echo(f"port {listen if listen is not None else connect}: {error.strerror or error}", err=True)
        sys.exit(1)
    except SilpError as error:
        click.echo(str(error), err=True)
        sys.exit(1)


async def _listen(conversation: Conversation, port: int) -> None:
    done = asyncio.Event()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.close()  # one conversation
        try:
            await _converse(conversation, reader, writer)
        finally:
            done.set()

    server = await asyncio.start_server(accepted, HOST, port, limit=MAX_LINE)
    write(f"waiting for 'silp chat --connect {server.sockets[0].getsockname()[1]}'")
    await done.wait()


async def _connect(conversation: Conversation, port: int) -> None:
    reader, writer = await asyncio.open_connection(HOST, port, limit=MAX_LINE)
    conversation.ping()
    await _converse(conversation, reader, writer)


async def _converse(conversation: Conversation, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    async def flush() -> None:
        while conversation.outbox:
            line = conversation.outbox.popleft()
            write(f"-> {shown(line)}")
            writer.write(line.encode() + b"\n")
        await writer.drain()

    async def hear() -> None:
        with suppress(ConnectionError, ValueError):  # a ValueError is a line beyond MAX_LINE
            while line := (await reader.readline()).decode("utf-8", "replace").removesuffix("\n"):
                write(f"<- {shown(line)}")
                conversation.hear(line)
                await flush()

    typed: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:  # a thread of its own, since nothing can interrupt the reading of a terminal
        for line in chain(sys.stdin, ("/quit",)):
            loop.call_soon_threadsafe(typed.put_nowait, line.strip())

    async def speak() -> None:
        while (text := await typed.get()) != "/quit":
            try:
                if text == "/ping":
                    conversation.ping()
                elif text == "/fail":
                    conversation.failing += 1
                elif text:
                    conversation.say(text)
            except SilpError as error:
                write(f"    {error}")
            await flush()

    Thread(target=read, daemon=True).start()
    await flush()
    speaking, hearing = asyncio.create_task(speak()), asyncio.create_task(hear())
    try:
        await asyncio.wait((speaking, hearing), return_when=asyncio.FIRST_COMPLETED)
    finally:
        writer.close()
        for task in (speaking, hearing):
            task.cancel()
