"""Rules beyond the schema, each with its code, path and severity under both policies."""

from __future__ import annotations

from typing import Any

import pytest

import silp
from silp.verbs import APPROVED, EXCLUDED, TOKENIZERS

META = {"req_id": "a1b2c3d4"}


def found(data: dict[str, Any], policy: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    report = silp.validate({"meta": META, **data}, policy=policy)
    assert report.ok == (not report.errors)
    errors = [(finding.code, finding.path) for finding in report.errors]
    return errors, [(finding.code, finding.path) for finding in report.warnings]


def test_the_tables_of_verbs() -> None:
    names = "CANCEL START EMAIL FETCH PROCESS TRANSLATE BOOK ROUTE SEARCH UPDATE SUGGEST SWITCH NOTIFY"
    assert {f"!{name}" for name in names.split()} == APPROVED
    assert set(EXCLUDED) == {"!SWITCH_TOOL", "!ESCALATE"}
    assert EXCLUDED["!SWITCH_TOOL"].replacement == "!SWITCH"
    assert dict(zip(TOKENIZERS, EXCLUDED["!ESCALATE"].tokens, strict=True))["llama-2"] == 3


@pytest.mark.parametrize("action", sorted(APPROVED))
def test_approved_verbs_are_valid(action: str) -> None:
    assert found({"intent": action}, "strict") == ([], [])


@pytest.mark.parametrize(
    ("data", "code", "path", "advisory"),
    [
        ({"intent": "!ESCALATE"}, "excluded_verb", "$.intent", "error"),
        ({"intent": "!SWITCH_TOOL"}, "excluded_verb", "$.intent", "error"),
        ({"intent": "!DELETE"}, "unknown_verb", "$.intent", "warning"),
        (
            {"intent": "!START", "entities": [{"id": "act", "value": "x", "action": "!RM"}]},
            "unknown_verb",
            "$.entities[0].action",
            "warning",
        ),
        (
            {"intent": "!START", "alternatives": [{"action": "!ESCALATE"}]},
            "excluded_verb",
            "$.alternatives[0].action",
            "error",
        ),
        ({"silp": "v2", "intent": "!START"}, "unsupported_version", "$.silp", "error"),
        (
            {"intent": "!START", "constraints": [{"type": "t", "value": "v", "operator": "in"}]},
            "unknown_operator",
            "$.constraints[0].operator",
            "warning",
        ),
        (
            {"intent": "!START", "constraints": [{"type": "t", "value": "v", "operator": ["<"]}]},
            "unknown_operator",
            "$.constraints[0].operator",
            "warning",
        ),
        (
            {
                "intent": "!START",
                "entities": [{"id": "k", "value": "1"}, {"id": "k", "value": "2", "action": "!START"}],
            },
            "repeated_id",
            "$.entities[1].id",
            "warning",
        ),
    ],
)
def test_a_rule_is_strict_or_not(data: dict[str, Any], code: str, path: str, advisory: str) -> None:
    assert found(data, "strict") == ([(code, path)], [])
    expected = [(code, path)]
    assert found(data, "advisory") == ((expected, []) if advisory == "error" else ([], expected))


@pytest.mark.parametrize("policy", ["strict", "advisory"])
@pytest.mark.parametrize("keyword", ["parallel", "sequential", "reason_first", "reason_last"])
def test_ordering_keywords_in_seq_are_warned_about(policy: str, keyword: str) -> None:
    data = {"intent": "!START", "meta": {**META, "seq": ["!START", keyword]}}
    assert found(data, policy) == ([], [("seq_keyword", "$.meta.seq[1]")])


@pytest.mark.parametrize("policy", ["strict", "advisory"])
def test_a_location_without_a_target_is_warned_about(policy: str) -> None:
    data = {"intent": "!START", "alternatives": [{"action": "!START", "location": "indoor"}]}
    assert found(data, policy) == ([], [("location_without_target", "$.alternatives[0].location")])


def test_act_may_repeat_and_ids_are_of_their_call() -> None:
    entities = [
        {"id": "act", "value": "a"},
        {"id": "act", "value": "b"},
        {"id": "k", "value": "c"},
        {"id": "k", "value": "d", "action": "!EMAIL"},
    ]
    assert found({"intent": "!START", "entities": entities}, "strict") == ([], [])


def test_every_fault_of_the_schema_is_listed() -> None:
    report = silp.validate({"intent": "start", "entities": [{"id": 1}], "meta": {"req_id": "e5f6g7h8"}, "x": 1})
    assert [(finding.code, finding.path) for finding in report.errors] == [
        ("bad_action_code", "$.intent"),
        ("wrong_type", "$.entities[0].id"),
        ("missing_field", "$.entities[0].value"),
        ("bad_req_id", "$.meta.req_id"),
        ("unknown_field", "$.x"),
    ]
    assert report.to_dict()["ok"] is False
    assert report.to_dict()["errors"][0]["message"].startswith("intent must be '!' and an upper-case verb")


def test_an_ir_object_is_validated_like_plain_data() -> None:
    ir = silp.decode("rm(x); email(y)")
    assert [finding.code for finding in silp.validate(ir).errors] == ["unknown_verb", "unknown_verb"]
    assert silp.validate(ir, policy="advisory").ok
