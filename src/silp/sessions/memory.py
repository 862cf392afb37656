"""Sessions in the memory of one process."""

from __future__ import annotations

from threading import Lock

from silp.sessions.core import Key, Record

__all__ = ["MemoryStore"]


class MemoryStore:
    """Keeps sessions until the process ends. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sessions: dict[Key, tuple[Record, list[str]]] = {}

    def load(self, key: Key) -> Record | None:
        """Return the record, or None if there is none."""
        stored = self._sessions.get(key)
        return stored[0] if stored else None

    def swap(self, key: Key, old: Record | None, new: Record | None, turn: str | None = None) -> bool:
        """Replace `old` by `new`; return False if another record is stored."""
        with self._lock:
            stored, context = self._sessions.get(key, (None, []))
            if stored != old:
                return False
            if new is None:
                self._sessions.pop(key, None)
                return True
            if new.starts_context:
                context = []
            if turn is not None:
                context.append(turn)
            self._sessions[key] = (new, context)
            return True

    def context(self, key: Key) -> list[str]:
        """Return the turns since the last renewal, in order."""
        with self._lock:
            stored = self._sessions.get(key)
            return list(stored[1]) if stored else []
