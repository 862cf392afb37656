"""The invariants of the codec, on generated IRs and texts. SILP_EXAMPLES sets how many; `make fuzz` sets it high."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import silp
from silp.testing import check_frontend, hostile_text, irs
from silp.text import is_visible

EXAMPLES = int(os.environ.get("SILP_EXAMPLES", "3000"))
LOSSLESS = ["code", "math", "json"]

many = settings(max_examples=EXAMPLES, deadline=None)


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

    holds()
