"""JSON as SILP reads and writes it: RFC 8259 with nothing left to the reader's taste.

Lives here: reading JSON that refuses duplicate keys, NaN and Infinity, numbers out of range, lone surrogates and deep
nesting; writing JSON values; finding where in a text a path lies. Not here: what the values mean.

Two readers share the work. The standard library's is fast and decides most texts; `_walk` decides the rest and names
the offset of whatever is wrong, the same one on every Python.
"""

from __future__ import annotations

import json
import json.scanner
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from math import isfinite
from types import NoneType
from typing import Any, NoReturn, cast

from silp.errors import ErrorCode, SilpError, json_path, syntax_error
from silp.text import escape_invisible

__all__ = [
    "JSON_WHITESPACE",
    "MAX_DEPTH",
    "MAX_DIGITS",
    "STRING_PATTERN",
    "locate",
    "nesting",
    "not_json",
    "parse_json",
    "read_json",
    "unquote",
    "write_json",
]

MAX_DEPTH = 128
"""Deepest nesting of arrays, objects and brackets that is read or written unless the caller says otherwise. What agents
exchange stays below 20; what goes far beyond attacks the recursion of whoever reads it next."""

MAX_DIGITS = 4300
"""Longest integer, in digits: the conversion of longer ones takes Python quadratic time, which it refuses as well."""

JSON_WHITESPACE = " \t\n\r"

_TOO_LONG = 10**MAX_DIGITS
_LONG_INTEGER = f"an integer of more than {MAX_DIGITS} digits"
_SPACE = re.compile(f"[{JSON_WHITESPACE}]*+")
_STRING = r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
STRING_PATTERN = _STRING + '"'
"""Pattern of a JSON string literal; it cannot backtrack."""

_TOKEN = re.compile(
    rf'(?P<string>{_STRING}(?P<closed>")?+)|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+)'
    r"|(?P<literal>(?:true|false|null)\b)|(?P<mark>[\[\]{},:])"
)
_NOT_BRACKET = re.compile(rf'{STRING_PATTERN}|[^\[\]{{}}"]++')
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_RAW_SURROGATE = re.compile("[\ud800-\udfff]")
_LONE_SURROGATE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2}|[\ud800-\udfff])|\\."
)

# What `_walk` waits for; the texts are those of its errors.
_VALUE, _VALUE_OR_CLOSE = "a JSON value", "a JSON value or ']'"
_KEY, _KEY_OR_CLOSE = "a key in double quotes", "a key in double quotes or '}'"
_COLON, _NEXT_ITEM, _NEXT_MEMBER = "':'", "',' or ']'", "',' or '}'"


