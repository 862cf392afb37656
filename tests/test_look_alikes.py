"""Look-alikes: names become ASCII or are refused, values stay, and no text decodes to another action than it shows."""

from __future__ import annotations

import importlib.util
import json
import unicodedata
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import silp
from silp.characters import CONFUSABLES_VERSION, ascii_look, unicode_table
from silp.errors import ErrorCode, SilpError
from silp.frontends.words import escape_kept
from silp.hidden import TextFinding, sanitize
from silp.ir import SilpIR
from silp.look_alikes import mixed_words, normalize_names
from silp.testing import irs

ROOT = Path(__file__).parents[1]
LOSSLESS = ["code", "math", "json"]


def received(text: str, frontend: str = "code", *, strict: bool = False) -> SilpIR:
    clean, _ = sanitize(text, strict=strict)
    named, _ = normalize_names(clean, frontend, strict=strict)
    return silp.decode(escape_kept(named, frontend), frontend)


def shown(findings: tuple[TextFinding, ...]) -> list[tuple[str, int, str, str | None]]:
    return [tuple(finding) for finding in findings]  # type: ignore[misc]


# --- The probes of protocol section 8.1

VERBS = ["cancel", "search", "email", "book", "update"]
ZERO_WIDTH = "\u200b\u200c\u200d\ufeff"
HOMOGLYPHS = {"cancel": ["саncel", "cаncеl"], "search": ["ѕearch", "seаrсh"]}
TOKENIZERS = 6  # a probe was counted once for each


def _in(frontend: str, verb: str) -> str:
    if frontend == "json":
        return f'{{"intent":"!{"".join(c.upper() for c in verb)}","act":"flight"}}'
    return f"{verb}(flight)"


@pytest.mark.parametrize("frontend", LOSSLESS)
def test_the_144_probes_give_the_clean_action_or_an_error(frontend: str) -> None:
    probes = [(verb, verb[:2] + hidden + verb[2:]) for verb in VERBS for hidden in ZERO_WIDTH]
    probes += [(verb, probe) for verb, written in HOMOGLYPHS.items() for probe in written]
    assert len(probes) * TOKENIZERS == 144
    for verb, probe in probes:
        for at in range(len(verb) + 1):
            moved = verb[:at] + probe[2] + verb[at:] if probe[2] in ZERO_WIDTH else probe
            text = _in(frontend, moved)
            assert received(text, frontend).entities == silp.decode(_in(frontend, verb), frontend).entities
            with pytest.raises(SilpError):
                silp.decode(text, frontend)
        if probe[2] not in ZERO_WIDTH:
            with pytest.raises(SilpError, match="looks like"):
                received(_in(frontend, probe), frontend, strict=True)


@pytest.mark.parametrize("frontend", LOSSLESS)
@given(st.sampled_from(VERBS), st.data())
def test_a_verb_spelt_with_any_look_alikes_is_that_verb_or_an_error(
    frontend: str, verb: str, data: st.DataObject
) -> None:
    letters = [data.draw(st.sampled_from([c, *unicode_table().look_alikes.get(c, "")])) for c in verb]
    if frontend == "json":
        upper = [data.draw(st.sampled_from([c, *unicode_table().look_alikes.get(c, "")])) for c in verb.upper()]
        text = f'{{"intent":"!{"".join(upper)}"}}'
    else:
        text = f"{''.join(letters)}()"
    assert received(text, frontend).intent == "!" + verb.upper()


