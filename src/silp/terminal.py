"""What all commands share: the options, reading of inputs, writing of results and errors.

Raw payloads and JSON go to stdout, everything else to stderr. Exit codes: 0 all input was good, 1 some was not, 2 the
command was called wrongly.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from silp.errors import ErrorCode, SilpError
from silp.strict_json import MAX_DEPTH, write_json

__all__ = ["files_argument", "frontend_option", "json_option", "lines_option", "process", "write"]


class _Input(NamedTuple):
    content: bytes
    place: str  # for messages: the file, and the line where each line is an input


files_argument = click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, allow_dash=True))
lines_option = click.option(
    "-l", "--lines", is_flag=True, help="Each line is an input of its own (implied for .jsonl files)."
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Write one JSON object per input, errors included, and go on."
)


def frontend_option(*names: str, default: str | None = "code", help: str) -> Callable[..., Any]:
    """Return the option that names a frontend."""
    return click.option(*names, default=default, show_default=default is not None, metavar="NAME", help=help)


def process(
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
        write(write_json(data, max_depth=2 * MAX_DEPTH) if as_json else shown)
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


def write(text: str) -> None:
    """Write a line to stdout, as UTF-8 whatever the locale says."""
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.buffer.flush()
