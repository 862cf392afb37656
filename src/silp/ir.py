"""The intermediate representation (protocol section 3) and its normal form (wire format, section 1).

Lives here: the five models, strict JSON in and out, the normative schema, normal form, equivalence and req_id. Not
here: rules beyond the schema (validation) and any notation (frontends).
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from silp.errors import ErrorCode, Finding, SilpError, json_path, shown
from silp.strict_json import MAX_DEPTH, MAX_DIGITS, locate, not_json, parse_json, write_json

__all__ = [
    "IR_VERSION",
    "SILP_VERSION",
    "Alternative",
    "Constraint",
    "Entity",
    "Meta",
    "SilpIR",
    "as_ir",
    "equivalent",
    "function_name",
    "invalid_ir",
    "is_action_code",
    "json_schema",
    "normalize",
    "req_id",
    "require_supported",
    "revalidated",
    "trusted",
]

SILP_VERSION = "v1"
IR_VERSION = "ir-v0.1"

_VALUE, _NULL = "<value>", "<null>"  # labels of the branches below, to tell their errors apart

_ACTION = r"^![A-Z][A-Z_]*$"
_ACTION_CODE = re.compile(_ACTION[1:-1])


class _NullIsAbsent:
    """Annotation of a field that has a default: JSON null stands for the default (wire format, section 1)."""

    def __init__(self, default: Callable[[], object]) -> None:
        self._default = default

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        absent = core_schema.no_info_after_validator_function(lambda _: self._default(), core_schema.none_schema())
        return core_schema.union_schema([(handler(source), _VALUE), (absent, _NULL)], mode="left_to_right")


class _WholeNumber:
    """Annotation of an integer field: JSON Schema counts 2.0 as an integer, and true as none."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        largest = 10**MAX_DIGITS - 1
        integer = core_schema.int_schema(strict=True, ge=-largest, le=largest)
        whole = core_schema.no_info_after_validator_function(_whole, core_schema.float_schema(strict=True))
        return core_schema.union_schema(
            [integer, whole],
            mode="left_to_right",
            custom_error_type="not_integer",
            custom_error_message="not an integer",
        )


def _whole(number: float) -> int:
    if not number.is_integer():
        raise ValueError(number)
    return int(number)


def _json_data(value: object) -> object:
    if reason := not_json(value):
        raise PydanticCustomError("not_json", "{reason}", {"reason": reason})
    return value


# A length limit, even one that cannot be reached, makes pydantic-core check that a str is encodable as UTF-8.
Text = Annotated[str, Field(max_length=sys.maxsize)]
Action = Annotated[str, Field(pattern=_ACTION)]


class _Part(BaseModel):
    """A sub-object: unknown fields are kept untouched (protocol section 1.3, principle 5)."""

    model_config = ConfigDict(extra="allow", strict=True, validate_assignment=True)
    if TYPE_CHECKING:
        __pydantic_extra__: dict[str, Any] = Field(init=False)  # or type checkers would ask for it as an argument
    else:
        __pydantic_extra__: dict[Text, Annotated[Any, AfterValidator(_json_data)]]


class Entity(_Part):
    """An argument slot of the primary call, or of a secondary one if `action` names another verb (section 3.2)."""

    id: Text
    value: Text
    action: Action | None = None


class Constraint(_Part):
    """A condition; `!` before the type negates. `subject` and `operator` are common extra fields (section 3.3)."""

    type: Text
    value: Text
    time: Text | None = None


class Alternative(_Part):
    """A fallback action, for when the constraints are not met (section 3.4)."""

    action: Action
    target: Text | None = None
    location: Text | None = None


class Meta(_Part):
    """Protocol-level metadata (section 3.5)."""

    req_id: Annotated[str, Field(pattern=r"^[a-f0-9]{4,8}$")]
    session_id: Text | None = None
    priority: Annotated[int, _WholeNumber(), _NullIsAbsent(int)] = 0
    confidence: Annotated[float, Field(ge=0, le=1), _NullIsAbsent(lambda: 1.0)] = 1.0
    seq: Annotated[list[Text], _NullIsAbsent(list), Field(default_factory=list)]
    out: Annotated[Text, _NullIsAbsent(lambda: "natural")] = "natural"
    next_agent: Text | None = None


