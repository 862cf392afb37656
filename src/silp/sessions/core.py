"""What a session is: its id, its scope, its turns, its heartbeat and its end (protocol section 5.2).

Lives here: the rules, and `Sessions`, which applies them to a store. Not here: where records are kept (memory, sqlite,
redis).

A session is a small record, and the texts of the turns since the last renewal. Every change replaces a record that was
read by the next one, if it is still the one that is stored; whoever comes too late reads again. So the rules need no
lock, and are written once for all stores.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from itertools import count
from typing import NamedTuple, Protocol

from silp.errors import ErrorCode, SilpError

__all__ = [
    "HEARTBEATS",
    "IDLE_SECONDS",
    "IDS",
    "MAX_SECONDS",
    "AsyncSessions",
    "Key",
    "Record",
    "Sessions",
    "Store",
    "Turn",
]

HEARTBEATS = (1, 5, 10, 15, 20, 9999)
"""The values of N: the context is renewed every N turns."""

IDLE_SECONDS = 30 * 60.0
"""How long a session lives without a turn: half an hour covers a person who thinks."""

MAX_SECONDS = 24 * 3600.0
"""How long a session lives at all: 1,296 ids are few, and nobody must keep one for ever."""

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
IDS = tuple(first + second for first in _DIGITS for second in _DIGITS)
"""All 1,296 session ids. They are guessable: an id counts within its scope alone."""

_RANDOM_PICKS = 8
_CACHED = 10_000


class Key(NamedTuple):
    """Who opened a session, a principal or a connection, and its id."""

    scope: str
    session_id: str


class Record(NamedTuple):
    """What a store keeps of a session. Times are in seconds since the epoch; `stamp`, 16 hex characters, is new with
    every change."""

    turns: int
    heartbeat: int
    opened: float
    used: float
    stamp: str

    @property
    def starts_context(self) -> bool:
        """Return whether no turn before the latest is part of the context."""
        return not self.turns or (self.turns - 1) % self.heartbeat == 0


class Turn(NamedTuple):
    """A turn that was recorded.

    `number` counts from 0, `context_length` the turns since the last renewal and before this one. `renewed` says that
    the context was renewed before this turn. `session_id` is a new one if the session was reopened.
    """

    session_id: str
    number: int
    context_length: int
    renewed: bool


class Store(Protocol):
    """Where sessions are kept. `silp.testing.check_store` checks that one keeps the contract.

    Each method raises SilpError (decode_failed) if the store cannot be used.
    """

    def load(self, key: Key) -> Record | None:
        """Return the record, or None if there is none."""

    def swap(self, key: Key, old: Record | None, new: Record | None, turn: str | None = None) -> bool:
        """Replace `old` by `new`, at once and for good; return False if another record is stored.

        None stands for no record. `turn` is added to the context, which is emptied before if `new.starts_context`, and
        removed with the record.
        """

    def context(self, key: Key) -> list[str]:
        """Return the turns since the last renewal, in order."""


class Sessions:
    """Sessions in a store. Any number of threads, processes and machines may share the store.

    Attributes:
        heartbeat: N of sessions that are opened without naming one.
        idle_seconds, max_seconds: time limits, since the last turn and since the opening.
    """

    def __init__(
        self,
        store: Store,
        *,
        heartbeat: int = 10,
        idle_seconds: float = IDLE_SECONDS,
        max_seconds: float = MAX_SECONDS,
        clock: Callable[[], float] = time.time,
        random_below: Callable[[int], int] = secrets.randbelow,
    ) -> None:
        self._store = store
        self.heartbeat = _checked(heartbeat)
        self.idle_seconds, self.max_seconds = idle_seconds, max_seconds
        self._clock, self._random_below = clock, random_below
        self._seen: dict[Key, Record] = {}  # saves reading a record that nobody else changed
        self._origin, self._count = f"{random_below(2**32):08x}", count()

    def open(self, scope: str, *, heartbeat: int | None = None) -> str:
        """Return the id of a new session of a principal or connection: 2 characters, none that is alive.

        Raises SilpError: invalid_syntax for a heartbeat that is not among HEARTBEATS, decode_failed if all 1,296 ids of
        the scope are alive, or the store cannot be used.
        """
        n = self.heartbeat if heartbeat is None else _checked(heartbeat)
        now = self._clock()
        new = Record(0, n, now, now, self._stamp())
        for _ in range(_RANDOM_PICKS):
            key = _key(scope, IDS[self._random_below(len(IDS))])
            if self._swap(key, None, new):
                return key.session_id
        # Crowded: try all, from a random one on; first those that are free, then those whose session is over.
        start = self._random_below(len(IDS))
        keys = [Key(scope, session_id) for session_id in IDS[start:] + IDS[:start]]
        for key in keys:
            if self._swap(key, None, new):
                return key.session_id
        for key in keys:
            old = self._store.load(key)
            if (old is None or self._end(old, now)) and self._swap(key, old, new):
                return key.session_id
        message = f"all {len(IDS)} session ids of this scope are alive: close sessions, or wait until they expire"
        raise SilpError(ErrorCode.DECODE_FAILED, message)

    def turn(self, session_id: str, scope: str, payload: str) -> Turn:
        """Record a turn, and return its number and what context it has.

        Before turn k, counted from 0, the context is renewed if k > 0 and k mod N = 0. Raises SilpError:
        session_expired for an id that is unknown in this scope or whose session is older than `max_seconds`, timeout
        for one without a turn for `idle_seconds`, which ends it, decode_failed if the store cannot be used.
        """
        key = _key(scope, session_id)
        if not isinstance(payload, str):
            raise SilpError(ErrorCode.INVALID_SYNTAX, f"expected a payload as str, found {type(payload).__name__}")
        while True:
            now = self._clock()
            old = self._alive(key, now)
            new = Record(old.turns + 1, old.heartbeat, old.opened, max(old.used, now), self._stamp())
            if self._swap(key, old, new, payload):
                return Turn(session_id, old.turns, old.turns % old.heartbeat, new.starts_context and old.turns > 0)

    def turn_or_reopen(self, session_id: str, scope: str, payload: str) -> Turn:
        """Record a turn, in one new session if the old one is over; a second failure is raised."""
        try:
            return self.turn(session_id, scope, payload)
        except SilpError as error:
            if error.code not in (ErrorCode.SESSION_EXPIRED, ErrorCode.TIMEOUT):
                raise
        return self.turn(self.open(scope), scope, payload)

    def context(self, session_id: str, scope: str) -> list[str]:
        """Return the payloads of the turns since the last renewal; raises SilpError as `turn` does."""
        key = _key(scope, session_id)
        self._alive(key, self._clock())
        return self._store.context(key)

    def close(self, session_id: str, scope: str) -> None:
        """End a session; raises SilpError as `turn` does."""
        key = _key(scope, session_id)
        while not self._swap(key, self._alive(key, self._clock()), None):
            pass

    def _alive(self, key: Key, now: float) -> Record:
        """Return the record of a session as it was last seen, and as it is stored if that says that it is over."""
        record = self._seen.get(key)
        if record is not None and not self._end(record, now):
            return record
        record = self._store.load(key)
        if record is None:
            raise SilpError(
                ErrorCode.SESSION_EXPIRED, f"there is no session {key.session_id[:8]!a} here: open a new one"
            )
        if end := self._end(record, now):
            self._swap(key, record, None)
            what = "a turn for" if end is ErrorCode.TIMEOUT else "an end for more than"
            limit = self.idle_seconds if end is ErrorCode.TIMEOUT else self.max_seconds
            raise SilpError(end, f"session {key.session_id} was without {what} {limit:g} seconds: open a new one")
        return record

    def _end(self, record: Record, now: float) -> ErrorCode | None:
        if now - record.opened > self.max_seconds:
            return ErrorCode.SESSION_EXPIRED
        return ErrorCode.TIMEOUT if now - record.used > self.idle_seconds else None

    def _swap(self, key: Key, old: Record | None, new: Record | None, turn: str | None = None) -> bool:
        done = self._store.swap(key, old, new, turn)
        if new is None or not done:
            self._seen.pop(key, None)
            return done
        if len(self._seen) >= _CACHED:
            self._seen.clear()
        self._seen[key] = new
        return True

    def _stamp(self) -> str:
        return f"{self._origin}{next(self._count) & 0xFFFFFFFF:08x}"


class AsyncSessions:
    """`Sessions` for asyncio: the same methods, run in threads, so that a slow store holds nobody up."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def open(self, scope: str, *, heartbeat: int | None = None) -> str:
        """Do what `Sessions.open` does."""
        return await asyncio.to_thread(self._sessions.open, scope, heartbeat=heartbeat)

    async def turn(self, session_id: str, scope: str, payload: str) -> Turn:
        """Do what `Sessions.turn` does."""
        return await asyncio.to_thread(self._sessions.turn, session_id, scope, payload)

    async def turn_or_reopen(self, session_id: str, scope: str, payload: str) -> Turn:
        """Do what `Sessions.turn_or_reopen` does."""
        return await asyncio.to_thread(self._sessions.turn_or_reopen, session_id, scope, payload)

    async def context(self, session_id: str, scope: str) -> list[str]:
        """Do what `Sessions.context` does."""
        return await asyncio.to_thread(self._sessions.context, session_id, scope)

    async def close(self, session_id: str, scope: str) -> None:
        """Do what `Sessions.close` does."""
        await asyncio.to_thread(self._sessions.close, session_id, scope)


def _key(scope: str, session_id: str) -> Key:
    if not (isinstance(scope, str) and isinstance(session_id, str)):
        raise SilpError(ErrorCode.INVALID_SYNTAX, "the scope and the id of a session are str")
    return Key(scope, session_id)


def _checked(heartbeat: int) -> int:
    if type(heartbeat) is not int or heartbeat not in HEARTBEATS:
        allowed = ", ".join(map(str, HEARTBEATS))
        raise SilpError(ErrorCode.INVALID_SYNTAX, f"the heartbeat is one of {allowed}; found {str(heartbeat)[:20]!a}")
    return heartbeat
