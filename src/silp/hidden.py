"""Hidden characters in a text (protocol section 8.1).

Lives here: `sanitize`, which removes what a person cannot see, and the finding that says so. Text in, text out, in
linear time. Not here: look-alikes (look_alikes), writing what stays so that decode accepts it (frontends.words), size
limits and policy. The module is not called sanitize because `silp.sanitize` is the function.

`sanitize` knows no notation: whether a joiner or selector means something follows from the characters around it, and
none of those is a letter that a function or keyword may have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple
from unicodedata import category, combining

from silp.characters import characters_in, unicode_table
from silp.errors import shown
from silp.text import is_visible, unicode_name

__all__ = ["QUOTED_PATTERN", "Kind", "TextFinding", "original_offset", "sanitize"]

QUOTED_PATTERN = r'"(?:[^"\\]|\\.)*+"?'
"""Pattern of what stands in quotes, as a string of JSON that may be malformed or end with the text; for re.DOTALL."""

Kind = Literal[
    "bidi_control",
    "blank",
    "control",
    "default_ignorable",
    "format",
    "line_break",
    "look_alike",
    "mixed_script",
    "space",
    "surrogate",
    "tab",
    "tag",
    "variation_selector",
    "zero_width",
]


class TextFinding(NamedTuple):
    """One thing found in a text.

    Attributes:
        kind: what it is; the same for the same thing in every version.
        offset: where it starts in the text that was passed in, counted in characters from 0.
        found: the character, or for look_alike and mixed_script the word.
        replacement: what stands there now, nothing if it was removed; None if it was left as it is.
    """

    kind: Kind
    offset: int
    found: str
    replacement: str | None = ""

    @property
    def code_point(self) -> str:
        """Return the code point, such as `U+200D`; for a word, those of its characters beyond ASCII."""
        return " ".join(f"U+{ord(c):04X}" for c in self._characters())

    @property
    def name(self) -> str:
        """Return the Unicode name, such as `ZERO WIDTH JOINER`; for a word, those of its characters beyond ASCII."""
        return ", ".join(unicode_name(c).partition(" ")[2] for c in self._characters())

    @property
    def message(self) -> str:
        """Return a sentence that says what was found, what became of it and what to do."""
        names = ", ".join(map(unicode_name, self._characters()))
        if self.kind == "mixed_script":
            return f"'{shown(self.found)}' mixes scripts ({names}): check that it is the word that it looks like"
        if self.kind == "look_alike":
            done = "kept: check who sent it" if self.replacement is None else f"read as {self.replacement}: write it so"
            return f"'{shown(self.found)}' looks like an ASCII name but has {names}; {done}"
        done = f"replaced by {shown(self.replacement)!a}" if self.replacement else "removed"
        return f"{names} {done}: write it as an escape in quotes if it belongs to a value"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON-ready data, with its code points, names and message."""
        return {
            "kind": self.kind,
            "offset": self.offset,
            "found": self.found.encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
            "code_point": self.code_point,
            "name": self.name,
            "replacement": self.replacement,
            "message": self.message,
        }

    def _characters(self) -> Iterable[str]:
        is_word = self.kind in ("look_alike", "mixed_script")
        return dict.fromkeys(c for c in self.found if not is_word or not c.isascii())


def sanitize(text: str, *, strict: bool = False) -> tuple[str, tuple[TextFinding, ...]]:
    """Return `text` without hidden characters, and what was found in it (protocol section 8.1).

    Removed: zero-width characters, bidi controls, tags, variation selectors, every other Default_Ignorable character,
    letters that look blank, controls, lone surrogates. A joiner or selector stays where Unicode gives it a meaning:
    within an emoji, between letters of a cursive script, beside an Indic virama, after a Mongolian letter or an
    ideograph; `strict` removes these as well. Line breaks and tabs become spaces, or escapes within quotes; so do other
    separators between words of structure, while those within a value stay. In JSON, white space is left alone.

    An escape such as `\\u200d` is visible text and stays. So does any text that `compile` wrote, whole. Private-use and
    unassigned characters hide nothing and stay. `silp.frontends.words.escape_kept` makes what stays fit for decode.
    """
    if is_visible(text):
        return text, ()
    text, findings = _without_hidden(text, strict)
    if _SPACING.search(text):
        text, edits = _with_plain_spaces(text)
        findings = sorted([*findings, *_in_original(edits, findings)], key=lambda finding: finding.offset)
    return text, tuple(findings)