class SilpIR(BaseModel):
    """The root object (section 3.1). Unknown fields are an error.

    The constructor and `model_validate` raise pydantic's ValidationError, as every pydantic model does; `from_json`,
    `from_dict` and all functions of this package raise SilpError.
    """

    model_config = ConfigDict(extra="forbid", strict=True, validate_assignment=True)

    silp: Annotated[str, Field(pattern=r"^v[0-9]+$"), _NullIsAbsent(lambda: SILP_VERSION)] = SILP_VERSION
    version: Annotated[Text, _NullIsAbsent(lambda: IR_VERSION)] = IR_VERSION
    intent: Action
    entities: Annotated[list[Entity], _NullIsAbsent(list), Field(default_factory=list)]
    constraints: Annotated[list[Constraint], _NullIsAbsent(list), Field(default_factory=list)]
    alternatives: Annotated[list[Alternative], _NullIsAbsent(list), Field(default_factory=list)]
    meta: Meta

    @classmethod
    def from_json(cls, text: str, *, max_depth: int = MAX_DEPTH) -> Self:
        """Return the IR of a strict JSON text.

        Raises SilpError (invalid_syntax) with the offset: malformed JSON, duplicate keys, NaN, Infinity and numbers out
        of range, lone surrogates, trailing data, nesting deeper than `max_depth`, and whatever breaks the schema.
        """
        if not isinstance(text, str):
            raise SilpError(ErrorCode.INVALID_SYNTAX, f"expected JSON text as str, found {type(text).__name__}")
        data = parse_json(text, max_depth=max_depth)
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise invalid_ir(error, text=text, place=lambda path: locate(text, path)) from None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the IR of plain JSON data; raises SilpError (invalid_syntax) with one finding per fault."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise invalid_ir(error) from None

    def to_dict(self) -> dict[str, Any]:
        """Return the IR as plain data in schema order; absent fields are left out, extra fields come last."""
        try:
            return {name: _plain(value) for name, value in self.__dict__.items()}
        except RecursionError:
            raise SilpError(ErrorCode.INVALID_SYNTAX, "the IR holds a list that contains itself: remove it") from None

    def to_json(self, *, max_depth: int = MAX_DEPTH) -> str:
        """Return the IR as one line of compact JSON that `from_json` reads back, free of invisible characters.

        Raises SilpError (invalid_syntax) if it nests deeper than `max_depth`.
        """
        return write_json(self.to_dict(), max_depth=max_depth)


ModelT = TypeVar("ModelT", bound=BaseModel)

