"""The commands `silp lock ...`.

Lives here: what they print. Not here: what they do (record, signatures).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from silp.errors import SilpError, shown
from silp.frontends import decode
from silp.ir import SilpIR
from silp.lock.entries import Entry
from silp.lock.record import DEFAULT_PATH, Lock, LockReport
from silp.lock.signatures import create_keys, sign
from silp.terminal import files_argument, frontend_option, json_option, lines_option, process, write

__all__ = ["lock"]

_record = click.option(
    "-L",
    "--lock",
    "record",
    type=click.Path(dir_okay=False, path_type=Path),
    default=DEFAULT_PATH,
    show_default=True,
    envvar="SILP_LOCK",
    show_envvar=True,
    help="File of the record.",
)
_key_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def lock() -> None:
    """Freeze first payloads in a tamper-evident record.

    \b
      silp lock add prompts/*.json          freeze the payloads of IRs
      silp lock check prompts/*.json        fail if one is missing or compiles differently today
      silp lock verify                      fail if anybody touched the record
      silp lock head                        print the digest to keep elsewhere, for 'verify --head'

    Keep the record under version control, and its head or its signatures where whoever can change the record cannot.
    """


@lock.command()
@files_argument
@frontend_option("-f", "--frontend", help="Frontend to compile into.")
@_record
@lines_option
@json_option
def add(files: tuple[str, ...], frontend: str, record: Path, lines: bool, as_json: bool) -> None:
    """Freeze the payloads of IRs.

    Reads IRs (JSON) from FILES or stdin and writes the payload of each: the frozen one if the record has it, else the
    one compiled and recorded now.
    """
    opened = Lock(record)

    def run(text: str) -> tuple[str, dict[str, Any]]:
        entry = opened.freeze(SilpIR.from_json(text), frontend)
        while opened.repairs:
            click.echo(f"{record}: {opened.repairs.pop(0).message}", err=True)
        return entry.payload, entry._asdict()

    process(files, lines, as_json, run)


@lock.command()
@files_argument
@frontend_option("-f", "--frontend", help="Frontend of the payloads.")
@click.option("--payloads", is_flag=True, help="The inputs are payloads, not IRs: each must be a frozen one.")
@_record
@lines_option
@json_option
def check(files: tuple[str, ...], frontend: str, payloads: bool, record: Path, lines: bool, as_json: bool) -> None:
    """Check IRs or payloads against the record.

    Reads IRs (JSON) from FILES, '-' for stdin, and fails if one is not in the record or if the codec compiles it
    differently today. Without FILES, checks all entries: does each payload decode to its IR, and does the codec stand
    by it today?
    """
    opened = Lock(record)

    def run(text: str) -> tuple[str, dict[str, Any]]:
        ir = decode(text, frontend) if payloads else SilpIR.from_json(text)
        entry = opened.require(ir, frontend, payload=text if payloads else None)
        return f"entry {entry.sequence}: {entry.payload}", entry._asdict()

    if files:
        process(files, lines, as_json, run)
    else:
        _report(record, as_json, opened.check)


@lock.command()
@click.option("--head", metavar="DIGEST", help="A head printed earlier: find entries cut off or rewritten since.")
@click.option("--key", type=_key_file, help="Public key (PEM): check the signatures beside the record.")
@click.option("--chain-only", is_flag=True, help="Check digests only, and do not decode the payloads.")
@_record
@json_option
def verify(head: str | None, key: Path | None, chain_only: bool, record: Path, as_json: bool) -> None:
    """Verify the record: was an entry changed, removed, inserted, moved, repeated, forged, or cut off the end?"""
    opened = Lock(record)
    _report(record, as_json, lambda: opened.verify(head=head, key=key, payloads=not chain_only))


@lock.command()
@click.argument("entries", nargs=-1, type=int)
@_record
@json_option
def show(entries: tuple[int, ...], record: Path, as_json: bool) -> None:
    """Show entries by their numbers, or all."""
    wanted = set(entries)

    def run() -> None:
        for entry in Lock(record).entries():
            if entry.sequence in wanted or not entries:
                wanted.discard(entry.sequence)
                write(json.dumps(entry._asdict(), ensure_ascii=False) if as_json else _shown(entry))

    _guard(record, as_json, run)
    if wanted:
        click.echo(f"{record}: there is no entry {min(wanted)}", err=True)
        sys.exit(1)


@lock.command()
@click.option("--sign", "private", type=_key_file, help="Private key (PEM): add a signature of the head.")
@_record
@json_option
def head(private: Path | None, record: Path, as_json: bool) -> None:
    """Print the digest of the last entry.

    Anchor it where whoever can change the record cannot: in a release note, a ticket, a signed tag.
    """

    def run() -> None:
        current = Lock(record).head()
        if private:
            sign(record, current, private)
        write(json.dumps(current._asdict()) if as_json else current.digest)

    _guard(record, as_json, run)


@lock.command()
@click.argument("private", type=click.Path(dir_okay=False, path_type=Path))
def keygen(private: Path) -> None:
    """Make a key pair: the file PRIVATE, and PRIVATE.pub."""
    _guard(private, False, lambda: write(str(create_keys(private))))


def _shown(entry: Entry) -> str:
    return f"{entry.sequence}  {entry.time}  {shown(entry.frontend)}  {entry.ir_digest[:19]}  {shown(entry.payload)}"


def _report(record: Path, as_json: bool, run: Callable[[], LockReport]) -> None:
    def show() -> None:
        report = run()
        if as_json:
            write(json.dumps(report.to_dict()))
        else:
            for kind, findings in (("error", report.errors), ("warning", report.warnings)):
                for finding in findings:
                    write(f"{kind}: {finding.message} [{finding.code}]")
            state = "intact" if report.ok else "NOT INTACT"
            write(f"{record}: {report.entries} entries, {state}, head {report.head}")
        if not report.ok:
            sys.exit(1)

    _guard(record, as_json, show)


def _guard(place: Path, as_json: bool, run: Callable[[], None]) -> None:
    try:
        run()
    except SilpError as error:
        if as_json:
            write(json.dumps({"place": str(place), "error": error.to_dict()}))
        else:
            click.echo(f"{place}: {error}", err=True)
        sys.exit(1)
