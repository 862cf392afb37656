"""The models, against the normative schema; normal form; equivalence; req_id; errors of the strict JSON pair."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import silp
from silp.errors import ErrorCode, SilpError
from silp.testing import irs

MINIMAL: dict[str, Any] = {"intent": "!START", "meta": {"req_id": "a1b2c3d4"}}


@cache
def schema_validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(silp.json_schema())


def known_nulls_removed(document: Any) -> Any:
    """Return the document without null in a known optional field, which stands for an absent one."""
    optional = {
        "entities": {"action"},
        "constraints": {"time"},
        "alternatives": {"target", "location"},
        "meta": {"session_id", "priority", "confidence", "seq", "out", "next_agent"},
    }
    if not isinstance(document, dict):
        return document

    def without(part: Any, names: set[str]) -> Any:
        return {k: v for k, v in part.items() if k not in names or v is not None} if isinstance(part, dict) else part

    document = without(document, {"silp", "version", "entities", "constraints", "alternatives"})
    for name, names in optional.items():
        part = document.get(name)
        if isinstance(part, list):
            document[name] = [without(item, names) for item in part]
        elif name == "meta":
            document[name] = without(part, names)
    return document if "meta" in document and document["meta"] is not None else {**document, "meta": None}


def beyond_json(value: Any) -> bool:
    """Return whether the value holds what strict JSON text cannot: a lone surrogate or a non-finite number."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        return True
    return False


def loosely_matched(document: Any) -> bool:
    """Return whether a pattern of the schema matches only by the looser reading of Python's `re`: `$` before a line
    break, and digits of other scripts."""
    strings = [document.get("silp"), document.get("intent")]
    for name in ("entities", "alternatives"):
        parts = document.get(name)
        strings += [part.get("action") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    meta = document.get("meta")
    strings += [meta.get("req_id")] if isinstance(meta, dict) else []
    return any(isinstance(text, str) and (text.endswith("\n") or re.search(r"[^\x00-\x7f]", text)) for text in strings)


SCALARS: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, False, 0, 1, 2.0, 2.5, -1, 1e300, float("nan"), float("inf"), 2**70, [], {}, [[]]),
        *("", "1", "v1", "v2", "v1\n", "v\u0661", "!A", "!a", "!", "A", "!A\n", "!A_", "!\u0410", "\ud800"),
        *("abcd", "abcd\n", "abc", "123456789", "ABCD"),
    ]
)
KEYS = st.sampled_from(
    ["id", "value", "action", "type", "time", "target", "location", "req_id", "seq", "out", "silp", "x"]
)


def mutated(document: dict[str, Any], data: st.DataObject) -> Any:
    """Return the document with a random node replaced, removed, or given a new member."""
    document = copy.deepcopy(document)
    holder: Any = document
    while True:
        if isinstance(holder, dict):
            keys = [*holder, None]
            key = data.draw(st.sampled_from(keys))
            if key is None:
                holder[data.draw(KEYS)] = data.draw(SCALARS)
                return document
        elif isinstance(holder, list) and holder:
            key = data.draw(st.integers(0, len(holder) - 1))
        else:
            return document
        if isinstance(holder[key], dict | list) and data.draw(st.booleans()):
            holder = holder[key]
        elif data.draw(st.booleans()):
            holder[key] = data.draw(SCALARS)
            return document
        else:
            del holder[key]
            return document


@settings(max_examples=4000, deadline=None)
@given(irs(), st.integers(0, 2), st.data())
def test_acceptance_is_that_of_the_normative_schema(document: Any, mutations: int, data: st.DataObject) -> None:
    for _ in range(mutations):
        document = mutated(document, data)
    by_schema = schema_validator().is_valid(known_nulls_removed(copy.deepcopy(document)))
    intended = not beyond_json(document) and not loosely_matched(document)
    findings: tuple[silp.Finding, ...] = ()
    try:
        silp.SilpIR.from_dict(document)
        accepted = True
    except SilpError as error:
        accepted, findings = False, error.findings
    assert accepted == (by_schema and intended)
    assert accepted or findings
    assert all(finding.path.startswith("$") and finding.message for finding in findings)