_set_fields = BaseModel.__dict__["__dict__"].__set__
_set_names, _set_extra, _set_private = (
    BaseModel.__dict__[slot].__set__
    for slot in ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def trusted(model: type[ModelT], fields: dict[str, Any], extra: dict[str, Any] | None) -> ModelT:
    """Return a model of all its fields, in order, and its extra fields, without validating them.

    For readers whose grammar guarantees every type and pattern already: validation would double their time.
    """
    instance = _new(model)
    _set_fields(instance, fields)
    _set_names(instance, {*fields})
    _set_extra(instance, extra)
    _set_private(instance, None)
    return instance


_new = object.__new__


def _plain(value: Any) -> Any:
    if isinstance(value, _Part):
        fields = {name: field for name, field in value.__dict__.items() if field is not None}
        return {**fields, **(value.__pydantic_extra__ or {})}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def is_action_code(text: str) -> bool:
    """Return whether `text` is an action code, such as `!START` (section 3.7)."""
    return _ACTION_CODE.fullmatch(text) is not None


@lru_cache(maxsize=1024)
def function_name(action: str) -> str:
    """Return the function name of an action code: `cancel` for `!CANCEL` (section 3.7); else raises SilpError."""
    if not is_action_code(action):
        raise SilpError(ErrorCode.INVALID_SYNTAX, f"{action!a} is not an action code, such as !START")
    return action[1:].lower()


def as_ir(data: SilpIR | Mapping[str, Any]) -> SilpIR:
    """Return `data` as a SilpIR; raises SilpError (invalid_syntax) if it is not a valid IR."""
    return data if isinstance(data, SilpIR) else SilpIR.from_dict(data)


def revalidated(ir: SilpIR) -> SilpIR:
    """Return the IR validated again, for when it was changed behind the back of its models; raises SilpError
    (invalid_syntax) if it is no valid IR any more."""
    try:
        data = ir.model_dump(warnings=False)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise SilpError(ErrorCode.INVALID_SYNTAX, f"the IR was changed and is no IR any more: {error}") from None
    return SilpIR.from_dict(data)


def require_supported(version: str, *, text: str | None = None, offset: int | None = None) -> None:
    """Raise SilpError (unsupported_version) if this codec does not speak `version` of the protocol, which stands in
    `text` at `offset`."""
    if version != SILP_VERSION:
        message = f"protocol version {version} is not supported: this codec speaks {SILP_VERSION}"
        raise SilpError(
            ErrorCode.UNSUPPORTED_VERSION, message, text=text, offset=offset, expected=SILP_VERSION, found=version
        )


@cache
def _json_schema_text() -> str:
    return (files("silp") / "data" / "silp-ir-schema.json").read_text("utf-8")


def json_schema() -> dict[str, Any]:
    """Return a copy of the normative JSON Schema (Draft 2020-12) of the IR (protocol section 3.9)."""
    schema: dict[str, Any] = json.loads(_json_schema_text())
    return schema


def req_id(payload: str, *, scope_limited: bool = False) -> str:
    """Return the request id of a payload text: the first 8 hex characters of its SHA-256 (protocol section 3.6).

    `scope_limited=True` returns 4, which is only fit for short-lived sessions with few concurrent requests. Raises
    SilpError (invalid_syntax) for what is no text in UTF-8.
    """
    try:
        return hashlib.sha256(payload.encode()).hexdigest()[: 4 if scope_limited else 8]
    except (UnicodeEncodeError, AttributeError, TypeError):
        raise SilpError(ErrorCode.INVALID_SYNTAX, "a payload is a str without lone surrogates") from None


def normalize(ir: SilpIR | Mapping[str, Any]) -> dict[str, Any]:
    """Return the normal form of an IR as plain data (wire format, section 1).

    Defaults are filled in, each entity has its action, absent optional fields are left out, arrays keep their order,
    extra fields their JSON types, and meta has no req_id. Raises SilpError (invalid_syntax) for an invalid IR.
    """
    root = (revalidated(ir) if isinstance(ir, SilpIR) else SilpIR.from_dict(ir)).to_dict()
    intent = root["intent"]
    root["entities"] = [
        {"id": entity.pop("id"), "value": entity.pop("value"), "action": entity.pop("action", intent), **entity}
        for entity in root["entities"]
    ]
    del root["meta"]["req_id"]
    return root


def equivalent(a: SilpIR | Mapping[str, Any], b: SilpIR | Mapping[str, Any]) -> bool:
    """Return whether two IRs have the same normal form, numbers compared by JSON type and value."""
    pairs: list[tuple[Any, Any]] = [(normalize(a), normalize(b))]
    while pairs:
        left, right = pairs.pop()
        if type(left) is not type(right):
            return False
        if isinstance(left, dict):
            if left.keys() != right.keys():
                return False
            pairs += [(left[key], right[key]) for key in left]
        elif isinstance(left, list):
            if len(left) != len(right):
                return False
            pairs += zip(left, right, strict=True)
        elif left != right:
            return False
    return True


_EXPECTED_TYPE = {
    "string_type": "a string",
    "not_integer": "an integer",
    "float_type": "a number",
    "list_type": "an array",
    "model_type": "an object",
}
_EXPECTED_PATTERN = {
    "silp": ("bad_version", "'v' and digits, such as v1"),
    "req_id": ("bad_req_id", "4 to 8 of the characters 0-9 and a-f, such as 1a2b3c4d"),
}
_EXPECTED_ACTION = ("bad_action_code", "'!' and an upper-case verb, such as !START")


def _explain(kind: str, steps: list[str | int], value: object, context: Mapping[str, Any]) -> tuple[str, str]:
    name = next((step for step in reversed(steps) if isinstance(step, str)), "the IR")
    subject = f"each item of {name}" if steps and isinstance(steps[-1], int) else name
    if kind == "missing":
        return "missing_field", f"the required field {name} is missing: add it"
    if kind == "extra_forbidden":
        return "unknown_field", f"the root has no field {shown(name)}: remove it, or move it into meta"
    if kind == "string_pattern_mismatch":
        code, expected = _EXPECTED_PATTERN.get(name, _EXPECTED_ACTION)
        return code, f"{name} must be {expected}; found {_excerpt(value)}"
    if kind in _EXPECTED_TYPE:
        return "wrong_type", f"{subject} must be {_EXPECTED_TYPE[kind]}; found {_excerpt(value)}"
    if kind == "not_json":
        return "not_json", f"{name} is not JSON data: {context['reason']}"
    if kind == "string_unicode":
        return "not_utf8", f"{shown(name)} holds a lone surrogate, which cannot be encoded as UTF-8: remove it"
    return "out_of_range", f"{name} must be a number from 0 to 1; found {_excerpt(value)}"


def _excerpt(value: object) -> str:
    text = ascii(value) if not isinstance(value, int) or abs(value) < 10**40 else "an integer of over 40 digits"
    return text if len(text) <= 60 else text[:57] + "..."


def invalid_ir(
    error: ValidationError,
    *,
    within: str = "",
    text: str | None = None,
    place: Callable[[list[str | int]], int] | None = None,
) -> SilpError:
    """Return the SilpError (invalid_syntax) for data that broke the schema.

    `within` names the root field that was validated, if not the root itself; `place` gives the offset in `text` of the
    value at a path.
    """
    above: list[str | int] = [within] if within else []
    faults = [fault for fault in error.errors(include_url=False) if _NULL not in fault["loc"]]
    paths = [above + [step for step in fault["loc"] if step != _VALUE] for fault in faults]
    findings = [
        Finding(code, json_path(path), message)
        for fault, path in zip(faults, paths, strict=True)
        for code, message in [_explain(fault["type"], path, fault["input"], fault.get("ctx", {}))]
    ]
    message = f"not a valid IR: {findings[0].message} (at {findings[0].path})"
    offset = place(paths[0]) if place else None
    return SilpError(ErrorCode.INVALID_SYNTAX, message, text=text, offset=offset, findings=findings)
