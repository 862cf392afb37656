"""Visible characters: one set on every Python, and escapes for all others."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
import unicodedata2

from silp.errors import SilpError
from silp.text import UNICODE_VERSION, escape_invisible, is_visible, quote, require_visible, unicode_name

BLANK_LOOKING = "\u115f\u1160\u3164\uffa0\u2800"
OTHER_IGNORABLE = "\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f" + "".join(map(chr, range(0xFE00, 0xFE10)))
SUPPLEMENTARY_SELECTORS = "".join(map(chr, range(0xE0100, 0xE01F0)))
HIDDEN_BUT_PRINTABLE = BLANK_LOOKING + OTHER_IGNORABLE + SUPPLEMENTARY_SELECTORS


def test_visible_characters_are_those_of_the_wire_format() -> None:
    later = frozenset(
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata2.category(chr(code)) != "Cn" and not is_visible(chr(code))
    )
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        category = unicodedata2.category(character)
        expected = character == " " or (category[0] not in "CZ" and character not in HIDDEN_BUT_PRINTABLE)
        if expected != is_visible(character):
            # Assigned after UNICODE_VERSION: known to unicodedata2, not to a Python with that version.
            assert expected
            assert character in later
            if unicodedata.unidata_version.startswith(UNICODE_VERSION):
                assert unicodedata.category(character) == "Cn"


def test_characters_assigned_after_the_pinned_version_are_escaped_on_every_python() -> None:
    pink_heart, egyptian_2024 = "\U0001fa77", "\U00013460"
    assert not is_visible(pink_heart)
    assert not is_visible(egyptian_2024)
    assert quote(pink_heart) == '"\\ud83e\\ude77"'
    assert is_visible("\U0001f600 \u20ac é 漢字 नमस्ते")


def test_quoting_writes_every_invisible_character_as_an_escape() -> None:
    value = 'a"b\\c\n\t\0\x7f\u00a0\u200d\u2028\ufeff\U000e0067é'
    assert quote(value) == '"a\\"b\\\\c\\n\\t\\u0000\\u007f\\u00a0\\u200d\\u2028\\ufeff\\udb40\\udc67é"'
    assert json.loads(quote(value)) == value
    assert escape_invisible('{"é":1}') == '{"é":1}'


def test_a_lone_surrogate_cannot_be_quoted() -> None:
    with pytest.raises(SilpError, match="U\\+D800 lone surrogate"):
        quote("\ud800")


@pytest.mark.parametrize(
    ("character", "name"),
    [
        ("\u200d", "U+200D ZERO WIDTH JOINER"),
        ("\n", "U+000A control character"),
        ("\ud800", "U+D800 lone surrogate"),
        ("\ue000", "U+E000 private-use character"),
        ("\u0378", "U+0378 unassigned character"),
        ("\u2800", "U+2800 BRAILLE PATTERN BLANK"),
    ],
)
def test_an_invisible_character_is_named_with_its_offset(character: str, name: str) -> None:
    assert unicode_name(character) == name
    with pytest.raises(SilpError) as refused:
        require_visible(f"é: {character}")
    assert (refused.value.offset, refused.value.found) == (3, name)
