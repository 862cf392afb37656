"""Look-alikes: characters that pass for ASCII ones in the names of a payload (protocol section 8.1, UTS #39).

Lives here: `normalize_names`, which turns them back into ASCII where the grammar has ASCII names, and reports them, and
words of mixed scripts, elsewhere. Values are never rewritten. Not here: the look-alikes themselves (characters), and
characters that cannot be seen (hidden).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from unicodedata import category, normalize

from silp.characters import ascii_look, unicode_table
from silp.errors import ErrorCode, SilpError, shown
from silp.frontends.words import Role, string_value, words
from silp.hidden import TextFinding
from silp.ir import Alternative, Constraint, Entity, Meta, SilpIR
from silp.text import quote, unicode_name

__all__ = ["mixed_words", "normalize_names"]

_PATTERNS: dict[Role, re.Pattern[str]] = {
    "action": re.compile("![A-Z_]+"),
    "function": re.compile("[A-Za-z_]+"),
    "keyword": re.compile("[a-z]+:?|:"),
}
_NAME = re.compile("!?[A-Za-z_][A-Za-z0-9_]*")
_OFFSET_KNOWN = re.compile(r'"[^\\]*"')
_WORD = re.compile(r"[0-9A-Za-z\x80-\U0010ffff]+")

# Writing systems that mix scripts (UTS #39, section 5.1), and those that go with Latin in one word (section 5.2).
_WRITING_SYSTEMS = {
    "Hani": ("Hanb", "Jpan", "Kore"),
    "Hira": ("Jpan",),
    "Kana": ("Jpan",),
    "Hang": ("Kore",),
    "Bopo": ("Hanb",),
}
_WITH_LATIN = frozenset({"Hanb", "Jpan", "Kore"})


def normalize_names(text: str, frontend: str, *, strict: bool = False) -> tuple[str, tuple[TextFinding, ...]]:
    """Return a sanitized payload in which every function, keyword and keyword id that looks like ASCII is ASCII.

    An action code in JSON counts as a function. Each is a finding `look_alike`. An id that is wholly in one other
    script is a word of that script, unless it looks like a name of the protocol: it is reported and stays, as does the
    type of a constraint, and the key of any other field. A word of a value that mixes scripts as no language does is a
    finding `mixed_script`. The text of any frontend but code, math and json is only searched for those.

    Raises SilpError (invalid_syntax) if `strict` and a name other than the type of a constraint is a look-alike; and
    always for a slot in JSON that looks like a key of the root other than `intent`: to rename it would turn the id of
    an entity, which may come from anywhere, into another element.
    """
    if text.isascii():
        return text, ()
    pieces: list[str] = []
    findings: list[TextFinding] = []
    done = 0
    found = words(text, frontend)
    if not found:
        return text, tuple(_mixed_in(text, 0))
    for role, start, end in found:
        literal = text[start:end]
        quoted = literal[0] == '"'
        word = string_value(literal) if quoted else literal
        if word.isascii():
            continue
        is_rewritten, look = _judge(role, word)
        if look is None:
            known = not quoted or _OFFSET_KNOWN.fullmatch(literal)
            mixed = _mixed_in(word, start + quoted if known else start)
            findings += mixed if known else [finding._replace(offset=start) for finding in mixed]
            continue
        if (strict and role != "type") or (role == "slot" and _is_element(look)):
            names = ", ".join(dict.fromkeys(unicode_name(c) for c in word if not c.isascii()))
            raise SilpError(
                ErrorCode.INVALID_SYNTAX,
                f"'{shown(word)}' looks like '{look}' but has {names}: write it in ASCII",
                text=text,
                offset=start + quoted,
                expected=look,
                found=names,
            )
        findings.append(TextFinding("look_alike", start + quoted, word, look if is_rewritten else None))
        if is_rewritten:
            pieces += [text[done:start], quote(look) if quoted else look]
            done = end
    return "".join([*pieces, text[done:]]), tuple(findings)


def mixed_words(value: str) -> list[str]:
    """Return the words of `value` that mix scripts as no language does, or ASCII with variants of ASCII letters."""
    return [] if value.isascii() else [finding.found for finding in _mixed_in(value, 0)]


@cache
def _known_names() -> frozenset[str]:
    models = (SilpIR, Entity, Constraint, Alternative, Meta)
    return frozenset({"act", "loc", "subject", "operator"}.union(*(model.model_fields for model in models)))


def _judge(role: Role, word: str) -> tuple[bool, str | None]:
    """Return whether a word beyond ASCII is to be rewritten, and the ASCII name it passes for, None if for none."""
    look = None if role == "value" else ascii_look(word)
    if look is None or not _PATTERNS.get(role, _NAME).fullmatch(look):
        return False, None
    if role in _PATTERNS:
        return True, look
    if role in ("type", "field"):
        return False, look
    return look in _known_names() or not _is_foreign(word), look


def _is_element(slot: str) -> bool:
    """Return whether a key of the root in JSON is neither the id of an entity nor the intent, which must be there."""
    return slot != "intent" and (slot in SilpIR.model_fields or slot.startswith("action_"))


def _is_foreign(word: str) -> bool:
    """Return whether all letters of a word are of one script other than Latin."""
    if any(c.isascii() and c.isalpha() for c in word):
        return False
    systems = [_systems(c) for c in word if c.isalpha()]
    return all(systems) and bool(frozenset.intersection(*systems) - {"Latn"}) if systems else False


@cache
def _systems_of(scripts: frozenset[str]) -> frozenset[str]:
    return scripts.union(*(_WRITING_SYSTEMS.get(script, ()) for script in scripts))


def _systems(character: str) -> frozenset[str]:
    """Return the scripts and writing systems that have a character; none if all have it."""
    return _systems_of(unicode_table().scripts(character))


def _mixed_in(text: str, offset: int) -> Iterator[TextFinding]:
    for run in _WORD.finditer(text):
        if run[0].isascii():
            continue
        start = run.start()
        for end in (*(i for i in range(run.start(), run.end()) if not _in_word(text[i])), run.end()):
            word = text[start:end]
            if not word.isascii() and _is_mixed(word):
                yield TextFinding("mixed_script", offset + start, word, None)
            start = end + 1


def _in_word(character: str) -> bool:
    return character.isalnum() or category(character)[0] == "M" or character in "\u200c\u200d"


def _is_mixed(word: str) -> bool:
    letters = set(word)
    systems = {_systems(c) for c in letters} - {frozenset()}
    has_ascii = any(c.isascii() and c.isalpha() for c in letters)
    if has_ascii and any(_is_ascii_variant(c) for c in letters):
        return True
    if not systems or frozenset.intersection(*systems):
        return False
    others = [scripts for scripts in systems if "Latn" not in scripts]
    return not (len(others) < len(systems) and frozenset.intersection(*others) & _WITH_LATIN)


def _is_ascii_variant(character: str) -> bool:
    """Return whether a letter is a fullwidth or mathematical one of ASCII."""
    variant: str = unicode_table().ascii_of.get(character, "")
    return variant.isalpha() and normalize("NFKC", character) == variant
