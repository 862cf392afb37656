"""Frontends: the notations an IR is compiled into, and decoded from (protocol section 4).

Lives here: the registry, `compile` and `decode`, and the base class for frontends of third parties. The notations
themselves are in the modules below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from silp.errors import ErrorCode, SilpError
from silp.frontends import flat_json, reader, writer
from silp.frontends.notation import CODE, MATH, Notation
from silp.frontends.prose import prose
from silp.ir import SilpIR, as_ir, req_id, require_supported, revalidated
from silp.strict_json import MAX_DEPTH
from silp.text import quote

__all__ = ["Frontend", "MetaMode", "compile", "decode", "get_frontend", "list_frontends", "register_frontend"]

MetaMode = Literal["inline", "omit"]

ENTRY_POINTS = "silp.frontends"
"""Group of the entry points through which installed packages add frontends."""


class Frontend(ABC):
    """A surface encoding of the IR. Subclass it, and check the result with `silp.testing.check_frontend`."""

    name: str
    lossless: ClassVar[bool] = True
    summary: ClassVar[str] = ""

    @abstractmethod
    def compile(self, ir: SilpIR, *, meta: MetaMode, max_depth: int) -> str:
        """Return the payload of a valid IR: one line without invisible characters; raises SilpError."""

    def decode(self, text: str, *, max_depth: int) -> SilpIR:  # noqa: ARG002
        """Return the IR of a payload; raises SilpError: invalid_syntax, or decode_failed where there is no decoding."""
        message = f"{self.name} text does not decode: use a lossless frontend such as code or json"
        raise SilpError(ErrorCode.DECODE_FAILED, message)


class _NotationFrontend(Frontend):
    def __init__(self, name: str, notation: Notation, summary: str) -> None:
        self.name = name
        self.summary = summary  # type: ignore[misc]
        self._notation = notation

    def compile(self, ir: SilpIR, *, meta: MetaMode, max_depth: int) -> str:
        return writer.write(ir, self._notation, meta == "inline", max_depth)

    def decode(self, text: str, *, max_depth: int) -> SilpIR:
        return reader.read(text, self._notation, max_depth)


class _Json(Frontend):
    name = "json"
    summary = "flat JSON object with a slot per argument"

    def compile(self, ir: SilpIR, *, meta: MetaMode, max_depth: int) -> str:
        return flat_json.write(ir, meta == "inline", max_depth)

    def decode(self, text: str, *, max_depth: int) -> SilpIR:
        return flat_json.read(text, max_depth)


class _Natural(Frontend):
    name = "natural"
    lossless = False
    summary = "English prose"

    def compile(self, ir: SilpIR, *, meta: MetaMode, max_depth: int) -> str:
        return prose(ir, meta == "inline", max_depth)


class _NaturalJson(_Natural):
    name = "nl_json"
    summary = "the same prose in a JSON object"

    def compile(self, ir: SilpIR, *, meta: MetaMode, max_depth: int) -> str:
        return f'{{"task_description":{quote(super().compile(ir, meta=meta, max_depth=max_depth))}}}'


_registry: dict[str, Frontend] = {
    frontend.name: frontend
    for frontend in (
        _NotationFrontend("code", CODE, "function calls and conditions: if !rain(t+1): start(hike)"),
        _NotationFrontend("math", MATH, "the same grammar in symbols: ¬rain(t+1) ⇒ start(hike)"),
        _Json(),
        _Natural(),
        _NaturalJson(),
    )
}


def register_frontend(frontend: Frontend, *, replace: bool = False) -> None:
    """Make a frontend available under its name, in this process.

    Raises SilpError (unsupported_frontend) if the name is taken and `replace` is false.
    """
    if frontend.name in _registry and not replace:
        message = f"a frontend named {frontend.name} is registered already: choose another name, or pass replace=True"
        raise SilpError(ErrorCode.UNSUPPORTED_FRONTEND, message)
    _registry[frontend.name] = frontend


def list_frontends() -> dict[str, Frontend]:
    """Return all frontends by name: built in, registered, and installed through the entry point `silp.frontends`.

    Raises SilpError (unsupported_frontend) if an installed one cannot be loaded.
    """
    for name in _installed():
        get_frontend(name)
    return dict(_registry)


def get_frontend(name: str) -> Frontend:
    """Return the frontend of that name; raises SilpError (unsupported_frontend) if there is none."""
    if type(name) is str and name in _registry:
        return _registry[name]
    installed = _installed()
    if isinstance(name, str) and name in installed:
        try:
            frontend = installed[name].load()
            _registry[name] = frontend() if isinstance(frontend, type) else frontend
            return _registry[name]
        except (ImportError, AttributeError, TypeError) as error:
            message = f"the installed frontend {name} cannot be loaded: {error}"
            raise SilpError(ErrorCode.UNSUPPORTED_FRONTEND, message) from error
    known = ", ".join(sorted(_registry.keys() | installed.keys()))
    message = f"there is no frontend {name!a}: use one of {known}, or register it"
    raise SilpError(ErrorCode.UNSUPPORTED_FRONTEND, message, expected=known, found=ascii(name))


def _installed() -> Mapping[Any, Any]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


def compile(
    ir: SilpIR | Mapping[str, Any], frontend: str = "code", *, meta: MetaMode = "inline", max_depth: int = MAX_DEPTH
) -> str:
    """Return the payload text of an IR (protocol section 4).

    The text is one line without invisible characters, and the same for every equivalent IR up to the order of extra
    fields. `meta="omit"` leaves meta out, for an envelope that carries it. Raises SilpError: invalid_syntax for an
    invalid IR or one nested deeper than `max_depth`, unsupported_version, unsupported_frontend.
    """
    if meta not in ("inline", "omit"):
        raise SilpError(ErrorCode.INVALID_SYNTAX, f"meta must be 'inline' or 'omit', found {meta!a}")
    chosen = _registry.get(frontend) if type(frontend) is str else None
    if chosen is None:
        chosen = get_frontend(frontend)
    checked = ir if type(ir) is SilpIR else as_ir(ir)
    try:
        require_supported(checked.silp)
        return chosen.compile(checked, meta=meta, max_depth=max_depth)
    except (AttributeError, KeyError, TypeError, ValueError):
        # The IR was changed behind the back of its models: validate it again, and say what is wrong if it is.
        checked = revalidated(checked)
        require_supported(checked.silp)
        return chosen.compile(checked, meta=meta, max_depth=max_depth)


def decode(text: str, frontend: str = "code", *, max_depth: int = MAX_DEPTH, scope_limited: bool = False) -> SilpIR:
    """Return the IR of a payload text, exactly: nothing is repaired, dropped or guessed (protocol section 4.6).

    `meta.req_id` is computed from the text, with 4 characters if `scope_limited`. Raises SilpError: invalid_syntax with
    the offset, unsupported_version, unsupported_frontend, decode_failed for a frontend that has no decoding.
    """
    chosen = get_frontend(frontend)
    if not isinstance(text, str):
        raise SilpError(ErrorCode.INVALID_SYNTAX, f"expected a payload as str, found {type(text).__name__}")
    ir = chosen.decode(text, max_depth=max_depth)
    if scope_limited:
        ir.meta.req_id = req_id(text, scope_limited=True)
    return ir