def test_the_schema_is_that_of_the_protocol_by_value() -> None:
    canonical = json.dumps(silp.json_schema(), sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(canonical.encode()).hexdigest() == (
        "098acc6fa2f9156fa1971506eb454ea592daa604c9b0a1b4a6bd02223996986f"
    )


def test_a_copy_of_the_schema_can_be_changed_without_harm() -> None:
    silp.json_schema()["title"] = "changed"
    assert silp.json_schema()["title"] == "SILP IR"


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        ({"intent": "!CANCEL\n"}, "bad_action_code", "$.intent"),
        ({"intent": "!can\u200bcel"}, "bad_action_code", "$.intent"),
        ({"intent": "!\u0421ANCEL"}, "bad_action_code", "$.intent"),
        ({"intent": None}, "wrong_type", "$.intent"),
        ({"silp": "v\u0661"}, "bad_version", "$.silp"),
        ({"silp": "v1\n"}, "bad_version", "$.silp"),
        ({"silp": 1}, "wrong_type", "$.silp"),
        ({"extra": 1}, "unknown_field", "$.extra"),
        ({"odd key\n": 1}, "unknown_field", "$['odd key\\n']"),
        ({"entities": {}}, "wrong_type", "$.entities"),
        ({"entities": [{"id": "a"}]}, "missing_field", "$.entities[0].value"),
        ({"entities": [{"id": "a", "value": 5}]}, "wrong_type", "$.entities[0].value"),
        ({"entities": [{"id": "a", "value": "\ud800"}]}, "not_utf8", "$.entities[0].value"),
        ({"entities": [{"id": "a", "value": "", "x": float("nan")}]}, "not_json", "$.entities[0].x"),
        ({"entities": [None]}, "wrong_type", "$.entities[0]"),
        ({"meta": {"req_id": "e5f6g7h8"}}, "bad_req_id", "$.meta.req_id"),
        ({"meta": {"req_id": "abcd\n"}}, "bad_req_id", "$.meta.req_id"),
        ({"meta": {"req_id": "abc"}}, "bad_req_id", "$.meta.req_id"),
        ({"meta": {}}, "missing_field", "$.meta.req_id"),
        ({"meta": {"req_id": "abcd", "priority": True}}, "wrong_type", "$.meta.priority"),
        ({"meta": {"req_id": "abcd", "priority": 2.5}}, "wrong_type", "$.meta.priority"),
        ({"meta": {"req_id": "abcd", "priority": "1"}}, "wrong_type", "$.meta.priority"),
        ({"meta": {"req_id": "abcd", "confidence": "1"}}, "wrong_type", "$.meta.confidence"),
        ({"meta": {"req_id": "abcd", "confidence": True}}, "wrong_type", "$.meta.confidence"),
        ({"meta": {"req_id": "abcd", "confidence": 1.1}}, "out_of_range", "$.meta.confidence"),
        ({"meta": {"req_id": "abcd", "confidence": float("nan")}}, "out_of_range", "$.meta.confidence"),
        ({"meta": {"req_id": "abcd", "seq": ["a", 1]}}, "wrong_type", "$.meta.seq[1]"),
        ({"meta": {"req_id": "abcd", "x": {1, 2}}}, "not_json", "$.meta.x"),
    ],
)
def test_what_breaks_the_schema_is_named_with_its_path(change: dict[str, Any], code: str, path: str) -> None:
    with pytest.raises(SilpError) as refused:
        silp.SilpIR.from_dict({**MINIMAL, **change})
    assert [(finding.code, finding.path) for finding in refused.value.findings] == [(code, path)]
    assert refused.value.code is ErrorCode.INVALID_SYNTAX


