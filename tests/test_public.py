"""The public surface: what is exported, what importing costs, what a type checker sees."""

from __future__ import annotations

import subprocess
import sys
from typing import assert_type

import pytest

import silp
from silp.errors import ErrorCode, SilpError
from silp.frontends import Frontend, register_frontend

PUBLIC = [
    "MAX_DEPTH", "Alternative", "Constraint", "Entity", "ErrorCode", "Finding", "Frontend", "Lock", "Meta", "Policy",
    "Received", "Report",
    "SilpError", "SilpIR", "compile", "decode", "equivalent", "get_frontend", "json_schema", "list_frontends",
    "normalize", "receive", "register_frontend", "req_id", "sanitize", "validate",
]  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert sorted(silp.__all__) == sorted(PUBLIC)
    for name in PUBLIC:
        assert getattr(silp, name) is not None
        assert name in dir(silp)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        silp.nothing  # noqa: B018


def test_importing_silp_loads_nothing_heavy() -> None:
    code = "import silp, sys; print([name for name in ('pydantic', 'click', 'json') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_error_codes_are_those_of_the_protocol() -> None:
    assert [str(code) for code in ErrorCode] == [
        "invalid_syntax",
        "unsupported_version",
        "unsupported_frontend",
        "decode_failed",
        "timeout",
        "session_expired",
    ]


def test_types_are_visible_to_a_type_checker() -> None:
    ir = assert_type(silp.decode("start()"), silp.SilpIR)
    assert_type(silp.compile(ir), str)
    assert_type(silp.validate(ir), silp.Report)
    assert_type(silp.equivalent(ir, ir), bool)
    assert_type(ir.meta.priority, int)
    assert_type(ir.entities, list[silp.Entity])


class Shout(Frontend):
    name = "shout"
    summary = "for the test"

    def compile(self, ir: silp.SilpIR, *, meta: silp.frontends.MetaMode, max_depth: int) -> str:
        return silp.compile(ir, "json", meta=meta, max_depth=max_depth).replace("intent", "INTENT", 1)

    def decode(self, text: str, *, max_depth: int) -> silp.SilpIR:
        return silp.decode(text.replace("INTENT", "intent", 1), "json", max_depth=max_depth)


def test_a_frontend_can_be_registered_once_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("silp.frontends._registry", {**silp.list_frontends()})
    register_frontend(Shout())
    assert silp.compile(silp.decode("start()"), "shout") == '{"INTENT":"!START"}'
    assert silp.decode('{"INTENT":"!START"}', "shout").intent == "!START"
    with pytest.raises(SilpError, match="registered already") as refused:
        register_frontend(Shout())
    assert refused.value.code is ErrorCode.UNSUPPORTED_FRONTEND
    other = Shout()
    register_frontend(other, replace=True)
    assert silp.get_frontend("shout") is other


@pytest.mark.parametrize("name", ["nope", "", "CODE", None, 5, ["code"]])
def test_an_unknown_frontend_is_refused_with_the_known_ones(name: object) -> None:
    ir = silp.decode("start()")
    for call in (lambda: silp.decode("start()", name), lambda: silp.compile(ir, name)):  # type: ignore[arg-type]
        with pytest.raises(SilpError, match="code, json, math, natural, nl_json") as refused:
            call()
        assert refused.value.code is ErrorCode.UNSUPPORTED_FRONTEND


def test_installed_frontends_are_found_by_entry_point(tmp_path: object) -> None:
    code = """
import sys, pathlib
root = pathlib.Path(sys.argv[1])
info = root / "plug-1.0.dist-info"
info.mkdir()
(info / "METADATA").write_text("Metadata-Version: 2.1\\nName: plug\\nVersion: 1.0\\n")
(info / "entry_points.txt").write_text("[silp.frontends]\\nplug = plug:Plug\\nbroken = missing_module:Thing\\n")
(root / "plug.py").write_text('''
import silp
class Plug(silp.Frontend):
    name = "plug"
    lossless = False
    def compile(self, ir, *, meta, max_depth):
        return "plugged " + ir.intent
''')
sys.path.insert(0, str(root))
import silp
print(silp.compile({"intent": "!A", "meta": {"req_id": "0000"}}, "plug"))
for call in (lambda: silp.get_frontend("broken"), silp.list_frontends, lambda: silp.decode("x", "plug")):
    try:
        call()
    except silp.SilpError as error:
        print(error.code, error.message)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "plugged !A"
    assert (
        lines[1]
        == lines[2]
        == ("unsupported_frontend the installed frontend broken cannot be loaded: No module named 'missing_module'")
    )
    assert lines[3].startswith("decode_failed plug text does not decode")


@pytest.mark.parametrize("name", ["natural", "nl_json"])
def test_prose_does_not_decode(name: str) -> None:
    with pytest.raises(SilpError, match="does not decode") as refused:
        silp.decode("start hike.", name)
    assert refused.value.code is ErrorCode.DECODE_FAILED


def test_wrong_arguments_are_errors_of_ours() -> None:
    ir = silp.decode("start()")
    calls = (
        lambda: silp.compile(ir, meta="none"),  # type: ignore[arg-type]
        lambda: silp.validate(ir, policy="lax"),  # type: ignore[arg-type]
        lambda: silp.decode(b"start()"),  # type: ignore[arg-type]
        lambda: silp.decode(None),  # type: ignore[arg-type]
    )
    for call in calls:
        with pytest.raises(SilpError) as refused:
            call()
        assert refused.value.code is ErrorCode.INVALID_SYNTAX


@pytest.mark.parametrize("frontend", ["code", "math", "json", "natural"])
def test_another_version_of_the_protocol_is_unsupported(frontend: str) -> None:
    with pytest.raises(SilpError) as refused:
        silp.compile({"silp": "v2", "intent": "!A", "meta": {"req_id": "0000"}}, frontend)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
    with pytest.raises(SilpError) as refused:
        silp.decode('{"silp":"v2","intent":5,"new":true}', "json")
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
