"""Visible characters and quoting: the lexical ground that every notation stands on (wire format, section 2).

Lives here: which characters a payload may show as they are, and JSON strings that escape all others. Not here: JSON
values (strict_json) and the delimiters of a notation (frontends.notation).
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring

from silp.errors import ErrorCode, SilpError

__all__ = ["UNICODE_VERSION", "escape_invisible", "is_visible", "quote", "require_visible", "unicode_name"]

UNICODE_VERSION = "14.0"
"""A character counts as assigned if it is in this version, that of the oldest supported Python, whatever Python runs:
two peers never disagree on which characters a payload may show."""

# Default_Ignorable_Code_Point characters, and letters or symbols that look blank, which str.isprintable() lets pass.
_BLANK = "34F 115F-1160 17B4-17B5 180B-180D 180F 2800 3164 FE00-FE0F FFA0 E0100-E01EF"

# Assigned after UNICODE_VERSION, up to Unicode 18.0: the difference of unicodedata2 18.0 and the unicodedata of 3.11.
_ASSIGNED_LATER = """
558 58B-58C 5C8-5C9 88F 897 B53-B54 C5C CDC CF3 ECE 1ACF-1AF0 1B4E-1B4F 1B7F 1C89-1C8A 208F 209D-209F 20C1-20C4
2427-2429 2B96 2E60-2E63 2FFC-2FFF 31E4-31E5 31EF A7CB-A7CF A7D2 A7D4 A7DA-A7DD A7E2 A7F1 AB6C-AB6D FBC3-FBD2
FD90-FD91 FDC8-FDCE 105C0-105F3 107BB-107BF 10940-10959 10D40-10D65 10D69-10D85 10D8E-10D8F 10EC2-10EC7 10EC9-10EEE
10EF0-10EFF 1123F-11241 11380-11389 1138B 1138E 11390-113B5 113B7-113C0 113C2 113C5 113C7-113CA 113CC-113D5
113D7-113D8 113E1-113E2 116D0-116E3 11B00-11B0A 11B60-11B67 11BC0-11BE1 11BF0-11BF9 11DB0-11DDB 11DE0-11DE9
11DF0-11DF1 11F00-11F10 11F12-11F3A 11F3E-11F5A 1246F 12475-1247F 12550-12686 1342F 13439-13455 13460-143FA
16100-16139 16D40-16D79 16EA0-16EB8 16EBB-16ED3 16FF2-16FF6 187F8-187FF 18CD6-18CDA 18CFF 18D09-18D20 18D80-18DF2
18E00-19191 191A0-191D2 1B123-1B128 1B132 1B155 1B168 1CC00-1CCFC 1CD00-1CEB3 1CEBA-1CED0 1CED2-1CED4 1CEDD-1CEFD
1D127-1D128 1D1EB-1D1FF 1D250-1D281 1D2C0-1D2D3 1D6A6 1DB00-1DB1C 1DF1F-1DF81 1DF90-1DF96 1DFCD-1DFFF 1E030-1E06D
1E08F 1E4D0-1E4F9 1E5D0-1E5FA 1E5FF 1E6C0-1E6DE 1E6E0-1E6F5 1E6FE-1E6FF 1F1AE 1F6D8-1F6D9 1F6DC 1F774-1F77F
1F7D9-1F7DB 1F7F1-1F7FF 1F8B2-1F8BB 1F8C0-1F8C1 1F8D0-1F8D8 1FA54-1FA57 1FA75-1FA77 1FA87-1FA8F 1FAAD-1FAAF
1FABB-1FABF 1FAC6 1FAC8 1FACC-1FACF 1FADA-1FADD 1FADF 1FAE8-1FAEB 1FAEF 1FAF7-1FAFA 1FBCB-1FBEF 1FBFA 2B739-2B73F
2B81E 2CEA2-2CEAD 2EBF0-2EE5D 31350-33479 3D000-3FC3F
"""


def _characters(ranges: str) -> frozenset[str]:
    bounds = [[int(bound, 16) for bound in entry.split("-")] for entry in ranges.split()]
    return frozenset(chr(code) for bound in bounds for code in range(bound[0], bound[-1] + 1))


_PRINTABLE_BUT_HIDDEN = frozenset(c for c in _characters(_BLANK + _ASSIGNED_LATER) if c.isprintable())
_NOT_PLAIN_ASCII = re.compile(r"[^ -~]+")


def is_visible(text: str) -> bool:
    """Return whether every character of `text` may stand in a payload as it is: space, or visible in the sense of the
    wire format (not a control, format, surrogate, private-use, unassigned, separator, ignorable or blank character)."""
    return text.isprintable() and (text.isascii() or _PRINTABLE_BUT_HIDDEN.isdisjoint(text))


def require_visible(text: str, *, allowed: str = "") -> None:
    """Raise SilpError (invalid_syntax) at the first character of `text` that is neither visible nor in `allowed`."""
    if is_visible(text):
        return
    for run in _NOT_PLAIN_ASCII.finditer(text):
        for offset, character in enumerate(run[0], run.start()):
            if not is_visible(character) and character not in allowed:
                name = unicode_name(character)
                advice = (
                    "remove it" if _is_surrogate(character) else f"remove it, or write {_escape(character)} in quotes"
                )
                raise SilpError(
                    ErrorCode.INVALID_SYNTAX,
                    f"{name} may not stand in a payload as it is: {advice}",
                    text=text,
                    offset=offset,
                    expected="a visible character",
                    found=name,
                )


def unicode_name(character: str) -> str:
    """Return a character's code point and name, such as `U+200D ZERO WIDTH JOINER`."""
    import unicodedata

    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "")
    if not name:
        kinds = {"Cc": "control character", "Cs": "lone surrogate", "Co": "private-use character"}
        name = kinds.get(unicodedata.category(character), "unassigned character")
    return f"{code} {name}"


def quote(value: str) -> str:
    """Return `value` as a JSON string in which every invisible character is an escape.

    Raises SilpError (invalid_syntax) for a lone surrogate: no UTF-8 text can carry one.
    """
    return escape_invisible(encode_basestring(value))


def escape_invisible(json_text: str) -> str:
    """Return JSON text with every invisible character, which can only stand inside its strings, as `\\uXXXX`."""
    if is_visible(json_text):
        return json_text
    return _NOT_PLAIN_ASCII.sub(lambda run: "".join(c if is_visible(c) else _escape(c) for c in run[0]), json_text)


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def _escape(character: str) -> str:
    code = ord(character)
    if _is_surrogate(character):
        raise SilpError(ErrorCode.INVALID_SYNTAX, f"{unicode_name(character)} cannot be encoded as UTF-8: remove it")
    if code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
    return f"\\u{code:04x}"
