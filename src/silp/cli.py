"""The command `silp`: the codec for the shell.

Lives here: arguments, input and output. Raw payloads and JSON go to stdout, everything else to stderr. Exit codes: 0
all input was good, 1 some was not, 2 the command was called wrongly.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import click

import silp
from silp.errors import ErrorCode, SilpError, shown
from silp.frontends import compile, decode, list_frontends
from silp.ir import SilpIR, equivalent, json_schema, req_id
from silp.receiving import inspect, receive
from silp.strict_json import MAX_DEPTH, parse_json, write_json
from silp.text import escape_invisible
from silp.validation import validate
from silp.verbs import APPROVED, EXCLUDED, TOKENIZERS

__all__ = ["main"]

BROKEN_EXAMPLE = "if !rain(t+1): start(hike else: start(cards@indoor)"


class _Input(NamedTuple):
    content: bytes
    place: str  # for messages: the file, and the line where each line is an input


_files = click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, allow_dash=True))
_lines = click.option(
    "-l", "--lines", is_flag=True, help="Each line is an input of its own (implied for .jsonl files)."
)
_json = click.option(
    "--json", "as_json", is_flag=True, help="Write one JSON object per input, errors included, and go on."
)
_meta = click.option(
    "--meta",
    type=click.Choice(["inline", "omit"]),
    default="inline",
    show_default=True,
    help="Write meta into the payload, or leave it out because an envelope carries it.",
)


def _frontend(*names: str, default: str | None = "code", help: str) -> Callable[..., Any]:
    return click.option(*names, default=default, show_default=default is not None, metavar="NAME", help=help)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(silp.__version__, prog_name="silp")
def main() -> None:
    """SILP: a lossless payload codec for tasks that agents hand each other.

    An IR (JSON) compiles into a payload (one line of text in a frontend: code, math, json, natural, nl_json); code,
    math and json payloads decode back to an equivalent IR.

    \b
      echo '{"intent": "!START", "meta": {"req_id": "a1b2c3d4"}}' | silp compile
      echo 'if !rain(t+1): start(hike)' | silp decode
      silp compile irs.jsonl --json
      silp demo

    Exit codes: 0 all input was good; 1 some was not, the errors are on stderr (with --json, in the output); 2 the
    command was called wrongly.
    """


@main.command(name="compile")
@_files
@_frontend("-f", "--frontend", help="Frontend to compile into; see 'silp frontends'.")
@_meta
@_lines
@_json
def compile_command(files: tuple[str, ...], frontend: str, meta: Any, lines: bool, as_json: bool) -> None:
    """Compile IRs into payloads.

    Reads IRs (JSON) from FILES or stdin and writes one payload per line.
    """

    def run(text: str) -> tuple[str, dict[str, Any]]:
        payload = compile(SilpIR.from_json(text), frontend, meta=meta)
        return payload, {"frontend": frontend, "payload": payload, "req_id": req_id(payload)}

    _process(files, lines, as_json, run)


@main.command(name="decode")
@_files
@_frontend("-f", "--frontend", help="Frontend the payloads are in.")
@_lines
@_json
def decode_command(files: tuple[str, ...], frontend: str, lines: bool, as_json: bool) -> None:
    """Decode payloads into IRs.

    Reads payloads from FILES or stdin and writes IRs (JSON): indented, or one per line with --lines. The line ending
    behind a payload is not part of it.
    """

    def run(text: str) -> tuple[str, dict[str, Any]]:
        ir = decode(text, frontend)
        one_line = ir.to_json()
        indented = json.dumps(json.loads(one_line), ensure_ascii=False, indent=2).split("\n")
        shown = one_line if lines else "\n".join(map(escape_invisible, indented))
        return shown, {"frontend": frontend, "ir": ir.to_dict()}

    _process(files, lines, as_json, run)


@main.command(name="convert")
@_files
@_frontend("--from", "source", help="Frontend the payloads are in.")
@_frontend("--to", "target", default=None, help="Frontend to convert them into.")
@_meta
@_lines
@_json
def convert_command(
    files: tuple[str, ...], source: str, target: str | None, meta: Any, lines: bool, as_json: bool
) -> None:
    """Convert payloads between frontends.

    Reads payloads from FILES or stdin and writes them in another frontend, one per line.
    """
    if target is None:
        raise click.UsageError("name the frontend to convert into: --to NAME")

    def run(text: str) -> tuple[str, dict[str, Any]]:
        payload = compile(decode(text, source), target, meta=meta)
        return payload, {"frontend": target, "payload": payload, "req_id": req_id(payload)}

    _process(files, lines, as_json, run)


@main.command(name="validate")
@_files
@click.option(
    "--policy",
    type=click.Choice(["strict", "advisory"]),
    default="strict",
    show_default=True,
    help="Under 'advisory', unknown verbs and operators and repeated ids are warnings.",
)
@_frontend("-f", "--frontend", default=None, help="The inputs are payloads in this frontend, not IRs.")
@_lines
@_json
def validate_command(files: tuple[str, ...], policy: Any, frontend: str | None, lines: bool, as_json: bool) -> None:
    """Check IRs or payloads against all rules.

    Reads IRs (JSON) from FILES or stdin, or payloads if a frontend is named, and checks them against the schema and
    the rules beyond it: verbs, operators, ids, seq, versions.
    """
    failed = False

    def run(text: str) -> tuple[str, dict[str, Any]]:
        nonlocal failed
        report = validate(decode(text, frontend) if frontend else parse_json(text), policy=policy)
        failed = failed or not report.ok
        findings = [("error", finding) for finding in report.errors] + [("warning", w) for w in report.warnings]
        shown = [f"{kind}: {finding.path}: {finding.message} [{finding.code}]" for kind, finding in findings]
        return "\n".join([*shown, "valid" if report.ok else "not valid"]), report.to_dict()

    _process(files, lines, as_json, run)
    if failed:
        sys.exit(1)


@main.command(name="inspect")
@_files
@_frontend("-f", "--frontend", default=None, help="Frontend the texts are in; found out if not named.")
@_lines
@_json
def inspect_command(files: tuple[str, ...], frontend: str | None, lines: bool, as_json: bool) -> None:
    """Show what is hidden in texts.

    Writes each text with all invisible characters as escapes, then every hidden character and look-alike with its
    offset, code point and name, and last what a receiver makes of it. Exits with 1 if a receiver would refuse it.
    """
    failed = False

    def run(text: str) -> tuple[str, dict[str, Any]]:
        nonlocal failed
        data: dict[str, Any] = {"text": shown(text), "found": [found.to_dict() for found in inspect(text, frontend)]}
        rows = [data["text"], *(f"  offset {f['offset']}: {f['code_point']} {f['message']}" for f in data["found"])]
        try:
            received = receive(text, frontend)
        except SilpError as error:
            failed = True
            data["refused"] = error.to_dict()
            return "\n".join([*rows, f"refused: {error}"]), data
        findings = [finding for finding in received.findings if finding.offset is None]
        data |= {
            "frontend": received.frontend,
            "payload": compile(received.ir, received.frontend),
            "findings": [finding.to_dict() for finding in findings],
        }
        rows += [f"  {finding.path}: {finding.message}" for finding in findings]
        return "\n".join([*rows, f"received as {received.frontend}: {data['payload']}"]), data

    _process(files, lines, as_json, run)
    if failed:
        sys.exit(1)


@main.command(name="frontends")
@_json
def frontends_command(as_json: bool) -> None:
    """List the frontends, installed ones included."""
    for name, frontend in list_frontends().items():
        if as_json:
            _write(json.dumps({"name": name, "lossless": frontend.lossless, "summary": frontend.summary}))
        else:
            _write(f"{name:10}{'lossless' if frontend.lossless else 'no decode':11}{frontend.summary}")


@main.command(name="verbs")
@_json
def verbs_command(as_json: bool) -> None:
    """List the approved and the excluded verbs."""
    if as_json:
        excluded = {
            action: {
                "tokens": dict(zip(TOKENIZERS, verb.tokens, strict=True)),
                "reason": verb.reason,
                "use": verb.replacement,
            }
            for action, verb in EXCLUDED.items()
        }
        _write(json.dumps({"approved": sorted(APPROVED), "excluded": excluded}))
        return
    for action in sorted(APPROVED):
        _write(action)
    for action, verb in EXCLUDED.items():
        _write(f"{action}  must not be used, {verb.reason}: use {verb.replacement}")


@main.command(name="schema")
def schema_command() -> None:
    """Print the JSON Schema of the IR."""
    _write(json.dumps(json_schema(), indent=2))


@main.command(name="demo")
def demo_command() -> None:
    """Show the main job on the example IRs.

    Compiles each into every frontend, decodes it back, and shows the error of a broken payload.
    """
    lost = 0
    for example in sorted((resources.files("silp") / "data" / "examples").iterdir(), key=lambda path: path.name):
        ir = SilpIR.from_json(example.read_text("utf-8"))
        _write(example.name)
        for name, frontend in list_frontends().items():
            if name == "nl_json":
                continue
            payload = compile(ir, name)
            back = ""
            if frontend.lossless:
                same = equivalent(decode(payload, name), ir)
                lost += not same
                back = "decodes to an equivalent IR" if same else "LOST SOMETHING"
            _write(f"  {name:8}{len(payload):4} characters  {back}\n    {payload}")
        _write("")
    _write("and a broken payload:")
    try:
        decode(BROKEN_EXAMPLE)
    except SilpError as error:
        _write(str(error))
    if lost:
        sys.exit(1)


def _process(
    names: tuple[str, ...], lines: bool, as_json: bool, run: Callable[[str], tuple[str, dict[str, Any]]]
) -> None:
    """Run a command over all its inputs. Of each result, the text is for people and the data for --json."""
    failed = False
    for item in _inputs(names or ("-",), lines):
        try:
            shown, data = run(_text(item.content))
        except SilpError as error:
            if not as_json:
                click.echo(f"{item.place}: {error}", err=True)
                sys.exit(1)
            failed = True
            data = {"place": item.place, "error": error.to_dict()}
        _write(write_json(data, max_depth=2 * MAX_DEPTH) if as_json else shown)
    if failed:
        sys.exit(1)


def _inputs(names: tuple[str, ...], lines: bool) -> Iterator[_Input]:
    for name in names:
        place = "stdin" if name == "-" else name
        with click.open_file(name, "rb") as stream:
            if not (lines or name.endswith(".jsonl")):
                yield _Input(stream.read(), place)
                continue
            # A bar makes sense where a person waits: errors go to a terminal, and results elsewhere.
            size = 0 if name == "-" else Path(name).stat().st_size
            hidden = not (size and sys.stderr.isatty()) or sys.stdout.isatty()
            with click.progressbar(length=size, label=place, file=sys.stderr, hidden=hidden) as bar:
                for number, line in enumerate(stream, 1):
                    if line.strip():
                        yield _Input(line, f"{place}:{number}")
                    bar.update(len(line))


def _text(content: bytes) -> str:
    """Return the text of an input without the line ending behind it."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SilpError(
            ErrorCode.INVALID_SYNTAX, f"the input is not UTF-8: byte {error.start} starts no character"
        ) from None
    return text.removesuffix("\n").removesuffix("\r")


def _write(text: str) -> None:
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.buffer.flush()
