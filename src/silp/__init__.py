"""SILP, the Semantic Interlingua Layer Protocol: a lossless payload codec for tasks that agents hand each other.

>>> import silp
>>> ir = silp.decode("if !rain(t+1): start(hike) else: start(cards@indoor)")
>>> ir.intent, ir.constraints[0].type, ir.alternatives[0].location
('!START', '!rain', 'indoor')
>>> silp.compile(ir, "natural")
'If not rain at t+1, start hike otherwise start cards at indoor.'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "MAX_DEPTH",
    "Alternative",
    "Constraint",
    "Entity",
    "ErrorCode",
    "Finding",
    "Frontend",
    "Lock",
    "Meta",
    "Policy",
    "Received",
    "Report",
    "SilpError",
    "SilpIR",
    "compile",
    "decode",
    "equivalent",
    "get_frontend",
    "json_schema",
    "list_frontends",
    "normalize",
    "receive",
    "register_frontend",
    "req_id",
    "sanitize",
    "validate",
]

if TYPE_CHECKING:
    from silp.errors import ErrorCode, Finding, SilpError
    from silp.frontends import Frontend, compile, decode, get_frontend, list_frontends, register_frontend
    from silp.hidden import sanitize
    from silp.ir import (
        Alternative,
        Constraint,
        Entity,
        Meta,
        SilpIR,
        equivalent,
        json_schema,
        normalize,
        req_id,
    )
    from silp.lock import Lock
    from silp.receiving import Policy, Received, receive
    from silp.strict_json import MAX_DEPTH
    from silp.validation import Report, validate

# pydantic takes longer to load than most programs that import silp take to run, so names load on first use.
_HOME = {
    name: module
    for module, names in {
        "silp.errors": "ErrorCode Finding SilpError",
        "silp.frontends": "Frontend compile decode get_frontend list_frontends register_frontend",
        "silp.ir": "Alternative Constraint Entity Meta SilpIR equivalent json_schema normalize req_id",
        "silp.hidden": "sanitize",
        "silp.lock": "Lock",
        "silp.receiving": "Policy Received receive",
        "silp.strict_json": "MAX_DEPTH",
        "silp.validation": "Report validate",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'silp' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
