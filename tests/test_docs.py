"""Examples in the documents run, and print what the documents say."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import silp
from silp.frontends.notation import CODE, MATH

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "docs/a2a.md",
        "docs/aidip.md",
        "docs/lock.md",
        "docs/mcp.md",
        "docs/negotiation.md",
    ],
)
def test_python_examples_print_what_the_page_shows(page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("silp.frontends._registry", {**silp.list_frontends()})
    blocks = BLOCK.findall((ROOT / page).read_text("utf-8"))
    examples = [
        (code, following[1] if following[0] == "text" else "")
        for (language, code), following in zip(blocks, [*blocks[1:], ("", "")], strict=True)
        if language == "python"
    ]
    assert examples
    names: dict[str, object] = {"__name__": "example"}
    for code, expected in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == expected


def test_shell_examples_of_the_readme_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILP_LOCK", str(tmp_path / "compile.lock"))
    blocks = BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    lines = [line for language, code in blocks if language == "sh" for line in code.splitlines() if "silp " in line]
    assert len(lines) >= 6
    for line in lines:
        script = f'silp() {{ "{sys.executable}" -m silp "$@"; }}\n{line}'
        done = subprocess.run(["bash", "-ec", script], cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), line
        assert done.stdout


def test_the_recipes_for_continuous_integration_catch_a_changed_payload(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "lock.md").read_text("utf-8")
    hook = re.findall(r"entry: (silp .*)", (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))[0]
    steps = [step for step in re.findall(r"- run: (silp .*)", page) if step] + [f"{hook} prompts/one.json"]
    assert len(steps) == 3

    def run(command: str) -> int:
        script = f'silp() {{ "{sys.executable}" -m silp "$@"; }}\n{command}'
        return subprocess.run(["bash", "-ec", script], cwd=tmp_path, capture_output=True, check=False).returncode

    (tmp_path / "prompts").mkdir()
    prompt = tmp_path / "prompts" / "one.json"
    prompt.write_text('{"intent":"!START","meta":{"req_id":"0000"}}')
    assert run("silp lock add prompts/*.json") == 0
    assert [run(step) for step in steps] == [0, 0, 0]
    prompt.write_text('{"intent":"!CANCEL","meta":{"req_id":"0000"}}')
    assert [run(step) for step in steps] == [0, 1, 1]
    record = tmp_path / ".silp" / "compile.lock"
    record.write_bytes(record.read_bytes().replace(b"start", b"email"))
    assert [run(step) for step in steps] == [1, 1, 1]


def test_the_page_on_notations_shows_the_lexemes_of_the_tables() -> None:
    page = (ROOT / "docs" / "notations.md").read_text("utf-8")
    for lexeme in (CODE.condition_start, CODE.condition_end, CODE.condition_and, CODE.otherwise, CODE.arrow):
        assert f'"{lexeme}"' in page
    for character in MATH.own_delimiters:
        assert character in page
    assert " ".join(MATH.operators.values()) in page


def test_every_module_is_in_the_table_of_contributing_in_the_order_of_imports() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE)
    order = [name for row in rows for name in re.findall(r"`([\w/]+)`", row)]
    package = ROOT / "src" / "silp"
    sources = {
        path.relative_to(package).with_suffix("").as_posix().removesuffix("/__init__"): path
        for path in package.rglob("*.py")
        if path not in (package / "__init__.py", package / "__main__.py")
    }
    assert set(order) == set(sources)
    for name, path in sources.items():
        for imported in re.findall(r"^from silp\.?([\w.]*) import (.*)$", path.read_text("utf-8"), re.MULTILINE):
            module = imported[0].replace(".", "/")
            targets = (
                [f"{module}/{part.strip()}" for part in imported[1].split(",")] if module == "frontends" else [module]
            )
            for target in targets:
                above = target if target in order else module
                assert order.index(above) < order.index(name), f"{name} imports {above}"


def test_the_server_of_the_registry_is_this_package() -> None:
    data = json.loads((ROOT / "server.json").read_text("utf-8"))
    (package,) = data["packages"]
    assert data["version"] == package["version"] == silp.__version__
    assert package["identifier"] == "silp-codec"
    assert f"mcp-name: {data['name']}" in (ROOT / "README.md").read_text("utf-8")
