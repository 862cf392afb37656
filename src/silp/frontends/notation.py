"""The lexemes of the notations `code` and `math`, and what follows from them (wire format, sections 2 and 3).

Lives here: one table per notation, the patterns of its names and values, and the rules of reading that the writer must
foresee. The grammar itself is in docs/notations.md. Not here: reading and writing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

__all__ = ["CODE", "MATH", "OPERATORS", "Notation", "arrange", "is_time"]

OPERATORS = ("==", "!=", "<=", ">=", "<", ">")
"""The operators of a comparison, as the IR spells them."""

_VALUE_DELIMITERS = ' "(){},='
_NAME_DELIMITERS = _VALUE_DELIMITERS + ":;!<>@#"
_TIME = re.compile(r"t[+-][0-9]++[a-z]*+")


@dataclass(frozen=True, eq=False)
class Notation:
    """One notation: its lexemes as the writer spells them, spaces included. `also_read` holds further spellings that
    the reader accepts for a lexeme, as patterns."""

    condition_start: str
    condition_end: str
    condition_and: str
    negation: str
    operators: Mapping[str, str]
    otherwise: str
    arrow: str
    trailing_condition: str
    also_read: Mapping[str, str]
    own_delimiters: str = ""

    @cached_property
    def name(self) -> str:
        """Return the pattern of a bare name. No pattern here can backtrack."""
        return self._word(_NAME_DELIMITERS)

    @cached_property
    def value(self) -> str:
        """Return the pattern of a bare value: words with single spaces between them."""
        word = self._word(_VALUE_DELIMITERS)
        return f"{word}(?: {word})*+"

    @cached_property
    def target(self) -> str:
        """Return the pattern of a bare target of an alternative: a bare value without `@`."""
        word = self._word(_VALUE_DELIMITERS + "@")
        return f"{word}(?: {word})*+"

    def _word(self, delimiters: str) -> str:
        return f"[^{re.escape(delimiters + self.own_delimiters)}]++"


CODE = Notation(
    condition_start="if ",
    condition_end=": ",
    condition_and=" and ",
    negation="!",
    operators={operator: operator for operator in OPERATORS},
    otherwise=" else: ",
    arrow=" -> ",
    trailing_condition="",
    also_read={
        "condition_end": "then(?= )",
        "negation": "not(?= )",
        "otherwise": "else(?= )",
        "trailing_condition": "with(?= )",
    },
)

MATH = Notation(
    condition_start="",
    condition_end=" ⇒ ",
    condition_and=" ∧ ",
    negation="¬",
    operators=dict(zip(OPERATORS, "=≠≤≥<>", strict=True)),
    otherwise=" ⊕ ",
    arrow=" ≫ ",
    trailing_condition="",
    also_read={},
    own_delimiters="⇒∧¬≠≤≥⊕≫",
)


def is_time(value: str) -> bool:
    """Return whether a positional argument reads as a time, such as `t+1` or `t-2am`."""
    return value.startswith(("t+", "t-")) and _TIME.fullmatch(value) is not None


def arrange(actions: Sequence[str], seq: Sequence[str]) -> list[int] | None:
    """Return the places in an arrow flow of `seq` that the calls to `actions` take, or None if it cannot hold them.

    In order, each call takes the first place left that names its action; the other places are empty calls. The first
    call is the intent's, and the intent is the first place.
    """
    places: list[int] = []
    for place, code in enumerate(seq):
        if len(places) < len(actions) and actions[len(places)] == code:
            places.append(place)
    return places if len(places) == len(actions) and places[:1] == [0] else None
