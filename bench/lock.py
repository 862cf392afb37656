"""Speed of compile.lock, as ratios to plain hashing of the same file and to a bare durable append, in the same run."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import silp
from silp.lock import Lock
from silp.lock.chain import EMPTY, Head
from silp.lock.entries import ir_digest, seal, write_entry

ENTRIES = 100_000


def ir(number: int) -> silp.SilpIR:
    return silp.decode(f"if !rain(t+{number}): start(hike) else: start(cards@indoor)")


def write_record(path: Path, count: int) -> None:
    """Write a record without syncing each entry."""
    head = EMPTY
    with path.open("wb") as stream:
        for number in range(count):
            entry = seal(
                codec=f"silp-codec/{silp.__version__}",
                frontend="code",
                ir_digest=ir_digest(ir(number)),
                payload=silp.compile(ir(number)),
                previous=head.digest,
                sequence=head.sequence + 1,
                time="2026-12-01T09:30:15.123Z",
            )
            stream.write(write_entry(entry))
            head = Head(entry.sequence, entry.digest)


def seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the seconds of the best round."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def hash_lines(path: Path) -> None:
    with path.open("rb") as stream:
        for line in stream:
            hashlib.sha256(line).hexdigest()


def verifying(path: Path) -> None:
    print(f"verifying {ENTRIES} entries, {path.stat().st_size / 1e6:.0f} MB")
    bare = seconds(lambda: hash_lines(path), 3)
    chain = seconds(lambda: Lock(path).verify(payloads=False), 3)
    whole = seconds(Lock(path).verify, 1)
    for name, taken in (("hashing each line", bare), ("verify --chain-only", chain), ("verify", whole)):
        print(f"  {name:34}{ENTRIES / taken:12,.0f} entries/s {taken / bare:8.2f}x")
    tracemalloc.start()
    Lock(path).verify(payloads=False)
    print(f"  memory at the peak {tracemalloc.get_traced_memory()[1] / 1e3:.0f} KB")
    tracemalloc.stop()


def appending(path: Path) -> None:
    """Print the cost of an append at three sizes, against a bare append with the same durability."""
    print("appending, against write and fsync of as many bytes to a file beside it")
    for count in (10, 1_000, ENTRIES):
        if count < ENTRIES:
            write_record(path, count)
        else:
            path.with_suffix(".big").replace(path)
        lock, line = Lock(path), b"x" * (path.stat().st_size // count)
        lock.head()
        irs = [ir(ENTRIES + number) for number in range(200)]
        with path.with_suffix(".bare").open("ab", buffering=0) as stream:
            start = time.perf_counter()
            for _ in irs:
                stream.write(line)
                os.fsync(stream.fileno())
            bare = time.perf_counter() - start
        start = time.perf_counter()
        for each in irs:
            lock.compile(each)
        taken = time.perf_counter() - start
        print(f"  to {count:7} entries {taken / len(irs) * 1e6:20.0f} us {taken / bare:8.2f}x")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        big = Path(folder, "compile.big")
        write_record(big, ENTRIES)
        verifying(big)
        appending(Path(folder, "compile.lock"))
