"""IRs as the output of pydantic-ai agents, with a scripted model."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import silp
from silp.carriage.pydantic_ai import payload_output


def agent(*answers: str, told: list[str] | None = None, **options: Any) -> Agent[Any, silp.SilpIR]:
    script = iter(answers)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if told is not None and len(messages) > 1:
            told.append(str(messages[-1]))
        return ModelResponse(parts=[TextPart(next(script))])

    return Agent(FunctionModel(answer), output_type=payload_output(**options), retries=2)


def test_the_output_is_the_ir_that_the_model_wrote() -> None:
    output = asyncio.run(agent("\n if !rain(t+1): start(hike)\n").run("a hike")).output
    assert silp.compile(output) == "if !rain(t+1): start(hike)"
    assert asyncio.run(agent('{"intent":"!START"}', frontend="json").run("go")).output.intent == "!START"


def test_the_model_is_told_what_was_wrong_and_tries_again() -> None:
    told: list[str] = []
    output = asyncio.run(agent("start(hike", "escalate(hike)", "start(hike)", told=told).run("a hike")).output
    assert silp.compile(output) == "start(hike)"
    assert "found the end of the text" in told[0]
    assert "(offset 10)" in told[0]
    assert "ESCALATE" in told[1]


def test_a_model_that_never_learns_is_given_up() -> None:
    with pytest.raises(UnexpectedModelBehavior):
        asyncio.run(agent("no", "no", "no", policy=silp.Policy()).run("a hike"))


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.delitem(sys.modules, "silp.carriage.pydantic_ai")
    with pytest.raises(ImportError, match=r"silp-codec\[pydantic-ai\]"):
        __import__("silp.carriage.pydantic_ai")
