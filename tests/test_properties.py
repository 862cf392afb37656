"""The invariants of the codec, on generated IRs and texts. SILP_EXAMPLES sets how many; `make fuzz` sets it high."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import silp
from silp.errors import ErrorCode, SilpError
from silp.testing import check_frontend, hostile_text, irs, plain_irs
from silp.text import is_visible

EXAMPLES = int(os.environ.get("SILP_EXAMPLES", "1000"))
LOSSLESS = ["code", "math", "json"]

many = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("frontend", LOSSLESS)
def test_every_ir_comes_back_equivalent_and_compiles_to_the_same_text(frontend: str) -> None:
    @many
    @given(irs())
    def holds(data: dict[str, Any]) -> None:
        payload = silp.compile(data, frontend)
        decoded = silp.decode(payload, frontend)
        assert silp.equivalent(decoded, data), payload
        assert silp.normalize(decoded) == silp.normalize(data)
        assert silp.compile(decoded, frontend) == payload
        assert is_visible(payload)
        assert decoded.meta.req_id == silp.req_id(payload)
        # What a reader builds is what validation would have built.
        validated = silp.SilpIR.from_dict(decoded.to_dict())
        assert validated == decoded
        assert validated.model_dump() == decoded.model_dump()

    holds()


@pytest.mark.parametrize("frontend", LOSSLESS)
def test_without_meta_only_meta_is_missing(frontend: str) -> None:
    @settings(many, max_examples=EXAMPLES // 4)
    @given(irs())
    def holds(data: dict[str, Any]) -> None:
        decoded = silp.normalize(silp.decode(silp.compile(data, frontend, meta="omit"), frontend))
        expected = silp.normalize(data)
        assert decoded["meta"]["seq"] in ([], expected["meta"]["seq"])
        assert {**decoded["meta"], "seq": []} == silp.normalize({"intent": "!A", "meta": {"req_id": "0000"}})["meta"]
        assert {**decoded, "meta": 0} == {**expected, "meta": 0}

    holds()


@pytest.mark.parametrize("frontend", LOSSLESS)
def test_a_damaged_payload_decodes_or_is_refused_with_an_offset(frontend: str) -> None:
    @many
    @given(irs() | plain_irs(), st.data())
    def holds(data: dict[str, Any], draw: st.DataObject) -> None:
        payload = silp.compile(data, frontend)
        start = draw.draw(st.integers(0, len(payload)))
        end = draw.draw(st.integers(start, min(len(payload), start + 4)))
        text = payload[:start] + draw.draw(hostile_text()) + payload[end:]
        check_any_text(text, frontend)

    holds()


@pytest.mark.parametrize("frontend", LOSSLESS)
def test_any_text_decodes_or_is_refused_with_an_offset(frontend: str) -> None:
    @many
    @given(hostile_text() | st.lists(hostile_text(), max_size=12).map("".join) | st.text(max_size=40))
    def holds(text: str) -> None:
        check_any_text(text, frontend)

    holds()


def check_any_text(text: str, frontend: str) -> None:
    try:
        decoded = silp.decode(text, frontend)
    except SilpError as error:
        refusal = error
    else:
        # What is accepted means the same after a round: nothing was dropped or reinterpreted on the way in.
        payload = silp.compile(decoded, frontend)
        assert silp.equivalent(silp.decode(payload, frontend), decoded)
        assert silp.SilpIR.from_dict(decoded.to_dict()) == decoded
        for other in LOSSLESS:
            again = silp.decode(silp.compile(decoded, other), other)
            assert again == decoded.model_copy(update={"meta": again.meta})
            assert silp.equivalent(again, decoded)
        return
    assert refusal.code in (ErrorCode.INVALID_SYNTAX, ErrorCode.UNSUPPORTED_VERSION)
    assert refusal.message
    if refusal.code is ErrorCode.INVALID_SYNTAX:
        assert refusal.offset is not None
        assert 0 <= refusal.offset <= len(text)
        assert str(refusal).endswith("^")


@pytest.mark.parametrize("name", ["code", "math", "json", "natural", "nl_json"])
def test_every_frontend_keeps_the_public_contract(name: str) -> None:
    check_frontend(silp.get_frontend(name), max_examples=EXAMPLES // 4)


@settings(many, max_examples=EXAMPLES // 4)
@given(irs())
def test_prose_names_everything_a_reader_needs(data: dict[str, Any]) -> None:
    ir = silp.SilpIR.from_dict(data)
    text = silp.compile(ir, "natural")
    assert is_visible(text)

    def named(value: str) -> bool:
        from silp.text import quote

        return value in text or quote(value) in text

    for entity in ir.entities:
        assert named(entity.value)
        assert entity.id == "act" or named(entity.id)
    for constraint in ir.constraints:
        negated = constraint.type.startswith("!")
        assert named(constraint.type.removeprefix("!"))
        assert (negated and constraint.value == "true") or named(constraint.value)
        assert not negated or "not " in text
        assert constraint.time is None or named(constraint.time)
    for alternative in ir.alternatives:
        assert silp.compile({"intent": alternative.action, "meta": {"req_id": "0000"}}, "natural")[:-1] in text
        assert alternative.target is None or named(alternative.target)
        assert alternative.location is None or named(alternative.location)