def original_offset(offset: int, findings: Sequence[TextFinding]) -> int:
    """Return the offset, in a text that `sanitize` was given, of what is at `offset` in the text that it returned."""
    for finding in findings:
        if finding.offset > offset:
            break
        if finding.replacement is not None:
            end = finding.offset + len(finding.replacement)
            offset = finding.offset if offset < end else offset - len(finding.replacement) + len(finding.found)
    return offset


# --- Hidden characters

_ZERO_WIDTH = frozenset("\u200b\u200c\u200d\ufeff")
_BIDI = characters_in("61C 200E-200F 202A-202E 2066-2069")
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800")
_TAGS = characters_in("E0000-E007F")
_SELECTORS = characters_in("180B-180D 180F FE00-FE0F E0100-E01EF")
_ANNOTATION = characters_in("FFF9-FFFB")  # hides text where it is supported, and itself where it is not
_CONTROLS = characters_in("0-8 B-C E-1F 7F-84 86-9F")
_SURROGATES = characters_in("D800-DFFF")
_JOINERS = "\u200c\u200d"
_MEANINGFUL = frozenset(_JOINERS + "\u180e") | _TAGS | _SELECTORS
"""Hidden characters that mean something in the right place."""

_REACH = 1_000
"""Characters that are looked past, marks and hidden ones together: the bound keeps time linear."""

_VIRAMA = 9  # the Canonical_Combining_Class of all of them
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_FLAG = re.compile(
    "|".join(
        "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
        for region in ("gbeng", "gbsct", "gbwls")
    )
)
_MARKS = 30
"""Most combining marks on one letter that are looked past: Unicode's Stream-Safe Text Format allows no more."""


@cache
def _hidden() -> tuple[frozenset[str], Callable[[str], Iterator[re.Match[str]]]]:
    """Return the characters that are hidden wherever they stand, and a search for these and those of _MEANINGFUL."""
    hidden = unicode_table().ignorable | _BLANK | _CONTROLS | _ANNOTATION | _SURROGATES
    codes = sorted(map(ord, hidden))
    # As ranges: a class of single characters beyond U+FFFF would be searched one by one.
    starts = [code for code in codes if not code or chr(code - 1) not in hidden]
    ends = [code for code in codes if code == 0x10FFFF or chr(code + 1) not in hidden]
    ranges = [f"\\U{start:08x}-\\U{end:08x}" for start, end in zip(starts, ends, strict=True)]
    return hidden - _MEANINGFUL, re.compile(f"[{''.join(ranges)}]").finditer


@lru_cache(maxsize=1024)
def _kind(character: str) -> Kind:
    kinds: tuple[tuple[Kind, frozenset[str]], ...] = (
        ("zero_width", _ZERO_WIDTH),
        ("bidi_control", _BIDI),
        ("tag", _TAGS),
        ("variation_selector", _SELECTORS),
        ("blank", _BLANK),
        ("control", _CONTROLS),
        ("surrogate", _SURROGATES),
        ("format", _ANNOTATION),
    )
    return next((kind for kind, members in kinds if character in members), "default_ignorable")


