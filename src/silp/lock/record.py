"""The record in its file: freezing, looking up, appending, repair after a crash, verifying.

Lives here: everything that opens compile.lock. Not here: the form of an entry (entries), the chain (chain), keys
(signatures).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from threading import RLock
from typing import Any, BinaryIO

import filelock

import silp
from silp.errors import ErrorCode, Finding, SilpError, shown
from silp.frontends import compile, decode, get_frontend
from silp.ir import SilpIR
from silp.lock.chain import EMPTY, Head, diagnose, follows, is_torn, walk
from silp.lock.entries import Entry, digest, ir_digest, is_digest, read_entry, seal, write_entry
from silp.lock.signatures import read_signatures
from silp.validation import Report

__all__ = ["DEFAULT_PATH", "LOCK_TIMEOUT", "MAX_ENTRY_BYTES", "Lock", "LockReport"]

DEFAULT_PATH = Path(".silp", "compile.lock")

MAX_ENTRY_BYTES = 64 * 2**20
"""Longest line that is written or read: one line is held in memory."""

LOCK_TIMEOUT = 60.0
"""Seconds to wait while other processes append: each holds the record for about the time of one fsync."""

_POLL = 0.002


@dataclass(frozen=True)
class LockReport(Report):
    """What was found in a record, and the entries and the head that it has as far as it is intact."""

    entries: int
    head: str

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready data."""
        return {**super().to_dict(), "entries": self.entries, "head": self.head}


