"""The reader of code and math: linear on hostile input, exact about where and why it refuses."""

from __future__ import annotations

import pytest

import silp
from silp.errors import ErrorCode, SilpError


@pytest.mark.parametrize("frontend", ["code", "math", "json"])
@pytest.mark.parametrize(
    "text",
    [
        " " * 64_000,
        "start(" + " " * 64_000,
        "start(" + " " * 64_000 + "x y",
        "start(a" + " " * 64_000 + "b)",
        "(" * 100_000,
        "if " + "(" * 100_000,
        "if " + "not (" * 100_000,
        "if " + "!" * 100_000,
        "if " + "a: " * 20_000,
        "a," * 5_000_000,
        "start(" + "a," * 1_000_000,
        "start(" + "k=v," * 22,
        "start(" + ",".join(f"k{i}=v" for i in range(22)),
        "start(" + '"' * 50_001,
        "start(" + "\\" * 50_000,
        'start("' + "\\" * 50_001,
        "start(a{" + "b=c," * 100_000,
        "start(a" + "{" * 100_000,
        "start(a{b:=" + "[" * 100_000,
        "start() # " + "a=b, " * 50_000,
        "a() -> " * 50_000,
        "a(x); " * 50_000,
        "start() else: " + "b(c); " * 50_000,
        "¬" * 100_000,
        "a(b) ∧ " * 50_000,
        "⇒" * 100_000,
        "a" * 1_000_000,
        '{"intent":"!A"' + ',"a":"b"' * 100_000,
        '{"a":' * 50_000,
        "é" * 1_000_000,
    ],
    ids=lambda text: f"{text[:12]!a}",
)
def test_large_hostile_text_is_refused(text: str, frontend: str) -> None:
    with pytest.raises(SilpError) as refused:
        silp.decode(text, frontend)
    assert refused.value.code is ErrorCode.INVALID_SYNTAX
    assert len(str(refused.value)) < 1000


def test_a_large_payload_is_read_whole() -> None:
    assert silp.decode("start(" + " " * 64_000 + "x y)").entities[0].value == "x y"
    assert silp.decode("a -> " * 50_000 + "b").meta.seq == ["!A"] * 50_000 + ["!B"]
    entities = [{"id": f"k{i}", "value": f"value {i}"} for i in range(5_000)]
    constraints = [{"type": "budget", "value": str(i), "operator": "<="} for i in range(1_000)]
    ir = silp.SilpIR.from_dict(
        {"intent": "!START", "entities": entities, "constraints": constraints, "meta": {"req_id": "0000"}}
    )
    for frontend in ("code", "math", "json"):
        assert silp.equivalent(silp.decode(silp.compile(ir, frontend), frontend), ir)


def test_the_limit_on_brackets_holds_at_its_edge_and_can_be_raised() -> None:
    def nested(depth: int) -> str:
        return f"if {'(' * depth}a(b){')' * depth}: start()"

    assert silp.decode(nested(silp.MAX_DEPTH)).constraints[0].type == "a"
    with pytest.raises(SilpError, match="at most 128 open brackets"):
        silp.decode(nested(silp.MAX_DEPTH + 1))
    assert silp.decode(nested(silp.MAX_DEPTH + 1), max_depth=silp.MAX_DEPTH + 1).constraints[0].type == "a"