class _RefusedError(ValueError):
    """The fast reader met something that only `_walk` can place."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _RefusedError
    return members


def _finite(literal: str) -> float:
    if isfinite(number := float(literal)):
        return number
    raise _RefusedError


def _refuse(literal: str) -> NoReturn:
    raise _RefusedError(literal)


_scan: Callable[[str, int], tuple[Any, int]] = json.scanner.make_scanner(
    json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse)  # type: ignore[arg-type]
)
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode


def parse_json(text: str, *, max_depth: int = MAX_DEPTH) -> Any:
    """Return the value of a whole JSON text; raises SilpError (invalid_syntax) with the offset of the first fault."""
    value, end = read_json(text, 0 if text[:1] == "{" else _skip_space(text, 0), max_depth=max_depth)
    if end != len(text) and (end := _skip_space(text, end)) != len(text):
        raise syntax_error(text, end, "the end of the text", "remove what follows the JSON value")
    return value


def read_json(text: str, offset: int, *, max_depth: int = MAX_DEPTH) -> tuple[Any, int]:
    """Return the JSON value that starts at `offset`, and the offset behind it; raises SilpError like `parse_json`."""
    try:
        value, end = _scan(text, offset)
    except (StopIteration, ValueError, RecursionError):
        pass
    else:
        deep = text.count("[", offset, end) + text.count("{", offset, end) > max_depth
        surrogate = ("\\u" in text or not text.isascii()) and _SURROGATE.search(text, offset, end)
        if not surrogate and not (deep and nesting(text[offset:end]) > max_depth):
            return value, end
    for _ in _walk(text, offset, max_depth):
        pass
    try:
        return _scan(text, offset)
    except RecursionError:
        advice = "the Python stack is too small for its nesting: lower max_depth"
        raise SilpError(ErrorCode.DECODE_FAILED, advice, text=text, offset=offset) from None


def unquote(text: str, offset: int, literal: str) -> str:
    """Return the value of the JSON string `literal` that stands in `text` at `offset`; raises like `parse_json`."""
    return literal[1:-1] if "\\" not in literal else str(read_json(text, offset)[0])


def locate(text: str, path: Sequence[str | int]) -> int:
    """Return the offset in a JSON text of the value at `path`, or of the deepest value on the way that exists."""
    best, found = -1, 0
    for steps, offset in _walk(text, _skip_space(text, 0), sys.maxsize):
        if len(steps) > best and steps == list(path[: len(steps)]):
            best, found = len(steps), offset
    return found


def write_json(value: object, *, max_depth: int = MAX_DEPTH) -> str:
    """Return `value` as compact one-line JSON without invisible characters.

    Raises SilpError (invalid_syntax) if it is not JSON data or nests deeper than `max_depth`.
    """
    if reason := not_json(value, max_depth=max_depth):
        raise SilpError(ErrorCode.INVALID_SYNTAX, reason)
    try:
        return escape_invisible(_encode(value))
    except (ValueError, RecursionError) as error:
        raise SilpError(ErrorCode.INVALID_SYNTAX, f"this value cannot be written as JSON: {error}") from None


def not_json(value: object, *, max_depth: int | None = None) -> str:
    """Return why `value` is not JSON data, or an empty string if it is.

    JSON data: str without lone surrogates, bool, int, finite float, None, and lists and dicts (with str keys) of these
    that do not contain themselves. Cost: linear in the size of the value, no recursion.
    """
    path: list[str | int] = []
    open_values: list[tuple[int, Iterator[tuple[str | int, object]]]] = []
    ancestors: set[int] = set()
    while True:
        reason, children = _inspect(value)
        if children is not None:
            if id(value) in ancestors:
                reason = "a value that contains itself is not JSON data"
            elif max_depth is not None and len(open_values) >= max_depth:
                reason = f"nested deeper than {max_depth} levels: flatten the data, or raise max_depth"
        if reason:
            return f"{reason} (at {json_path(path)})" if path else reason
        if children is not None:
            open_values.append((id(value), children))
            ancestors.add(id(value))
            path.append(0)
        while open_values:
            if (child := next(open_values[-1][1], None)) is not None:
                path[-1], value = child
                break
            ancestors.discard(open_values.pop()[0])
            path.pop()
        if not open_values:
            return ""


def _inspect(value: object) -> tuple[str, Iterator[tuple[str | int, object]] | None]:
    kind = type(value)  # exactly: what JSON gives back for a subclass would not be equal to it
    if kind is str:
        return _not_utf8(str(value)), None
    if kind is list:
        return "", enumerate(cast("list[object]", value))
    if kind is dict:
        members = cast("dict[object, object]", value)
        reasons = (_not_utf8(key) if type(key) is str else f"{_named(key)} is not a string" for key in members)
        return next(filter(None, reasons), ""), iter(cast("dict[str, object]", members).items())
    if kind is float and not isfinite(cast("float", value)):
        return f"{value} is not a JSON number: leave it out, or write it as a string", None
    if kind is int and abs(cast("int", value)) >= _TOO_LONG:
        return f"{_LONG_INTEGER} is not kept: write it as a string", None
    if kind in (int, float, bool, NoneType):
        return "", None
    return f"a {kind.__name__} is not JSON data: convert it first", None


def _named(key: object) -> str:
    # What a stranger's __repr__ does is unknown.
    return f"the key {key!r}" if type(key) in (int, float, bool, NoneType) else f"a key of type {type(key).__name__}"


def _not_utf8(text: str) -> str:
    if text.isascii() or not (surrogate := _RAW_SURROGATE.search(text)):
        return ""
    return f"U+{ord(surrogate[0]):04X}, a lone surrogate, cannot be encoded as UTF-8: remove it"


def nesting(json_text: str) -> int:
    """Return how many arrays and objects of a valid JSON text are open at once, at the most."""
    return max(accumulate(1 if bracket in "[{" else -1 for bracket in _NOT_BRACKET.sub("", json_text)), default=0)


def _skip_space(text: str, offset: int) -> int:
    space = _SPACE.match(text, offset)
    return space.end() if space else offset


def _walk(text: str, offset: int, max_depth: int) -> Iterator[tuple[list[str | int], int]]:
    """Yield (path, offset) of each value of the JSON value at `offset`, parents first; the path is live, copy to keep.

    Raises SilpError at the first character that cannot continue a strict JSON value. No recursion.
    """
    path: list[str | int] = []
    seen: list[set[str]] = []  # the keys so far of each open object; an open array has an index in the path instead
    waiting = _VALUE
    while True:
        offset = _skip_space(text, offset)
        token = _TOKEN.match(text, offset)
        kind = (token["mark"] or token.lastgroup) if token else None
        if (kind == "]" and waiting in (_VALUE_OR_CLOSE, _NEXT_ITEM)) or (
            kind == "}" and waiting in (_KEY_OR_CLOSE, _NEXT_MEMBER)
        ):
            path.pop()
            seen.pop()
            waiting = ""
        elif waiting in (_VALUE, _VALUE_OR_CLOSE) and token and kind in ("string", "number", "literal", "[", "{"):
            if path and isinstance(path[-1], int):
                path[-1] += 1
            _check_scalar(text, offset, token)
            yield path, offset
            waiting = ""
            if kind in ("[", "{"):
                if len(seen) >= max_depth:
                    message = f"nested deeper than {max_depth} levels: flatten the data, or raise max_depth"
                    raise SilpError(ErrorCode.INVALID_SYNTAX, message, text=text, offset=offset)
                seen.append(set())
                path.append(-1 if kind == "[" else "")
                waiting = _VALUE_OR_CLOSE if kind == "[" else _KEY_OR_CLOSE
        elif waiting in (_KEY, _KEY_OR_CLOSE) and token and kind == "string":
            _check_scalar(text, offset, token)
            path[-1] = key = json.loads(token[0])
            if key in seen[-1]:
                message = f"the key {token[0]} stands twice in one object: keep one of them"
                raise SilpError(ErrorCode.INVALID_SYNTAX, message, text=text, offset=offset)
            seen[-1].add(key)
            waiting = _COLON
        elif waiting == _COLON and kind == ":":
            waiting = _VALUE
        elif waiting in (_NEXT_ITEM, _NEXT_MEMBER) and kind == ",":
            waiting = _VALUE if waiting == _NEXT_ITEM else _KEY
        else:
            raise syntax_error(text, offset, waiting)
        offset = token.end() if token else offset
        if not waiting:
            if not path:
                return
            waiting = _NEXT_ITEM if isinstance(path[-1], int) else _NEXT_MEMBER


def _check_scalar(text: str, offset: int, token: re.Match[str]) -> None:
    lexeme, end = token[0], token.end()
    if token["number"]:
        integer = lexeme.lstrip("-").isdecimal()
        if len(lexeme.lstrip("-")) > MAX_DIGITS if integer else not isfinite(float(lexeme)):
            reason = _LONG_INTEGER if integer else "a number beyond the range of a double"
            message = f"{reason} is not kept: write it as a string"
            raise SilpError(ErrorCode.INVALID_SYNTAX, message, text=text, offset=offset)
    elif token["string"]:
        for unit in _LONE_SURROGATE.finditer(text, offset, end):
            if unit[1]:
                message = "a lone surrogate cannot be encoded as UTF-8: remove it, or write both halves of the pair"
                raise SilpError(ErrorCode.INVALID_SYNTAX, message, text=text, offset=unit.start())
        if not token["closed"]:
            if text[end : end + 1] == "\\":
                raise syntax_error(text, end, "an escape that JSON knows", "write a backslash itself as \\\\")
            advice = "write control characters as escapes, such as \\n" if end < len(text) else "close the string"
            raise syntax_error(text, end, "'\"'", advice)
