"""The one exception of the package and the protocol's error codes (protocol section 5.1).

Lives here: SilpError, ErrorCode, and the rendering of an offset as a caret line. Not here: any rule that raises one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

__all__ = ["ErrorCode", "Finding", "SilpError", "json_path", "shown", "syntax_error"]

_WINDOW = 40
"""Characters of the payload shown on each side of the caret."""


_LEXEME = re.compile(r"\w{1,24}|.", re.DOTALL)


class ErrorCode(StrEnum):
    """The six payload-decode error codes. A member compares equal to its text."""

    INVALID_SYNTAX = "invalid_syntax"
    UNSUPPORTED_VERSION = "unsupported_version"
    UNSUPPORTED_FRONTEND = "unsupported_frontend"
    DECODE_FAILED = "decode_failed"
    TIMEOUT = "timeout"
    SESSION_EXPIRED = "session_expired"


class Finding(NamedTuple):
    """One thing found: a stable `code`, the JSON path of what it is in, and a sentence that says what to do.

    `offset` is where it is in the text, for what was found in one.
    """

    code: str
    path: str
    message: str
    offset: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON-ready data; an offset that does not apply is left out."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class SilpError(Exception):
    """What every function of this package raises when its input cannot be used.

    Attributes:
        code: one of the six protocol codes.
        message: what is wrong and what to do about it, in one sentence.
        offset: where in the text, counted in characters from 0; None when the fault is not in a text.
        expected, found: what could have stood at the offset and what stands there, where that is known.
        findings: for an IR that breaks the schema, one Finding per fault.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        text: str | None = None,
        offset: int | None = None,
        expected: str | None = None,
        found: str | None = None,
        findings: Sequence[Finding] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.offset = offset
        self.expected = expected
        self.found = found
        self.findings = tuple(findings)
        self._caret = "" if text is None or offset is None else _caret(text, offset)

    def __str__(self) -> str:
        where = "" if self.offset is None else f" (offset {self.offset})"
        lines = [f"{self.code}: {self.message}{where}"]
        if len(self.findings) > 1:
            lines += [f"  {finding.path}: {finding.message}" for finding in self.findings]
        if self._caret:
            lines.append(self._caret)
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.code, self.message), self.__dict__)

    def to_dict(self) -> dict[str, Any]:
        """Return the error as JSON-ready data; fields that do not apply are left out."""
        data: dict[str, Any] = {"code": str(self.code), "message": self.message}
        for name in ("offset", "expected", "found"):
            if (value := getattr(self, name)) is not None:
                data[name] = value
        if self.findings:
            data["findings"] = [finding.to_dict() for finding in self.findings]
        return data


def syntax_error(text: str, offset: int, expected: str, advice: str = "") -> SilpError:
    """Return the SilpError (invalid_syntax) for a text in which `expected` does not stand at `offset`."""
    lexeme = _LEXEME.match(text, offset)
    found = f"'{shown(lexeme[0])}'" if lexeme else "the end of the text"
    return SilpError(
        ErrorCode.INVALID_SYNTAX,
        f"expected {expected}, found {found}" + (f"; {advice}" if advice else ""),
        text=text,
        offset=offset,
        expected=expected,
        found=found,
    )


def json_path(steps: Sequence[str | int]) -> str:
    """Return a JSONPath such as `$.entities[0].value` for the steps from the root."""
    path = "$"
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.isascii() and step.isidentifier():
            path += f".{step}"
        else:
            path += f"[{step!a}]"
    return path


def shown(text: str) -> str:
    """Return `text` fit for a terminal or a log: one line, with everything unprintable written as an escape."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _caret(text: str, offset: int) -> str:
    from unicodedata import combining, east_asian_width

    start, end = max(0, offset - _WINDOW), min(len(text), offset + _WINDOW)
    before, after = shown(text[start:offset]), shown(text[offset:end])
    lead, tail = ("..." if start else ""), ("..." if end < len(text) else "")
    width = sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in before)
    return f"  {lead}{before}{after}{tail}\n  {' ' * (len(lead) + width)}^"
