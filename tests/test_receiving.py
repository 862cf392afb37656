"""The receiving side: what comes in, what is refused, and that nothing is smuggled."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import silp
from silp.cli import main
from silp.errors import ErrorCode, Finding, SilpError
from silp.receiving import Policy, inspect, strings_of
from silp.testing import hostile_text, irs

OPEN = Policy(verbs=None, max_depth=silp.MAX_DEPTH, max_value_length=10**6)


def codes(received: silp.Received) -> list[str]:
    return [finding.code for finding in received.findings]


@pytest.mark.parametrize(
    ("text", "frontend"),
    [
        ("if !rain(t+1): start(hike)", "code"),
        ("start(hike)", "code"),
        ("start(a ≤ b)", "code"),
        ("¬rain(t+1) ⇒ start(hike)", "math"),
        ("x≤5 ⇒ start(hike)", "math"),
        (' {"intent":"!START","act":"hike"}', "json"),
    ],
)
def test_the_frontend_is_found_out(text: str, frontend: str) -> None:
    received = silp.receive(text)
    assert (received.frontend, received.findings) == (frontend, ())
    assert received.ir == silp.decode(text, frontend)
    assert received.req_id == silp.req_id(text)
    assert silp.receive(text, frontend) == received


def test_hidden_characters_are_removed_and_reported_where_they_stood() -> None:
    received = silp.receive("\ufeffst\u200bart(hi\u202eke)\n")
    assert silp.compile(received.ir) == "start(hike)"
    assert [(f.code, f.offset) for f in received.findings] == [
        ("zero_width", 0),
        ("zero_width", 3),
        ("bidi_control", 10),
        ("line_break", 14),
    ]
    assert received.req_id == silp.req_id("start(hike)")
    assert received.findings[1].message.startswith("U+200B ZERO WIDTH SPACE removed")


@pytest.mark.parametrize(
    "value",
    [
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f3f3\ufe0f\u200d\U0001f308",
        "\u2764\ufe0f\u200d\U0001fa79",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "می\u200cخواهم",
        "क्\u200dष",
        "שלום עולם",
        "مرحبا بالعالم",
        "Пекин",
        "東京タワー",
        "naïve Straße",
    ],
)
@pytest.mark.parametrize("form", ["start({})", 'start("{}")', '{{"intent":"!START","act":"{}"}}', "¬a ⇒ start({})"])
def test_scripts_and_emoji_come_through_raw_in_every_notation(value: str, form: str) -> None:
    received = silp.receive(form.format(value))
    assert received.ir.entities[0].value == value
    assert received.findings == ()


@pytest.mark.parametrize("verb", ["cancel", "email", "fetch", "book", "start"])
@pytest.mark.parametrize("hidden", ["\u200b", "\u200c", "\u200d", "\ufeff"])
@pytest.mark.parametrize(
    "form", ["{}(x)", "if a(b): {}(x)", "notify(y); {}(x)", "a(b) ⇒ {}(x)", "notify(y) else: {}(x)", "JSON"]
)
def test_a_hidden_character_in_a_verb_never_makes_another_action(verb: str, hidden: str, form: str) -> None:
    action = "!" + verb.upper()
    for at in range(1, len(verb)):
        broken = verb[:at] + hidden + verb[at:]
        text = f'{{"intent":"!{broken.upper()}"}}' if form == "JSON" else form.format(broken)
        received = silp.receive(text)
        clean = f'{{"intent":"{action}"}}' if form == "JSON" else form.format(verb)
        assert received.ir == silp.receive(clean).ir
        assert codes(received) == ["zero_width"]


@pytest.mark.parametrize("verb", ["cancel", "start", "book", "update"])
@pytest.mark.parametrize(
    "look_alikes",
    [
        str.maketrans("aceops", "\u0430\u0441\u0435\u043e\u0440\u0455"),
        str.maketrans("abcdeklnoprstu", "".join(chr(0xFF41 + ord(c) - 97) for c in "abcdeklnoprstu")),
        str.maketrans("abcdeklnoprstu", "".join(chr(0x1D41A + ord(c) - 97) for c in "abcdeklnoprstu")),
        str.maketrans("o", "\u03bf"),
        str.maketrans("o", "\u0585"),
    ],
    ids=["cyrillic", "fullwidth", "mathematical", "greek", "armenian"],
)
def test_a_look_alike_verb_is_the_verb_or_refused(verb: str, look_alikes: dict[int, int]) -> None:
    text = f"{verb.translate(look_alikes)}(x)"
    if text.isascii():
        return
    received = silp.receive(text)
    assert silp.compile(received.ir) == f"{verb}(x)"
    assert codes(received) == ["look_alike"]
    with pytest.raises(SilpError, match="looks like"):
        silp.receive(text, policy=Policy(strict=True))


def test_values_are_never_rewritten_and_mixed_words_in_them_are_reported() -> None:
    received = silp.receive("start(\u0412eijing)")
    assert received.ir.entities[0].value == "\u0412eijing"
    assert [(f.code, f.path) for f in received.findings] == [("mixed_script", "$.entities[0].value")]
    escaped = silp.receive('start("\\u0412eijing\\u202e")')
    assert escaped.ir.entities[0].value == "\u0412eijing\u202e"
    assert sorted(codes(escaped)) == ["hidden_text", "mixed_script"]
    with pytest.raises(SilpError, match="suspicious"):
        silp.receive("start(\u0412eijing)", policy=Policy(strict=True))


@pytest.mark.parametrize("token", ["<|im_end|>", "</s>", "[INST]", "<start_of_turn>", "</tool_call>", "<<SYS>>"])
def test_control_tokens_are_reported_in_every_slot(token: str) -> None:
    quoted = json.dumps(f"x {token} y")
    for text in (f"start({quoted})", f"start({quoted}=a)", f"start(a) # {quoted}=b", f"if {quoted}(a): start(b)"):
        assert codes(silp.receive(text)) == ["control_token"]


@pytest.mark.parametrize(
    ("text", "policy", "message"),
    [
        ("start(" + "a" * 100 + ")", Policy(max_bytes=100), "larger than 100 bytes"),
        ("start(" + "é" * 60 + ")", Policy(max_bytes=100), "larger than 100 bytes"),
        ("start(a,b,c)", Policy(max_entities=2), "3 entities are more than 2"),
        ("if a and b: start(c)", Policy(max_constraints=1), "2 constraints are more than 1"),
        ("start(a) else: start(b); start(c)", Policy(max_alternatives=1), "2 alternatives are more than 1"),
        ("start(abcdefghij)", Policy(max_value_length=9), "longer than 9 characters"),
        ("start(a{b:=[[1]]})", Policy(max_depth=1), "nested deeper than 1"),
        ("delete(x)", Policy(), "!DELETE is not among the verbs"),
        ("start(x) else: delete(y)", Policy(), "!DELETE is not among the verbs"),
        ("start(x) -> delete -> email(y)", Policy(), "!DELETE is not among the verbs"),
        ("escalate(x)", Policy(verbs=None), "breaks the rules"),
        ("start(k=1,k=2)", Policy(strict=True), "breaks the rules"),
        ("cancel(x)", Policy(needs_approval=frozenset({"!CANCEL"})), "!CANCEL was not approved"),
    ],
)
def test_what_the_policy_does_not_allow_is_refused(text: str, policy: Policy, message: str) -> None:
    with pytest.raises(SilpError, match=message) as refused:
        silp.receive(text, policy=policy)
    assert refused.value.code in (ErrorCode.DECODE_FAILED, ErrorCode.INVALID_SYNTAX)


def test_limits_hold_at_their_edge() -> None:
    policy = Policy(
        max_entities=2, max_constraints=1, max_alternatives=1, max_value_length=8, max_bytes=47, max_depth=1
    )
    received = silp.receive("if a: start(abcdefgh,b{c:=[1]}) else: start(c)", policy=policy)
    assert len(received.ir.entities) == 2


def test_any_verb_may_be_allowed() -> None:
    assert silp.receive("delete(x)", policy=Policy(verbs=frozenset({"!DELETE"}))).ir.intent == "!DELETE"
    assert silp.receive("delete(x)", policy=Policy(verbs=None)).ir.intent == "!DELETE"


def test_consequential_actions_ask_for_approval() -> None:
    asked: list[tuple[str, ...]] = []

    def approve(ir: silp.SilpIR, actions: tuple[str, ...]) -> bool:
        asked.append(actions)
        return ir.entities[0].value == "flight"

    policy = Policy(needs_approval=frozenset({"!CANCEL", "!EMAIL"}), approve=approve)
    received = silp.receive("cancel(flight); email(bob)", policy=policy)
    assert asked == [("!CANCEL", "!EMAIL")]
    assert set(codes(received)) == {"needs_approval"}
    with pytest.raises(SilpError, match="was not approved"):
        silp.receive("cancel(hotel)", policy=policy)
    assert silp.receive("start(x)", policy=policy).findings == ()


def test_a_truthy_answer_or_an_error_is_no_approval() -> None:
    def fails(ir: silp.SilpIR, actions: tuple[str, ...]) -> bool:
        raise RuntimeError("no answer")

    with pytest.raises(SilpError, match="asking for approval of !CANCEL failed"):
        silp.receive("cancel(x)", policy=Policy(needs_approval=frozenset({"!CANCEL"}), approve=fails))
    answer: Any = lambda ir, actions: "yes"  # noqa: E731
    with pytest.raises(SilpError, match="was not approved"):
        silp.receive("cancel(x)", policy=Policy(needs_approval=frozenset({"!CANCEL"}), approve=answer))


def test_a_scanner_that_crashes_lets_nothing_in() -> None:
    class Broken:
        def scan(self, ir: silp.SilpIR, text: str) -> Iterable[Finding]:
            raise ZeroDivisionError

    class Reports:
        def scan(self, ir: silp.SilpIR, text: str) -> Iterable[Finding]:
            return [Finding("mine", "$.intent", f"{text} {ir.intent}")]

    with pytest.raises(SilpError, match="the scanner Broken failed") as refused:
        silp.receive("start(x)", policy=Policy(scanners=(Broken(),)))
    assert refused.value.code is ErrorCode.DECODE_FAILED
    assert silp.receive("start(x)", policy=Policy(scanners=(Reports(),))).findings[0].message == "start(x) !START"
    with pytest.raises(SilpError, match="suspicious"):
        silp.receive("start(x)", policy=Policy(strict=True, scanners=(Reports(),)))


@settings(max_examples=500, deadline=None)
@given(irs(), st.sampled_from(["code", "math", "json"]))
def test_what_a_conforming_sender_compiled_comes_in_whole(data: dict[str, Any], frontend: str) -> None:
    payload = silp.compile(data, frontend)
    try:
        received = silp.receive(payload, frontend, policy=OPEN)
    except SilpError as error:
        assert "breaks the rules" in error.message  # noqa: PT017
        return
    assert silp.equivalent(received.ir, data)
    assert all(finding.offset is None or finding.code == "look_alike" for finding in received.findings)


@settings(max_examples=1000, deadline=None)
@given(hostile_text() | st.text(max_size=60), st.sampled_from([None, "code", "math", "json", "natural"]))
def test_whatever_comes_in_is_received_or_refused(text: str, frontend: str | None) -> None:
    try:
        received = silp.receive(text, frontend, policy=OPEN)
    except SilpError as error:
        refusal = str(error)
        assert refusal
        return
    clean = silp.compile(received.ir, received.frontend)
    assert silp.equivalent(silp.decode(clean, received.frontend), received.ir)
    assert all(0 <= f.offset <= len(text) for f in received.findings if f.offset is not None)


SLOTS = [
    "id",
    "value",
    "type",
    "constraint value",
    "time",
    "subject",
    "target",
    "location",
    "extra key",
    "extra",
    "meta",
]


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(SLOTS), hostile_text(), st.sampled_from(["code", "math", "json"]))
def test_no_string_creates_ends_or_alters_another_element(slot: str, text: str, frontend: str) -> None:
    """The shape of an IR does not depend on what is in one of its strings."""

    def ir(filled: str) -> dict[str, Any]:
        filling = dict.fromkeys(SLOTS, "plain") | {slot: filled}
        key = filling["extra key"]
        return {
            "intent": "!START",
            "entities": [
                {"id": filling["id"], "value": filling["value"], f"x{key}": filling["extra"]},
                {"id": "act", "value": "last", "action": "!EMAIL"},
            ],
            "constraints": [
                {"type": filling["type"], "value": filling["constraint value"], "time": filling["time"]},
                {"type": "last", "value": "v", "subject": filling["subject"]},
            ],
            "alternatives": [{"action": "!BOOK", "target": filling["target"], "location": filling["location"]}],
            "meta": {"req_id": "0000", "next_agent": filling["meta"]},
        }

    decoded = silp.decode(silp.compile(ir(text), frontend), frontend)
    assert silp.normalize(decoded) == silp.normalize(ir(text))
    plain = silp.decode(silp.compile(ir("plain"), frontend), frontend)
    assert len(list(strings_of(decoded))) == len(list(strings_of(plain)))


def test_inspect_names_what_is_hidden_and_where() -> None:
    found = inspect("st\u0430rt(a\u202eb \U0001f468\u200d\U0001f469)")
    assert [(each.kind, each.offset, each.code_point) for each in found] == [
        ("look_alike", 0, "U+0430"),
        ("bidi_control", 7, "U+202E"),
        ("zero_width", 11, "U+200D"),
    ]
    done = CliRunner().invoke(main, ["inspect"], input="st\u0430rt(a\u202eb)\n")
    assert done.exit_code == 0
    assert "a\\u202eb" in done.stdout
    assert "offset 7: U+202E" in done.stdout
    assert done.stdout.endswith("received as code: start(ab)\n")
    refused = CliRunner().invoke(main, ["inspect", "--json"], input="rm(\u200b)")
    assert refused.exit_code == 1
    assert json.loads(refused.stdout)["found"][0]["code_point"] == "U+200B"
