"""Two peers agree on a frontend or both know that there is none, whatever the channel does; payloads step down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import silp
from silp.chat import Conversation
from silp.errors import ErrorCode, SilpError
from silp.negotiation import (
    CHAIN,
    MAX_MESSAGE_LENGTH,
    MAX_PINGS,
    MAX_UNSETTLED,
    TRANSITIONS,
    Agreed,
    Arrived,
    Degraded,
    Event,
    Failed,
    Ignored,
    Peer,
    Ping,
    Pong,
    Problem,
    Reply,
    Signal,
    State,
    choose,
    read_message,
    state_diagram,
)
from silp.testing import hostile_text

IR = silp.decode('if !rain(t+1): start(hike,"a, b") else: start(cards@indoor)')


def peer(*frontends: str, **options: Any) -> Peer:
    return Peer(frontends or CHAIN, random_below=lambda below: 7, **options)


def only(events: tuple[Event, ...]) -> Event:
    (event,) = events
    return event


def connected(left: Peer, right: Peer) -> None:
    pong, _ = right.receive(left.ping())
    assert isinstance(pong, Reply)
    left.receive(pong.text)


MESSAGES = {
    "//ping silp=v1 frontends=code,math,json,natural": Ping(("v1",), CHAIN),
    "//ping silp=v1,v2 frontends=code id=12": Ping(("v1", "v2"), ("code",), 12),
    "//pong silp=v1 frontends=json,natural preferred=json": Pong(("v1",), ("json", "natural"), "json"),
    '//error code=decode_failed frontend=code offset=17 req_id=1a2b3c4d message="a, b \\u200d"': Problem(
        "decode_failed", "code", 17, "1a2b3c4d", "a, b \u200d"
    ),
    "//error code=session_expired": Problem("session_expired"),
}


@pytest.mark.parametrize("text", MESSAGES)
def test_a_message_is_written_as_it_is_read(text: str) -> None:
    assert read_message(text) == MESSAGES[text]
    assert MESSAGES[text].text == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('//ping frontends="code" x=1 silp=v1 y="a b"', Ping(("v1",), ("code",))),
        ("//error frontend=other code=timeout", Problem("timeout", "other")),
        ("//error code=timeout message=plain", Problem("timeout", message="plain")),
    ],
)
def test_order_is_free_and_unknown_keys_are_ignored(text: str, message: object) -> None:
    assert read_message(text) == message


@pytest.mark.parametrize(
    ("text", "offset", "words"),
    [
        ("", 0, "//ping, //pong or //error"),
        ("start(hike)", 0, "//ping, //pong or //error"),
        ("//hello silp=v1", 0, "//ping, //pong or //error"),
        ("//PING silp=v1", 0, "//ping"),
        ("//ping", 6, "silp=..."),
        ("//ping silp=v1", 14, "frontends=..."),
        ("//ping silp=v1 frontends=code,math silp=v1", 35, "a key other than silp"),
        ("//ping silp=v1 frontends=code x=1 x=2", 34, "a key other than x"),
        ("//ping silp=v1  frontends=code", 14, "a space, and a pair"),
        ("//ping silp=v1 frontends=code ", 29, "a space, and a pair"),
        ("//ping silp=v1 frontends=", 14, "a space, and a pair"),
        ("//ping silp=v1 frontends=code,", 29, "a space, and a pair"),
        ("//ping silp=v1 frontends=code,,json", 29, "a space, and a pair"),
        ("//ping silp=1 frontends=code", 12, "versions such as v1"),
        ("//ping silp=v1 frontends=code id=x", 33, "a number"),
        ("//ping silp=v1 frontends=code id=" + "9" * 40, 33, "a number"),
        ("//pong silp=v1 frontends=code preferred=a,b", 40, "the name of a frontend"),
        ("//error message=x", 17, "code=..."),
        ("//error code=broken", 13, "one of invalid_syntax"),
        ("//error code=timeout offset=-1", 28, "a number"),
        ("//error code=timeout offset=\u0661", 28, "a number"),
        ("//error code=timeout req_id=12", 28, "4 to 8"),
        ('//error code=timeout message="open', 20, "a space, and a pair"),
        ('//error code=timeout message="\\ud800"', 30, "lone surrogate"),
        ("//ping silp=v1\nfrontends=code", 14, "U+000A"),
        ("//ping silp=v1 frontends=co\u200bde", 27, "U+200B"),
        ("//ping silp=v1 frontends=code x=" + "a" * MAX_MESSAGE_LENGTH, MAX_MESSAGE_LENGTH, "at most 8192"),
    ],
)
def test_a_malformed_message_is_refused_at_its_offset(text: str, offset: int, words: str) -> None:
    with pytest.raises(SilpError) as refused:
        read_message(text)
    assert refused.value.code is ErrorCode.INVALID_SYNTAX
    assert refused.value.offset == offset
    assert words in refused.value.message


@settings(max_examples=300)
@given(st.sampled_from(["//ping ", "//pong silp=v1 ", "//error code=", "//", ""]), hostile_text())
def test_no_text_breaks_a_peer(start: str, text: str) -> None:
    one = peer()
    one.ping()
    for event in (
        *one.receive(start + text),
        *one.receive_payload(text, "code"),
        *one.receive_payload(text, "natural"),
    ):
        if isinstance(event, Reply):
            assert isinstance(read_message(event.text), Problem | Pong)


@pytest.mark.parametrize("text", [None, 5, b"//ping", "\ud800"])
def test_what_is_no_text_is_answered_with_an_error(text: Any) -> None:
    for event in (only(peer().receive(text)), only(peer().receive_payload(text, "code"))):
        assert isinstance(event, Reply)
        assert isinstance(read_message(event.text), Problem)


def test_answers_of_any_kind_are_never_answered() -> None:
    one = peer()
    for text in ("//pong", "//error", "//error code=timeout", "//pong silp=v1 frontends=code", "//pong x", "//errors"):
        assert [type(event) for event in one.receive(text)] == [Ignored]


@pytest.mark.parametrize(
    ("own", "other", "preferred", "chosen"),
    [
        (("code", "json"), ("json", "code"), None, "code"),
        (("code", "json"), ("json", "code"), "json", "json"),
        (("code", "json"), ("json",), "code", "json"),
        (("json", "natural"), ("natural", "json"), "math", "json"),
        (("natural", "math"), CHAIN, None, "math"),
        (("nl_json",), ("nl_json",), None, None),
        (("nl_json", "natural"), ("nl_json", "natural"), "nl_json", "nl_json"),
        (("code",), ("math",), None, None),
        ((), CHAIN, "code", None),
    ],
)
def test_the_choice_is_the_preferred_one_or_the_first_of_the_chain(
    own: tuple[str, ...], other: tuple[str, ...], preferred: str | None, chosen: str | None
) -> None:
    assert choose(own, other, preferred) == chosen
    assert choose(other, own, preferred) == chosen


def test_peers_agree_on_what_the_receiver_prefers() -> None:
    left, right = peer(), peer("json", "natural", preferred="json")
    ping = left.ping()
    assert ping == "//ping silp=v1 frontends=code,math,json,natural id=8"
    reply, agreed = right.receive(ping)
    assert reply == Reply("//pong silp=v1 frontends=json,natural preferred=json id=8")
    assert agreed == Agreed("json", "v1")
    assert only(left.receive(reply.text)) == Agreed("json", "v1")
    assert (left.state, left.frontend, right.state, right.frontend) == (State.AGREED, "json", State.AGREED, "json")


@pytest.mark.parametrize(
    ("left", "right", "code"),
    [
        (peer("code"), peer("json"), "unsupported_frontend"),
        (peer("nl_json"), peer("nl_json"), "unsupported_frontend"),
        (peer(versions=("v1",)), peer(versions=("v2", "v3")), "unsupported_version"),
    ],
)
def test_without_anything_in_common_both_know_it(left: Peer, right: Peer, code: str) -> None:
    reply, failed = right.receive(left.ping())
    assert isinstance(reply, Reply)
    assert isinstance(failed, Failed)
    other = only(left.receive(reply.text))
    assert isinstance(other, Failed)
    assert failed.error.code == other.error.code == code
    assert (left.state, right.state) == (State.FAILED, State.FAILED)
    with pytest.raises(SilpError, match="ping it first") as refused:
        left.send(IR)
    assert refused.value.code is ErrorCode.UNSUPPORTED_FRONTEND


def test_the_highest_common_version_is_spoken() -> None:
    left, right = peer(versions=("v1", "v2", "v10")), peer(versions=("v10", "v2", "v11"))
    connected(left, right)
    assert left.version == right.version == "v10"


def test_a_silent_side_is_pinged_again_and_then_given_up() -> None:
    one = peer()
    ping = one.ping()
    assert [one.silence() for _ in range(MAX_PINGS - 1)] == [Reply(ping)] * (MAX_PINGS - 1)
    failed = one.silence()
    assert isinstance(failed, Failed)
    assert failed.error.code is ErrorCode.TIMEOUT
    assert one.state is State.FAILED
    assert isinstance(one.silence(), Ignored)


def test_late_repeated_and_foreign_answers_are_told_apart() -> None:
    left, right = peer(), peer()
    old = left.ping()
    late_pong = right.receive(old)[0]
    new = left.ping()
    assert isinstance(late_pong, Reply)
    assert only(left.receive(late_pong.text)) == Ignored("a late or repeated pong")
    assert only(left.receive("//error code=unsupported_version id=8")).__class__ is Ignored
    pong = right.receive(new)[0]
    assert isinstance(pong, Reply)
    assert only(right.receive(new)) == pong
    assert only(right.receive(old)) == Ignored("a late ping")
    assert only(left.receive(pong.text)) == Agreed("code", "v1")
    assert only(left.receive(pong.text)) == Ignored("a late or repeated pong")
    left.ping()
    assert only(left.receive("//pong silp=v1 frontends=json")) == Agreed("json", "v1")
    left.ping()
    assert isinstance(only(left.receive("//error code=unsupported_version")), Failed)


def test_if_both_ping_at_once_the_greater_id_goes_on() -> None:
    left, right = peer(preferred="math"), Peer(preferred="json", random_below=lambda below: 9)
    left_ping, right_ping = left.ping(), right.ping()
    assert isinstance(only(right.receive(left_ping)), Ignored)
    reply, agreed = left.receive(right_ping)
    assert agreed == Agreed("math", "v1")
    assert isinstance(reply, Reply)
    assert only(right.receive(reply.text)) == Agreed("math", "v1")


def failing(receiver: Peer, payload: str, frontend: str) -> str:
    """Return the answer of a receiver that gets something else than was sent."""
    event = only(receiver.receive_payload("start(", frontend))
    assert isinstance(event, Reply)
    problem = read_message(event.text)
    assert isinstance(problem, Problem)
    return Problem(problem.code, frontend, problem.offset, silp.req_id(payload), problem.message).text


def test_a_payload_that_fails_steps_down_the_chain_and_ends_with_its_history() -> None:
    left, right = peer(), peer()
    connected(left, right)
    frontend, payload = left.send(IR)
    seen = [frontend]
    for _ in range(2):
        event = only(left.receive(failing(right, payload, frontend)))
        assert isinstance(event, Degraded)
        frontend, payload = event.frontend, event.payload
        seen.append(frontend)
        assert silp.equivalent(silp.decode(payload, frontend), IR)
        assert only(right.receive_payload(payload, frontend)) == Arrived(
            frontend, payload, silp.decode(payload, frontend)
        )
    event = only(left.receive(failing(right, payload, frontend)))
    assert isinstance(event, Degraded)
    assert (event.frontend, event.payload) == ("natural", silp.compile(IR, "natural"))
    prose = only(right.receive_payload(event.payload, "natural"))
    assert prose == Arrived("natural", event.payload, None)
    assert (seen, left.frontend) == (["code", "math", "json"], "natural")
    failed = only(left.receive(f"//error code=decode_failed frontend=natural req_id={silp.req_id(event.payload)}"))
    assert isinstance(failed, Failed)
    assert failed.error.code is ErrorCode.DECODE_FAILED
    history = [(finding.code, finding.message.partition(":")[0]) for finding in failed.error.findings]
    assert history == [("invalid_syntax", name) for name in ("code", "math", "json")] + [("decode_failed", "natural")]


def test_a_success_does_not_undo_a_step_down_and_a_fresh_ping_does() -> None:
    left, right = peer(), peer()
    connected(left, right)
    _, payload = left.send(IR)
    degraded = only(left.receive(failing(right, payload, "code")))
    assert isinstance(degraded, Degraded)
    left.settle(silp.req_id(degraded.payload))
    assert left.send(IR)[0] == "math"
    connected(left, right)
    assert left.send(IR)[0] == "code"
    left.receive(failing(right, left.send(IR)[1], "code"))
    connected(right, left)
    assert left.send(IR)[0] == "code"


def test_each_payload_takes_one_step_for_one_error() -> None:
    left, right = peer(), peer()
    connected(left, right)
    first, second = left.send(IR)[1], left.send(silp.decode('email("x, y")'))[1]
    error = failing(right, first, "code")
    assert isinstance(only(left.receive(error)), Degraded)
    assert isinstance(only(left.receive(error)), Ignored)
    event = only(left.receive(failing(right, second, "code")))
    assert isinstance(event, Degraded)
    assert (event.frontend, left.frontend) == ("math", "math")


def test_one_text_in_two_frontends_is_not_taken_for_one_payload() -> None:
    left, right = peer(), peer()
    connected(left, right)
    payload = left.send(silp.decode("start(hike)"))[1]
    error = failing(right, payload, "code")
    event = only(left.receive(error))
    assert event == Degraded("math", payload, event.error)  # type: ignore[union-attr]
    assert isinstance(only(left.receive(error)), Ignored)
    assert left.frontend == "math"


@pytest.mark.parametrize("code", ["unsupported_version", "timeout", "session_expired"])
def test_what_another_frontend_does_not_cure_is_not_tried_again(code: str) -> None:
    left, right = peer(), peer()
    connected(left, right)
    _, payload = left.send(IR)
    failed = only(left.receive(f"//error code={code} req_id={silp.req_id(payload)}"))
    assert isinstance(failed, Failed)
    assert failed.error.code == code
    assert left.frontend == "code"


def test_a_frontend_that_is_not_spoken_is_refused() -> None:
    for frontend in ("math", "nope", "", None):
        event = only(peer("code").receive_payload("start()", frontend))  # type: ignore[arg-type]
        assert isinstance(event, Reply)
        problem = read_message(event.text)
        assert isinstance(problem, Problem)
        assert (problem.code, problem.req_id) == ("unsupported_frontend", silp.req_id("start()"))


def test_an_error_names_the_payload_the_offset_and_what_to_do() -> None:
    event = only(peer().receive_payload("start(hike", "code"))
    assert isinstance(event, Reply)
    problem = read_message(event.text)
    assert isinstance(problem, Problem)
    assert (problem.code, problem.frontend, problem.offset) == ("invalid_syntax", "code", 10)
    assert problem.req_id == silp.req_id("start(hike")
    assert "expected ',' or ')'" in problem.error.message


def test_a_policy_is_that_of_receive() -> None:
    strict = peer(policy=silp.Policy(verbs=frozenset({"!EMAIL"}), max_bytes=40))
    refused = only(strict.receive_payload("start(hike)", "code"))
    assert isinstance(refused, Reply)
    assert "code=decode_failed" in refused.text
    for frontend in ("code", "natural"):
        large = only(strict.receive_payload("email(" + "x" * 40 + ")", frontend))
        assert isinstance(large, Reply)
        assert "larger than 40 bytes" in large.text
    cleaned = only(strict.receive_payload("em\u200bail(bob)", "code"))
    assert isinstance(cleaned, Arrived)
    assert [finding.code for finding in cleaned.findings] == ["zero_width"]


def test_a_long_reason_is_cut_so_that_the_other_side_can_read_it() -> None:
    event = only(peer().receive_payload("start(a){" + "k" * 100_000 + "=1," + "k" * 100_000 + "=1}", "code"))
    assert isinstance(event, Reply)
    assert len(event.text) < MAX_MESSAGE_LENGTH
    read_message(event.text)


def test_what_waits_for_errors_is_bounded() -> None:
    left, right = peer(), peer()
    connected(left, right)
    payloads = [left.send(silp.decode(f"start(hike_{number})"))[1] for number in range(MAX_UNSETTLED + 1)]
    assert isinstance(only(left.receive(failing(right, payloads[0], "code"))), Ignored)
    assert isinstance(only(left.receive(failing(right, payloads[1], "code"))), Degraded)


def test_a_peer_is_made_of_frontends_that_there_are() -> None:
    for frontends, preferred in ((("code", "nope"), None), (("code",), "json")):
        with pytest.raises(SilpError) as refused:
            Peer(frontends, preferred=preferred)
        assert refused.value.code is ErrorCode.UNSUPPORTED_FRONTEND


def test_the_diagram_in_the_docs_is_that_of_the_table() -> None:
    page = (Path(__file__).parents[1] / "docs" / "negotiation.md").read_text("utf-8")
    assert f"```mermaid\n{state_diagram()}\n```" in page
    assert {state for state, _ in TRANSITIONS} == set(State)
    assert {signal for _, signal in TRANSITIONS} == set(Signal)


def test_the_conversation_for_people_survives_any_line() -> None:
    told: list[str] = []
    one, other = Conversation(peer(), told.append), Conversation(peer(), told.append)
    one.ping()
    other.hear(one.outbox.popleft())
    one.hear(other.outbox.popleft())
    lines = [
        "",
        "{",
        "{}",
        '{"silp_encoding":5,"silp_payload":5}',
        '{"silp_encoding":[],"silp_payload":null}',
        "//",
        "x",
    ]
    for failing in (0, len(lines)):
        other.failing = failing
        for line in lines:
            other.hear(line)
    assert all(text.startswith("//error") for text in other.outbox)
    assert told == ["agreed on code, v1"] * 2 + ["fails on purpose"] * 2


class TwoPeers(RuleBasedStateMachine):
    """Two peers over a channel that loses, repeats and reorders."""

    @initialize(
        frontends=st.tuples(*[st.lists(st.sampled_from([*CHAIN, "nl_json"]), unique=True, min_size=1)] * 2),
        preferences=st.tuples(*[st.integers(-1, 9)] * 2),
        versions=st.tuples(*[st.sampled_from([("v1",), ("v1", "v2"), ("v2",)])] * 2),
        random=st.randoms(use_true_random=False),
    )
    def start(self, frontends: Any, preferences: Any, versions: Any, random: Any) -> None:
        self.peers = [
            Peer(
                names,
                preferred=names[index] if 0 <= index < len(names) else None,
                versions=spoken,
                random_below=random.randrange,
            )
            for names, index, spoken in zip(frontends, preferences, versions, strict=True)
        ]
        self.channel: list[tuple[int, str]] = []  # to whom, what
        self.agreed: dict[str, set[tuple[str, str]]] = {}  # by the id of the ping
        self.texts = self.pings = 0

    def put(self, receiver: int, text: str) -> None:
        self.channel.append((receiver, text))
        self.texts += 1

    @rule(side=st.integers(0, 1))
    def ping(self, side: int) -> None:
        self.put(1 - side, self.peers[side].ping())
        self.pings += 1

    @rule(side=st.integers(0, 1))
    def silence(self, side: int) -> None:
        event = self.peers[side].silence()
        if isinstance(event, Reply):
            self.put(1 - side, event.text)
            self.pings += 1

    @rule(place=st.integers(0, 30), copies=st.integers(0, 2))
    def deliver(self, place: int, copies: int) -> None:
        if self.channel:
            receiver, text = self.channel.pop(place % len(self.channel))
            for _ in range(copies):
                self.arrive(receiver, text)

    def arrive(self, receiver: int, text: str) -> None:
        events = self.peers[receiver].receive(text)
        replies = [event.text for event in events if isinstance(event, Reply)]
        assert len(replies) <= text.startswith("//ping")
        for reply in replies:
            self.put(1 - receiver, reply)
        for event in events:
            if isinstance(event, Agreed):
                exchange = text.partition(" id=")[2]
                self.agreed.setdefault(exchange, set()).add((event.frontend, event.version))

    @invariant()
    def one_exchange_settles_one_frontend(self) -> None:
        assert all(len(outcomes) == 1 for outcomes in getattr(self, "agreed", {}).values())

    def teardown(self) -> None:
        if not hasattr(self, "peers"):
            return
        while self.channel:
            self.arrive(*self.channel.pop(0))
        self.ping(0)
        left, right = self.peers
        for _ in range(2 * MAX_PINGS):
            while self.channel:
                self.arrive(*self.channel.pop(0))
            for side in (1, 0):
                self.silence(side)
        assert left.state == right.state
        assert left.state in (State.AGREED, State.FAILED)
        assert (left.frontend, left.version) == (right.frontend, right.version)
        assert (left.frontend is None) == (left.state is State.FAILED)


TestTwoPeers = TwoPeers.TestCase
TestTwoPeers.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
