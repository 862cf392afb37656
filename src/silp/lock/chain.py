"""The chain of entries: walking it, and saying what is wrong with a broken one (docs/lock.md).

Lives here: everything that looks at a sequence of lines. Not here: what a line is (entries), appending (the package).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from silp.errors import ErrorCode, Finding, SilpError
from silp.lock.entries import ENTRY_START, GENESIS, Entry, read_entry

__all__ = ["EMPTY", "Head", "diagnose", "follows", "is_torn", "walk"]


class Head(NamedTuple):
    """The last entry of a record: its sequence number, 0 if there is none, and its digest."""

    sequence: int
    digest: str


EMPTY = Head(0, GENESIS)


def follows(line: bytes, head: Head) -> Entry | None:
    """Return the entry of a line if it is intact and continues a chain that ends in `head`."""
    try:
        entry, fault = read_entry(line)
    except SilpError:
        return None
    return entry if not fault and entry.sequence == head.sequence + 1 and entry.previous == head.digest else None


def is_torn(tail: bytes) -> bool:
    """Return whether what stands behind the last line feed can be the beginning of an entry. A file system that lost
    its power may have left zeros for the rest."""
    begun = tail.rstrip(b"\0")
    return begun.startswith(ENTRY_START) or ENTRY_START.startswith(begun)


def lines(stream: BinaryIO, max_bytes: int) -> Iterator[bytes]:
    """Yield the complete lines of a record; a torn one at the end is left out.

    Only a line feed ends a line: U+2028 and its like are characters of a payload. Raises SilpError (decode_failed) for
    a line of more than `max_bytes`.
    """
    while (line := stream.readline(max_bytes + 1)).endswith(b"\n"):
        yield line
    if len(line) > max_bytes:
        message = f"an entry is longer than {max_bytes} bytes: raise max_entry_bytes if that is meant"
        raise SilpError(ErrorCode.DECODE_FAILED, message)


def walk(stream: BinaryIO, head: Head, max_bytes: int) -> Iterator[tuple[Entry, int]]:
    """Yield the entries that follow `head`, each with the length of its line in bytes.

    Raises SilpError (decode_failed) at the first line that does not continue the chain. Memory: one line.
    """
    for line in lines(stream, max_bytes):
        if (entry := follows(line, head)) is None:
            message = f"compile.lock is broken after entry {head.sequence}: run 'silp lock verify' to see what was done"
            raise SilpError(ErrorCode.DECODE_FAILED, message)
        yield entry, len(line)
        head = Head(entry.sequence, entry.digest)


class _Line(NamedTuple):
    number: int  # from 1
    sequence: int
    digest: str
    previous: str
    fault: str


def diagnose(stream: BinaryIO, max_bytes: int) -> list[Finding]:
    """Return what is wrong with a broken record, in the order of its lines; the path of a finding is `$[line - 1]`.

    Codes: changed, removed, inserted, reordered, duplicate. Memory: the digests of all entries.
    """
    return list(_faults([_line(number, line) for number, line in enumerate(lines(stream, max_bytes), 1)]))


def _line(number: int, line: bytes) -> _Line:
    try:
        entry, fault = read_entry(line)
    except SilpError as error:
        return _Line(number, 0, f"line {number}", "", error.message)
    return _Line(number, entry.sequence, entry.digest, entry.previous, fault)


def _faults(record: list[_Line]) -> Iterator[Finding]:
    claims: dict[int, list[_Line]] = defaultdict(list)  # which lines claim a sequence number
    for line in record:
        if not line.fault:
            claims[line.sequence].append(line)
    sequences = sorted(claims)
    continued = {line.previous for line in record}
    first: dict[str, int] = {}  # the line of each digest
    moved: set[int] = set()  # sequence numbers that stand further down than they should
    sequence, digest = EMPTY  # of the last entry that stands where it should
    certain = True  # whether that digest is what its entry had when the next one was appended

    for line in record:
        if line.fault:
            yield _finding("changed", line, f"line {line.number} was changed: it is {line.fault}")
            sequence, digest, certain = sequence + 1, line.digest, False
            continue
        name = f"entry {line.sequence} (line {line.number})"
        if first.setdefault(line.digest, line.number) != line.number:
            yield _finding("duplicate", line, f"{name} stands on line {first[line.digest]} already")
            continue
        if line.sequence in moved:
            moved.discard(line.sequence)
            continue
        if line.sequence <= sequence:
            rival = claims[line.sequence][0]
            if line.sequence == sequence and line.digest in continued and digest not in continued:
                digest, rival, line = line.digest, line, rival
            yield _finding("inserted", line, f"line {line.number} was inserted: line {rival.number} has its place")
            continue
        if line.sequence > sequence + 1:
            later = sequences[bisect_right(sequences, sequence) : bisect_left(sequences, line.sequence)]
            moved.update(later)
            if later:
                yield _finding("reordered", line, f"{name} stands before entry {', '.join(map(str, later[:5]))}")
            if gone := line.sequence - sequence - 1 - len(later):
                yield _finding("removed", line, f"{gone} of the entries {sequence + 1} to {line.sequence - 1} are gone")
        elif line.previous != digest and certain:
            if rivals := [claim for claim in claims[line.sequence] if claim.previous == digest]:
                yield _finding(
                    "inserted", line, f"line {line.number} was inserted: line {rivals[0].number} has its place"
                )
                continue
            changed = (
                f"entry {sequence} was changed and hashed again" if sequence else "the start of the record is gone"
            )
            yield _finding("changed", line, f"{changed}: {name} was appended to {line.previous}, not to {digest}")
        sequence, digest, certain = line.sequence, line.digest, True


def _finding(code: str, line: _Line, message: str) -> Finding:
    return Finding(code, f"$[{line.number - 1}]", message)
