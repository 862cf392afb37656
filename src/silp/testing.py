"""Tests for implementations: the contracts that every frontend and every store of sessions must keep, and generators.

Lives here: `check_frontend`, `check_store`, and `irs`, a Hypothesis strategy. Needs the extra `silp-codec[testing]`.
"""

from __future__ import annotations

from typing import Any

from silp.errors import ErrorCode, SilpError
from silp.frontends import Frontend, MetaMode
from silp.ir import SilpIR, equivalent, normalize
from silp.sessions import Key, MemoryStore, Record, Store
from silp.strict_json import MAX_DEPTH
from silp.text import is_visible

try:
    from hypothesis import given, settings
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError("silp.testing needs Hypothesis: pip install 'silp-codec[testing]'") from error

__all__ = ["check_frontend", "check_store", "hostile_text", "irs", "json_values", "plain_irs"]

_SYNTAX = (
    "if ; else: ; else ; and ; then ; with ; not ;not(;!;!!;¬; ⇒ ; ∧ ; ⊕ ; ≫ ;≠;≤;≥;<;>;==;!=;<=;>=;=;:=; -> ;(;);{;}"
    ';[;];,;, ;:;: ;@;#; # ;$version;";\\;\\";\\u200d;\\n;\n;\r;\t;\0;\x7f; ;  ;\u00a0;\u3000;\u2028;\u200b'
    ";\u200c;\u200d;\ufeff;\u202e;\ufe0f;\u3164;\u2800;\u115f;\U000e0067;\ud7ff;\ue000;\ufffe;\U0001f468\u200d\U0001f469;e\u0301;\u00e9"
    ";__proto__;model_dump;self;act;time;loc;loc=;value;type;id;action;subject;operator;intent;entities;constraints"
    ";alternatives;meta;silp;version;action_b;seq;priority;confidence;req_id;true;false;null;None;NaN;1e5;-3;100.0"
    ";t+1;t-2am;t+;t+1pm;t+1\n;b();; b(c); else: b(c);# a=1"
)
_FRAGMENTS = (*[fragment for fragment in _SYNTAX.split(";") if fragment], ";", "; ")


def hostile_text() -> st.SearchStrategy[str]:
    """Return a strategy of texts: any Unicode, and the syntax of every notation in any combination."""
    return st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        st.sampled_from(_FRAGMENTS),
        st.lists(st.sampled_from([*_FRAGMENTS, "a", "b", "x y"]), max_size=5).map("".join),
    )


def json_values() -> st.SearchStrategy[Any]:
    """Return a strategy of JSON values of every type, nested."""
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(min_value=2**53, max_value=2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        hostile_text(),
    )
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(hostile_text(), inner, max_size=3),
        max_leaves=6,
    )


