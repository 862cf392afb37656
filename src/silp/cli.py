"""The command `silp`: the codec for the shell.

Lives here: the commands of the codec, and the groups of commands that other rooms bring along. Not here: options, input
and output (terminal).
"""

from __future__ import annotations

import json
import sys
from importlib import resources
from typing import Any

import click

import silp
from silp.chat import chat
from silp.errors import SilpError, shown
from silp.frontends import compile, decode, list_frontends
from silp.ir import SilpIR, equivalent, json_schema, req_id
from silp.lock.commands import lock
from silp.receiving import inspect, receive
from silp.strict_json import parse_json
from silp.terminal import files_argument, frontend_option, json_option, lines_option, process, write
from silp.text import escape_invisible
from silp.validation import validate
from silp.verbs import APPROVED, EXCLUDED, TOKENIZERS

__all__ = ["main"]

BROKEN_EXAMPLE = "if !rain(t+1): start(hike else: start(cards@indoor)"


_meta = click.option(
    "--meta",
    type=click.Choice(["inline", "omit"]),
    default="inline",
    show_default=True,
    help="Write meta into the payload, or leave it out because an envelope carries it.",
)


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
@files_argument
@frontend_option("-f", "--frontend", help="Frontend to compile into; see 'silp frontends'.")
@_meta
@lines_option
@json_option
def compile_command(files: tuple[str, ...], frontend: str, meta: Any, lines: bool, as_json: bool) -> None:
    """Compile IRs into payloads.

    Reads IRs (JSON) from FILES or stdin and writes one payload per line.
    """

    def run(text: str) -> tuple[str, dict[str, Any]]:
        payload = compile(SilpIR.from_json(text), frontend, meta=meta)
        return payload, {"frontend": frontend, "payload": payload, "req_id": req_id(payload)}

    process(files, lines, as_json, run)


@main.command(name="decode")
@files_argument
@frontend_option("-f", "--frontend", help="Frontend the payloads are in.")
@lines_option
@json_option
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

    process(files, lines, as_json, run)


@main.command(name="convert")
@files_argument
@frontend_option("--from", "source", help="Frontend the payloads are in.")
@frontend_option("--to", "target", default=None, help="Frontend to convert them into.")
@_meta
@lines_option
@json_option
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

    process(files, lines, as_json, run)


@main.command(name="validate")
@files_argument
@click.option(
    "--policy",
    type=click.Choice(["strict", "advisory"]),
    default="strict",
    show_default=True,
    help="Under 'advisory', unknown verbs and operators and repeated ids are warnings.",
)
@frontend_option("-f", "--frontend", default=None, help="The inputs are payloads in this frontend, not IRs.")
@lines_option
@json_option
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

    process(files, lines, as_json, run)
    if failed:
        sys.exit(1)


@main.command(name="inspect")
@files_argument
@frontend_option("-f", "--frontend", default=None, help="Frontend the texts are in; found out if not named.")
@lines_option
@json_option
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

    process(files, lines, as_json, run)
    if failed:
        sys.exit(1)


@main.command(name="frontends")
@json_option
def frontends_command(as_json: bool) -> None:
    """List the frontends, installed ones included."""
    for name, frontend in list_frontends().items():
        if as_json:
            write(json.dumps({"name": name, "lossless": frontend.lossless, "summary": frontend.summary}))
        else:
            write(f"{name:10}{'lossless' if frontend.lossless else 'no decode':11}{frontend.summary}")


@main.command(name="verbs")
@json_option
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
        write(json.dumps({"approved": sorted(APPROVED), "excluded": excluded}))
        return
    for action in sorted(APPROVED):
        write(action)
    for action, verb in EXCLUDED.items():
        write(f"{action}  must not be used, {verb.reason}: use {verb.replacement}")


@main.command(name="schema")
def schema_command() -> None:
    """Print the JSON Schema of the IR."""
    write(json.dumps(json_schema(), indent=2))


@main.command(name="demo")
def demo_command() -> None:
    """Show the main job on the example IRs.

    Compiles each into every frontend, decodes it back, and shows the error of a broken payload.
    """
    lost = 0
    for example in sorted((resources.files("silp") / "data" / "examples").iterdir(), key=lambda path: path.name):
        ir = SilpIR.from_json(example.read_text("utf-8"))
        write(example.name)
        for name, frontend in list_frontends().items():
            if name == "nl_json":
                continue
            payload = compile(ir, name)
            back = ""
            if frontend.lossless:
                same = equivalent(decode(payload, name), ir)
                lost += not same
                back = "decodes to an equivalent IR" if same else "LOST SOMETHING"
            write(f"  {name:8}{len(payload):4} characters  {back}\n    {payload}")
        write("")
    write("and a broken payload:")
    try:
        decode(BROKEN_EXAMPLE)
    except SilpError as error:
        write(str(error))
    if lost:
        sys.exit(1)


@main.command(name="mcp")
@click.option("--http", "port", type=int, metavar="PORT", help="Serve streamable HTTP on this port of this machine.")
def mcp_command(port: int | None) -> None:
    """Serve the codec to an MCP client, over stdin and stdout."""
    try:
        from silp.carriage.mcp_server import make_server
    except ImportError as error:
        click.echo(str(error), err=True)
        sys.exit(1)
    if port is None:
        make_server().run("stdio")
    else:
        make_server().run("streamable-http", host="127.0.0.1", port=port)


main.add_command(chat)
main.add_command(lock)
