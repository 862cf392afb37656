"""The command: input and output, exit codes, errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import silp
from silp.cli import main

IR = '{"intent": "!START", "entities": [{"id": "act", "value": "Straße"}], "meta": {"req_id": "a1b2c3d4"}}'


def run(*arguments: str, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(main, arguments, input=stdin)


def test_compile_writes_the_raw_payload() -> None:
    done = run("compile", stdin=IR)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "start(Straße)\n", "")
    assert run("compile", "-f", "json", "--meta", "omit", stdin=IR).stdout == '{"intent":"!START","act":"Straße"}\n'


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_decode_reads_a_file_with_any_line_ending(ending: str, tmp_path: Path) -> None:
    path = tmp_path / "payload.txt"
    path.write_bytes(("start(hike)" + ending).encode())
    done = run("decode", str(path))
    assert json.loads(done.stdout) == silp.decode("start(hike)").to_dict()
    assert done.stdout.startswith('{\n  "silp": "v1",\n')


def test_decoded_text_shows_letters_and_escapes_what_is_invisible() -> None:
    done = run("decode", stdin='start("漢\\u200d字")')
    assert '"value": "漢\\u200d字"' in done.stdout


def test_lines_are_compiled_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "irs.jsonl"
    path.write_text(f"{IR}\n\n{IR}\n", "utf-8")
    assert run("compile", str(path)).stdout == "start(Straße)\nstart(Straße)\n"
    decoded = run("decode", "--lines", stdin="start(a)\nstart(b\u2028c)\nstart(d)")
    assert (decoded.exit_code, len(decoded.stdout.splitlines())) == (1, 1)
    assert "stdin:2: invalid_syntax: U+2028 LINE SEPARATOR" in decoded.stderr


def test_json_output_holds_results_and_errors(tmp_path: Path) -> None:
    path = tmp_path / "irs.jsonl"
    path.write_text(f"{IR}\n{{}}\n{IR}\n", "utf-8")
    done = run("compile", "--json", str(path))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == 1
    assert rows[0] == {"frontend": "code", "payload": "start(Straße)", "req_id": silp.req_id("start(Straße)")}
    assert (rows[1]["place"], rows[1]["error"]["code"]) == (f"{path}:2", "invalid_syntax")
    assert [finding["path"] for finding in rows[1]["error"]["findings"]] == ["$.intent", "$.meta"]
    assert rows[2] == rows[0]
    decoded = json.loads(run("decode", "--json", stdin="start(a)").stdout)
    assert decoded == {"frontend": "code", "ir": silp.decode("start(a)").to_dict()}


def test_an_error_has_a_caret_line_on_stderr() -> None:
    done = run("decode", stdin="start(hike")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-2:] == ["  start(hike", "            ^"]


def test_convert_goes_from_one_frontend_to_another() -> None:
    assert run("convert", "--to", "math", stdin="if !a: b()").stdout == "¬a ⇒ b()\n"
    assert run("convert", "--from", "math", "--to", "code", stdin="¬a ⇒ b()").stdout == "if !a: b()\n"
    assert json.loads(run("convert", "--to", "math", "--json", stdin="b()").stdout)["payload"] == "b()"
    assert run("convert", stdin="b()").exit_code == 2


def test_validate_reports_findings_and_exits_with_1_on_errors() -> None:
    bad = '{"intent": "!RM", "meta": {"req_id": "abcd", "seq": ["parallel"]}}'
    done = run("validate", stdin=bad)
    assert done.exit_code == 1
    assert [line.rsplit(" ", 1)[1] for line in done.stdout.splitlines()] == ["[unknown_verb]", "[seq_keyword]", "valid"]
    assert run("validate", "--policy", "advisory", stdin=bad).exit_code == 0
    assert json.loads(run("validate", "--json", stdin=IR).stdout) == {"ok": True, "errors": [], "warnings": []}
    assert run("validate", "-f", "code", stdin="start(hike)").stdout == "valid\n"


def test_lists() -> None:
    assert [json.loads(line)["name"] for line in run("frontends", "--json").stdout.splitlines()][:3] == [
        "code",
        "math",
        "json",
    ]
    assert "natural   no decode" in run("frontends").stdout
    verbs = json.loads(run("verbs", "--json").stdout)
    assert (len(verbs["approved"]), verbs["excluded"]["!SWITCH_TOOL"]["use"]) == (13, "!SWITCH")
    assert "!ESCALATE  must not be used" in run("verbs").stdout
    assert json.loads(run("schema").stdout) == silp.json_schema()


def test_the_demo_shows_every_example_and_an_error() -> None:
    done = run("demo")
    assert done.exit_code == 0
    assert done.stdout.count("decodes to an equivalent IR") == 3 * 18
    assert "LOST" not in done.stdout
    assert done.stdout.rstrip().endswith("^")


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["decode", "-f", "nope"], "x", "unsupported_frontend"),
        (["decode", "-f", "natural"], "x", "decode_failed"),
        (["decode"], b"\xff", "the input is not UTF-8: byte 0"),
        (["compile"], "{", "invalid_syntax"),
        (["compile"], '{"silp":"v2","intent":"!A","meta":{"req_id":"0000"}}', "unsupported_version"),
    ],
)
def test_bad_input_exits_with_1(arguments: list[str], stdin: Any, message: str) -> None:
    done = run(*arguments, stdin=stdin)
    assert done.exit_code == 1
    assert message in done.stderr


@pytest.mark.parametrize("arguments", [["nope"], ["decode", "no-such-file"], ["compile", "--meta", "some"]])
def test_a_wrong_call_exits_with_2(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


def test_the_output_is_utf8_whatever_the_locale() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "silp", "compile"],
        input=IR.encode(),
        capture_output=True,
        check=True,
        env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
    )
    assert done.stdout == "start(Straße)\n".encode()


class TestLock:
    @pytest.fixture(autouse=True)
    def record(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        return tmp_path / ".silp" / "compile.lock"

    def test_add_writes_the_frozen_payload(self, record: Path) -> None:
        assert run("lock", "add", stdin=IR).stdout == "start(Straße)\n"
        entry = json.loads(run("lock", "add", "--json", stdin=IR).stdout)
        assert (entry["sequence"], entry["payload"]) == (1, "start(Straße)")
        assert run("lock", "add", "-f", "json", stdin=IR).stdout == '{"intent":"!START","act":"Straße"}\n'
        assert record.read_bytes().count(b"\n") == 2

    def test_add_says_what_it_mended(self, record: Path) -> None:
        run("lock", "add", stdin=IR)
        with record.open("ab") as stream:
            stream.write(b'{"codec":')
        done = run("lock", "add", "-f", "json", stdin=IR)
        assert done.exit_code == 0
        assert "incomplete (9 bytes), and was cut off" in done.stderr

    def test_check_fails_for_what_is_not_frozen(self, tmp_path: Path) -> None:
        run("lock", "add", stdin=IR)
        done = run("lock", "check", "-", stdin=IR)
        assert (done.exit_code, done.stdout) == (0, "entry 1: start(Straße)\n")
        done = run("lock", "check", "-f", "json", "-", stdin=IR)
        assert done.exit_code == 1
        assert "the record has no json payload of this IR" in done.stderr
        assert run("lock", "check", "--payloads", "-", stdin="start(Straße)\n").exit_code == 0
        done = run("lock", "check", "--payloads", "--json", "-", stdin='start("Straße")\n')
        assert done.exit_code == 1
        assert json.loads(done.stdout)["error"]["expected"] == "start(Straße)"
        assert run("lock", "check").stdout.startswith(f"{Path('.silp/compile.lock')}: 1 entries, intact, head sha256:")

    def test_verify_reports_for_people_and_programs(self, record: Path) -> None:
        for number in range(3):
            run("lock", "add", stdin=IR.replace("Stra", f"{number}"))
        head = run("lock", "head").stdout.strip()
        assert json.loads(run("lock", "head", "--json").stdout) == {"sequence": 3, "digest": head}
        assert run("lock", "verify", "--head", head, "--chain-only").exit_code == 0
        lines = record.read_bytes().splitlines(keepends=True)
        record.write_bytes(lines[0] + lines[2])
        done = run("lock", "verify")
        assert done.exit_code == 1
        assert done.stdout.splitlines()[0] == "error: 1 of the entries 2 to 2 are gone [removed]"
        assert "1 entries, NOT INTACT" in done.stdout
        report = json.loads(run("lock", "verify", "--json").stdout)
        assert (report["ok"], report["entries"], report["errors"][0]["code"]) == (False, 1, "removed")

    def test_show_escapes_what_a_terminal_would_obey(self, record: Path) -> None:
        run("lock", "add", stdin=IR)
        run("lock", "add", "-f", "json", stdin=IR)
        assert len(run("lock", "show").stdout.splitlines()) == 2
        assert json.loads(run("lock", "show", "--json", "2").stdout)["frontend"] == "json"
        done = run("lock", "show", "2", "7")
        assert (done.exit_code, done.stderr) == (1, f"{Path('.silp/compile.lock')}: there is no entry 7\n")

    def test_keys_sign_the_head(self, tmp_path: Path) -> None:
        run("lock", "add", stdin=IR)
        assert run("lock", "keygen", "key").stdout == "key.pub\n"
        assert run("lock", "verify", "--key", "key.pub").exit_code == 1
        assert run("lock", "head", "--sign", "key").exit_code == 0
        assert run("lock", "verify", "--key", "key.pub").exit_code == 0
        done = run("lock", "keygen", "key")
        assert (done.exit_code, done.stderr) == (1, "key: decode_failed: cannot create key: File exists\n")

    def test_a_missing_record_is_an_error_with_what_to_do(self) -> None:
        done = run("lock", "verify")
        assert (done.exit_code, done.stdout) == (1, "")
        assert "there is no such file" in done.stderr
        error = json.loads(run("lock", "verify", "--json").stdout)["error"]
        assert error["code"] == "decode_failed"
