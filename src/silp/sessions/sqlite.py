"""Sessions in an SQLite file: durable, for the processes of one machine."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from silp.errors import ErrorCode, SilpError
from silp.sessions.core import Key, Record

__all__ = ["BUSY_SECONDS", "SqliteStore"]

BUSY_SECONDS = 30.0
"""How long a change waits for those of others."""

_TABLES = """
CREATE TABLE IF NOT EXISTS session (
    scope TEXT, id TEXT, turns INTEGER, heartbeat INTEGER, opened REAL, used REAL, stamp TEXT, PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS turn (
    scope TEXT, id TEXT, number INTEGER, payload TEXT, PRIMARY KEY (scope, id, number)
) WITHOUT ROWID;
"""


class SqliteStore:
    """Keeps sessions in a file. A turn that was recorded survives the death of the process and of the machine.

    Threads and processes may share the file, each process with a store of its own. Raises SilpError (decode_failed) if
    the file cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._path, self._lock = os.fspath(path), Lock()
        with self._failing_clearly():
            self._database = sqlite3.connect(
                self._path, timeout=busy_seconds, isolation_level=None, check_same_thread=False
            )
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.executescript(_TABLES)

    def load(self, key: Key) -> Record | None:
        """Return the record, or None if there is none."""
        with self._lock, self._failing_clearly():
            row = self._database.execute(
                "SELECT turns, heartbeat, opened, used, stamp FROM session WHERE scope = ? AND id = ?", key
            ).fetchone()
        return None if row is None else Record(*row)

    def swap(self, key: Key, old: Record | None, new: Record | None, turn: str | None = None) -> bool:
        """Replace `old` by `new`; return False if another record is stored."""
        with self._lock, self._failing_clearly(), self._transaction() as run:
            if new is None:
                done = run("DELETE FROM session WHERE scope = ? AND id = ? AND stamp = ?", (*key, old and old.stamp))
            elif old is None:
                done = run("INSERT OR IGNORE INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", (*key, *new))
            else:
                done = run(
                    "UPDATE session SET turns = ?, heartbeat = ?, opened = ?, used = ?, stamp = ?"
                    " WHERE scope = ? AND id = ? AND stamp = ?",
                    (*new, *key, old.stamp),
                )
            if not done.rowcount:
                return False
            if new is None or new.starts_context:
                run("DELETE FROM turn WHERE scope = ? AND id = ?", key)
            if new is not None and turn is not None:
                run("INSERT INTO turn VALUES (?, ?, ?, ?)", (*key, new.turns, turn))
            return True

    def context(self, key: Key) -> list[str]:
        """Return the turns since the last renewal, in order."""
        with self._lock, self._failing_clearly():
            rows = self._database.execute("SELECT payload FROM turn WHERE scope = ? AND id = ? ORDER BY number", key)
            return [payload for (payload,) in rows]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield self._database.execute
            self._database.execute("COMMIT")
        finally:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")

    @contextmanager
    def _failing_clearly(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeEncodeError) as error:
            message = f"the sessions in {self._path} cannot be used: {error}"
            raise SilpError(ErrorCode.DECODE_FAILED, message) from None
