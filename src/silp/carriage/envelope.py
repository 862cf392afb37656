"""The envelope: three fields that carry a payload inside any JSON object (wire format, section 7).

Lives here: `wrap`, `unwrap`, and the rule of how meta inside and outside of the payload go together. Not here: where in
a message of MCP, A2A or AIDIP the fields stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from silp.errors import ErrorCode, Finding, SilpError
from silp.frontends import compile
from silp.ir import SilpIR, as_ir, normalize, req_id, require_supported
from silp.receiving import Policy, admit, read, require_size
from silp.strict_json import parse_json, write_json

__all__ = ["ENCODING", "FIELDS", "META", "PAYLOAD", "Unwrapped", "unwrap", "wrap"]

FIELDS = ENCODING, PAYLOAD, META = ("silp_encoding", "silp_payload", "silp_meta")


@dataclass(frozen=True)
class Unwrapped:
    """What an envelope held: the IR with its whole meta, the frontend, the payload, what `receive` found, and `rest`,
    the other members of the object as they were."""

    ir: SilpIR
    frontend: str
    payload: str
    findings: tuple[Finding, ...]
    rest: dict[str, Any]


def wrap(
    ir: SilpIR | Mapping[str, Any], into: Mapping[str, Any] | None = None, *, frontend: str = "code"
) -> dict[str, Any]:
    """Return the members of `into`, untouched, and the three fields that carry an IR beside them.

    The payload leaves meta out: `silp_meta` has it, in normal form, with the req_id of the payload and, as `silp`, the
    version of the protocol. Raises SilpError: invalid_syntax if `into` has such a field already, or if meta has a field
    `silp`, whose place is taken; and whatever `silp.compile` raises.
    """
    others = dict(into or {})
    if taken := [name for name in FIELDS if name in others]:
        _refuse(f"the object has the field {taken[0]} already: unwrap it first, or carry the payload elsewhere")
    checked = as_ir(ir)
    payload = compile(checked, frontend, meta="omit")
    meta = normalize(checked)["meta"]
    if "silp" in meta:
        _refuse("meta has a field silp, which an envelope uses for the version of the protocol: rename it")
    return {
        **others,
        ENCODING: frontend,
        PAYLOAD: payload,
        META: {"silp": checked.silp, "req_id": req_id(payload), **meta},
    }


def unwrap(data: Mapping[str, Any], *, policy: Policy | None = None) -> Unwrapped | None:
    """Return what the envelope in a JSON object carries, or None if it has none of the three fields.

    `silp_meta` may be missing; meta may stand in the payload, too, if both say the same. The req_id is that of the
    envelope, or else that of the payload. Raises SilpError: invalid_syntax for half an envelope, a field of the wrong
    type, something encoded twice, or meta that disagrees; and whatever `silp.receive`
    raises for the payload: its policy is for the meta outside, too.
    """
    if not any(name in data for name in FIELDS):
        return None
    if missing := [name for name in (ENCODING, PAYLOAD) if name not in data]:
        _refuse(f"half an envelope: {missing[0]} is missing beside {', '.join(set(FIELDS) & data.keys())}")
    frontend, payload, meta = data[ENCODING], data[PAYLOAD], data.get(META)
    if not isinstance(frontend, str):
        _refuse(f"{ENCODING} is the name of a frontend, found {_kind(frontend)}")
    if not isinstance(payload, str):
        _refuse(f"{PAYLOAD} is the text of a payload, found {_kind(payload)}: write it with silp.compile")
    if isinstance(meta, str):
        _refuse(f"{META} is encoded twice: it is a string, where the object itself belongs")
    if meta is not None and not isinstance(meta, Mapping):
        _refuse(f"{META} is an object, found {_kind(meta)}")
    policy = policy or Policy()
    try:
        received = read(payload, frontend, policy)
    except SilpError:
        if within := _encoded_within(payload):
            _refuse(f"{PAYLOAD} is encoded twice: it holds {within}, where the payload itself belongs")
        raise
    if meta is not None:
        written = write_json(dict(meta), max_depth=policy.max_depth)
        require_size(payload + written, policy)
        received = replace(received, ir=_with_meta(received.ir, dict(meta)), payload=f"{received.payload}\n{written}")
    received = admit(received, policy)
    rest = {name: value for name, value in data.items() if name not in FIELDS}
    return Unwrapped(received.ir, frontend, payload, received.findings, rest)


def _with_meta(ir: SilpIR, outside: dict[str, Any]) -> SilpIR:
    version = outside.pop("silp", ir.silp)
    if isinstance(version, str) and version != ir.silp:
        require_supported(version)
    inside = ir.meta.model_dump(exclude_defaults=True)
    own_id = inside.pop("req_id")
    outside.setdefault("req_id", own_id)
    merged = SilpIR.from_dict({**ir.__dict__, "silp": version, "meta": {**inside, **outside}})
    if inside:
        given = merged.meta.model_dump()
        if differing := [
            n for n, value in inside.items() if n in outside and write_json(given[n]) != write_json(value)
        ]:
            _refuse(f"meta in the payload and in {META} disagree about {differing[0]}")
    return merged


def _encoded_within(payload: str) -> str:
    """Return what a text is that holds a payload instead of being one; an empty text if it is nothing of that kind."""
    try:
        value = parse_json(payload)
    except SilpError:
        return ""
    if isinstance(value, str):
        return "a JSON string"
    return "an envelope" if isinstance(value, dict) and PAYLOAD in value else ""


def _kind(value: object) -> str:
    names = {dict: "an object", list: "an array", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else f"a {type(value).__name__}")


def _refuse(message: str) -> NoReturn:
    raise SilpError(ErrorCode.INVALID_SYNTAX, message)
