"""Validation: the schema and the rules beyond it (protocol sections 3.7 to 3.9).

Lives here: `validate`, its policies and its rules, one function per rule. Not here: the schema (ir) and what a receiver
does about hostile input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from silp.errors import ErrorCode, Finding, SilpError
from silp.frontends.notation import OPERATORS
from silp.ir import SILP_VERSION, SilpIR, is_action_code, revalidated
from silp.verbs import APPROVED, EXCLUDED

__all__ = ["PolicyName", "Report", "actions", "check_rules", "validate"]

PolicyName = Literal["strict", "advisory"]

_SEQ_KEYWORDS = frozenset({"parallel", "sequential", "reason_first", "reason_last"})


@dataclass(frozen=True)
class Report:
    """What validation found. `errors` make an IR unusable under the policy, `warnings` do not."""

    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not self.errors

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready data."""
        return {
            "ok": self.ok,
            "errors": [finding.to_dict() for finding in self.errors],
            "warnings": [finding.to_dict() for finding in self.warnings],
        }


def validate(data: SilpIR | Mapping[str, Any], *, policy: PolicyName = "strict") -> Report:
    """Return what is wrong with an IR, every fault with its code and JSON path.

    Under `strict`, unknown verbs, unknown operators and repeated keyword ids are errors; under `advisory` they are
    warnings. What breaks the schema, an excluded verb and an unsupported version are errors under both.
    Raises SilpError (invalid_syntax) only for an unknown policy.
    """
    if policy not in ("strict", "advisory"):
        raise SilpError(ErrorCode.INVALID_SYNTAX, f"policy must be 'strict' or 'advisory', found {policy!a}")
    try:
        ir = revalidated(data) if isinstance(data, SilpIR) else SilpIR.from_dict(data)
    except SilpError as error:
        return Report(error.findings or (Finding("not_json", "$", error.message),), ())
    return check_rules(ir, policy)


def check_rules(ir: SilpIR, policy: PolicyName) -> Report:
    """Return what `validate` does for an IR that is valid under the schema beyond doubt."""
    errors: list[Finding] = []
    warnings: list[Finding] = []
    for rule, severity in _RULES.items():
        (errors if severity in ("error", policy) else warnings).extend(rule(ir))
    return Report(tuple(errors), tuple(warnings))


def actions(ir: SilpIR) -> Iterator[tuple[str, str]]:
    """Yield every action code of an IR, those in seq included, with its JSON path."""
    yield "$.intent", ir.intent
    for index, entity in enumerate(ir.entities):
        if entity.action is not None:
            yield f"$.entities[{index}].action", entity.action
    for index, alternative in enumerate(ir.alternatives):
        yield f"$.alternatives[{index}].action", alternative.action
    for index, code in enumerate(ir.meta.seq):
        if is_action_code(code):
            yield f"$.meta.seq[{index}]", code


def _unsupported_version(ir: SilpIR) -> Iterator[Finding]:
    if ir.silp != SILP_VERSION:
        yield Finding("unsupported_version", "$.silp", f"this codec speaks {SILP_VERSION}, not {ir.silp}")


def _excluded_verb(ir: SilpIR) -> Iterator[Finding]:
    for path, action in actions(ir):
        if verb := EXCLUDED.get(action):
            yield Finding("excluded_verb", path, f"{action} must not be used, {verb.reason}: use {verb.replacement}")


def _unknown_verb(ir: SilpIR) -> Iterator[Finding]:
    for path, action in actions(ir):
        if action not in APPROVED and action not in EXCLUDED:
            yield Finding(
                "unknown_verb", path, f"{action} is not an approved verb: use one of {', '.join(sorted(APPROVED))}"
            )


def _unknown_operator(ir: SilpIR) -> Iterator[Finding]:
    for index, constraint in enumerate(ir.constraints):
        operator = (constraint.__pydantic_extra__ or {}).get("operator")
        if operator is not None and operator not in OPERATORS:
            path = f"$.constraints[{index}].operator"
            yield Finding(
                "unknown_operator", path, f"{operator!a} is not an operator: use one of {' '.join(OPERATORS)}"
            )


def _repeated_id(ir: SilpIR) -> Iterator[Finding]:
    call, first = ir.intent, dict[str, int]()
    for index, entity in enumerate(ir.entities):
        if (entity.action or ir.intent) != call:
            call, first = entity.action or ir.intent, {}
        earlier = first.setdefault(entity.id, index)
        if earlier != index and entity.id != "act":
            message = f"the same id as $.entities[{earlier}]: give each keyword argument of a call its own id"
            yield Finding("repeated_id", f"$.entities[{index}].id", message)


def _seq_keyword(ir: SilpIR) -> Iterator[Finding]:
    for index, code in enumerate(ir.meta.seq):
        if code in _SEQ_KEYWORDS:
            message = f"{code} carries no behaviour: seq is a serial order of action codes, whatever keywords it has"
            yield Finding("seq_keyword", f"$.meta.seq[{index}]", message)


def _location_without_target(ir: SilpIR) -> Iterator[Finding]:
    for index, alternative in enumerate(ir.alternatives):
        if alternative.location is not None and alternative.target is None:
            message = "a location without a target: say what is to be done there"
            yield Finding("location_without_target", f"$.alternatives[{index}].location", message)


# Each rule with the policy under which its findings are errors: "error" is every policy, "warning" none.
_RULES: dict[Callable[[SilpIR], Iterator[Finding]], str] = {
    _unsupported_version: "error",
    _excluded_verb: "error",
    _unknown_verb: "strict",
    _unknown_operator: "strict",
    _repeated_id: "strict",
    _seq_keyword: "warning",
    _location_without_target: "warning",
}
