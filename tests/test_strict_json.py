"""Strict JSON: what is refused, where, and that the fast reader and the exact one agree."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silp.errors import ErrorCode, SilpError
from silp.strict_json import MAX_DEPTH, MAX_DIGITS, locate, not_json, parse_json, write_json
from silp.testing import json_values
from silp.text import is_visible


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        ("{", 1),
        ('{"a":1,"a":2}', 7),
        ('{"a":{"b":1,"\\u0062":2}}', 12),
        ('{"a":NaN}', 5),
        ("[Infinity]", 1),
        ("[-Infinity]", 1),
        ("[1e999]", 1),
        ("[-1e999]", 1),
        ('["\\ud800"]', 2),
        ('["\\udc00\\ud800"]', 2),
        ('["\\\\\\ud800"]', 4),
        ('{"\\ud800":1}', 2),
        ('["\ud800"]', 2),
        ("{} {}", 3),
        ("[1,]", 3),
        ('{"a":1,}', 7),
        ("[01]", 2),
        ("[1.]", 2),
        ("[-]", 1),
        ("[+1]", 1),
        ("[.5]", 1),
        ("[truth]", 1),
        ("['a']", 1),
        ('["a\nb"]', 3),
        ('["\\x"]', 2),
        ('["\\u12"]', 2),
        ('["abc', 5),
        ('{"a" 1}', 5),
        ("{a:1}", 1),
        ("[1 2]", 3),
        ("[1}", 2),
        ("\ufeff{}", 0),
        ("// c\n{}", 0),
        ("[" * 100_000, MAX_DEPTH),
        ('{"a":' * 100_000, 5 * MAX_DEPTH),
        ("9" * (MAX_DIGITS + 1), 0),
    ],
)
def test_malformed_json_is_refused_at_its_offset(text: str, offset: int) -> None:
    with pytest.raises(SilpError) as refused:
        parse_json(text)
    assert (refused.value.code, refused.value.offset) == (ErrorCode.INVALID_SYNTAX, offset)


def test_the_depth_limit_holds_at_its_edge_and_can_be_raised() -> None:
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert json.dumps(parse_json(deepest)) == deepest
    with pytest.raises(SilpError, match="nested deeper than 128 levels"):
        parse_json(f"[{deepest}]")
    assert parse_json(f"[{deepest}]", max_depth=MAX_DEPTH + 1) == [parse_json(deepest)]
    with pytest.raises(SilpError, match="nested deeper than 2 levels"):
        write_json([[[]]], max_depth=2)
    assert write_json([[]], max_depth=2) == "[[]]"


def test_brackets_inside_strings_do_not_count_as_nesting() -> None:
    assert parse_json(json.dumps(["[" * 1000 + '\\"' + "{" * 1000])) == ["[" * 1000 + '\\"' + "{" * 1000]


def test_nesting_that_python_cannot_read_is_an_error_of_ours() -> None:
    with pytest.raises(SilpError) as refused:
        parse_json("[" * 100_000 + "]" * 100_000, max_depth=200_000)
    assert refused.value.code is ErrorCode.DECODE_FAILED


def test_the_longest_integer_is_kept_to_the_digit() -> None:
    assert parse_json("9" * MAX_DIGITS) == 10**MAX_DIGITS - 1
    assert parse_json("[9007199254740993, 1.0, 1]") == [2**53 + 1, 1.0, 1]
    assert [type(number) for number in parse_json("[1.0,1,1e2,-0]")] == [float, int, float, int]


def test_an_escaped_surrogate_pair_is_one_character() -> None:
    assert parse_json('["\\ud83c\\udf78", "\\\\ud800"]') == ["\U0001f378", "\\ud800"]


@settings(max_examples=2000, deadline=None)
@given(json_values())
def test_every_json_value_comes_back_with_its_types(value: Any) -> None:
    text = write_json(value)
    assert is_visible(text)
    back = parse_json(text)
    assert repr(back) == repr(value)


@settings(max_examples=2000, deadline=None)
@given(json_values(), st.data())
def test_both_readers_agree_on_damaged_json(value: Any, data: st.DataObject) -> None:
    text = write_json(value)
    at = data.draw(st.integers(0, len(text)))
    text = (
        text[:at] + data.draw(st.text('[]{},:"\\u0d8eE+-.1n ', max_size=2)) + text[at + data.draw(st.integers(0, 2)) :]
    )
    duplicates = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal duplicates
        duplicates = duplicates or len(dict(pairs)) != len(pairs)
        return dict(pairs)

    try:
        expected = json.loads(text, object_pairs_hook=members)
        acceptable = not duplicates and not not_json(expected)
    except ValueError:
        acceptable = False
    if acceptable:
        assert repr(parse_json(text)) == repr(expected)
    else:
        with pytest.raises(SilpError):
            parse_json(text)


def test_a_path_is_located_in_the_text() -> None:
    text = '{"a": [1, {"b": "x", "c": {}}], "d": null}'
    paths: list[list[str | int]] = [["a"], ["a", 1, "b"], ["a", 1, "c"], ["d"], ["a", 1, "no"]]
    assert [text[locate(text, path) :][:3] for path in paths] == ["[1,", '"x"', "{}}", "nul", '{"b']


def test_what_is_not_json_data_is_named_with_its_path() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert not_json({"a": [1, "x", None, True, 2.5, {}]}) == ""
    assert "nan is not a JSON number" in not_json(float("nan"))
    assert not_json({"a": [0, {1}]}) == "a set is not JSON data: convert it first (at $.a[1])"
    assert "the key 1 is not a string" in not_json({1: 2})
    assert "contains itself" in not_json(loop)
    assert "lone surrogate" in not_json({"\ud800": 1})
    assert "lone surrogate" in not_json(["\ud800"])
    assert "tuple is not JSON data" in not_json((1, 2))
    assert f"more than {MAX_DIGITS} digits" in not_json(-(10**MAX_DIGITS))


def test_a_shared_value_is_not_a_loop() -> None:
    shared = [1]
    assert not_json([shared, shared]) == ""
