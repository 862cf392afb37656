"""Sessions in Redis, for many machines. Needs the extra `silp-codec[redis]`."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from silp.errors import ErrorCode, SilpError
from silp.sessions.core import MAX_SECONDS, Key, Record

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["RedisStore"]

# A session is one list: its record, which begins with the stamp, and the turns of its context. The arguments are the
# stamp that the stored record must have, the new record, how long to keep the list if the record starts a context, and
# the turn if there is one; empty for none. A client that lost its connection may run this twice: the second time, the
# new record stands there.
_SWAP = b"""
local stored = redis.call('LINDEX', KEYS[1], 0) or ''
if stored == ARGV[2] then return 1 end
if string.sub(stored, 1, 16) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
    redis.call('DEL', KEYS[1])
elseif ARGV[3] ~= '' then
    if stored ~= '' then redis.call('DEL', KEYS[1]) end
    redis.call('RPUSH', KEYS[1], ARGV[2], unpack(ARGV, 4))
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
else
    redis.call('LSET', KEYS[1], 0, ARGV[2])
    if ARGV[4] then redis.call('RPUSH', KEYS[1], ARGV[4]) end
end
return 1
"""
_SWAP_ID = hashlib.sha1(_SWAP, usedforsecurity=False).hexdigest().encode()  # the name that Redis gives a script


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
        self._error, self._no_script = redis.RedisError, redis.exceptions.NoScriptError
        try:
            self._client: Any = redis.Redis.from_url(client) if isinstance(client, str) else client
        except ValueError as error:
            raise SilpError(ErrorCode.DECODE_FAILED, f"{client!a} is no URL of a Redis server: {error}") from None
        self._prefix, self._keep = prefix, b"%d" % (keep_seconds * 1000 + 60_000)

    def load(self, key: Key) -> Record | None:
        """Return the record, or None if there is none."""
        try:
            return _read(self._client.lindex(_name(self._prefix, key), 0))
        except (self._error, UnicodeEncodeError) as error:
            raise _unusable(error) from None

    def swap(self, key: Key, old: Record | None, new: Record | None, turn: str | None = None) -> bool:
        """Replace `old` by `new`; return False if another record is stored."""
        try:
            # Bytes, since the client takes much longer to encode anything else.
            arguments = [
                *(1, _name(self._prefix, key)),
                b"" if old is None else old.stamp.encode(),
                b"" if new is None else _written(new),
                self._keep if new is not None and new.starts_context else b"",
                *([] if turn is None else [turn.encode()]),
            ]
            try:
                return bool(self._client.execute_command("EVALSHA", _SWAP_ID, *arguments))
            except self._no_script:
                return bool(self._client.execute_command("EVAL", _SWAP, *arguments))
        except (self._error, UnicodeEncodeError) as error:
            raise _unusable(error) from None

    def context(self, key: Key) -> list[str]:
        """Return the turns since the last renewal, in order."""
        try:
            turns = self._client.lrange(_name(self._prefix, key), 1, -1)
        except (self._error, UnicodeEncodeError) as error:
            raise _unusable(error) from None
        return [turn.decode() if isinstance(turn, bytes) else turn for turn in turns]


@lru_cache(maxsize=4096)
def _name(prefix: str, key: Key) -> bytes:
    # A digest, since a scope may name a person, and may be long.
    scope = hashlib.sha256(key.scope.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{prefix}:{scope}:{key.session_id}".encode()


def _unusable(error: Exception) -> SilpError:
    return SilpError(ErrorCode.DECODE_FAILED, f"the sessions in Redis cannot be used: {error}")


def _written(record: Record) -> bytes:
    return f"{record.stamp} {record.turns} {record.heartbeat} {record.opened!r} {record.used!r}".encode()


def _read(text: bytes | str | None) -> Record | None:
    if text is None:
        return None
    stamp, turns, heartbeat, opened, used = (text.decode() if isinstance(text, bytes) else text).split(" ")
    return Record(int(turns), int(heartbeat), float(opened), float(used), stamp)
