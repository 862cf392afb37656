"""The receiving side: the one door for payloads from outside (protocol sections 8.1 to 8.5).

Lives here: `receive`, its policy with all limits, and the scanners that come with it. Not here: what is removed from a
text (hidden), what is read as ASCII (look_alikes), and exact decoding (frontends). See SECURITY.md for what this stops
and what it cannot stop.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from silp.errors import ErrorCode, Finding, SilpError, json_path
from silp.frontends import decode, get_frontend
from silp.frontends.notation import MATH
from silp.frontends.words import escape_kept
from silp.hidden import TextFinding, original_offset, sanitize
from silp.ir import Alternative, Constraint, Entity, Meta, SilpIR
from silp.look_alikes import mixed_words, normalize_names
from silp.strict_json import JSON_WHITESPACE
from silp.text import is_visible
from silp.validation import actions, check_rules
from silp.verbs import APPROVED

__all__ = [
    "ControlTokens",
    "HiddenText",
    "LookAlikes",
    "Policy",
    "Received",
    "Scanner",
    "admit",
    "inspect",
    "read",
    "receive",
    "require_size",
    "strings_of",
]


_KNOWN_FIELDS = frozenset[str]().union(
    *(model.model_fields for model in (SilpIR, Entity, Constraint, Alternative, Meta))
)


class Scanner(Protocol):
    """What looks at a decoded payload for more than its form. A scanner that raises refuses the payload."""

    def scan(self, ir: SilpIR, text: str) -> Iterable[Finding]:
        """Return what is suspicious in an IR; `text` is the payload it was decoded from, cleaned, and in a second line
        the meta that an envelope had beside it."""


class ControlTokens:
    """Finds tokens by which chat templates mark turns and tools, `<|im_end|>` and the like: text that ends a prompt."""

    _PATTERN = re.compile(
        r"<\|[^|<>\s]{1,40}\|>|<｜[^｜<>]{1,40}｜>|</?s>|\[/?INST\]|<</?SYS>>|</?(?:start|end)_of_turn>|</?tool_(?:call|response)>"
        r"|\[/?(?:TOOL_CALLS|AVAILABLE_TOOLS)\]|\n\n(?:Human|Assistant|System):",
        re.IGNORECASE,
    )

    def scan(self, ir: SilpIR, text: str) -> Iterator[Finding]:
        """Yield a finding `control_token` for each string that holds one."""
        if "\\" not in text and not self._PATTERN.search(text):
            return  # without escapes, strings are what the text shows
        for path, value in strings_of(ir):
            if token := self._PATTERN.search(value):
                message = f"{token[0].strip()!a} is a control token of a chat template: do not paste it into a prompt"
                yield Finding("control_token", path, message)


class HiddenText:
    """Finds hidden characters that a sender wrote as escapes: they are part of a value, and nobody sees them."""

    def scan(self, ir: SilpIR, text: str) -> Iterator[Finding]:
        """Yield a finding `hidden_text` for each string with hidden characters that mean nothing where they stand."""
        if "\\" not in text and is_visible(text.replace("\n", "")):
            return
        for path, value in strings_of(ir):
            harmful = [found for found in sanitize(value)[1] if found.kind not in ("line_break", "tab", "space")]
            if harmful:
                message = f"{len(harmful)} hidden characters, the first {harmful[0].code_point} {harmful[0].name}"
                yield Finding("hidden_text", path, f"{message}: do not show this string without 'silp inspect'")


class LookAlikes:
    """Finds words that mix scripts as no language does, such as Latin letters with one Cyrillic look-alike."""

    def scan(self, ir: SilpIR, text: str) -> Iterator[Finding]:
        """Yield a finding `mixed_script` for each such word."""
        if "\\" not in text and text.isascii():
            return
        for path, value in strings_of(ir):
            for word in mixed_words(value):
                message = f"{word!a} mixes scripts: check that it is the word that it looks like"
                yield Finding("mixed_script", path, message)


@dataclass(frozen=True)
class Policy:
    """What a receiver accepts.

    Attributes:
        strict: refuse look-alikes in names, unknown operators, repeated keyword ids and whatever a scanner finds, and
            remove joiners and selectors even where they mean something. Otherwise all of this is reported.
        verbs: the action codes that may be used; None for all but the excluded ones.
        needs_approval: action codes with consequences. A payload that uses one is refused unless `approve`, called with
            the IR and those of its actions, returns True.
        max_bytes: size of a payload in UTF-8. A task is a few hundred bytes; a document belongs beside it.
        max_entities, max_constraints, max_alternatives: counts; what agents exchange has single digits.
        max_value_length: characters of any one string.
        max_depth: nesting of JSON and brackets.
        scanners: what looks at the decoded IR.
    """

    strict: bool = False
    verbs: frozenset[str] | None = APPROVED
    needs_approval: frozenset[str] = frozenset()
    approve: Callable[[SilpIR, tuple[str, ...]], bool] | None = None
    max_bytes: int = 1_048_576
    max_entities: int = 1_000
    max_constraints: int = 200
    max_alternatives: int = 200
    max_value_length: int = 65_536
    max_depth: int = 32
    scanners: tuple[Scanner, ...] = (ControlTokens(), HiddenText(), LookAlikes())


@dataclass(frozen=True)
class Received:
    """A payload that was let in: its IR, the frontend it is in, and what was removed from it or looked suspicious.

    The offsets of findings are those in the text as it came; `payload` is the text without what was removed.
    """

    ir: SilpIR
    frontend: str
    findings: tuple[Finding, ...]
    payload: str

    @property
    def req_id(self) -> str:
        """Return the request id: that of the payload without what was removed, as its sender computed it."""
        return self.ir.meta.req_id


def receive(text: str, frontend: str | None = None, *, policy: Policy | None = None) -> Received:
    """Return what a payload from outside says, if the policy lets it in.

    In order: size, `sanitize`, look-alikes, decoding, counts, validation, verbs, approval, scanners. Without a named
    frontend, a text that begins with a brace is json, any other is math if only that reads it, otherwise code.

    Raises SilpError: what decode raises, with offsets in the cleaned text that its caret line shows; and decode_failed
    for what the policy refuses, with the findings.
    """
    policy = Policy() if policy is None else policy
    return admit(read(text, frontend, policy), policy)


def read(text: str, frontend: str | None, policy: Policy) -> Received:
    """Do the first half of `receive`: return what a payload says, cleaned and decoded, but not let in yet."""
    require_size(text, policy)
    clean, removed = sanitize(text, strict=policy.strict)
    name, ir, payload, look_alikes = _read(clean, frontend, policy)
    findings = [_located(found, found.offset) for found in removed]
    # Mixed scripts are the business of a scanner, which sees values as they are meant and knows their paths.
    look_alikes = tuple(found for found in look_alikes if found.kind == "look_alike")
    findings += [_located(found, original_offset(found.offset, removed)) for found in look_alikes]
    return Received(ir, name, tuple(findings), payload)


def admit(received: Received, policy: Policy) -> Received:
    """Do the second half of `receive`: return what was read with all findings, if the policy lets it in."""
    ir, payload = received.ir, received.payload
    findings = list(received.findings)
    _check_counts(ir, payload, policy)
    report = check_rules(ir, "strict" if policy.strict else "advisory")
    if not report.ok:
        raise _refusal("the IR breaks the rules", report.errors)
    findings += [finding for finding in report.warnings if finding.code != "unknown_verb"]
    _check_verbs(ir, policy)
    findings += _approved(ir, policy)
    suspicious = [finding for scanner in policy.scanners for finding in _scan(scanner, ir, payload)]
    if suspicious and policy.strict:
        raise _refusal("the payload is suspicious", suspicious)
    return replace(received, findings=(*findings, *suspicious))


def require_size(text: str, policy: Policy) -> None:
    """Raise SilpError if `text` is no str (invalid_syntax) or larger than the policy allows (decode_failed)."""
    if not isinstance(text, str):
        raise SilpError(ErrorCode.INVALID_SYNTAX, f"expected a payload as str, found {type(text).__name__}")
    if len(text) > policy.max_bytes or len(text.encode("utf-8", "surrogatepass")) > policy.max_bytes:
        raise _refusal(f"the payload is larger than {policy.max_bytes} bytes: send less, or raise max_bytes")


def inspect(text: str, frontend: str | None = None) -> tuple[TextFinding, ...]:
    """Return every hidden character and look-alike of a text, by offset, whatever the text is.

    Without a named frontend, a text that begins with a brace is looked at as json, any other as code and math.
    """
    _, removed = sanitize(text, strict=True)
    clean, kept_removed = sanitize(text)
    found = {(each.offset, each.kind): each for each in (*removed, *kept_removed)}
    for name in _candidates(clean, frontend):
        for each in normalize_names(clean, name)[1]:
            offset = original_offset(each.offset, kept_removed)
            found.setdefault((offset, each.kind), each._replace(offset=offset))
    return tuple(sorted(found.values(), key=lambda each: each.offset))


def strings_of(ir: SilpIR) -> Iterator[tuple[str, str]]:
    """Yield every string of an IR, keys of extra fields included, with its JSON path."""
    pending: list[tuple[list[str | int], Any]] = [([], ir.to_dict())]
    while pending:
        path, value = pending.pop()
        if isinstance(value, str):
            yield json_path(path), value
        elif isinstance(value, list):
            pending += [([*path, index], item) for index, item in enumerate(value)]
        elif isinstance(value, dict):
            for key, item in value.items():
                if key not in _KNOWN_FIELDS:
                    yield json_path([*path, key]), key
                pending.append(([*path, key], item))


def _read(clean: str, frontend: str | None, policy: Policy) -> tuple[str, SilpIR, str, tuple[TextFinding, ...]]:
    errors: list[SilpError] = []
    for name in _candidates(clean, frontend):
        try:
            named, look_alikes = normalize_names(clean, name, strict=policy.strict)
            payload = escape_kept(named, name)
            return name, decode(payload, name, max_depth=policy.max_depth), payload, look_alikes
        except SilpError as error:
            errors.append(error)
    raise max(errors, key=lambda error: error.offset or 0)


def _candidates(clean: str, frontend: str | None) -> list[str]:
    """Return the frontends that a cleaned text may be in."""
    if frontend is not None:
        return [get_frontend(frontend).name]
    if clean.lstrip(JSON_WHITESPACE).startswith("{"):
        return ["json"]
    # No text reads as both with different meanings: a symbol of math ends every bare word there.
    return ["code", "math"] if any(symbol in clean for symbol in MATH.own_delimiters) else ["code"]


def _located(found: TextFinding, offset: int) -> Finding:
    return Finding(found.kind, "$", found.message, offset)


def _check_counts(ir: SilpIR, payload: str, policy: Policy) -> None:
    counts = (
        ("entities", len(ir.entities), policy.max_entities),
        ("constraints", len(ir.constraints), policy.max_constraints),
        ("alternatives", len(ir.alternatives), policy.max_alternatives),
    )
    for name, count, limit in counts:
        if count > limit:
            raise _refusal(f"{count} {name} are more than {limit}: split the task, or raise max_{name}")
    if len(payload) <= policy.max_value_length:
        return  # no string of an IR is longer than the text that it was read from
    for path, value in strings_of(ir):
        if len(value) > policy.max_value_length:
            limit = policy.max_value_length
            raise _refusal(f"the string at {path} is longer than {limit} characters: raise max_value_length to take it")


def _check_verbs(ir: SilpIR, policy: Policy) -> None:
    if policy.verbs is None:
        return
    message = "is not among the verbs that this receiver takes"
    refused = [Finding("verb", path, f"{code} {message}") for path, code in actions(ir) if code not in policy.verbs]
    if refused:
        raise _refusal(refused[0].message, refused)


def _approved(ir: SilpIR, policy: Policy) -> list[Finding]:
    consequential = [(path, code) for path, code in actions(ir) if code in policy.needs_approval]
    if not consequential:
        return []
    findings = [Finding("needs_approval", path, f"{code} needs approval from outside") for path, code in consequential]
    codes = tuple(dict.fromkeys(code for _, code in consequential))
    try:
        approved = policy.approve is not None and policy.approve(ir, codes) is True
    except Exception as error:  # whatever goes wrong in there, nothing is let in
        raise _refusal(f"asking for approval of {', '.join(codes)} failed: {error!r}", findings) from error
    if not approved:
        raise _refusal(f"{', '.join(codes)} was not approved", findings)
    return findings


def _scan(scanner: Scanner, ir: SilpIR, payload: str) -> list[Finding]:
    try:
        return list(scanner.scan(ir, payload))
    except Exception as error:  # a scanner that cannot tell lets nothing in
        raise _refusal(f"the scanner {type(scanner).__name__} failed: {error!r}") from error


def _refusal(message: str, findings: Iterable[Finding] = ()) -> SilpError:
    return SilpError(ErrorCode.DECODE_FAILED, f"refused: {message}", findings=tuple(findings))