# --- Names


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("ｓｔａｒｔ(hike)", "start(hike)"),
        ("𝒔𝒕𝒂𝒓𝒕(hike)", "start(hike)"),
        ("ѕtаrt(hike)", "start(hike)"),
        ("ѕtart(а); ѕearch(b)", "start(а); search(b)"),
        ("bοοk(x) -> prοcess -> emаil(y)", "book(x) -> process -> email(y)"),
        ("cհeck_սser(x)", "check_user(x)"),
        ("start(a) else: ѕtart(b@c); ѕtop(lос=d)", "start(a) else: start(b@c); stop(loc=d)"),
        ("іf a>1 аnd nоt b(c) thеn x(y) еlse z()", "if a>1 and not b(c) then x(y) else z()"),
        ("if !rain(t+1)： start(hike) else： start(cards)", "if !rain(t+1): start(hike) else: start(cards)"),
        ("if a>1：start(x) else: y()", "if a>1:start(x) else: y()"),
        ("fetch(a) wіth timeout", "fetch(a) with timeout"),
        ("fetch(a) wіth b аnd c еlse stop(d)", "fetch(a) with b and c else stop(d)"),
        ("translate(ѕrc=fr,tgt=en)", "translate(src=fr,tgt=en)"),
        ('translate("ѕrc"=fr)', 'translate("src"=fr)'),
        ("email(tіme=noon)", "email(time=noon)"),
    ],
    ids=ascii,
)
def test_names_that_look_like_ascii_become_ascii(text: str, clean: str) -> None:
    result, findings = normalize_names(text, "code")
    assert result == clean
    assert silp.decode(result)
    assert {finding.kind for finding in findings} == {"look_alike"}
    assert all(text.startswith(finding.found, finding.offset) for finding in findings)
    assert normalize_names(result, "code") == (result, ())
    with pytest.raises(SilpError) as refused:
        normalize_names(text, "code", strict=True)
    assert (refused.value.code, refused.value.offset) == (ErrorCode.INVALID_SYNTAX, findings[0].offset)
    assert "write it in ASCII" in refused.value.message


def test_math_and_json_have_the_same_names() -> None:
    clean, _ = normalize_names("¬rain(t+1) ⇒ ѕtart(hike) ≫ ѕearch(x) ⊕ ѕtart(b@c)", "math")
    assert clean == "¬rain(t+1) ⇒ start(hike) ≫ search(x) ⊕ start(b@c)"
    slots = '{"іntent":"!СANCEL","ѕrc":"а","action_email":[{"id":"ѕrc","value":"b"}],'
    text = slots + '"alternatives":[{"action":"!ЅTART"}]}'
    clean, findings = normalize_names(text, "json")
    assert clean.startswith('{"intent":"!CANCEL","src":"а","action_email":[{"id":"src","value":"b"}]')
    assert clean.endswith('"alternatives":[{"action":"!START"}]}')
    assert all(text.startswith(finding.found, finding.offset) for finding in findings)
    assert len(findings) == 5
    with pytest.raises(SilpError, match="looks like 'intent' but has U\\+0456 CYRILLIC SMALL LETTER"):
        normalize_names(text, "json", strict=True)


def test_a_renamed_key_never_hides_another() -> None:
    with pytest.raises(SilpError, match="twice"):
        received('{"intent":"!A","src":"a","ѕrc":"b"}', "json")


@pytest.mark.parametrize("key", ["vеrsion", "сonstraints", "аction_email", "ѕilp"])
def test_a_slot_never_becomes_another_element(key: str) -> None:
    with pytest.raises(SilpError, match="looks like") as refused:
        received(f'{{"intent":"!A","{key}":["b","c"]}}', "json")
    assert refused.value.offset == 16


@pytest.mark.parametrize(
    ("text", "frontend", "finding"),
    [
        ("if tеmp>1: x()", "code", ("look_alike", 3, "tеmp", None)),
        ("if ǃrain(t+1): x()", "code", ("look_alike", 3, "ǃrain", None)),
        ("x(гора=1)", "code", ("look_alike", 2, "гора", None)),
        ("x(a{nоte=1})", "code", ("look_alike", 4, "nоte", None)),
        ("if loc(x){tіme=noon}: a()", "code", ("look_alike", 10, "tіme", None)),
        ("a() # рriority=5", "code", ("look_alike", 6, "рriority", None)),
        ('{"intent":"!A","constraints":[{"type":"tеmp","value":"1"}]}', "json", ("look_alike", 39, "tеmp", None)),
    ],
    ids=ascii,
)
def test_other_names_are_reported_and_stay(text: str, frontend: str, finding: TextFinding) -> None:
    result, findings = normalize_names(text, frontend)
    assert (result, shown(findings)) == (text, [finding])
    assert findings[0].message.endswith("kept: check who sent it")
    assert findings[0].code_point.startswith("U+0")


@pytest.mark.parametrize("text", ["старт(x)", "ſtart(x)", "вook(x)", "éat(x)", "start（x）", "Ѕtart(x)"], ids=ascii)
def test_what_looks_like_no_function_is_refused_by_decode(text: str) -> None:
    with pytest.raises(SilpError):
        received(text)


# --- Values