def test_numbers_are_kept_by_the_rules_of_json_schema() -> None:
    ir = silp.SilpIR.from_dict({**MINIMAL, "meta": {"req_id": "abcd", "priority": 2.0, "confidence": 1}})
    assert (type(ir.meta.priority), ir.meta.priority) == (int, 2)
    assert (type(ir.meta.confidence), ir.meta.confidence) == (float, 1.0)
    big = silp.SilpIR.from_json('{"intent":"!A","meta":{"req_id":"abcd","priority":9007199254740993}}')
    assert big.meta.priority == 2**53 + 1


def test_null_in_a_known_optional_field_is_absence_and_in_an_extra_field_is_data() -> None:
    ir = silp.SilpIR.from_dict(
        {
            "silp": None,
            "version": None,
            "intent": "!A",
            "entities": [{"id": "act", "value": "x", "action": None, "unit": None}],
            "constraints": None,
            "alternatives": [{"action": "!B", "target": None}],
            "meta": {"req_id": "abcd", "priority": None, "seq": None, "out": None, "note": None},
        }
    )
    assert silp.normalize(ir) == {
        "silp": "v1",
        "version": "ir-v0.1",
        "intent": "!A",
        "entities": [{"id": "act", "value": "x", "action": "!A", "unit": None}],
        "constraints": [],
        "alternatives": [{"action": "!B"}],
        "meta": {"priority": 0, "confidence": 1.0, "seq": [], "out": "natural", "note": None},
    }


def test_extra_fields_do_not_shadow_methods() -> None:
    extras = {"model_dump": 1, "__class__": "x", "__dict__": {}, "self": 2, "__proto__": {"x": 1}, "constructor": "y"}
    ir = silp.SilpIR.from_dict({**MINIMAL, "entities": [{"id": "__proto__", "value": "v", **extras}]})
    assert ir.entities[0].model_dump()["model_dump"] == 1
    assert ir.to_dict()["entities"] == [{"id": "__proto__", "value": "v", **extras}]


def test_defaults_are_not_shared_between_irs() -> None:
    first, second = silp.SilpIR.from_dict(MINIMAL), silp.SilpIR.from_dict(MINIMAL)
    first.entities.append(silp.Entity(id="act", value="x"))
    first.meta.seq.append("!A")
    assert second.entities == []
    assert second.meta.seq == []


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ({"x": 1}, {"x": 1}, True),
        ({"x": 1}, {"x": 1.0}, False),
        ({"x": True}, {"x": 1}, False),
        ({"x": 0}, {"x": False}, False),
        ({"x": [1, {"y": 2.0}]}, {"x": [1, {"y": 2}]}, False),
        ({"x": {"a": 1, "b": 2}}, {"x": {"b": 2, "a": 1}}, True),
        ({"x": [1, 2]}, {"x": [2, 1]}, False),
        ({"x": [1]}, {"x": [1, 1]}, False),
        ({"x": None}, {}, False),
        ({"x": "\u00e9"}, {"x": "e\u0301"}, False),
        ({"x": {"a": 1}}, {"x": {"b": 1}}, False),
        ({"priority": 2.0}, {"priority": 2}, True),
        ({"confidence": 1}, {}, True),
    ],
)
def test_equivalence_compares_numbers_by_json_type_and_value(a: dict[str, Any], b: dict[str, Any], same: bool) -> None:
    left = {**MINIMAL, "meta": {"req_id": "aaaa", **a}}
    right = {**MINIMAL, "meta": {"req_id": "bbbb", **b}}
    assert silp.equivalent(left, right) is same
    assert silp.equivalent(silp.SilpIR.from_dict(right), left) is same


@settings(max_examples=500, deadline=None)
@given(irs())
def test_the_json_pair_keeps_the_whole_ir(data: dict[str, Any]) -> None:
    ir = silp.SilpIR.from_dict(data)
    back = silp.SilpIR.from_json(ir.to_json())
    assert back.to_json() == ir.to_json()
    assert silp.equivalent(back, ir)
    assert back.meta.req_id == ir.meta.req_id
    assert schema_validator().is_valid(json.loads(ir.to_json()))


