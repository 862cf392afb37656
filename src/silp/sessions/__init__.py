"""Sessions: 2-character ids, heartbeat, time limits, and the stores that keep them (protocol section 5.2)."""

from silp.sessions.core import (
    HEARTBEATS,
    IDLE_SECONDS,
    IDS,
    MAX_SECONDS,
    AsyncSessions,
    Key,
    Record,
    Sessions,
    Store,
    Turn,
)
from silp.sessions.memory import MemoryStore
from silp.sessions.redis import RedisStore
from silp.sessions.sqlite import SqliteStore

__all__ = [
    "HEARTBEATS",
    "IDLE_SECONDS",
    "IDS",
    "MAX_SECONDS",
    "AsyncSessions",
    "Key",
    "MemoryStore",
    "Record",
    "RedisStore",
    "Sessions",
    "SqliteStore",
    "Store",
    "Turn",
]
