"""IR to text in the notations `code` and `math` (wire format, sections 2 and 3). The inverse is `reader`.

Lives here: the canonical text of an IR. The methods carry the names of the rules in docs/notations.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from silp.frontends.notation import Notation, arrange, is_time
from silp.ir import IR_VERSION, Alternative, Constraint, Entity, Meta, SilpIR, function_name, is_action_code
from silp.strict_json import write_json
from silp.text import is_visible, quote

__all__ = ["write"]


def write(ir: SilpIR, notation: Notation, inline_meta: bool, max_depth: int) -> str:
    """Return the canonical payload of a valid IR; raises SilpError (invalid_syntax) for what no payload can carry.

    A bare name or value may not hold an invisible character. To look for one in every string would cost more than to
    write it, so the first attempt looks at delimiters alone, and only a text that comes out with one is written again.
    """
    text = _writer(notation, False, max_depth).payload(ir, inline_meta)
    return text if is_visible(text) else _writer(notation, True, max_depth).payload(ir, inline_meta)


@lru_cache(maxsize=16)
def _writer(notation: Notation, exact: bool, max_depth: int) -> _Writer:
    return _Writer(notation, exact, max_depth)


class _Writer:
    def __init__(self, notation: Notation, exact: bool, max_depth: int) -> None:
        self._condition_start, self._condition_end = notation.condition_start, notation.condition_end
        self._condition_and, self._negation, self._operators = (
            notation.condition_and,
            notation.negation,
            notation.operators,
        )
        self._otherwise, self._arrow = notation.otherwise, notation.arrow
        self._max_depth = max_depth
        self._quote = quote if exact else encode_basestring
        # An identifier has no delimiter, and is much faster to recognise; but it may hold ignorable characters.
        self._is_plain: Callable[[str], bool] = (lambda _: False) if exact else str.isidentifier
        self._is_name, self._is_value, self._is_target = (
            (lambda text, match=match: match(text) and is_visible(text)) if exact else match
            for match in (re.compile(pattern).fullmatch for pattern in (notation.name, notation.value, notation.target))
        )

    def payload(self, ir: SilpIR, inline_meta: bool) -> str:
        root = ir.__dict__
        constraints, alternatives, meta, version = (
            root["constraints"],
            root["alternatives"],
            root["meta"],
            root["version"],
        )
        text, arrows = self.flow(root["intent"], root["entities"], meta.seq)
        if constraints:
            condition = self._condition_and.join([self.constraint(constraint) for constraint in constraints])
            text = f"{self._condition_start}{condition}{self._condition_end}{text}"
        if alternatives:
            text += self._otherwise + "; ".join([self.alt(alternative) for alternative in alternatives])
        fields = self.meta_fields(meta, arrows) if inline_meta else []
        if version != IR_VERSION:
            fields.insert(0, f"$version={self.value(version)}")
        return f"{text} # {', '.join(fields)}" if fields else text

    def flow(self, intent: str, entities: list[Entity], seq: list[str]) -> tuple[str, bool]:
        """Return the calls, and whether they are an arrow flow, which says the seq."""
        is_plain, is_name, is_value = self._is_plain, self._is_name, self._is_value
        action = intent
        arguments: list[str] = []
        actions, calls = [intent], []
        for entity in entities:
            known, extra = entity.__dict__, entity.__pydantic_extra__
            key, value, own_action = known["id"], known["value"], known["action"] or intent
            if own_action != action:
                calls.append(f"{function_name(action)}({','.join(arguments)})")
                actions.append(own_action)
                action, arguments = own_action, []
            argument = value if is_plain(value) or is_value(value) else self._quote(value)
            if key != ("time" if value[:1] == "t" and is_time(value) else "act"):
                argument = f"{key if is_plain(key) or is_name(key) else self._quote(key)}={argument}"
            arguments.append(argument + self.fields(extra) if extra else argument)
        calls.append(f"{function_name(action)}({','.join(arguments)})")
        places = arrange(actions, seq) if len(seq) > 1 and seq[0] == intent and all(map(is_action_code, seq)) else None
        if places is not None:
            at = dict(zip(places, calls, strict=True))
            return self._arrow.join(
                [at.get(place) or f"{function_name(code)}()" for place, code in enumerate(seq)]
            ), True
        return "; ".join(calls), False

    def constraint(self, constraint: Constraint) -> str:
        is_plain, is_name, is_value = self._is_plain, self._is_name, self._is_value
        known, fields = constraint.__dict__, constraint.__pydantic_extra__ or {}
        name, value, time = known["type"], known["value"], known["time"]
        operator, subject = fields.get("operator"), fields.get("subject")
        negated = name[:1] == "!"
        text: str = name[1:] if negated else name
        if not (is_plain(text) or is_name(text)):
            text = self._quote(text)
        if negated:
            text = self._negation + text
        if operator is not None and type(operator) is str and operator in self._operators:
            text += self._operators[operator] + (value if is_plain(value) or is_name(value) else self._quote(value))
            if time is not None:
                text += ", " + self.name(time)
            fields = _without("operator", fields)
        elif type(subject) is str and (time is not None or not is_time(value)):
            text += f"({self.value(subject)},{self.value(value)}{'' if time is None else ',' + self.value(time)})"
            fields = _without("subject", fields)
        elif negated:
            if time is not None:
                text += f"({self.value(time)})"
            if value != "true":
                fields = {"value": value, **fields}
        else:
            if not (is_plain(value) or is_value(value)):
                value = self._quote(value)
            if time is None:
                text += f"({value})"
            elif is_time(time):
                text += f"({value},{time})"
            else:
                text += f"({value})"
                fields = {"time": time, **fields}
        return text + self.fields(fields) if fields else text

    def alt(self, alternative: Alternative) -> str:
        known = alternative.__dict__
        target, location = known["target"], known["location"]
        if target is not None:
            argument = target if self._is_plain(target) or self._is_target(target) else self._quote(target)
            if location is not None:
                argument += "@" + self.value(location)
        else:
            argument = "" if location is None else "loc=" + self.value(location)
        text = f"{function_name(known['action'])}({argument})"
        extra = alternative.__pydantic_extra__
        return text + self.fields(extra) if extra else text

    def fields(self, fields: dict[str, Any]) -> str:
        return "{" + ",".join([self.field(self.name(key), value) for key, value in fields.items()]) + "}"

    def meta_fields(self, meta: Meta, arrows: bool) -> list[str]:
        known = meta.__dict__
        session_id, priority, confidence, seq = (
            known["session_id"],
            known["priority"],
            known["confidence"],
            known["seq"],
        )
        fields = []
        if session_id is not None:
            fields.append(f"session_id={self.value(session_id)}")
        if priority != 0:
            fields.append(f"priority={int.__repr__(priority)}")
        if confidence != 1:
            fields.append(f"confidence={float.__repr__(confidence)}")
        if seq and not arrows:
            fields.append(f"seq:=[{','.join(map(self._quote, seq))}]")
        if known["out"] != "natural":
            fields.append(f"out={self.value(known['out'])}")
        if known["next_agent"] is not None:
            fields.append(f"next_agent={self.value(known['next_agent'])}")
        if meta.__pydantic_extra__:
            for key, value in meta.__pydantic_extra__.items():
                # A bare $version is that of the IR.
                fields.append(self.field(self._quote(key) if key == "$version" else self.name(key), value))
        return fields

    def field(self, name: str, value: Any) -> str:
        return f"{name}={self.value(value)}" if type(value) is str else f"{name}:={self.json(value)}"

    def name(self, text: str) -> str:
        return text if self._is_plain(text) or self._is_name(text) else self._quote(text)

    def value(self, text: str) -> str:
        return text if self._is_plain(text) or self._is_value(text) else self._quote(text)

    def json(self, value: Any) -> str:
        return write_json(value, max_depth=self._max_depth)


def _without(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name} if len(fields) > 1 else {}