def test_the_limit_on_nesting_is_the_same_for_compile_and_decode() -> None:
    value: object = 1
    for _ in range(silp.MAX_DEPTH - 8):
        value = [value]
    ir = {"intent": "!A", "entities": [{"id": "act", "value": "x", "deep": value}], "meta": {"req_id": "0000"}}
    for frontend in ("code", "math", "json"):
        assert silp.equivalent(silp.decode(silp.compile(ir, frontend), frontend), ir)
        for _ in range(12):
            value = [value]
        deeper = {**ir, "entities": [{"id": "act", "value": "x", "deep": value}]}
        with pytest.raises(SilpError, match="nested deeper than 128 levels"):
            silp.compile(deeper, frontend)
        payload = silp.compile(deeper, frontend, max_depth=200)
        with pytest.raises(SilpError, match="nested deeper than 128 levels"):
            silp.decode(payload, frontend)
        assert silp.equivalent(silp.decode(payload, frontend, max_depth=200), deeper)
        for _ in range(12):
            value = value[0]  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "offset", "expected", "found", "advice"),
    [
        ("start(hike", 10, "',' or ')'", "the end of the text", "JSON string"),
        ("start(f(x))", 7, "',' or ')'", "'('", "JSON string"),
        ("start(a=b=c)", 9, "',' or ')'", "'='", "JSON string"),
        ("start (x)", 5, "'('", "' '", ""),
        ("START(x)", 0, "a call such as start(hike)", "'START'", ""),
        ("if a: ", 6, "a call such as start(hike)", "the end of the text", ""),
        ("if urgency=high: x()", 10, "'and', ':'", "'='", ""),
        ("start(x); ", 10, "a call such as start(hike)", "the end of the text", ""),
        ("email(a); email(b)", 10, "a call of another function", "'email'", "join the arguments"),
        ("start(a); email()", 10, "a secondary call with arguments", "'email'", "leave the empty call out"),
        ("start(x) # req_id=abcd", 11, "a field other than req_id", "'req_id'", "leave it out"),
        ("start(x) # a=1, a=2", 16, "a field other than a", "'a'", "has its value already"),
        ('start("x', 8, "'\"'", "the end of the text", "close the string"),
        ("if not !a: b()", 7, "a constraint such as rain(t+1)", "'!'", ""),
        ("if not (a and b): c()", 10, "')'", "'and'", "negate each constraint by itself"),
        ("start(cards) else start(a,b)", 25, "')'", "','", "JSON string"),
    ],
)
def test_an_error_says_where_and_what(text: str, offset: int, expected: str, found: str, advice: str) -> None:
    with pytest.raises(SilpError) as refused:
        silp.decode(text)
    error = refused.value
    assert (error.offset, error.found) == (offset, found)
    assert error.expected is not None
    assert error.expected.startswith(expected)
    assert advice in error.message
    line, caret = str(error).splitlines()[-2:]
    assert line == f"  {text}"
    assert caret.index("^") == offset + 2


def test_the_caret_stands_under_the_character_whatever_the_widths() -> None:
    with pytest.raises(SilpError) as refused:
        silp.decode("start(漢字e\u0301(")
    assert str(refused.value).splitlines()[-1] == " " * (2 + len("start(") + 4 + 1) + "^"


def test_a_long_text_is_shown_around_the_offset() -> None:
    with pytest.raises(SilpError) as refused:
        silp.decode(f"start({'a' * 500}({'b' * 500}")
    line, caret = str(refused.value).splitlines()[-2:]
    assert line == f"  ...{'a' * 40}({'b' * 39}..."
    assert caret.index("^") == line.index("(")


@pytest.mark.parametrize(
    ("payload", "expected"),
    [("if a(b,c,d,e): x()", "')'"), ("if a(b,c,d: x()", "')'"), ("if a(b: x()", "',' or ')'")],
)
def test_a_predicate_says_what_may_follow_its_last_argument(payload: str, expected: str) -> None:
    with pytest.raises(SilpError) as refused:
        silp.decode(payload)
    assert refused.value.expected == expected


def test_a_limit_of_no_nesting_refuses_the_array_of_a_seq() -> None:
    for payload in ('start("a") # seq:=["!A"]', 'start(a) # seq:=["!A"]'):
        with pytest.raises(SilpError, match="nested deeper than 0 levels") as refused:
            silp.decode(payload, max_depth=0)
        assert refused.value.offset == payload.index("[")
        assert silp.decode(payload, max_depth=1).meta.seq == ["!A"]
