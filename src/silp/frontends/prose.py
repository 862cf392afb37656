"""IR to English: the frontends `natural` and `nl_json` (protocol sections 4.3 and 4.4; wire format, section 5).

Lives here: deterministic prose that names every type, value, subject, operator, time, target, location, keyword id and
extra field, and the order of actions. There is no reader: prose does not decode.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from silp.frontends.notation import CODE
from silp.ir import Alternative, Constraint, Entity, SilpIR, function_name
from silp.strict_json import write_json
from silp.text import is_visible, quote

__all__ = ["prose"]

_PLAIN = re.compile(CODE.value).fullmatch
_OPERATOR_WORDS = {
    "==": "is",
    "!=": "is not",
    "<=": "is at most",
    ">=": "is at least",
    "<": "is less than",
    ">": "is greater than",
}


def prose(ir: SilpIR, inline_meta: bool, max_depth: int) -> str:
    """Return one line of English for a valid IR; what is not a plain word or phrase stands in quotes."""
    return _Prose(max_depth).payload(ir, inline_meta)


class _Prose:
    def __init__(self, max_depth: int) -> None:
        self._max_depth = max_depth

    def payload(self, ir: SilpIR, inline_meta: bool) -> str:
        text = " and ".join(self.calls(ir.intent, ir.entities))
        if ir.constraints:
            text = f"If {' and '.join(self.constraint(constraint) for constraint in ir.constraints)}, {text}"
        if ir.alternatives:
            text += f" otherwise {' and '.join(self.alternative(alternative) for alternative in ir.alternatives)}"
        if inline_meta and ir.meta.seq:
            text += f". In this order: {', '.join(self.phrase(code) for code in ir.meta.seq)}"
        return text + "."

    def calls(self, intent: str, entities: list[Entity]) -> list[str]:
        calls: list[tuple[str, list[str]]] = [(intent, [])]
        for entity in entities:
            action = entity.action or intent
            if action != calls[-1][0]:
                calls.append((action, []))
            key = "" if entity.id == "act" else self.phrase(entity.id) + " "
            calls[-1][1].append(key + self.phrase(entity.value) + self.extras(entity.__pydantic_extra__ or {}))
        return [f"{function_name(action)} {', '.join(arguments)}".rstrip() for action, arguments in calls]

    def constraint(self, constraint: Constraint) -> str:
        extra = dict(constraint.__pydantic_extra__ or {})
        negated = constraint.type.startswith("!")
        text = ("not " if negated else "") + self.phrase(constraint.type[1:] if negated else constraint.type)
        if isinstance(extra.get("subject"), str):
            text += f" of {self.phrase(extra.pop('subject'))}"
        operator = extra.get("operator")
        if isinstance(operator, str):
            del extra["operator"]
            text += f" {_OPERATOR_WORDS.get(operator) or self.phrase(operator)} {self.phrase(constraint.value)}"
        elif not negated or constraint.value != "true":
            text += f" is {self.phrase(constraint.value)}"
        if constraint.time is not None:
            text += f" at {self.phrase(constraint.time)}"
        return text + self.extras(extra)

    def alternative(self, alternative: Alternative) -> str:
        text = function_name(alternative.action)
        if alternative.target is not None:
            text += f" {self.phrase(alternative.target)}"
        if alternative.location is not None:
            text += f" at {self.phrase(alternative.location)}"
        return text + self.extras(alternative.__pydantic_extra__ or {})

    def extras(self, extra: Mapping[str, Any]) -> str:
        items = [f"{self.phrase(key)} {self.data(value)}" for key, value in extra.items()]
        return f" ({', '.join(items)})" if items else ""

    def data(self, value: Any) -> str:
        return self.phrase(value) if isinstance(value, str) else write_json(value, max_depth=self._max_depth)

    @staticmethod
    def phrase(text: str) -> str:
        return text if _PLAIN(text) and is_visible(text) else quote(text)
