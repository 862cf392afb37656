"""Entries of compile.lock: what a line of the record is, and its digests (docs/lock.md).

Lives here: the entry, its one spelling, digests of IRs, payloads and entries. Not here: chains of entries and files.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import rfc8785

from silp.errors import ErrorCode, SilpError
from silp.ir import SilpIR, normalize

__all__ = [
    "GENESIS",
    "Entry",
    "canonical_json",
    "digest",
    "ir_digest",
    "is_digest",
    "read_entry",
    "seal",
    "write_entry",
]

_LARGEST_SAFE = 2**53 - 1
_TAGS = ("$float", "$integer", "$object")

_STRING = r'"((?:[^"\\\x00-\x1f]++|\\(?:["\\bfnrt]|u00(?:0[0-7be-f]|1[0-9a-f])))*+)"'
_DIGEST = r'"(sha256:[0-9a-f]{64})"'
_TIME = r'"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z)"'
_LINE = re.compile(
    rf'\{{"codec":{_STRING},"digest":{_DIGEST},"frontend":{_STRING},"ir_digest":{_DIGEST},"payload":{_STRING},'
    rf'"payload_digest":{_DIGEST},"previous":{_DIGEST},"sequence":([1-9][0-9]{{0,14}}),"time":{_TIME}\}}\n'
)
"""The canonical form of an entry: RFC 8785 leaves no choice in how to write these members."""


ENTRY_START = b'{"codec":"'


class Entry(NamedTuple):
    """One frozen payload. The members are those of the line, in the order of their names.

    `sequence` counts from 1; `time` is UTC in RFC 3339 with milliseconds; the digests are texts, `sha256:` and 64 hex
    characters. `req_id` of the payload is the first 8 of those of `payload_digest`.
    """

    codec: str
    digest: str
    frontend: str
    ir_digest: str
    payload: str
    payload_digest: str
    previous: str
    sequence: int
    time: str


def digest(data: bytes) -> str:
    """Return the SHA-256 of `data` as the record writes it."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def is_digest(text: str) -> bool:
    """Return whether `text` has the form of a digest."""
    return re.fullmatch(_DIGEST, f'"{text}"') is not None


GENESIS = digest(b"silp compile.lock v1")
"""What the first entry names as the digest before it: the version of the format."""


def canonical_json(value: Any) -> bytes:
    """Return the RFC 8785 form of `value`, plain JSON data whose numbers are doubles."""
    return rfc8785.dumps(value)


def ir_digest(ir: SilpIR | Mapping[str, Any]) -> str:
    """Return the digest of the normal form of an IR: equal for two IRs exactly if they are equivalent.

    RFC 8785 knows doubles only, so what it would confuse or refuse is tagged before (docs/lock.md): an integer of an
    extra field beyond 2^53 - 1 becomes `{"$integer": "<digits>"}`, a float without a fraction `{"$float": <number>}`,
    and an object that looks like one of these `{"$object": ...}`. Raises SilpError (invalid_syntax) for an invalid IR.
    """
    normal = normalize(ir)
    confidence = normal["meta"].pop("confidence")  # a number in every spelling (wire format, section 1)
    try:
        tagged = _tagged(normal)
        tagged["meta"]["confidence"] = confidence
        return digest(canonical_json(tagged))
    except RecursionError:
        message = "the IR nests deeper than the Python stack allows: flatten its extra fields"
        raise SilpError(ErrorCode.INVALID_SYNTAX, message) from None


def _tagged(value: Any) -> Any:
    if isinstance(value, dict):
        members = {name: _tagged(member) for name, member in value.items()}
        return {"$object": members} if len(members) == 1 and next(iter(members)) in _TAGS else members
    if isinstance(value, list):
        return [_tagged(item) for item in value]
    if isinstance(value, float):
        return {"$float": value} if value.is_integer() else value
    if isinstance(value, int) and abs(value) > _LARGEST_SAFE:
        return {"$integer": str(value)}
    return value


def seal(*, codec: str, frontend: str, ir_digest: str, payload: str, previous: str, sequence: int, time: str) -> Entry:
    """Return the entry with its digests."""
    members: dict[str, Any] = {
        "codec": codec,
        "frontend": frontend,
        "ir_digest": ir_digest,
        "payload": payload,
        "payload_digest": digest(payload.encode()),
        "previous": previous,
        "sequence": sequence,
        "time": time,
    }
    return Entry(digest=digest(canonical_json(members)), **members)


def write_entry(entry: Entry) -> bytes:
    """Return the line of an entry: its RFC 8785 form and a line feed."""
    return canonical_json(entry._asdict()) + b"\n"


def read_entry(line: bytes) -> tuple[Entry, str]:
    """Return the entry of a line, and what is wrong with its digests: an empty text if nothing is.

    Raises SilpError (invalid_syntax) if the line is no entry in its one spelling.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text = ""
    if not (match := _LINE.fullmatch(text)):
        raise SilpError(ErrorCode.INVALID_SYNTAX, "not an entry in canonical form" + _hint(line))
    codec, own, frontend, ir, payload, payload_digest, previous, sequence, time = match.groups()
    entry = Entry(
        _unquote(codec), own, _unquote(frontend), ir, _unquote(payload), payload_digest, previous, int(sequence), time
    )
    # The line without its own digest is the canonical form that the digest is of.
    start, end = match.span(2)
    if digest((text[: start - len('"digest":"')] + text[end + len('",') : -1]).encode()) != own:
        return entry, "its digest is not that of its members"
    if digest(entry.payload.encode()) != payload_digest:
        return entry, "its payload_digest is not that of its payload"
    return entry, ""


def _unquote(literal: str) -> str:
    return literal if "\\" not in literal else str(json.loads(f'"{literal}"'))


def _hint(line: bytes) -> str:
    if line.endswith(b"\r\n"):
        return ": it ends in CR LF; tell the version control to leave the file alone, as in '.silp/* -text'"
    if line.startswith((b"<<<<<<<", b"=======", b">>>>>>>")):
        return ": it marks a merge conflict; keep one side, and add the IRs of the other again"
    return ""