def _without_hidden(text: str, strict: bool) -> tuple[str, list[TextFinding]]:
    pieces: list[str] = []
    findings: list[TextFinding] = []
    before = ""  # the end of what stays, as long as any rule looks back
    done = ahead = 0
    always, hidden_in = _hidden()
    for match in hidden_in(text):
        offset, character = match.start(), match[0]
        ahead = max(ahead, offset + 1)
        while ahead < len(text) and (text[ahead] in always or text[ahead] in _MEANINGFUL):
            ahead += 1
        if offset < done:
            continue  # the rest of a flag
        if piece := text[done:offset]:
            pieces.append(piece)
            before = (before + piece[-_MARKS - 2 :])[-_MARKS - 2 :]
        done = offset + 1
        if not strict and character in _MEANINGFUL and (kept := _meaningful(character, before, text, offset, ahead)):
            pieces.append(kept)
            before = (before + kept)[-_MARKS - 2 :]
            done = offset + len(kept)
        else:
            findings.append(TextFinding(_kind(character), offset, character))
    pieces.append(text[done:])
    return "".join(pieces), findings


def _meaningful(character: str, before: str, text: str, offset: int, ahead: int) -> str:
    """Return what Unicode gives a meaning of the hidden characters at `offset`, nothing if it is none.

    `before` is what stays of the text before, and `ahead` is where the next character stands that is not hidden: what
    decides is there after the removal as well, so that the result stays the same when it is sanitized again.
    """
    previous, following = before[-1:], text[ahead : ahead + 1]
    if character in _TAGS:
        flag = _FLAG.match(text, offset) if previous == "\U0001f3f4" else None
        return flag[0] if flag else ""
    if character in "\ufe0e\ufe0f":
        if previous in unicode_table().emoji_variation:
            return character
        is_keycap = character == "\ufe0f" and previous and previous in "0123456789#*"
        return character if is_keycap and following == "\u20e3" else ""
    if character in "\u180b\u180c\u180d\u180f":
        return character if _is_mongolian(previous) else ""
    if character == "\u180e":
        return character if _is_mongolian(previous) and _is_mongolian(following) else ""
    if character in _SELECTORS:
        return character if character >= "\U000e0100" and _is_ideograph(previous) else ""
    return character if _joins(character, before, text, ahead) else ""


def _joins(joiner: str, before: str, text: str, ahead: int) -> bool:
    """Return whether a joiner means something: RFC 5892, appendix A, for what is not emoji.

    Beyond the RFC, a ZWJ gives an Arabic letter at the edge of a word the form it has within one, as in the Persian
    abbreviation of the calendar's name, and a Bengali ra the form it has before a virama.
    """
    previous, following = before[-1:], text[ahead : ahead + 1]
    if previous and combining(previous) == _VIRAMA:
        return True
    if joiner == "\u200d":
        element = before[:-1] if previous in ("\ufe0f", *_SKIN_TONES) else before
        if element[-1:] in unicode_table().pictographic and following in unicode_table().pictographic:
            return True
        if following and combining(following) == _VIRAMA:
            return category(previous or " ") == "Lo"
    letter = next((c for c in reversed(before) if category(c) not in ("Mn", "Me")), "")
    from_before = letter in unicode_table().joins_next
    into_next = _past_marks(text, ahead) in unicode_table().joins_previous
    if joiner == "\u200d" and from_before != into_next:
        # What becomes an escape later ends in a letter then, and must not be judged in another way the next time.
        return not (following.isalnum() if from_before else previous.isalnum() or previous in _ESCAPED)
    return from_before and into_next


_ESCAPED = ("\n", "\r", "\t")


def _past_marks(text: str, ahead: int) -> str:
    """Return the first character from `ahead` on that is neither a mark nor hidden, nothing if it is too far."""
    always = _hidden()[0]
    for character in text[ahead : ahead + _REACH]:
        if category(character) not in ("Mn", "Me") and character not in always and character not in _MEANINGFUL:
            return character
    return ""


def _is_mongolian(character: str) -> bool:
    return "\u1820" <= character <= "\u18aa"


