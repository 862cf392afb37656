"""Text to IR in the notations `code` and `math` (wire format, sections 2 and 3). The inverse is `writer`.

Lives here: the recursive-descent reader. Each method is a rule of docs/notations.md: it takes the offset where the rule
starts and returns what it read, and the offset behind it. What is named `bare` reads several rules at once in the form
that most payloads have, and leaves every other form, and all errors, to the methods of those rules. No pattern
backtracks and no text is read more often than a fixed number of times, so time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import cache, partial
from typing import Any

from pydantic import ValidationError

from silp.errors import SilpError, syntax_error
from silp.frontends.notation import OPERATORS, Notation, arrange, is_time
from silp.ir import IR_VERSION, SILP_VERSION, Alternative, Constraint, Entity, Meta, SilpIR, invalid_ir, req_id, trusted
from silp.strict_json import MAX_DIGITS, STRING_PATTERN, read_json, unquote
from silp.text import require_visible

__all__ = ["read"]

_FUNCTION = "[a-z][a-z_]*+"
_KEYWORDS = frozenset({"if", "then", "else", "and", "not", "with"})
_CONSTRAINT_STRINGS = frozenset({"value", "time"})
_ENTITY_FIELDS = frozenset(Entity.model_fields)
_ALTERNATIVE_FIELDS = frozenset(Alternative.model_fields)
_NUMBERS = frozenset({"priority", "confidence"})
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?+([eE][+-]?[0-9]++)?+")
_SPACES = re.compile(" *+")
_QUOTE_IT = 'a value with spaces at its ends or any of " ( ) { } , = is written as a JSON string'

_Call = tuple[int, str, bool]  # offset, action, whether it has arguments


def read(text: str, notation: Notation, max_depth: int) -> SilpIR:
    """Return the IR of a payload; raises SilpError (invalid_syntax) at the first character that fits no rule."""
    require_visible(text)
    reader = _Reader(text, notation, max_depth)
    conditional = _patterns(notation).condition_start(text, 0) is not None
    try:
        return reader.payload(conditional)
    except SilpError as error:
        if notation.condition_start:
            raise
        # Without a keyword, only a guess says whether a broken payload was to have a condition. Of the two readings,
        # the one that gets further tells more.
        try:
            return reader.payload(not conditional)
        except SilpError as other:
            raise max(error, other, key=lambda each: each.offset or 0) from None


class _Patterns:
    """The compiled patterns of one notation.

    All begin with the spaces that may precede a lexeme. A part that may be missing is an optional group, so that every
    pattern matches and its end is where an error stands. Only those named `bare_` may fail: they match what is written
    without quotes and braces, with spaces where the writer puts them.
    """

    def __init__(self, notation: Notation) -> None:
        def compiled(pattern: str) -> Callable[[str, int], re.Match[str]]:
            return re.compile(" *+" + pattern).match  # type: ignore[return-value]  # see the class docstring

        def compiled_bare(pattern: str) -> Callable[[str, int], re.Match[str] | None]:
            return re.compile(" *+" + pattern).match

        def spelled(part: str) -> str:
            lexeme = getattr(notation, part).strip()
            spellings = [re.escape(lexeme) + (r"(?=[ (])" if lexeme.isalpha() else "")] if lexeme else []
            spellings += [notation.also_read[part]] if part in notation.also_read else []
            return f"(?:{'|'.join(spellings) or '(?!)'})"

        name, value, target = (
            f"(?:({pattern})|({STRING_PATTERN}))" for pattern in (notation.name, notation.value, notation.target)
        )
        bare_values = f"{notation.value}(?:,{notation.value})*+"
        bare_arg = f"(?:{notation.name}=)?+{notation.value}"
        bare_args = f"{bare_arg}(?:,{bare_arg})*+"
        operator = "|".join(re.escape(notation.operators[operator]) for operator in OPERATORS)
        end = notation.condition_end.strip()
        self.keywords = _KEYWORDS if notation.condition_start else frozenset()  # those of code are words
        self.operators = {lexeme: operator for operator, lexeme in notation.operators.items()}
        self.condition_start = compiled(
            re.escape(notation.condition_start)
            if notation.condition_start
            # No keyword announces a condition: there is one if its end stands anywhere outside of quotes.
            else rf'(?=(?:[^"{end}]++|{STRING_PATTERN})*+{end})'
        )
        after_bare_constraint = (
            rf" *+(?:(?P<and>{spelled('condition_and')})|(?P<end>{spelled('condition_end')})|(?P<close>\)))"
        )
        after_constraint = after_bare_constraint + "?+"
        after_call = (
            rf" *+(?:(?P<call>;)|(?P<arrow>{spelled('arrow')})|(?P<otherwise>{spelled('otherwise')})"
            rf"|(?P<condition>{spelled('trailing_condition')})|(?P<meta>\#)|(?P<end>\Z))?+"
        )
        self.constraint = compiled(
            rf"(?:({spelled('negation')}) *+)?+(?:(\()|{name}"
            rf"(?:(?: *+({operator}) *+(?:{name}(?:( *+, *+){name}?+)?+)?+"
            rf"|\(({bare_values})\)|(?!\()){after_constraint}|(?P<opened>\())?+)?+"
        )
        self.after_constraint = compiled(after_constraint)
        self.argument = compiled(rf"(?:{value} *+([,)])?+)?+")
        self.call = compiled(rf"(?:({_FUNCTION})(?:(?:(\(({bare_args})?+\))|(?!\()){after_call}|(?P<opened>\())?+)?+")
        self.after_call = compiled(after_call)
        self.arg = compiled(rf"(?:{name} *+= *+)?+(?:{value} *+([,){{])?+)?+")
        self.end_of_arg = compiled(r"([,)])?+")
        self.alt = compiled(
            rf"(?:({_FUNCTION})(?:\( *+(?:(loc *+= *+){value}?+|{target}(?:( *+@ *+){value}?+)?+)?+"
            rf" *+(?:(\)){after_call})?+)?+)?+"
        )
        self.field = compiled(rf"(?:{name} *+(?:(:=)|(=) *+(?:{value} *+([,}}]|\Z)?+)?+)?+)?+")
        self.end_of_field = compiled(r"([,}]|\Z)?+")
        name, value, target = notation.name, notation.value, notation.target
        self.bare_constraint = compiled_bare(
            rf"({re.escape(notation.negation)})?+({name})"
            rf"(?:\(({value})(?:,({value})(?:,({value}))?+)?+\)|({operator})({name})){after_bare_constraint}"
        )
        bare_flow = rf"{_FUNCTION}\((?:{bare_args})?+(?:\); {_FUNCTION}\({bare_args})*+"
        bare_alt = rf"{_FUNCTION}\((?:{target}(?:@{value})?+)?+"
        # Numbers are kept so short that no bound of the schema can matter.
        bare_fields = (
            f"session_id=({value})",
            "priority=(-?(?:0|[1-9][0-9]{0,17}+))",
            r"confidence=(0(?:\.[0-9]{1,18}+)?+|1(?:\.0)?+)",
            r'seq:=\["([^"\\]*+(?:","[^"\\]*+)*+)"\]',
            f"out=({value})",
            f"next_agent=({value})",
        )
        bare_meta = r"(?!\Z)" + "".join(rf"(?:{field}(?:, (?!\Z)|\Z))?+" for field in bare_fields) + r"\Z"
        self.bare_meta = compiled_bare(bare_meta)
        self.bare_rest = compiled_bare(
            rf"({bare_flow})\)(?: *+{spelled('otherwise')} *+({bare_alt}(?:\); {bare_alt})*+)\))?+"
            rf" *+(?:\# *+{bare_meta}|(?P<meta>\#)|\Z)"
        )


_patterns = cache(_Patterns)


class _Reader:
    __slots__ = ("_max_depth", "_notation", "_patterns", "_text")

    def __init__(self, text: str, notation: Notation, max_depth: int) -> None:
        self._text = text
        self._notation = notation
        self._patterns = _patterns(notation)
        self._max_depth = max_depth

    def payload(self, conditional: bool) -> SilpIR:
        text, patterns = self._text, self._patterns
        constraints: list[Constraint] = []
        offset = 0
        if conditional:
            start = patterns.condition_start(text, 0)
            after = self.condition(start.end() if start else 0, constraints)
            offset = after.end()
            if after.lastgroup != "end":
                raise self._misplaced(after, self._lexemes("condition_and", "condition_end"))
        rest = patterns.bare_rest(text, offset)
        if rest and self._max_depth > 0 and (ir := self.bare_rest(rest, constraints)):
            return ir
        alternatives: list[Alternative] = []
        entities: list[Entity] = []
        intent, seq, after = self.calls(offset, entities, constraints, alternatives)
        version = IR_VERSION
        if after.lastgroup == "end":
            meta = _bare_meta(text, seq)
        elif after.lastgroup == "meta":
            version, meta = self.meta(after.end(), seq)
        else:
            raise self._misplaced(after, f"{self._lexemes('arrow', 'otherwise')}, ';', '#' or the end of the payload")
        return _root(version, intent, entities, constraints, alternatives, meta)

    def bare_rest(self, rest: re.Match[str], constraints: list[Constraint]) -> SilpIR | None:
        """Return the IR of a payload that is bare behind its condition; None if it would run two calls into one."""
        flow, otherwise, session_id, priority, confidence, codes, out, next_agent, other_meta = rest.groups()
        entities: list[Entity] = []
        alternatives: list[Alternative] = []
        intent = action = ""
        for call in flow.split("); "):
            function, _, arguments = call.partition("(")
            previous, action = action, "!" + function.upper()
            if action == previous:
                return None
            intent = intent or action
            if arguments:
                _bare_arguments(arguments, action, entities)
        if otherwise:
            for call in otherwise.split("); "):
                function, _, argument = call.partition("(")
                target, _, location = argument.partition("@")
                fields = {"action": "!" + function.upper(), "target": target or None, "location": location or None}
                alternatives.append(trusted(Alternative, fields, {}))
        version = IR_VERSION
        if other_meta:
            version, meta = self.meta_fields(rest.end(), [])
        else:
            meta = _bare_meta(self._text, [], session_id, priority, confidence, codes, out, next_agent)
        return _root(version, intent, entities, constraints, alternatives, meta)

    def condition(self, offset: int, constraints: list[Constraint], depth: int = 0) -> re.Match[str]:
        """Read constraints and return the match of what stands behind them (`_Patterns.after_constraint`)."""
        text, bare_constraint = self._text, self._patterns.bare_constraint
        while True:
            after = bare_constraint(text, offset)
            if after is None:
                after = self.constraint(offset, constraints, depth)
            else:
                negation, name, first, second, third, operator, value, _, _, _ = after.groups()
                extra: dict[str, Any] = {}
                time = None
                if operator:
                    extra["operator"] = self._patterns.operators[operator]
                elif second:
                    value, time = _value_and_time(first, second, third, extra)
                elif negation:
                    value, time = "true", first
                else:
                    value = first
                known = {"type": "!" + name if negation else name, "value": value, "time": time}
                constraints.append(trusted(Constraint, known, extra))
            if after.lastgroup != "and":
                return after
            offset = after.end()

    def constraint(
        self, offset: int, constraints: list[Constraint], depth: int, negated: bool = False
    ) -> re.Match[str]:
        """Read a constraint and return the match of what stands behind it (`_Patterns.after_constraint`)."""
        text = self._text
        after = head = self._patterns.constraint(text, offset)
        negation, bracket, name, quoted, operator, value, quoted_value, comma, time, quoted_time, values, *_ = (
            head.groups()
        )
        if negation:
            if negated:
                raise self._error(head.start(1), "a constraint", "negate it once")
            negated = True
        if quoted:
            name = unquote(text, head.start(4), quoted)
        elif bracket:
            return self.bracketed(head.end(), constraints, depth + 1, negated)
        elif name is None:
            raise self._missing(head.end(), "a constraint such as rain(t+1)")
        extra: dict[str, Any] = {}
        if operator:
            if quoted_value:
                value = unquote(text, head.start(7), quoted_value)
            elif value is None:
                raise self._missing(head.end(5), "a name or a quoted string to compare with")
            if quoted_time:
                time = unquote(text, head.start(10), quoted_time)
            elif comma and time is None:
                raise self._missing(head.end(8), "a time")
            extra["operator"] = self._patterns.operators[operator]
        elif values or head["opened"]:
            if values and values.count(",") < 3:
                arguments = values.split(",")
            else:
                arguments, offset = self.predicate(head.start(11) if values else head.end())
                after = self._patterns.after_constraint(text, offset)
            if len(arguments) > 1:
                value, time = _value_and_time(arguments[0], arguments[1], (*arguments, None)[2], extra)
            elif negated:
                time = arguments[0]
            else:
                value = arguments[0]
        elif name in self._patterns.keywords and not (quoted or negation):
            raise self._error(head.start(3), "a constraint", f"a constraint named {name} is written {name}(true)")
        if not after.lastgroup and text.startswith("{", after.end()):
            given = {"type", *extra, *(key for key, field in (("value", value), ("time", time)) if field is not None)}
            fields, offset = self.fields(after.end() + 1, given, _CONSTRAINT_STRINGS)
            value, time = fields.pop("value", value), fields.pop("time", time)
            extra.update(fields)
            after = self._patterns.after_constraint(text, offset)
        known = {"type": "!" + name if negated else name, "value": "true" if value is None else value, "time": time}
        constraints.append(trusted(Constraint, known, extra))
        return after

    def bracketed(self, offset: int, constraints: list[Constraint], depth: int, negated: bool) -> re.Match[str]:
        if depth > self._max_depth:
            raise self._error(offset - 1, f"at most {self._max_depth} open brackets", "remove some, or raise max_depth")
        if negated:
            after = self.constraint(offset, constraints, depth, negated)
        else:
            after = self.condition(offset, constraints, depth)
        if after.lastgroup != "close":
            raise self._misplaced(after, "')'", "negate each constraint by itself" if negated else "")
        return self._patterns.after_constraint(self._text, after.end())

    def predicate(self, offset: int) -> tuple[list[str], int]:
        values: list[str] = []
        while True:
            argument = self._patterns.argument(self._text, offset)
            value = self._string(argument, 1)
            if value is None:
                raise self._missing(argument.end(), "a value")
            values.append(value)
            offset = argument.end()
            if argument[3] == ")":
                return values, offset
            if argument[3] is None or len(values) == 3:
                at = offset if argument[3] is None else argument.start(3)
                raise self._error(at, "')'" if len(values) == 3 else "',' or ')'", _QUOTE_IT)

    def calls(
        self, offset: int, entities: list[Entity], constraints: list[Constraint], alternatives: list[Alternative]
    ) -> tuple[str, list[str], re.Match[str]]:
        """Read a flow with all that may stand behind it but the meta fields, and return what `flow` does."""
        intent, seq, after = self.flow(offset, entities)
        if after.lastgroup == "condition":
            after = self.condition(after.end(), constraints)
            if after.lastgroup:
                expected = f"{self._lexemes('condition_and', 'otherwise')}, '#' or the end of the payload"
                raise self._misplaced(after, expected)
            after = self._patterns.after_call(self._text, after.end())
        if after.lastgroup == "otherwise":
            after = self.alternatives(after.end(), alternatives)
        return intent, seq, after

    def flow(self, offset: int, entities: list[Entity]) -> tuple[str, list[str], re.Match[str]]:
        """Read calls and return the intent, the seq that an arrow flow stands for (empty for any other), and the match
        of what stands behind them (`_Patterns.after_call`)."""
        text, patterns = self._text, self._patterns
        calls: list[_Call] = []
        separator = None
        while True:
            after = patterns.call(text, offset)
            function, closed, bare_arguments = after.group(1, 2, 3)
            if function is None:
                raise self._missing(after.end(), "a call such as start(hike)")
            start, action, known = after.start(1), "!" + function.upper(), len(entities)
            if bare_arguments:
                _bare_arguments(bare_arguments, action, entities)
            opened = after.lastgroup == "opened"
            if opened:
                after = patterns.after_call(text, self.arguments(after.end(), action, entities))
            calls.append((start, action, len(entities) > known))
            kind = after.lastgroup
            if not (closed or opened or kind == "arrow" or separator == "arrow"):
                raise syntax_error(text, start + len(function), "'('")
            if kind not in ("call", "arrow"):
                return calls[0][1], self.seq(calls, separator == "arrow") if separator else [], after
            if separator not in (None, kind):
                raise self._misplaced(after, "the same separator between all calls", "use one of ';' and the arrow")
            separator, offset = kind, after.end()

    def seq(self, calls: list[_Call], arrows: bool) -> list[str]:
        """Return the seq of an arrow flow, or an empty one, having checked that the IR keeps every call apart."""
        runs = [0]
        for index in range(1, len(calls)):
            offset, action, has_arguments = calls[index]
            if has_arguments:
                if action == calls[runs[-1]][1]:
                    raise self._error(offset, "a call of another function", "join the arguments of both calls in one")
                runs.append(index)
            elif not arrows:
                raise self._error(offset, "a secondary call with arguments", "leave the empty call out")
        if not arrows:
            return []
        seq = [action for _, action, _ in calls]
        for run, place in zip(runs, arrange([seq[run] for run in runs], seq) or (), strict=True):
            if run != place:
                advice = f"its arguments belong to the earlier call at offset {calls[place][0]}"
                raise self._error(calls[run][0], "an empty call", advice)
        return seq

    def arguments(self, offset: int, action: str, entities: list[Entity]) -> int:
        text, arg_at = self._text, self._patterns.arg
        closed = self._patterns.end_of_arg(text, offset)
        if closed[1] == ")":
            return closed.end()
        while True:
            match = arg_at(text, offset)
            offset, end = match.end(), match[5]
            key, value = self._string(match, 1), self._string(match, 3)
            if value is None:
                raise self._missing(offset, "an argument")
            extra: dict[str, Any] = {}
            if end == "{":
                extra, offset = self.fields(offset, _ENTITY_FIELDS)
                closed = self._patterns.end_of_arg(text, offset)
                offset, end = closed.end(), closed[1]
            if key is None:
                key = "time" if is_time(value) else "act"
            entities.append(trusted(Entity, {"id": key, "value": value, "action": action}, extra))
            if end == ")":
                return offset
            if end is None:
                raise self._error(offset, "',' or ')'", _QUOTE_IT)

    def alternatives(self, offset: int, alternatives: list[Alternative]) -> re.Match[str]:
        """Read alternatives and return the match of what stands behind them (`_Patterns.after_call`)."""
        text, patterns = self._text, self._patterns
        while True:
            after = patterns.alt(text, offset)
            function = after[1]
            if function is None:
                raise self._error(after.end(), "an alternative such as start(cards@indoor)")
            if after.end() == after.end(1):
                raise syntax_error(text, after.end(), "'('")
            target, location = self._string(after, 5), self._string(after, 3 if after[2] else 8)
            if location is None and (after[2] or after[7]):
                raise self._missing(after.end(2 if after[2] else 7), "a location")
            if after[10] is None:
                missing = target is None and location is None
                raise (self._missing if missing else self._error)(after.end(), "')'", _QUOTE_IT)
            extra: dict[str, Any] = {}
            if not after.lastgroup and text.startswith("{", after.end()):
                extra, offset = self.fields(after.end() + 1, _ALTERNATIVE_FIELDS)
                after = patterns.after_call(text, offset)
            fields = {"action": "!" + function.upper(), "target": target, "location": location}
            alternatives.append(trusted(Alternative, fields, extra))
            if after.lastgroup != "call":
                return after
            offset = after.end()

    def fields(self, offset: int, given: Collection[str], strings: Collection[str] = ()) -> tuple[dict[str, Any], int]:
        """Return the fields in braces, and the offset behind the brace. A name in `given` has its value already; one in
        `strings` has a string."""
        fields: dict[str, Any] = {}
        while True:
            match, key, value, end, offset = self.field(offset)
            if key in given or key in fields:
                raise self._repeated(match, key)
            if key in strings and not isinstance(value, str) and (key, value) != ("time", None):
                raise self._error(match.end(), "a string", f"write it as {key}=...")
            fields[key] = value
            if end == "}":
                return fields, offset
            if end != ",":
                raise self._error(offset, "',' or '}'", _QUOTE_IT)

    def meta(self, offset: int, seq: list[str]) -> tuple[str, Meta]:
        """Return the IR version and the meta object of the fields at the end of a payload."""
        bare = self._patterns.bare_meta(self._text, offset)
        if bare and not (bare[4] is not None and (seq or self._max_depth < 1)):
            return IR_VERSION, _bare_meta(self._text, seq, *bare.groups())
        return self.meta_fields(offset, seq)

    def meta_fields(self, offset: int, seq: list[str]) -> tuple[str, Meta]:
        """Read what `meta` does, in whatever form it is."""
        text, version = self._text, None
        start = offset
        end: str | None = ","
        fields: dict[str, Any] = {"req_id": req_id(text)}
        if seq:
            fields["seq"] = seq
        while end == ",":
            match, key, value, end, offset = self.field(offset)
            if match[1] == "$version":
                if version is not None:
                    raise self._repeated(match, key)
                if not isinstance(value, str):
                    raise self._error(match.end(), "a string", "write it as $version=...")
                version = value
            elif key in fields:
                raise self._repeated(match, key)
            else:
                # The schema makes these two numbers, so they may be written with a plain `=`.
                fields[key] = _number(value) if key in _NUMBERS and match[5] else value
        if end != "":
            raise self._error(offset - 1 if end else offset, "',' or the end of the payload", _QUOTE_IT)
        try:
            meta = Meta.__pydantic_validator__.validate_python(fields)
        except ValidationError as error:
            raise invalid_ir(error, within="meta", text=text, place=partial(self._meta_offset, start)) from None
        return IR_VERSION if version is None else version, meta

    def field(self, offset: int) -> tuple[re.Match[str], str, Any, str | None, int]:
        """Return the match of a field, its key, its value, the character that ends it, and the offset behind that."""
        match = self._patterns.field(self._text, offset)
        key, quoted, is_json, is_string, value, quoted_value, end = match.groups()
        offset = match.end()
        if quoted:
            key = unquote(self._text, match.start(2), quoted)
        elif key is None:
            raise self._missing(offset, "a field such as key=value")
        if is_json:
            spaces = _SPACES.match(self._text, offset)
            value, offset = read_json(self._text, spaces.end() if spaces else offset, max_depth=self._max_depth)
            ending = self._patterns.end_of_field(self._text, offset)
            end, offset = ending[1], ending.end()
        elif quoted_value:
            value = unquote(self._text, match.start(6), quoted_value)
        elif value is None:
            raise self._missing(offset, "a value") if is_string else self._error(offset, "'=' or ':='")
        return match, key, value, end, offset

    def _meta_offset(self, offset: int, path: Collection[str | int]) -> int:
        while True:
            match, key, _, _, offset = self.field(offset)
            if key in path:
                group = 5 if match[5] else 6
                return match.start(group) if match[group] else match.end()

    def _string(self, match: re.Match[str], group: int) -> str | None:
        """Return the name or value that stands bare in one group or quoted in the next; None if in neither."""
        quoted = match[group + 1]
        return match[group] if quoted is None else unquote(self._text, match.start(group + 1), quoted)

    def _repeated(self, match: re.Match[str], key: str) -> SilpError:
        advice = "it follows from the payload text: leave it out" if key == "req_id" else "it has its value already"
        return self._error(match.start(1 if match[1] else 2), f"a field other than {key}", advice)

    def _lexemes(self, *parts: str) -> str:
        return ", ".join(f"'{getattr(self._notation, part).strip()}'" for part in parts)

    def _misplaced(self, after: re.Match[str], expected: str, advice: str = "") -> SilpError:
        return self._error(after.start(after.lastgroup) if after.lastgroup else after.end(), expected, advice)

    def _missing(self, offset: int, expected: str, advice: str = "") -> SilpError:
        error = self._error(offset, expected, advice)
        if error.found == "'\"'":
            read_json(self._text, error.offset or 0)  # no pattern took the string that begins here: this says why
        return error

    def _error(self, offset: int, expected: str, advice: str = "") -> SilpError:
        spaces = _SPACES.match(self._text, offset)
        return syntax_error(self._text, spaces.end() if spaces else offset, expected, advice)


def _bare_arguments(arguments: str, action: str, entities: list[Entity]) -> None:
    for argument in arguments.split(","):
        key, is_keyword, value = argument.partition("=")
        if not is_keyword:
            key, value = "time" if key[0] == "t" and is_time(key) else "act", key
        entities.append(trusted(Entity, {"id": key, "value": value, "action": action}, {}))


def _value_and_time(first: str, second: str, third: str | None, extra: dict[str, Any]) -> tuple[str, str | None]:
    """Return the value and the time among two or three arguments of a predicate; a subject goes to `extra`."""
    if third is None and is_time(second):
        return first, second
    extra["subject"] = first
    return second, third


def _bare_meta(
    text: str,
    seq: list[str],
    session_id: str | None = None,
    priority: str | None = None,
    confidence: str | None = None,
    codes: str | None = None,
    out: str | None = None,
    next_agent: str | None = None,
) -> Meta:
    """Return the meta object of a payload from what the groups of `_Patterns.bare_meta` hold."""
    fields = {
        "req_id": req_id(text),
        "session_id": session_id,
        "priority": int(priority) if priority else 0,
        "confidence": float(confidence) if confidence else 1.0,
        "seq": seq if codes is None else codes.split('","'),
        "out": out or "natural",
        "next_agent": next_agent,
    }
    return trusted(Meta, fields, {})


def _root(
    version: str,
    intent: str,
    entities: list[Entity],
    constraints: list[Constraint],
    alternatives: list[Alternative],
    meta: Meta,
) -> SilpIR:
    root = {
        "silp": SILP_VERSION,
        "version": version,
        "intent": intent,
        "entities": entities,
        "constraints": constraints,
        "alternatives": alternatives,
        "meta": meta,
    }
    return trusted(SilpIR, root, None)


def _number(literal: str) -> Any:
    """Return the JSON number that `literal` is, or else `literal`, for the schema to refuse."""
    number = _NUMBER.fullmatch(literal)
    if number is None or len(literal) > MAX_DIGITS:
        return literal
    return float(literal) if number.lastindex else int(literal)