def test_an_error_in_ir_json_has_the_offset_of_the_value() -> None:
    text = '{"intent": "!A", "meta": {"req_id": "zzzz"}}'
    with pytest.raises(SilpError) as refused:
        silp.SilpIR.from_json(text)
    assert refused.value.offset == text.index('"zzzz"')
    assert str(refused.value).splitlines()[-1].index("^") == str(refused.value).splitlines()[-2].index('"zzzz"')


@pytest.mark.parametrize("data", [None, 5, "x", [], b"{}"])
def test_what_is_no_object_is_refused(data: Any) -> None:
    with pytest.raises(SilpError):
        silp.compile(data)
    with pytest.raises(SilpError):
        silp.SilpIR.from_json(data)
    assert not silp.validate(data).ok


def test_an_ir_that_was_changed_after_validation_is_checked_again() -> None:
    for frontend in silp.list_frontends():
        ir = silp.SilpIR.from_dict({**MINIMAL, "entities": [{"id": "act", "value": "x"}]})
        ir.entities.append({"id": "k", "value": "v"})  # type: ignore[arg-type]
        assert "v" in silp.compile(ir, frontend)
        ir.entities.append(silp.Entity.model_construct(id=5, value="v"))
        with pytest.raises(SilpError):
            silp.compile(ir, frontend)
        broken = silp.SilpIR.model_construct(intent="start", meta=ir.meta)
        with pytest.raises(SilpError):
            silp.compile(broken, frontend)
        late = silp.SilpIR.from_dict({**MINIMAL, "meta": {"req_id": "abcd", "x": [1]}})
        assert late.meta.__pydantic_extra__
        late.meta.__pydantic_extra__["x"].append(float("nan"))
        if silp.list_frontends()[frontend].lossless:
            with pytest.raises(SilpError):
                silp.compile(late, frontend)


def test_an_ir_that_is_none_any_more_is_refused_everywhere() -> None:
    looped = silp.decode("start(hike{x:=[1]})")
    assert looped.entities[0].__pydantic_extra__
    looped.entities[0].__pydantic_extra__["x"].append(looped.entities[0].__pydantic_extra__["x"])
    nested = silp.decode("start(hike)")
    nested.entities.append(nested.entities)  # type: ignore[arg-type]
    stranger = silp.decode("start(hike)")
    stranger.entities.append(stranger)  # type: ignore[arg-type]
    for ir in (looped, nested, stranger):
        assert not silp.validate(ir).ok
        for call in (silp.compile, silp.normalize, silp.SilpIR.to_json, lambda ir: silp.equivalent(ir, ir)):
            with pytest.raises(SilpError):
                call(ir)


def test_assignment_is_validated() -> None:
    ir = silp.SilpIR.from_dict(MINIMAL)
    with pytest.raises(ValidationError):
        ir.meta.priority = "high"  # type: ignore[assignment]
    ir.meta.priority = 3
    assert silp.compile(ir) == "start() # priority=3"


def test_req_id_is_the_head_of_the_sha256_of_the_payload() -> None:
    digest = hashlib.sha256("étart()".encode()).hexdigest()
    assert silp.req_id("étart()") == digest[:8]
    assert silp.req_id("étart()", scope_limited=True) == digest[:4]
    assert silp.decode("start()").meta.req_id == silp.req_id("start()")
    assert silp.decode("start()", scope_limited=True).meta.req_id == silp.req_id("start()")[:4]


def test_errors_survive_pickling_and_become_data() -> None:
    with pytest.raises(SilpError) as refused:
        silp.decode("start(hike")
    error = pickle.loads(pickle.dumps(refused.value))
    assert str(error) == str(refused.value)
    assert error.to_dict() == refused.value.to_dict()
    assert error.to_dict()["offset"] == 10
    assert json.loads(json.dumps(error.to_dict()))["code"] == "invalid_syntax"


def test_the_schema_file_is_readable_json() -> None:
    path = Path(silp.__file__).parent / "data" / "silp-ir-schema.json"
    assert json.loads(path.read_text("utf-8")) == silp.json_schema()