def _is_ideograph(character: str) -> bool:
    return (
        "\u3400" <= character <= "\u4dbf"
        or "\u4e00" <= character <= "\u9fff"
        or "\U00020000" <= character <= "\U0003ffff"
    )


# --- Spacing

_SEPARATORS = "\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SPACING = re.compile(f"(?P<line_break>\r\n|[\n\r])|(?P<tab>\t)|(?P<space>[{_SEPARATORS}])")
_EDGE = re.compile(f"[ \t\n\r{_SEPARATORS}]*+")
_ESCAPE_OR_BREAK = re.compile(r"\\.|[\t\n\r]", re.DOTALL)
_NESTED_TOKEN = re.compile(rf'{QUOTED_PATTERN}|[({{]|[)}}]|[^"(){{}},=]+|[,=]', re.DOTALL)
_FLAT_TOKEN = re.compile(rf'{QUOTED_PATTERN}|[({{]|[)}}]|\#|[^"(){{}},=#]+|[,=]', re.DOTALL)


def _with_plain_spaces(text: str) -> tuple[str, list[TextFinding]]:
    """Return `text` with its tabs, line breaks and separators as a payload may have them, and what was changed."""
    edits = list(_spacing(text))
    pieces, done = [], 0
    for edit in edits:
        pieces += [text[done : edit.offset], edit.replacement or ""]
        done = edit.offset + len(edit.found)
    return "".join([*pieces, text[done:]]), edits


def _spacing(text: str) -> Iterator[TextFinding]:
    start, end = _trimmed(text, 0, len(text))
    is_json = text.startswith("{", start)
    if is_json:
        start, end = 0, len(text)
    for match in _SPACING.finditer(text, 0, start):
        yield TextFinding(_spacing_kind(match), match.start(), match[0])
    depth, in_meta, offset = 0, False, start
    while offset < end:
        is_flat = not (depth or in_meta)
        token = (_FLAT_TOKEN if is_flat else _NESTED_TOKEN).match(text, offset, end)
        if token is None:
            raise AssertionError("every character begins a token")
        first, offset = text[offset], token.end()
        if first == '"':
            for match in _ESCAPE_OR_BREAK.finditer(text, token.start(), offset):
                # A break behind a backslash stays, for decode to refuse: its escape would make that another character.
                if match[0][0] != "\\":
                    kind: Kind = "tab" if match[0] == "\t" else "line_break"
                    yield TextFinding(kind, match.start(), match[0], json.dumps(match[0])[1:-1])
            continue
        if first in "({":
            depth += 1
        elif first in ")}":
            depth = max(0, depth - 1)
        in_meta = in_meta or (is_flat and first == "#")
        value_start, value_end = (offset, offset) if is_flat else _trimmed(text, token.start(), offset)
        for match in _SPACING.finditer(text, token.start(), offset):
            is_value = match["space"] and value_start < match.start() < value_end
            if not (match["space"] is None if is_json else is_value):
                yield TextFinding(_spacing_kind(match), match.start(), match[0], " ")
    for match in _SPACING.finditer(text, end):
        yield TextFinding(_spacing_kind(match), match.start(), match[0])


def _spacing_kind(match: re.Match[str]) -> Kind:
    return match.lastgroup  # type: ignore[return-value]  # the groups are named for the kinds


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where what stands between spacing starts and ends."""
    edge = _EDGE.match(text, start, end)
    start = edge.end() if edge else start
    while end > start and _EDGE.fullmatch(text, end - 1, end):
        end -= 1
    return start, end


def _in_original(edits: Iterable[TextFinding], removed: Sequence[TextFinding]) -> Iterator[TextFinding]:
    """Yield edits of a text that characters were removed from, with the offsets they have in the text before that."""
    before = 0
    for edit in edits:
        while before < len(removed) and removed[before].offset <= edit.offset + before:
            before += 1
        yield edit._replace(offset=edit.offset + before)
