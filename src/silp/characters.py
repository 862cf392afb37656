"""Properties of characters that Python does not know: data/unicode.json, as tables.

Lives here: reading the table, and what a word looks like in ASCII. Not here: what follows from it (hidden,
look_alikes). tools/unicode_tables.py writes the table, which names its sources; its licence is beside it.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from functools import cache
from importlib.resources import files

__all__ = ["CONFUSABLES_VERSION", "UnicodeTable", "ascii_look", "characters_in", "unicode_table"]

CONFUSABLES_VERSION = "17.0"
"""Version of Unicode that the table is from."""


class UnicodeTable:
    """Sets of characters by property, and the ASCII character that each look-alike looks like."""

    def __init__(self) -> None:
        table = json.loads(files("silp").joinpath("data", "unicode.json").read_text(encoding="utf-8"))
        self.ignorable = characters_in(table["default_ignorable"])
        self.pictographic = characters_in(table["pictographic"])
        self.emoji_variation = characters_in(table["emoji_variation"])
        joining = table["joining"]
        self.joins_next = characters_in(f"{joining['D']} {joining['L']}")
        self.joins_previous = characters_in(f"{joining['D']} {joining['R']}")
        self.look_alikes: dict[str, str] = table["look_alikes"]
        self.ascii_of: dict[str, str] = {
            c: target for target, characters in self.look_alikes.items() for c in characters
        }
        runs = [run.split(" ") for run in table["scripts"]]
        self._starts = [int(start, 16) for start, *_ in runs]
        self._scripts = [frozenset(scripts) for _, *scripts in runs]

    def scripts(self, character: str) -> frozenset[str]:
        """Return the Script_Extensions of a character; none if it goes with every script."""
        return self._scripts[bisect_right(self._starts, ord(character)) - 1]


@cache
def unicode_table() -> UnicodeTable:
    """Return the table, read once."""
    return UnicodeTable()


def characters_in(ranges: str) -> frozenset[str]:
    """Return the characters in ranges of code points, such as `61C 200E-200F`."""
    bounds = [[int(bound, 16) for bound in entry.split("-")] for entry in ranges.split()]
    return frozenset(chr(code) for bound in bounds for code in range(bound[0], bound[-1] + 1))


def ascii_look(word: str) -> str | None:
    """Return the ASCII text that `word` is or looks like, or None if a character of it looks like none."""
    if word.isascii():
        return word
    ascii_of = unicode_table().ascii_of
    letters = [c if c.isascii() else ascii_of.get(c) for c in word]
    return None if None in letters else "".join(filter(None, letters))
