"""Sessions in Redis, for many machines. Needs the extra `silp-codec[redis]`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from silp.errors import ErrorCode, SilpError
from silp.sessions.core import MAX_SECONDS, Key, Record

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["RedisStore"]

# Compare and set. A client that lost its connection may run it twice: the second time, the new record stands there.
_SWAP = """
local stored = redis.call('GET', KEYS[1]) or ''
if stored == ARGV[2] and stored ~= '' then return 1 end
if stored ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
    redis.call('DEL', KEYS[1], KEYS[2])
    return 1
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
if ARGV[4] == '1' then redis.call('DEL', KEYS[2]) end
if ARGV[5] then
    redis.call('RPUSH', KEYS[2], ARGV[5])
    redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return 1
"""


class RedisStore:
    """Keeps sessions in a Redis server, which any number of machines may share. Each change is one script.

    What was recorded survives the death of the client; that of the server only if it appends to a file (`appendonly
    yes`), and then what it had not synced yet is lost unless it syncs always (`appendfsync always`). Keys expire by
    themselves after `keep_seconds`, which is at least the `max_seconds` of the sessions. Raises SilpError
    (decode_failed) if the server cannot be reached, and works again when it is back.
    """

    def __init__(
        self,
        client: Redis | str = "redis://localhost:6379/0",
        *,
        prefix: str = "silp",
        keep_seconds: float = MAX_SECONDS,
    ) -> None:
        """`client` is a client of redis-py or the URL of the server."""
        try:
            import redis
        except ImportError:
            message = "sessions in Redis need the extra: pip install 'silp-codec[redis]'"
            raise SilpError(ErrorCode.DECODE_FAILED, message) from None
        self._error = redis.RedisError
        self._client: Any = redis.Redis.from_url(client) if isinstance(client, str) else client
        self._prefix, self._keep = prefix, str(int(keep_seconds * 1000) + 60_000)
        self._script = self._client.register_script(_SWAP)

    def load(self, key: Key) -> Record | None:
        """Return the record, or None if there is none."""
        with self._failing_clearly():
            return _read(self._client.get(self._names(key)[0]))

    def swap(self, key: Key, old: Record | None, new: Record | None, turn: str | None = None) -> bool:
        """Replace `old` by `new`; return False if another record is stored."""
        fresh = "1" if new is not None and new.starts_context else "0"
        arguments = [_written(old), _written(new), self._keep, fresh, *([] if turn is None else [turn])]
        with self._failing_clearly():
            return bool(self._script(keys=self._names(key), args=arguments))

    def context(self, key: Key) -> list[str]:
        """Return the turns since the last renewal, in order."""
        with self._failing_clearly():
            turns = self._client.lrange(self._names(key)[1], 0, -1)
        return [turn.decode() if isinstance(turn, bytes) else turn for turn in turns]

    def _names(self, key: Key) -> list[str]:
        scope = hashlib.sha256(key.scope.encode("utf-8", "surrogatepass")).hexdigest()
        name = f"{self._prefix}:{{{scope}.{key.session_id}}}"  # braces: one slot of a cluster
        return [name, f"{name}:turns"]

    @contextmanager
    def _failing_clearly(self) -> Iterator[None]:
        try:
            yield
        except (self._error, UnicodeEncodeError) as error:
            raise SilpError(ErrorCode.DECODE_FAILED, f"the sessions in Redis cannot be used: {error}") from None


def _written(record: Record | None) -> str:
    return "" if record is None else " ".join(map(repr, record[:-1])) + " " + record.stamp


def _read(text: bytes | str | None) -> Record | None:
    if text is None:
        return None
    turns, heartbeat, opened, used, stamp = (text.decode() if isinstance(text, bytes) else text).split(" ")
    return Record(int(turns), int(heartbeat), float(opened), float(used), stamp)
