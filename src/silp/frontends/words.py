"""The words of a payload: names, keywords and values with the role that the grammar gives them, none of them judged.

Lives here: `words`, for what must look at a text before decode can, and `escape_kept`, which makes a sanitized text fit
for decode. A text that breaks the grammar has words as well; decode refuses it. Not here: reading (reader, flat_json).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from silp.characters import ascii_look, unicode_table
from silp.frontends.notation import CODE, MATH, Notation
from silp.hidden import QUOTED_PATTERN
from silp.text import escape_invisible, is_visible, quote

__all__ = ["Role", "Word", "escape_kept", "string_value", "words"]

Role = Literal["action", "field", "function", "id", "keyword", "slot", "type", "value"]


class Word(NamedTuple):
    """Where a word stands in a text, quotes included if it has them, and its role.

    Roles: `function`, of a call or an alternative; `action`, the code of one in a JSON string; `keyword`; `id`, of an
    entity; `slot`, a key of the root in JSON; `field`, any other key; `type`, of a constraint; `value`, all else.
    """

    role: Role
    start: int
    end: int


_NOTATIONS = {"code": CODE, "math": MATH}
_JSON = frozenset({"json", "nl_json"})

_STRING = re.compile(QUOTED_PATTERN, re.DOTALL)
_ESCAPE_OR_RUN = re.compile(r"\\.|[^\\ -~]+", re.DOTALL)
_JSON_TOKEN = re.compile(rf'{QUOTED_PATTERN}|[\[\]{{}},:]|[^"\[\]{{}},:]+', re.DOTALL)
_SPACES = re.compile(" *+")
_FLAT = frozenset({"condition", "trailing", "flow", "alternatives", "group"})
_CONDITION = frozenset({"condition", "trailing", "group"})


def words(text: str, frontend: str) -> list[Word]:
    """Return the words of a payload in order; none if the frontend is not code, math, json or nl_json."""
    if frontend in _JSON:
        return list(_json_words(text))
    notation = _NOTATIONS.get(frontend)
    if notation is None:
        return []
    lexer = _Lexer(text, notation)
    found = list(lexer.words())
    if lexer.region == "condition" and notation is CODE:
        # The condition has no end, so decode would refuse the text: perhaps a name holds one that looks like it.
        found = list(_Lexer(text, notation, splits_names=True).words())
    return found


def escape_kept(text: str, frontend: str) -> str:
    """Return a sanitized payload with the invisible characters that it kept as escapes, so that decode accepts it.

    In code and math, a bare value or name that holds one becomes a JSON string. Values stay the same, and so does the
    text of a frontend that has no decoding.
    """
    if is_visible(text):
        return text
    if frontend in _JSON:
        return _STRING.sub(lambda string: _escaped(string[0]), text)
    notation = _NOTATIONS.get(frontend)
    if notation is None:
        return text
    is_name, is_value = re.compile(notation.name).fullmatch, re.compile(notation.value).fullmatch
    pieces, done = [], 0
    for role, start, end in words(text, frontend):
        word = text[start:end]
        if is_visible(word):
            continue
        if word[0] == '"':
            escaped = _escaped(word)
        elif role not in ("function", "keyword") and (is_value if role == "value" else is_name)(word):
            escaped = quote(word)
        else:
            continue  # decode would refuse it if it were visible, and quotes must not change that
        pieces += [text[done:start], escaped]
        done = end
    return "".join([*pieces, text[done:]])


def string_value(literal: str) -> str:
    """Return the value of a JSON string, or what stands between its quotes if it is malformed."""
    if "\\" not in literal:
        return literal.strip('"')
    try:
        value = json.loads(literal, strict=False)
    except ValueError:
        return literal.strip('"')
    return value if isinstance(value, str) else literal


def _escaped(string: str) -> str:
    # An invisible character behind a backslash stays, for decode to refuse: its escape would read as other characters.
    return _ESCAPE_OR_RUN.sub(lambda unit: unit[0] if unit[0][0] == "\\" else escape_invisible(unit[0]), string)


class _Lexer:
    """The words of a text in code or math. `region` is the part of the payload that the text ends in.

    A character that looks like the colon behind a condition is read as one where no name can be, and if `splits_names`,
    everywhere.
    """

    def __init__(self, text: str, notation: Notation, *, splits_names: bool = False) -> None:
        self._text = text
        self._offset = 0
        self._open: list[str] = []
        self._complete = False  # whether a constraint, call or alternative ends here
        self._operand = False  # whether an operator stands before
        self._named = False  # whether a key stands before
        self.region = "flow"
        own = re.escape(notation.own_delimiters)
        self._run = re.compile(rf'[^"(){{}},={own}]+')
        self._has_keywords = bool(notation.condition_start)
        like_colon = "" if text.isascii() or not self._has_keywords else unicode_table().look_alikes[":"]
        self._name = re.compile(rf'[^ "(){{}},=:;!<>@#{own}{re.escape(like_colon) if splits_names else ""}]+')
        self._function = re.compile(rf'[^ "(){{}},=:;!<>@#\-{own}]+')
        self._ends = notation.condition_end.strip() + like_colon
        self._otherwise = notation.otherwise.strip()
        self._arrow = notation.arrow.strip()
        self._operators = "".join(notation.operators.values()) + ","

    def words(self) -> Iterator[Word]:
        text = self._text
        self._skip_spaces()
        if not self._has_keywords:
            self.region = "condition" if self._ends in _STRING.sub("", text) else "flow"
        elif (
            (first := self._name.match(text, self._offset))
            and ascii_look(first[0]) == "if"
            and text.startswith(" ", first.end())
        ):
            self.region = "condition"
            yield self._word("keyword", first.end())
        while True:
            self._skip_spaces()
            if self._offset == len(text):
                return
            where = self._open[-1] if self._open else self.region
            yield from self._flat(where) if where in _FLAT else self._nested(where)

    def _flat(self, where: str) -> Iterator[Word]:
        """Read one lexeme where names and calls stand."""
        text, offset, character = self._text, self._offset, self._text[self._offset]
        in_condition = where in _CONDITION
        if character == '"':
            yield self._constraint_name(self._string_end(), in_condition)
        elif where == "condition" and character in self._ends and (self._complete or character == ":"):
            if character.isascii() or not self._has_keywords:
                self._offset += 1
            else:
                yield self._word("keyword", offset + 1)
            self._enter("flow")
        elif not in_condition and text.startswith(self._arrow, offset):
            self._offset += len(self._arrow)
            self._complete = False
        elif not in_condition and not self._has_keywords and character == self._otherwise:
            self._offset += 1
            self._enter("alternatives")
        elif character in "({":
            self._push("fields" if character == "{" else "group" if in_condition else "arguments")
        elif character in ")}":
            self._pop()
        elif character == "#" and not self._open:
            self._offset += 1
            self.region = "meta"
        elif in_condition and (run := self._name.match(text, offset)):
            yield self._in_condition(run.end(), run[0], where)
        elif not in_condition and (run := self._function.match(text, offset)):
            yield self._in_flow(run.end(), run[0])
        else:
            self._offset += 1
            self._complete = False
            self._operand = character in self._operators

    def _in_condition(self, end: int, name: str, where: str) -> Word:
        calls = self._text.startswith("(", end)
        look = ascii_look(name) if self._has_keywords and not (calls or self._operand) else None
        if look in ("and", "then") and self._complete:
            self._enter("flow" if look == "then" and where == "condition" else self.region)
            return self._word("keyword", end)
        if look == "else" and self._complete and where == "trailing":
            self._enter("alternatives")
            return self._word("keyword", end)
        if look == "else" and self._complete and where == "condition":
            return self._word("type", len(self._text))  # decode refuses it: there is no end of the condition before it
        if look == "not" and not self._complete and self._text.startswith(" ", end):
            return self._word("keyword", end)
        return self._constraint_name(end, True)

    def _in_flow(self, end: int, name: str) -> Word:
        if self._text.startswith("(", end):
            word = self._word("function", end)
            self._push("arguments")
            return word
        look = ascii_look(name) if self._has_keywords and self._complete else None
        if look in ("else", "else:", "with"):
            self._enter("trailing" if look == "with" else "alternatives")
            return self._word("keyword", end)
        self._complete = True
        return self._word("function", end)

    def _constraint_name(self, end: int, in_condition: bool) -> Word:
        word = self._word("value" if self._operand or not in_condition else "type", end)
        self._complete, self._operand = True, False
        if in_condition and self._text.startswith("(", end):
            self._push("predicate")
        return word

    def _nested(self, where: str) -> Iterator[Word]:
        """Read one lexeme where values stand: in brackets, braces or the meta fields."""
        text, offset, character = self._text, self._offset, self._text[self._offset]
        if character in "({":
            self._push("fields" if character == "{" else "arguments")
            return
        if character in ")}":
            self._pop()
            return
        if character == "@" and self.region == "alternatives" and not self._named:  # what stands before it is in quotes
            self._offset += 1
            self._named = True
            return
        run = self._run.match(text, offset)
        if character != '"' and not run:
            self._offset += 1
            self._named = self._named and character == "="
            return
        end = self._string_end() if character == '"' or not run else offset + len(run[0].rstrip(" "))
        behind = self._behind_spaces(end)
        is_json = where in ("fields", "meta") and character == '"' and text.startswith(":=", behind)
        if where in ("fields", "meta") and character not in '":' and text.startswith(":=", end - 1):
            is_json, end = True, offset + len(text[offset : end - 1].rstrip(" "))
        if is_json or (where != "predicate" and text.startswith("=", behind)):
            self._named = True
            yield self._word("id" if where == "arguments" else "field", end)
            if is_json:
                self._offset = text.index("=", end) + 1
                yield from self._json_value()
            return
        target_end = text.find("@", offset, end)
        if character != '"' and target_end > offset and self.region == "alternatives" and not self._named:
            yield self._word("value", offset + len(text[offset:target_end].rstrip(" ")))
            self._offset = target_end + 1
            self._named = True  # a location may hold another @
            return
        self._named = False
        yield self._word("value", end)

    def _json_value(self) -> Iterator[Word]:
        depth = 0
        while token := _JSON_TOKEN.match(self._text, self._offset):
            first = self._text[self._offset]
            if not depth and first in "]},":
                return
            depth += (first in "[{") - (first in "]}")
            if first == '"':
                yield self._word("value", token.end())
            self._offset = token.end()

    def _word(self, role: Role, end: int) -> Word:
        start, self._offset = self._offset, end
        return Word(role, start, end)

    def _enter(self, region: str) -> None:
        self.region = region
        self._complete = self._operand = False

    def _push(self, where: str) -> None:
        self._open.append(where)
        self._offset += 1
        self._complete = self._operand = self._named = False

    def _pop(self) -> None:
        if self._open:
            self._open.pop()
        self._offset += 1
        self._complete, self._operand, self._named = True, False, False

    def _string_end(self) -> int:
        string = _STRING.match(self._text, self._offset)
        return string.end() if string else self._offset + 1

    def _skip_spaces(self) -> None:
        self._offset = self._behind_spaces(self._offset)

    def _behind_spaces(self, offset: int) -> int:
        spaces = _SPACES.match(self._text, offset)
        return spaces.end() if spaces else offset


def _json_words(text: str) -> Iterator[Word]:
    path: list[str] = []  # of each open object the key that was read last, of each open array nothing
    is_object: list[bool] = []
    expects_key = False
    for token in _JSON_TOKEN.finditer(text):
        first = text[token.start()]
        if first in "[{":
            is_object.append(first == "{")
            path.append("")
            expects_key = first == "{"
        elif first in "]}" and is_object:
            is_object.pop()
            path.pop()
            expects_key = False
        elif first == ",":
            expects_key = bool(is_object and is_object[-1])
        elif first == '"':
            if expects_key:
                path[-1] = string_value(token[0])
                yield Word(_key_role(path), token.start(), token.end())
            else:
                yield Word(_value_role(path), token.start(), token.end())
            expects_key = False


def _key_role(path: list[str]) -> Role:
    if len(path) == 1:
        return "slot"
    # A key of meta, or of an object in one of the arrays; what is deeper is data of extra fields.
    return "field" if len(path) == 2 or (len(path) == 3 and not path[1]) else "value"


def _value_role(path: list[str]) -> Role:
    match path:
        case [slot] if ascii_look(slot) == "intent":
            return "action"
        case ["alternatives" | "entities", "", "action"]:
            return "action"
        case [slot, "", "id"] if slot == "entities" or slot.startswith("action_"):
            return "id"
        case ["constraints", "", "type"]:
            return "type"
    return "value"
