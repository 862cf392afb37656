"""Hidden characters: what a person cannot see goes and is reported, what means something comes through to the value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import silp
from silp.characters import unicode_table
from silp.errors import SilpError
from silp.frontends.words import escape_kept
from silp.hidden import TextFinding, original_offset, sanitize
from silp.ir import SilpIR, equivalent
from silp.look_alikes import normalize_names
from silp.testing import hostile_text, irs
from silp.text import is_visible

LOSSLESS = ["code", "math", "json"]

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
WALES = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
MEANINGFUL = {
    "family": FAMILY,
    "family with skin tones": "\U0001f9d1\U0001f3fd\u200d\U0001f91d\u200d\U0001f9d1\U0001f3ff",
    "two families": f"{FAMILY}{FAMILY}",
    "heart on fire": "\u2764\ufe0f\u200d\U0001f525",
    "rainbow flag": "\U0001f3f3\ufe0f\u200d\U0001f308",
    "woman running": "\U0001f3c3\U0001f3fd\u200d\u2640\ufe0f",
    "England": ENGLAND,
    "Scotland": SCOTLAND,
    "Wales": WALES,
    "France": "\U0001f1eb\U0001f1f7",
    "keycaps": "1\ufe0f\u20e3#\ufe0f\u20e3*\ufe0f\u20e3",
    "text heart": "\u2764\ufe0e",
    "warning": "\u26a0\ufe0f server down",
    "Persian": "می\u200cخواهم",
    "Persian with a mark": "مَ\u200cخِواهم",
    "Persian abbreviation": "۱۴۰۳ ه\u200d.ش",
    "Arabic": "مرحبا بالعالم",
    "Hebrew": "שָׁלוֹם עולם",
    "Hindi": "नमस्ते",
    "Hindi with a joiner": "क्\u200dष",
    "Hindi with a non-joiner": "क्\u200cष",
    "Sinhala": "ශ්\u200dරී",
    "Bengali": "র\u200d্যাব",
    "Mongolian": "ᠮᠣᠩᠭᠣᠯ\u180b",
    "Mongolian separator": "ᠬᠠᠷ\u180eᠠ",
    "Japanese name": "辻\U000e0100",
    "Japanese space": "山田\u3000太郎",
    "private use": "a\ue000b",
    "unassigned": "a\u0378b",
    "assigned after Unicode 14": "\U0001fa77",
    "Arabic number sign": "\u0600123",
}


def received(text: str, frontend: str = "code", *, strict: bool = False) -> SilpIR:
    clean, _ = sanitize(text, strict=strict)
    named, _ = normalize_names(clean, frontend, strict=strict)
    return silp.decode(escape_kept(named, frontend), frontend)


def offsets(findings: tuple[TextFinding, ...]) -> list[tuple[str, int]]:
    return [(finding.kind, finding.offset) for finding in findings]


# --- What means something


@pytest.mark.parametrize("value", MEANINGFUL.values(), ids=MEANINGFUL)
@pytest.mark.parametrize(
    "payload",
    [
        ("code", "email({})"),
        ("code", "email(a,k={},{})"),
        ("code", 'email("{}")'),
        ("code", "email( {} ) # note={}, session_id=s"),
        ("code", "email(a{{note={}}})"),
        ("math", "ready(t+1) ⇒ email({})"),
        ("json", '{{"intent":"!EMAIL","act":"{}"}}'),
    ],
    ids=["bare", "key", "quoted", "meta", "field", "math", "json"],
)
def test_what_unicode_gives_a_meaning_reaches_the_value_whole(value: str, payload: tuple[str, str]) -> None:
    frontend, template = payload
    text = template.format(value, value)
    clean, findings = sanitize(text)
    assert (clean, findings) == (text, ())
    assert is_visible(escape_kept(clean, frontend))
    ir = received(text, frontend)
    holders = [*ir.entities, *ir.constraints, ir.meta]
    values = [entity.value for entity in ir.entities]
    assert value in [*values, *(extra for holder in holders for extra in (holder.model_extra or {}).values())]


def test_what_stays_is_found_wherever_a_payload_has_names_and_values() -> None:
    first, second = received(f"start(a) else: start({FAMILY}@{ENGLAND}@b); stop(loc={FAMILY}@c)").alternatives
    assert (first.target, first.location) == (FAMILY, f"{ENGLAND}@b")
    assert (second.target, second.location) == (None, f"{FAMILY}@c")
    assert received(f'start(a) else: start("x"@{FAMILY})').alternatives[0].location == FAMILY
    assert received(f"start({FAMILY}@{ENGLAND})").entities[0].value == f"{FAMILY}@{ENGLAND}"
    compared = received(f"if (می\u200cخواهم>{FAMILY}) and !{WALES}(t+1): start(a)").constraints
    assert [constraint.type for constraint in compared] == ["می\u200cخواهم", f"!{WALES}"]
    assert (compared[0].value, compared[1].time) == (FAMILY, "t+1")
    assert received(f"start(a) with x({FAMILY},{WALES})").constraints[0].value == WALES
    assert received(f'start(a{{n:=["{FAMILY}",1]}})').entities[0].model_extra == {"n": [FAMILY, 1]}
    assert received(f"start({FAMILY}=x)").entities[0].id == FAMILY
    assert received(f"start(a{{{FAMILY} := 2}})").entities[0].model_extra == {FAMILY: 2}
    assert received(f'start(a) # "{FAMILY}" := 2').meta.model_extra == {FAMILY: 2}


@pytest.mark.parametrize("frontend", LOSSLESS)
@given(
    data=irs(
        st.lists(st.sampled_from(["☃", "☃", "a", " ", ",", "@", "=", ":", "#", '"', "(", "if ", "t+1"])).map("".join)
    ),
    kept=st.sampled_from([FAMILY, ENGLAND, "می\u200cخواهم", "\ue000", "\u2764\ufe0f"]),
)
def test_a_payload_with_what_stays_in_place_of_any_visible_character_decodes(
    frontend: str, data: dict[str, object], kept: str
) -> None:
    def replaced(value: object) -> object:
        if isinstance(value, dict):
            return {str(replaced(key)): replaced(member) for key, member in value.items()}
        if isinstance(value, list):
            return [replaced(member) for member in value]
        return value.replace("☃", kept) if isinstance(value, str) else value

    raw = silp.compile(data, frontend).replace("☃", kept)
    assert sanitize(raw) == (raw, ())
    decoded = silp.decode(escape_kept(raw, frontend), frontend)
    assert equivalent(decoded, SilpIR.from_dict(replaced(data)))  # type: ignore[arg-type]


_SPLICES = [
    " ",
    "  ",
    "☃",
    "@",
    "=",
    " := ",
    "(",
    ")",
    ",",
    "not ",
    "else: ",
    "if ",
    " then ",
    " with ",
    " and ",
    "#",
    "-> ",
    "; ",
]


@pytest.mark.parametrize("frontend", LOSSLESS)
@given(
    data=irs(st.lists(st.sampled_from(["☃", "a", " ", "@", "=", ":", "t+1"]), max_size=3).map("".join)),
    splices=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 1), st.sampled_from(_SPLICES)), max_size=3),
)
def test_what_stays_decodes_exactly_where_a_visible_character_does(
    frontend: str, data: dict[str, object], splices: list[tuple[int, int, str]]
) -> None:
    text = silp.compile(data, frontend)
    for at, removed, added in splices:
        text = text[:at] + added + text[at + removed :]
    try:
        plain = silp.decode(text, frontend).to_json()
    except SilpError:
        plain = ""
    kept = "می\u200cخواهم"
    escaped = escape_kept(text.replace("☃", kept), frontend)
    try:
        decoded = silp.decode(escaped, frontend).to_json()
    except SilpError:
        assert not plain
    else:
        assert plain
        assert decoded.count("\\u200c") == plain.count("\\u200c") + plain.count("☃")


# --- What hides


@pytest.mark.parametrize(
    ("text", "clean", "found"),
    [
        ("can\u200dcel(x)", "cancel(x)", [("zero_width", 3)]),
        ("note(word\u200dNOTE)", "note(wordNOTE)", [("zero_width", 9)]),
        ("\ufeffstart(a)", "start(a)", [("zero_width", 0)]),
        ("open(a\U000e0069\U000e0067)", "open(a)", [("tag", 6), ("tag", 7)]),
        (f"open({ENGLAND[:3]}\U000e007f)", f"open({ENGLAND[0]})", [("tag", 6), ("tag", 7), ("tag", 8)]),
        ("open(OPEN \u202eSHUT \u0645)", "open(OPEN SHUT \u0645)", [("bidi_control", 10)]),
        ("open(\u3164a\u2800)", "open(a)", [("blank", 5), ("blank", 7)]),
        ("open(a\ufe0f)", "open(a)", [("variation_selector", 6)]),
        ("open(100\ufe0f)", "open(100)", [("variation_selector", 8)]),
        (
            "open(\u26a0\ufe0f\ufe0f\U000e0101)",
            "open(\u26a0\ufe0f)",
            [("variation_selector", 7), ("variation_selector", 8)],
        ),
        ("open(so\u00adft\u2060)", "open(soft)", [("default_ignorable", 7), ("default_ignorable", 10)]),
        ("open(a\x00\x1b\x7f\x9fb)", "open(ab)", [("control", at) for at in range(6, 10)]),
        ("open(a\ud800)", "open(a)", [("surrogate", 6)]),
        ("open(a\ufff9b\ufffb)", "open(ab)", [("format", 6), ("format", 8)]),
        ("open(\u0645\u200cx)", "open(\u0645x)", [("zero_width", 6)]),
        ("open(x\u200d\u0645)", "open(x\u0645)", [("zero_width", 6)]),
        ("open(\U0001f468\u200d)", "open(\U0001f468)", [("zero_width", 6)]),
        ("open(\U0001f468\u200b\u200d\U0001f469)", "open(\U0001f468\u200d\U0001f469)", [("zero_width", 6)]),
        ("open(\U0001f468\u200d\u200d\U0001f469)", "open(\U0001f468\u200d\U0001f469)", [("zero_width", 7)]),
        ('{"intent":"!CAN\u200bCEL"}', '{"intent":"!CANCEL"}', [("zero_width", 15)]),
        ("Email \u200bZhang San.", "Email Zhang San.", [("zero_width", 6)]),
    ],
    ids=ascii,
)
def test_hidden_characters_go_and_are_reported(text: str, clean: str, found: list[tuple[str, int]]) -> None:
    result, findings = sanitize(text)
    assert (result, offsets(findings)) == (clean, found)
    assert all(text[finding.offset] == finding.found and finding.replacement == "" for finding in findings)


def test_every_default_ignorable_character_goes_from_plain_text() -> None:
    bidi = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    for character in [*unicode_table().ignorable, *"\u115f\u1160\u3164\uffa0\u2800"]:
        clean, findings = sanitize(f"x(a{character}b)")
        assert clean == "x(ab)"
        assert offsets(findings)[0][1] == 3
        assert (findings[0].kind == "bidi_control") == (character in bidi)


def test_a_finding_names_the_character_and_what_became_of_it() -> None:
    (finding,) = sanitize("can\u200dcel(x)")[1]
    assert finding.to_dict() == {
        "kind": "zero_width",
        "offset": 3,
        "found": "\u200d",
        "code_point": "U+200D",
        "name": "ZERO WIDTH JOINER",
        "replacement": "",
        "message": "U+200D ZERO WIDTH JOINER removed: write it as an escape in quotes if it belongs to a value",
    }
    assert sanitize("x(\ud800)")[1][0].to_dict()["found"] == "\ufffd"
    assert sanitize("x\u00a0(a)")[1][0].message.startswith("U+00A0 NO-BREAK SPACE replaced by ' '")


@pytest.mark.parametrize("value", [v for v in MEANINGFUL.values() if sanitize(v, strict=True)[0] != v], ids=ascii)
def test_strict_removes_what_means_something_as_well(value: str) -> None:
    clean, findings = sanitize(f"x({value})", strict=True)
    assert sanitize(clean, strict=True) == (clean, ())
    assert not unicode_table().ignorable.intersection(clean)
    assert len(clean) + len(findings) == len(value) + 3


def test_escapes_of_a_sender_are_never_touched() -> None:
    for strict in (False, True):
        for text in ('email("can\\u200dcel \\u202e \\ufeff")', '{"intent":"!A","act":"\\u200b\\udb40\\udc67"}'):
            assert sanitize(text, strict=strict) == (text, ())


# --- Spacing


@pytest.mark.parametrize(
    ("text", "clean", "found"),
    [
        ("start(a)\n", "start(a)", [("line_break", 8)]),
        ("\r\n\tstart(a) \r\n", "start(a) ", [("line_break", 0), ("tab", 2), ("line_break", 12)]),
        ("if a>1:\r\n\tstart(b)", "if a>1:  start(b)", [("line_break", 7), ("tab", 9)]),
        ('x("a\n\tb\r")', 'x("a\\n\\tb\\r")', [("line_break", 4), ("tab", 5), ("line_break", 7)]),
        ("x(a\nb)", "x(a b)", [("line_break", 3)]),
        ("if\u00a0a>1:\u3000x(b)", "if a>1: x(b)", [("space", 2), ("space", 7)]),
        ("x(\u00a0a\u00a0b,\u2028t+1)", "x( a\u00a0b, t+1)", [("space", 2), ("space", 7)]),
        ('x("\u00a0")', 'x("\u00a0")', []),
        ("x(a) # note=b\u00a0c", "x(a) # note=b\u00a0c", []),
        (
            '{"intent":\n\t"!A",\u00a0"k":"a\n\u00a0"}\n',
            '{"intent":\n\t"!A", "k":"a\\n\u00a0"}\n',
            [("space", 17), ("line_break", 24)],
        ),
        (
            "\u200b\n\u200bx(\u200ba\nb)",
            "x(a b)",
            [("zero_width", 0), ("line_break", 1), ("zero_width", 2), ("zero_width", 5), ("line_break", 7)],
        ),
        ("\n \n", " ", [("line_break", 0), ("line_break", 2)]),
    ],
    ids=ascii,
)
def test_spacing_becomes_what_a_payload_may_have(text: str, clean: str, found: list[tuple[str, int]]) -> None:
    result, findings = sanitize(text)
    assert (result, offsets(findings)) == (clean, found)
    assert all(text.startswith(finding.found, finding.offset) for finding in findings)


def test_separators_within_a_value_reach_it() -> None:
    assert received("email(山田\u3000太郎,\u00a0t+1)").entities[0].value == "山田\u3000太郎"
    assert received('email("\u00a0a\u2028")').entities[0].value == "\u00a0a\u2028"
    assert received('email("a\nb")').entities[0].value == "a\nb"
    assert received("if !rain(t+1):\n    start(hike)\nelse: start(cards@indoor)\n").alternatives[0].target == "cards"


@pytest.mark.parametrize(
    "text",
    ['x("a\\\nb")', 'x("a\\\u00a0b")', 'x("a\\\ue000b")', "x(a{b:=\ue000})", "x(a  \ue000)", "x(a{b \ue000=1})"],
    ids=ascii,
)
def test_nothing_is_made_valid_by_being_escaped(text: str) -> None:
    with pytest.raises(SilpError):
        received(text)


# --- Properties


@pytest.mark.parametrize("frontend", LOSSLESS)
@given(data=irs())
def test_compiled_payloads_pass_untouched(frontend: str, data: dict[str, object]) -> None:
    text = silp.compile(data, frontend)
    for strict in (False, True):
        assert sanitize(text, strict=strict) == (text, ())
    assert escape_kept(text, frontend) == text


_HIDDEN = "\u200b\u200c\u200d\ufe0f\ufe0e\u180b\u180e\U000e0067\U000e0100\ud800\x00"
_SYNTAX = ["\r\n", "\n", "\t", "\u00a0", "\u3000", *'"\\(){},=# a1', "م", "क", "्", "\u064e", "\U0001f3f4", "\U0001f468"]
_PIECES = [*MEANINGFUL.values(), *_HIDDEN, *_SYNTAX]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join) | hostile_text() | st.text(), st.booleans())
def test_sanitizing_twice_is_sanitizing_once(text: str, strict: bool) -> None:
    clean, findings = sanitize(text, strict=strict)
    assert sanitize(clean, strict=strict) == (clean, ())
    assert [finding.offset for finding in findings] == sorted({finding.offset for finding in findings})
    assert all(text.startswith(finding.found, finding.offset) for finding in findings)
    rebuilt, done = "", 0
    for finding in findings:
        rebuilt += text[done : finding.offset] + (finding.replacement or "")
        done = max(done, finding.offset + len(finding.found))
    assert "\r" in text or rebuilt + text[done:] == clean
    _, reports = normalize_names(clean, "natural")
    assert [original_offset(at, reports) for at in range(len(clean))] == list(range(len(clean)))
    for offset, character in enumerate(clean):
        at = original_offset(offset, findings)
        assert text[at] == character or any(finding.offset == at for finding in findings)


@given(
    st.lists(st.sampled_from([*_PIECES, "if ", "else: ", "x(", "a", "@", "->", ":=", '{"intent":"!A","k":"'])).map(
        "".join
    )
)
def test_no_text_makes_escape_kept_fail(text: str) -> None:
    clean, _ = sanitize(text)
    for frontend in [*LOSSLESS, "natural", "nl_json", "no_such"]:
        escaped = escape_kept(clean, frontend)
        assert escape_kept(escaped, frontend) == escaped
        try:
            silp.decode(escaped, frontend)
        except SilpError:
            continue


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "\u200b",
            "\u200d",
            FAMILY + "\u200d",
            "م\u200c",
            "م\u064e\u200c\u200b",
            "\u064e\u200d",
            "\U0001f3f4\U000e0067",
        ),
        *(
            '"\\',
            '"\n',
            "(\u00a0",
            "\u00a0 ",
            "\n",
            "\ue000",
            "\ue000,",
            "\ue000:",
            "а ",
            "a\u00a0\u200b",
            "if：",
            "☃@(",
        ),
    ],
    ids=ascii,
)
@pytest.mark.parametrize("frontend", LOSSLESS)
def test_long_hostile_texts_take_linear_time(unit: str, frontend: str) -> None:
    start = {"code": "x(", "math": "a ⇒ ", "json": '{"intent":"'}[frontend]
    for size in (2**16, 2**20) if unit in ("\u200b", "\n") else (2**16,):
        clean, _ = sanitize(start + unit * (size // len(unit)))
        assert sanitize(clean)[0] == clean
        named, _ = normalize_names(clean, frontend)
        assert len(escape_kept(named, frontend)) >= len(named)


def test_an_offset_within_or_behind_a_replacement_is_that_of_what_it_replaces() -> None:
    text = 'start("a\nb\r\nc")'
    clean, findings = sanitize(text)
    assert clean == 'start("a\\nb\\r\\nc")'
    for character in '"abc)':
        assert original_offset(clean.rindex(character), findings) == text.rindex(character)
    line_break = clean.index("\\n")
    assert {original_offset(line_break + within, findings) for within in (0, 1)} == {text.index("\n")}


@pytest.mark.parametrize("spacing", ["\n", "\r\n", "\t"])
def test_a_joiner_behind_what_becomes_an_escape_is_judged_once(spacing: str) -> None:
    clean, findings = sanitize(f'start("{spacing}\u200d\u07da")')
    assert sanitize(clean) == (clean, ())
    assert "zero_width" in [finding.kind for finding in findings]
