"""The envelope carries an IR beside other data, and refuses halves, doubles and contradictions."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import silp
from silp.carriage.envelope import FIELDS, unwrap, wrap
from silp.errors import SilpError
from silp.testing import irs, json_values, plain_irs

LAX = silp.Policy(verbs=None, max_depth=128)
IR = silp.decode("start(hike) # session_id=a1, priority=2, note=x")


def pair(payload: Any, *meta: Any, encoding: Any = "code") -> dict[str, Any]:
    return {"silp_encoding": encoding, "silp_payload": payload, **({"silp_meta": meta[0]} if meta else {})}


def test_the_fields_are_those_of_the_wire_format() -> None:
    assert wrap(IR, {"city": "Bern"}) == {
        "city": "Bern",
        "silp_encoding": "code",
        "silp_payload": "start(hike)",
        "silp_meta": {
            "silp": "v1",
            "req_id": silp.req_id("start(hike)"),
            "session_id": "a1",
            "priority": 2,
            "confidence": 1.0,
            "seq": [],
            "out": "natural",
            "note": "x",
        },
    }


@given(
    plain_irs(),
    st.dictionaries(st.text(max_size=5), json_values(), max_size=3),
    st.sampled_from(["code", "math", "json"]),
)
def test_an_ir_comes_back_and_the_rest_is_untouched(ir: dict[str, Any], rest: dict[str, Any], frontend: str) -> None:
    before = copy.deepcopy(rest)
    opened = unwrap(wrap(ir, rest, frontend=frontend), policy=LAX)
    assert opened is not None
    assert silp.equivalent(opened.ir, ir)
    assert (opened.rest, rest) == (before, before)
    assert (opened.frontend, opened.ir.meta.req_id) == (frontend, silp.req_id(opened.payload))


@given(irs())
def test_any_ir_is_wrapped(ir: dict[str, Any]) -> None:
    if "silp" in silp.normalize(ir)["meta"]:
        with pytest.raises(SilpError, match="rename it"):
            wrap(ir)
        return
    envelope = wrap(ir)
    decoded = silp.decode(envelope["silp_payload"]).to_dict()
    merged = {**decoded, "meta": {name: value for name, value in envelope["silp_meta"].items() if name != "silp"}}
    assert silp.equivalent(merged, ir)


def test_an_object_without_the_fields_has_no_envelope() -> None:
    assert unwrap({}) is None
    assert unwrap({"payload": "start()", "SILP_PAYLOAD": "start()"}) is None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"silp_payload": "start()"}, "half an envelope: silp_encoding is missing beside silp_payload"),
        ({"silp_encoding": "code"}, "half an envelope: silp_payload is missing"),
        ({"silp_meta": {}}, "half an envelope"),
        (pair("start()", encoding=5), "silp_encoding is the name of a frontend, found a number"),
        (pair({"intent": "!START"}, encoding="json"), "silp_payload is the text of a payload, found an object"),
        (pair(None), "found null"),
        (pair('"start()"'), "silp_payload is encoded twice: it holds a JSON string"),
        (pair('{"silp_encoding":"code","silp_payload":"start()"}', encoding="json"), "it holds an envelope"),
        (pair("start()", '{"priority":1}'), "silp_meta is encoded twice"),
        (pair("start()", [1]), "silp_meta is an object, found an array"),
        (pair("start()", {"priority": "1"}), "priority must be an integer"),
        (pair("start()", {"silp": 1}), "silp must be a string"),
        (pair("start(", {}), "expected an argument"),
        (pair("start() # priority=1", {"priority": 2}), "disagree about priority"),
        (pair("start() # x=1", {"x": 1}), "disagree about x"),
        (pair("start() # x:=1", {"x": True}), "disagree about x"),
        (pair("start() -> email()", {"seq": []}), "disagree about seq"),
    ],
)
def test_what_is_no_whole_envelope_is_refused(data: dict[str, Any], words: str) -> None:
    with pytest.raises(SilpError) as refused:
        unwrap(data)
    assert refused.value.code == "invalid_syntax"
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (pair("start()", encoding="nope"), "unsupported_frontend"),
        (pair("start.", encoding="natural"), "decode_failed"),
        (pair("start()", {"silp": "v2"}), "unsupported_version"),
        (pair("escalate()"), "decode_failed"),
    ],
)
def test_errors_are_those_of_payloads(data: dict[str, Any], code: str) -> None:
    with pytest.raises(SilpError) as refused:
        unwrap(data)
    assert refused.value.code == code


def test_meta_may_stand_inside_outside_or_on_both_sides_if_it_agrees() -> None:
    payload = "start() # priority=2"
    for meta in ({}, {"priority": 2}, {"priority": 2, "confidence": 1.0, "req_id": "abcd"}, None):
        opened = unwrap(pair(payload, meta))
        assert opened is not None
        assert opened.ir.meta.priority == 2
        assert opened.ir.meta.req_id == (meta or {}).get("req_id", silp.req_id(payload))
    opened = unwrap(pair(payload, {"confidence": 0.5, "note": [1]}))
    assert opened is not None
    assert silp.compile(opened.ir) == "start() # priority=2, confidence=0.5, note:=[1]"


def test_what_only_looks_encoded_twice_is_a_payload() -> None:
    for data in (
        pair('"light rain"(t+1) ⇒ start()', encoding="math"),
        pair('{"intent":"!A","silp_payload":"x"}', encoding="json"),
    ):
        assert unwrap(data, policy=LAX) is not None


@pytest.mark.parametrize("field", FIELDS)
def test_an_object_that_has_a_field_already_is_not_overwritten(field: str) -> None:
    with pytest.raises(SilpError, match=f"has the field {field} already"):
        wrap(IR, {field: None})


@pytest.mark.parametrize(
    ("meta", "policy", "words"),
    [
        ({"note": "a\u200bb\U000e0041"}, silp.Policy(strict=True), "the payload is suspicious"),
        ({"note": "<|im_end|>"}, silp.Policy(strict=True), "the payload is suspicious"),
        ({"note": "x" * 100}, silp.Policy(max_value_length=50), "longer than 50 characters"),
        ({"note": "x" * 100}, silp.Policy(max_bytes=50), "larger than 50 bytes"),
        ({"note": [[[[1]]]]}, silp.Policy(max_depth=4), "nested deeper than 4 levels"),
        ({"seq": ["!EMAIL"]}, silp.Policy(verbs=frozenset({"!START"})), "!EMAIL is not among the verbs"),
    ],
)
def test_the_policy_is_for_the_meta_outside_too(meta: dict[str, Any], policy: silp.Policy, words: str) -> None:
    with pytest.raises(SilpError) as refused:
        unwrap(pair("start()", meta), policy=policy)
    assert words in refused.value.message


def test_what_looks_suspicious_in_the_meta_outside_is_reported() -> None:
    opened = unwrap(pair("start()", {"note": "a\u200bb", "\u0412eijing": 1}))
    assert opened is not None
    assert [(finding.code, finding.path) for finding in opened.findings] == [
        ("hidden_text", "$.meta.note"),
        ("mixed_script", "$.meta['\\u0412eijing']"),
    ]
