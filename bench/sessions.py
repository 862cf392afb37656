"""Speed of sessions, as ratios to the bare operation of each store with the same durability, in the same run.

Each round times the base right before the subject, and the result is the median of the ratios of all rounds. Redis is
measured if there is a server on this machine.
"""

from __future__ import annotations

import shutil
import socket
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from redis import Redis, RedisError

from silp.sessions import MemoryStore, RedisStore, Sessions, SqliteStore, Store

ROUNDS, CALLS = 15, 60
PAYLOAD = "if !rain(t+1): start(hike) else: start(cards@indoor)"


def seconds(work: Callable[[int], object], start: int) -> float:
    """Return the seconds per call."""
    before = time.perf_counter()
    for number in range(start, start + CALLS):
        work(number)
    return (time.perf_counter() - before) / CALLS


def compare(name: str, base: Callable[[int], object], store: Store, target: float | None) -> None:
    sessions = Sessions(store, heartbeat=20)
    session_id = sessions.open("bench")

    def turn(_: int) -> None:
        sessions.turn(session_id, "bench", PAYLOAD)

    def opened(number: int) -> None:
        sessions.open(f"bench {number}")

    for what, work in (("turn", turn), ("open", opened)):
        ratios, best = [], float("inf")
        for number in range(ROUNDS):
            unit, own = seconds(base, number * CALLS), seconds(work, number * CALLS)
            ratios.append(own / unit)
            best = min(best, own)
        ratio = statistics.median(ratios)
        verdict = "" if target is None else f"  target {target:.1f}  {'ok' if ratio <= target else 'MISSED'}"
        print(f"  {name:8}{what:6}{1 / best:12,.0f} /s {ratio:8.2f}x{verdict}")


@contextmanager
def redis_url(folder: str) -> Iterator[str | None]:
    """Start a Redis server if there is one on this machine; None if there is not."""
    binary = shutil.which("redis-server")
    if binary is None:
        yield None
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        url = f"redis://127.0.0.1:{port}/0"
        for _ in range(500):
            try:
                Redis.from_url(url).ping()
                break
            except RedisError:
                time.sleep(0.02)
        yield url
    finally:
        process.kill()
        process.wait()


def main() -> None:
    print("sessions, against the bare operation of the store with the same durability")
    with tempfile.TemporaryDirectory() as folder:
        table: dict[int, str] = {}
        compare("memory", lambda number: table.__setitem__(number, PAYLOAD), MemoryStore(), None)

        bare = sqlite3.connect(Path(folder, "bare.db"), isolation_level=None)
        bare.execute("PRAGMA journal_mode = WAL")
        bare.execute("PRAGMA synchronous = FULL")
        bare.execute("CREATE TABLE bare (payload TEXT)")
        insert = "INSERT INTO bare VALUES (?)"
        compare("sqlite", lambda _: bare.execute(insert, (PAYLOAD,)), SqliteStore(Path(folder, "own.db")), 1.5)

        with redis_url(folder) as url:
            if url is None:
                print("  redis: no server on this machine")
                return
            client = Redis.from_url(url)
            compare("redis", lambda number: client.set(f"bare:{number}", PAYLOAD), RedisStore(url), 1.3)


if __name__ == "__main__":
    main()
