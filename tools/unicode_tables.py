"""Write src/silp/data/unicode.json: the properties of characters that `silp.sanitize` needs and Python does not have.

Run `python tools/unicode_tables.py` in a development environment after raising the pin of icu4py, and read the
difference. Lives here: how the table follows from its sources. Not here: what the properties are used for.

Sources: ICU4C, the library of the Unicode Consortium, as the wheels of icu4py carry it (Unicode-3.0), for confusables,
scripts and the properties; the package emoji (BSD-3-Clause) for the bases of emoji variation sequences, which ICU does
not list. ICU is called through its stable C interface: icu4py itself exposes none of these functions.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import files, version
from itertools import groupby
from pathlib import Path
from typing import Any

import unicodedata2 as unicodedata  # the same on every Python

TABLE = Path(__file__).parents[1] / "src" / "silp" / "data" / "unicode.json"

# Of the ICU headers uchar.h and uscript.h: they are part of its stable interface.
_DEFAULT_IGNORABLE, _EXTENDED_PICTOGRAPHIC, _JOINING_TYPE = 5, 64, 0x1007
_JOINS = {"D": 2, "L": 3, "R": 4}
# Planes 4 to 13 are unassigned; surrogates are no characters.
_CODES = [*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xE1000)]
_TARGETS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:!"


class Icu:
    """The functions of ICU4C that the table needs; the suffix of their names is ICU's major version."""

    def __init__(self) -> None:
        libraries = {
            path.name.split("-")[0]: ctypes.CDLL(str(path.locate()))
            for path in sorted(files("icu4py") or (), key=lambda path: path.name, reverse=True)
            if path.name.startswith(("libicudata-", "libicuuc-", "libicui18n-"))
        } or None
        if libraries is None:
            raise ImportError("this wheel of icu4py carries no libicuuc: run this on Linux")
        self._libraries = libraries
        name = next(path.name for path in files("icu4py") or () if path.name.startswith("libicuuc-"))
        self.version = name.partition(".so.")[2]
        checker = self._function("libicui18n", "uspoof_open", ctypes.c_void_p)
        self._checker = ctypes.c_void_p(checker(ctypes.byref(ctypes.c_int(0))))
        self._skeleton = self._function("libicui18n", "uspoof_getSkeletonUTF8")
        self._script_extensions = self._function("libicuuc", "uscript_getScriptExtensions")
        self._short_name = self._function("libicuuc", "uscript_getShortName", ctypes.c_char_p)
        self.has = self._function("libicuuc", "u_hasBinaryProperty", ctypes.c_int8)
        self.value = self._function("libicuuc", "u_getIntPropertyValue")

    def _function(self, library: str, name: str, result: Any = ctypes.c_int) -> Callable[..., Any]:
        function: Any = getattr(self._libraries[library], f"{name}_{self.version.split('.')[0]}")
        function.restype = result
        return function  # type: ignore[no-any-return]

    def unicode_version(self) -> str:
        """Return the version of Unicode that this ICU knows."""
        parts = (ctypes.c_uint8 * 4)()
        self._function("libicuuc", "u_getUnicodeVersion", None)(parts)
        return f"{parts[0]}.{parts[1]}"

    def skeleton(self, text: str) -> str:
        """Return the UTS #39 skeleton, equal for texts that look alike."""
        data, buffer = text.encode(), ctypes.create_string_buffer(256)
        length = self._skeleton(self._checker, 0, data, len(data), buffer, 256, ctypes.byref(ctypes.c_int(0)))
        return buffer.raw[:length].decode()

    def scripts(self, code: int) -> str:
        """Return the Script_Extensions of a code point, nothing if it goes with every script."""
        scripts = (ctypes.c_int * 64)()
        count = self._script_extensions(code, scripts, 64, ctypes.byref(ctypes.c_int(0)))
        names = sorted(self._short_name(script).decode() for script in scripts[:count])
        return " ".join(name for name in names if name not in ("Zyyy", "Zinh", "Zzzz"))


def look_alikes(icu: Icu) -> dict[str, str]:
    """Return, for each ASCII character, the characters that look like it.

    UTS #39 gives prototypes for comparison, not replacements: 1, I and | share the prototype l, and 0 has O. So of the
    ASCII characters with a prototype, a compatibility variant (a Roman numeral, say) stands for the one that it is a
    variant of, and any other character for the one of its own case. A variant of one letter that looks like another
    (the long s) stands for neither. Fullwidth and mathematical characters, of which UTS #39 lists some, all stand for
    theirs.
    """
    sharing: dict[str, list[str]] = {}
    for target in _TARGETS:
        sharing.setdefault(icu.skeleton(target), []).append(target)
    found: dict[str, list[str]] = {target: [] for target in _TARGETS}
    for code in _CODES:
        character = chr(code)
        if code < 0x80 or unicodedata.category(character) in ("Mn", "Me", "Cn"):
            continue
        prototype, variant = icu.skeleton(character), unicodedata.normalize("NFKC", character)
        same = sharing.get(prototype, [])
        if variant in found and (variant in same or unicodedata.decomposition(character)[:6] in ("<font>", "<wide>")):
            found[variant].append(character)
        elif same and not (len(variant) == 1 and variant.isascii()):
            upper = unicodedata.category(character) == "Lu"
            target = ("I" if upper else "l") if prototype == "l" else prototype  # of I, l and 1, and of O and 0
            found["m" if target == "rn" else target].append(character)
    return {target: "".join(characters) for target, characters in found.items() if characters}


def tables(icu: Icu) -> dict[str, Any]:
    """Return the content of the table."""
    import emoji

    variations = {ord(sequence[0]) for sequence, data in emoji.EMOJI_DATA.items() if data.get("variant")}
    return {
        "unicode": icu.unicode_version(),
        "sources": {
            "ICU4C": f"{icu.version} as in icu4py {version('icu4py')}, Unicode-3.0",
            "emoji": f"{version('emoji')}, BSD-3-Clause: emoji_variation",
        },
        "default_ignorable": _ranges(code for code in _CODES if icu.has(code, _DEFAULT_IGNORABLE)),
        "pictographic": _ranges(code for code in _CODES if code > 0x7F and icu.has(code, _EXTENDED_PICTOGRAPHIC)),
        "emoji_variation": _ranges(code for code in sorted(variations) if code > 0x7F),
        "joining": {
            name: _ranges(code for code in _CODES if icu.value(code, _JOINING_TYPE) == value)
            for name, value in _JOINS.items()
        },
        "look_alikes": look_alikes(icu),
        "scripts": [
            f"{codes[0]:X} {scripts}".rstrip()
            for scripts, codes in ((scripts, list(codes)) for scripts, codes in groupby(_CODES, icu.scripts))
        ],
    }


def _ranges(codes: Iterable[int]) -> str:
    def runs() -> Iterator[str]:
        for _, members in groupby(enumerate(codes), lambda pair: pair[1] - pair[0]):
            run = [code for _, code in members]
            yield f"{run[0]:X}" if len(run) == 1 else f"{run[0]:X}-{run[-1]:X}"

    return " ".join(runs())


if __name__ == "__main__":
    TABLE.write_text(json.dumps(tables(Icu()), indent=0) + "\n", encoding="utf-8")