@pytest.mark.parametrize("word", ["Вeijing", "pаypal", "αpple", "раураl", "Ｂeijing", "𝐁eijing", "漢字кана"], ids=ascii)
def test_words_of_mixed_scripts_in_values_are_reported_and_stay(word: str) -> None:
    for frontend, text in [
        ("code", f"book(to {word} now)"),
        ("code", f'book("to {word} now")'),
        ("math", f"book(to {word} now)"),
        ("json", f'{{"intent":"!BOOK","act":"to {word} now"}}'),
        ("natural", f"Book to {word} now."),
    ]:
        result, findings = normalize_names(text, frontend)
        assert result == text
        assert shown(findings) == [("mixed_script", text.index(word), word, None)]
        assert normalize_names(text, frontend, strict=True)[1] == findings
        assert "mixes scripts" in findings[0].message
    assert mixed_words(f"a {word}, {word}") == [word, word]
    escaped = "".join(f"\\u{ord(c):04x}" if "\x7f" < c < "\U00010000" else c for c in word)
    if escaped != word:
        assert shown(normalize_names(f'book("{escaped} й")', "code")[1]) == [("mixed_script", 5, word, None)]


ONE_SYSTEM = """
Пекин 北京 東京タワーへ行く トムabc 한국어漢字 ひらがなLatin ㄅㄆ漢字A Ελλάδα Երևան مرحبا שלום नमस्ते می\u200cخواهم
café naïve Łódź kırmızı USB-кабель имя_user 5µm №5 Пекин—Beijing m²
"""


@pytest.mark.parametrize("value", ONE_SYSTEM.split(), ids=ascii)
def test_words_of_one_writing_system_are_not_reported(value: str) -> None:
    assert mixed_words(value) == []
    assert normalize_names(f"book({value})", "code") == (f"book({value})", ())


_MISLEADING = [
    "ѕ",
    "а",
    "е",
    "і",
    "：",
    "аnd",
    "nоt",
    "еlse",
    "іf",
    "thеn",
    "wіth",
    "vаlue",
    "tіme",
    "vеrsion",
    "аction_b",
]
_HARMLESS = ["s", " ", "(", ")", ": ", "=", ",", "@", "#", "й"]


@pytest.mark.parametrize("frontend", LOSSLESS)
@given(data=irs(st.lists(st.sampled_from([*_MISLEADING, *_HARMLESS]), max_size=6).map("".join)))
def test_nothing_in_a_compiled_payload_changes_but_ids(frontend: str, data: dict[str, object]) -> None:
    text = silp.compile(data, frontend)
    try:
        got = silp.normalize(silp.decode(normalize_names(text, frontend)[0], frontend))
    except SilpError:
        return  # two ids that looked the same are now the same, or one looks like another element
    sent = silp.normalize(data)
    for entity, before in zip(got.get("entities", []), sent.get("entities", []), strict=True):
        assert entity["id"] in (before["id"], ascii_look(before["id"]))
        entity["id"] = before["id"]
    assert got == sent


# --- The table


def test_the_table_is_what_its_sources_give() -> None:
    spec = importlib.util.spec_from_file_location("unicode_tables", ROOT / "tools" / "unicode_tables.py")
    assert spec
    assert spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert isinstance(tool, ModuleType)
    try:
        icu = tool.Icu()
    except ImportError:
        pytest.skip("icu4py has no ICU of its own on this system")
    table = json.loads(tool.TABLE.read_text(encoding="utf-8"))
    assert table["unicode"] == CONFUSABLES_VERSION
    if icu.unicode_version() != CONFUSABLES_VERSION:
        pytest.skip("the installed ICU knows another version of Unicode")
    made = tool.tables(icu)
    assert {**table, "sources": None} == {**made, "sources": None}


@pytest.mark.parametrize(
    ("character", "look"),
    [
        ("І", "I"),
        ("і", "i"),
        ("Ⅰ", "I"),
        ("𝟏", "1"),
        ("ӏ", "l"),
        ("О", "O"),
        ("ｍ", "m"),
        ("𝐦", "m"),
        ("＿", "_"),
        ("ѕ", "s"),
    ],
)
def test_a_look_alike_stands_for_the_character_of_its_case(character: str, look: str) -> None:
    assert ascii_look(character) == look


def test_no_look_alike_has_two_readings() -> None:
    characters = "".join(unicode_table().look_alikes.values())
    assert len(characters) == len(set(characters))
    assert not any(c.isascii() or unicodedata.combining(c) for c in characters)
    assert ascii_look("ſ") is ascii_look("т") is None