def irs(text: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of valid IRs as plain data; `text` generates their strings, hostile ones by default."""
    text = hostile_text() if text is None else text
    actions = st.sampled_from(["!A", "!B", "!START", "!IF", "!ELSE", "!NOT", "!WITH", "!A_B", "!A__", "!LOC"])
    ids = st.one_of(st.just("act"), st.sampled_from(["act", "time", "k"]), text)
    times = st.one_of(st.sampled_from(["t+1", "t-2am", "noon", ""]), text)
    values = st.one_of(text, times, st.just("true"))
    operators = st.sampled_from(["==", "!=", "<=", ">=", "<", ">", "in", "", "=", "≤"])

    def part(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        known = st.fixed_dictionaries(required, optional={key: st.none() | value for key, value in optional.items()})
        names = text.filter(lambda key: key not in required and key not in optional)
        extra = st.one_of(st.just({}), st.just({}), st.dictionaries(names, json_values(), max_size=2))
        return st.builds(lambda known, extra: {**known, **extra}, known, extra)

    entity = part({"id": ids, "value": values}, {"action": actions})
    constraint = part({"type": st.one_of(text, text.map("!{}".format)), "value": values}, {"time": times})
    roles = st.fixed_dictionaries({}, optional={"subject": text | json_values(), "operator": operators | json_values()})
    alternative = part({"action": actions}, {"target": text, "location": text})
    meta = part(
        {"req_id": st.text("0123456789abcdef", min_size=4, max_size=8)},
        {
            "session_id": text,
            "priority": st.integers() | st.integers(-9, 9).map(float),
            "confidence": st.floats(0, 1) | st.integers(0, 1),
            "seq": st.lists(actions | text, max_size=4),
            "out": st.just("natural") | text,
            "next_agent": text,
        },
    )
    return st.fixed_dictionaries(
        {"intent": actions, "meta": meta},
        optional={
            "silp": st.sampled_from(["v1", None]),
            "version": st.sampled_from(["ir-v0.1", None]) | text,
            "entities": st.none() | st.lists(entity, max_size=5),
            "constraints": st.none() | st.lists(st.builds(lambda a, b: {**a, **b}, constraint, roles), max_size=3),
            "alternatives": st.none() | st.lists(alternative, max_size=3),
        },
    )


def plain_irs() -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of valid IRs whose strings are short lower-case words."""
    return irs(st.text("abcxyz", min_size=1, max_size=4))


def check_frontend(frontend: Frontend, *, max_examples: int = 500) -> None:
    """Check that a frontend keeps its contract on generated IRs; raises AssertionError with the IR that breaks it.

    Every payload is one visible line and the same each time. A lossless frontend decodes it to an equivalent IR, which
    compiles into the same payload again, and raises nothing but SilpError on any text. Any other raises decode_failed.
    """

    @settings(max_examples=max_examples, deadline=None)
    @given(irs(), st.sampled_from(["inline", "omit"]))
    def compiles(data: dict[str, Any], meta: MetaMode) -> None:
        ir = SilpIR.from_dict(data)
        payload = frontend.compile(ir, meta=meta, max_depth=MAX_DEPTH)
        assert is_visible(payload), payload
        assert frontend.compile(ir, meta=meta, max_depth=MAX_DEPTH) == payload
        if not frontend.lossless:
            return
        decoded = frontend.decode(payload, max_depth=MAX_DEPTH)
        if meta == "inline":
            assert equivalent(decoded, ir), (payload, normalize(decoded), normalize(ir))
        assert frontend.compile(decoded, meta="inline", max_depth=MAX_DEPTH) == payload or meta == "omit"

    @settings(max_examples=max_examples, deadline=None)
    @given(hostile_text())
    def decodes(text: str) -> None:
        try:
            frontend.decode(text, max_depth=MAX_DEPTH)
            refusal = None
        except SilpError as error:
            refusal = error.code
        assert frontend.lossless or refusal is ErrorCode.DECODE_FAILED

    compiles()
    decodes()


def check_store(store: Store, *, max_examples: int = 100) -> None:
    """Check that a store of sessions keeps its contract; raises AssertionError with the steps that break it.

    Steps of any kind have the outcome that they have in memory, whatever the scopes, payloads and times are. The store
    may hold other sessions, and is left with those that the check makes.
    """
    # A check of its own scopes, so that no run meets what an earlier one left.
    scopes, ids = st.sampled_from(["a", "b", "a:b", "é\u200d{}", ""]), st.sampled_from(["00", "zz"])
    run = 0

    @settings(max_examples=max_examples, deadline=None)
    @given(st.lists(st.tuples(scopes, ids, st.integers(0, 9), hostile_text(), st.floats(0, 1e12)), max_size=25))
    def behaves(steps: list[tuple[str, str, int, str, float]]) -> None:
        nonlocal run
        run += 1
        model = MemoryStore()
        for number, (scope, session_id, kind, payload, now) in enumerate(steps):
            key = Key(f"{scope} {id(behaves)} {run}", session_id)
            stored = model.load(key)
            stamp = f"{number:016x}"
            fresh = Record(0, 1 + 4 * (kind % 2), now, now, stamp)
            old, new, turn = {
                0: (None, fresh, None),
                1: (stored, None, None),
                2: (fresh, fresh._replace(turns=1), payload),
                3: (stored, fresh, None),
            }.get(kind, (stored, stored and stored._replace(turns=stored.turns + 1, used=now, stamp=stamp), payload))
            if old is None and new is None:
                continue
            assert store.swap(key, old, new, turn) == model.swap(key, old, new, turn), (kind, key)
            assert store.load(key) == model.load(key)
            assert store.context(key) == model.context(key)

    behaves()