class Lock:
    """The record of first compilations in one file.

    Any number of threads and processes may share the file. The first use reads and verifies it once; from then on, work
    does not grow with it. `repairs` lists what was repaired after a crash of somebody who was appending.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = DEFAULT_PATH,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        timeout: float = LOCK_TIMEOUT,
        max_entry_bytes: int = MAX_ENTRY_BYTES,
    ) -> None:
        self.path = Path(path)
        self.repairs: list[Finding] = []
        self._clock = clock
        self._timeout = timeout
        self._max_bytes = max_entry_bytes
        self._mutex = RLock()
        self._guard = filelock.FileLock(f"{self.path}.lock", thread_local=False)
        self._forget()

    def _forget(self) -> None:
        self._file = (0, 0)
        self._head = EMPTY
        self._last, self._end = 0, 0  # where the last entry starts and ends
        self._last_line = ""  # its digest
        self._places: dict[tuple[str, str], int] = {}  # where the entry of an IR digest and a frontend starts

    def compile(self, ir: SilpIR | Mapping[str, Any], frontend: str = "code") -> str:
        """Return the payload that was first compiled from an equivalent IR; compiles and freezes it if there is none.

        Raises SilpError as `freeze` does.
        """
        return self.freeze(ir, frontend).payload

    def freeze(self, ir: SilpIR | Mapping[str, Any], frontend: str = "code") -> Entry:
        """Return the entry of an IR in a frontend, appended if there was none. Once it returns, the entry is on disk.

        Raises SilpError: whatever `silp.compile` raises; unsupported_frontend for a frontend that does not decode,
        since nobody could check its entry; decode_failed if the record is broken, the found entry is forged, or the
        file cannot be written; timeout if others kept the record for too long.
        """
        if not get_frontend(frontend).lossless:
            message = f"{frontend} text does not decode, so nobody could check its entry: lock code, math or json"
            raise SilpError(ErrorCode.UNSUPPORTED_FRONTEND, message)
        key = (ir_digest(ir), frontend)
        if entry := self._find(key):
            return entry
        payload = compile(ir, frontend)
        if fault := _forged(frontend, payload, key[0]):
            raise SilpError(ErrorCode.DECODE_FAILED, f"not frozen, since {fault}: correct the frontend {frontend}")
        with self._mutex, self._exclusively():
            return self._find(key) or self._append(key, payload)

    def find(self, ir: SilpIR | Mapping[str, Any], frontend: str = "code") -> Entry | None:
        """Return the entry that froze an equivalent IR in this frontend, or None.

        Raises SilpError: invalid_syntax for an invalid IR, decode_failed if the record is broken or the entry forged.
        """
        return self._find((ir_digest(ir), frontend))

    def require(self, ir: SilpIR | Mapping[str, Any], frontend: str = "code", *, payload: str | None = None) -> Entry:
        """Return the entry that froze an equivalent IR, if `payload` is the frozen one; by default, if this codec still
        compiles the frozen one.

        Raises SilpError (decode_failed) if the IR is not in the record, or if the payload differs.
        """
        if (entry := self.find(ir, frontend)) is None:
            message = f"the record has no {frontend} payload of this IR: if the change is meant, run 'silp lock add'"
            raise SilpError(ErrorCode.DECODE_FAILED, message)
        if payload is None:
            if drift := _drift(entry):
                raise SilpError(ErrorCode.DECODE_FAILED, drift)
        elif payload != entry.payload:
            message = f"the payload is not the frozen one, which is {entry.payload}"
            raise SilpError(ErrorCode.DECODE_FAILED, message, expected=entry.payload, found=payload)
        return entry

    def entries(self) -> Iterator[Entry]:
        """Yield all entries in order; raises SilpError (decode_failed) where the chain breaks. Memory: one entry."""
        with self._opened() as stream:
            for entry, _ in walk(stream, EMPTY, self._max_bytes):
                yield entry

    def head(self) -> Head:
        """Return the head of the record, to be anchored elsewhere; raises SilpError (decode_failed) if it is broken."""
        with self._mutex, self._opened() as stream:
            self._catch_up(stream)
            return self._head

    def verify(
        self, *, head: str | None = None, key: str | os.PathLike[str] | None = None, payloads: bool = True
    ) -> LockReport:
        """Return what is wrong with the record.

        Errors: `changed`, `removed`, `inserted`, `reordered`, `duplicate` for lines of a broken chain; `forged` for an
        entry whose payload does not decode to its IR (left out if `payloads` is false); `truncated` if the digest
        `head`, anchored earlier, is not that of an entry; `bad_signature` if the signatures of the Ed25519 public key
        in the file `key` do not fit. Warnings: `torn` for an incomplete last line, `unknown_frontend` for payloads that
        cannot be decoded here, `unsigned` for entries behind the last signature.

        Raises SilpError: invalid_syntax if `head` is no digest, decode_failed if there is no record or an entry is
        beyond `max_entry_bytes`. Memory: one entry;
        for a broken record, its digests.
        """
        if head is not None and not is_digest(head):
            raise SilpError(
                ErrorCode.INVALID_SYNTAX, f"{head!a} is no digest: a head is 'sha256:' and 64 hex characters"
            )
        errors: list[Finding] = []
        warnings: list[Finding] = []
        signed = read_signatures(self.path, key, errors) if key is not None else {}
        reached, anchored, end = EMPTY, head in (None, EMPTY.digest), 0
        with self._opened() as stream:
            try:
                for entry, length in walk(stream, EMPTY, self._max_bytes):
                    reached, end = Head(entry.sequence, entry.digest), end + length
                    anchored = anchored or entry.digest == head
                    if signed.get(entry.sequence, entry.digest) != entry.digest:
                        message = f"entry {entry.sequence} is not the one that was signed: the record was written anew"
                        errors.append(Finding("bad_signature", f"$[{entry.sequence - 1}]", message))
                    if payloads:
                        _check_payload(entry, errors, warnings)
                stream.seek(end)
                if tail := stream.read():
                    message = f"the last line is incomplete ({len(tail)} bytes)"
                    if is_torn(tail):
                        message += ": the next append mends it"
                        warnings.append(Finding("torn", f"$[{reached.sequence}]", message))
                    else:
                        message += ", and begins as no entry does"
                        errors.append(Finding("changed", f"$[{reached.sequence}]", message))
            except SilpError:
                stream.seek(0)
                errors += diagnose(stream, self._max_bytes)
        if not anchored:
            message = f"no entry has the digest {head}: entries at the end were cut off, or the record was written anew"
            errors.append(Finding("truncated", "$", message))
        if (last := max(signed, default=reached.sequence)) > reached.sequence:
            message = f"entry {last} was signed, and the record ends at entry {reached.sequence}: its end was cut off"
            errors.append(Finding("truncated", "$", message))
        elif last < reached.sequence and key is not None:
            message = f"the entries behind entry {last} are not signed yet"
            warnings.append(Finding("unsigned", f"$[{last}]", message))
        return LockReport(tuple(errors), tuple(warnings), reached.sequence, reached.digest)

    def check(self) -> LockReport:
        """Return which entries the codec of today does not stand by.

        Errors: `forged` for an entry whose payload does not decode to its IR, `drift` for one whose IR compiles into
        another payload today, `frozen_twice` for one that is not the first of its IR and frontend. Warnings:
        `unknown_frontend`. Raises SilpError (decode_failed) if there is no record or its chain is broken.
        """
        errors: list[Finding] = []
        warnings: list[Finding] = []
        first: dict[tuple[str, str], int] = {}
        reached = EMPTY
        for entry in self.entries():
            reached = Head(entry.sequence, entry.digest)
            path = f"$[{entry.sequence - 1}]"
            if _check_payload(entry, errors, warnings) and (drift := _drift(entry)):
                errors.append(Finding("drift", path, drift))
            if (earlier := first.setdefault((entry.ir_digest, entry.frontend), entry.sequence)) != entry.sequence:
                message = f"entry {entry.sequence} freezes what entry {earlier} has frozen"
                errors.append(Finding("frozen_twice", path, message))
        return LockReport(tuple(errors), tuple(warnings), reached.sequence, reached.digest)

    def _find(self, key: tuple[str, str]) -> Entry | None:
        if not self.path.exists():
            return None
        with self._mutex, self._opened() as stream:
            self._catch_up(stream)
            if key not in self._places:
                return None
            stream.seek(self._places[key])
            line = stream.readline()
        entry, fault = read_entry(line)
        fault = fault or _forged(key[1], entry.payload, key[0])
        if fault:
            raise SilpError(ErrorCode.DECODE_FAILED, f"entry {entry.sequence} of {self.path} is forged: {fault}")
        return entry

    def _catch_up(self, stream: BinaryIO) -> None:
        """Read what was appended since the last time, or all of it if the file is not the one that was read then."""
        status = os.fstat(stream.fileno())
        file = (status.st_dev, status.st_ino)
        stream.seek(self._last)
        if file != self._file or digest(stream.read(self._end - self._last)) != self._last_line:
            self._forget()
            self._file = file
            stream.seek(0)
        for entry, length in walk(stream, self._head, self._max_bytes):
            self._places.setdefault((entry.ir_digest, entry.frontend), self._end)
            self._head = Head(entry.sequence, entry.digest)
            self._last, self._end = self._end, self._end + length
        stream.seek(self._last)
        self._last_line = digest(stream.read(self._end - self._last))

    def _append(self, key: tuple[str, str], payload: str) -> Entry:
        with self.path.open("ab", buffering=0) as stream:
            self._mend(stream)
            entry = seal(
                codec=f"silp-codec/{silp.__version__}",
                frontend=key[1],
                ir_digest=key[0],
                payload=payload,
                previous=self._head.digest,
                sequence=self._head.sequence + 1,
                time=_timestamp(self._clock()),
            )
            line = write_entry(entry)
            if len(line) > self._max_bytes:
                message = f"the entry has {len(line)} bytes, more than {self._max_bytes}: raise max_entry_bytes"
                raise SilpError(ErrorCode.INVALID_SYNTAX, message)
            try:
                _write(stream, line)
            except OSError:
                with suppress(OSError):  # else the next append finds a torn line, and mends it
                    stream.truncate(self._end)
                raise
        return entry

    def _mend(self, stream: FileIO) -> None:
        """Complete or cut off a torn last line, whose writer never returned from its append."""
        with self._opened() as reader:
            self._catch_up(reader)
            reader.seek(self._end)
            tail = reader.read()
            if not tail:
                return
            if not is_torn(tail):
                message = f"{self.path} is no record, or was changed: its end ({len(tail)} bytes) is no entry"
                raise SilpError(ErrorCode.DECODE_FAILED, message)
            whole = follows(tail + b"\n", self._head)
            if whole:
                _write(stream, b"\n")
            else:
                stream.truncate(self._end)
        message = f"the last line was incomplete ({len(tail)} bytes), and was {'completed' if whole else 'cut off'}"
        self.repairs.append(Finding("torn", f"$[{self._head.sequence}]", message))
        if whole:
            self._mend(stream)

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        try:
            with self.path.open("rb") as stream:
                yield stream
        except OSError as error:
            raise self._failed("read", error) from None

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Keep others from appending, and make what was created meanwhile durable."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._guard.acquire(self._timeout, poll_interval=_POLL):
                new = not self.path.exists()
                yield
                if new:
                    _make_durable(self.path.parent)
                    _make_durable(self.path.parent.parent)
        except filelock.Timeout:
            message = f"others kept {self.path} for {self._timeout} seconds: try again, or raise the timeout"
            raise SilpError(ErrorCode.TIMEOUT, message) from None
        except OSError as error:
            raise self._failed("append to", error) from None

    def _failed(self, action: str, error: OSError) -> SilpError:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
        return SilpError(ErrorCode.DECODE_FAILED, f"cannot {action} {self.path}: {reason}")


def _forged(frontend: str, payload: str, wanted: str) -> str:
    """Return why a payload is not one of the IR with the digest `wanted`, or an empty text."""
    try:
        return "" if ir_digest(decode(payload, frontend)) == wanted else "its payload decodes to another IR"
    except SilpError as error:
        return f"its payload does not decode: {error.message}"


def _check_payload(entry: Entry, errors: list[Finding], warnings: list[Finding]) -> bool:
    """Return whether the payload of an entry decodes to its IR; if not, add a finding."""
    path = f"$[{entry.sequence - 1}]"
    try:
        get_frontend(entry.frontend)
    except SilpError as error:
        warnings.append(Finding("unknown_frontend", path, f"entry {entry.sequence} was not checked: {error.message}"))
        return False
    if fault := _forged(entry.frontend, entry.payload, entry.ir_digest):
        errors.append(Finding("forged", path, f"entry {entry.sequence} is forged: {fault}"))
    return not fault


def _drift(entry: Entry) -> str:
    """Return how the codec of today differs from the one that made the entry, or an empty text."""
    today = compile(decode(entry.payload, entry.frontend), entry.frontend)
    if today == entry.payload:
        return ""
    return (
        f"entry {entry.sequence} was frozen by {shown(entry.codec)} as {entry.payload}, and compiles to {today} today"
    )


def _timestamp(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _write(stream: FileIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) :]
    os.fsync(stream.fileno())


def _make_durable(folder: Path) -> None:
    if os.name == "posix":  # elsewhere a folder cannot be opened, and need not be
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
