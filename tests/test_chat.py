"""`silp chat`: the demonstration, and two terminals."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
from typing import Any

import pytest
from click.testing import CliRunner

from silp.chat import chat, demo


def test_the_demonstration_agrees_degrades_and_renews() -> None:
    lines = list(demo())
    told = [line.strip() for line in lines if line.startswith("    ")]
    assert told[:2] == ["B agreed on code, v1", "A agreed on code, v1"]
    assert [line for line in told if "steps down" in line] == [
        f"A steps down to {frontend}: told to fail" for frontend in ("math", "json", "natural")
    ]
    assert "B renews the context of the session" in told
    assert any("prose, for a reader only" in line for line in told)
    renewal = told.index("B renews the context of the session")
    assert "turn 5, 0 before it in the context" in told[renewal + 1]


def test_the_command_shows_it() -> None:
    done = CliRunner().invoke(chat, ["--demo"])
    assert done.exit_code == 0
    pattern = re.compile(r" id=\d+|session \w\w")
    assert pattern.sub("", done.output) == pattern.sub("", "\n".join(demo()) + "\n")


@pytest.mark.parametrize("arguments", [[], ["--listen", "1", "--connect", "2"]])
def test_one_of_the_ways_to_run_is_chosen(arguments: list[str]) -> None:
    done = CliRunner().invoke(chat, arguments)
    assert done.exit_code == 2
    assert "choose one of --demo, --listen PORT and --connect PORT" in done.output


def test_what_cannot_be_reached_or_spoken_is_an_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = CliRunner().invoke(chat, ["--connect", str(port)])
    assert (done.exit_code, f"port {port}: " in done.stderr) == (1, True)
    done = CliRunner().invoke(chat, ["--connect", str(port), "--frontends", "nope"])
    assert (done.exit_code, "there is no frontend 'nope'" in done.stderr) == (1, True)


class Terminal:
    """One terminal: what a person types, and what appears."""

    async def start(self, *arguments: str) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "silp", "chat", *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def type(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(line.encode() + b"\n")

    async def see(self, words: str) -> str:
        assert self._process.stdout
        while line := (await self._process.stdout.readline()).decode():
            if words in line:
                return line.strip()
        raise AssertionError(f"{words!r} never appeared")

    async def end(self) -> int:
        return await self._process.wait()


def test_two_terminals_talk() -> None:
    async def work() -> None:
        one, other = Terminal(), Terminal()
        await one.start("--listen", "0", "--prefer", "math", "--heartbeat", "1")
        port = (await one.see("waiting for")).rpartition(" ")[2].strip("'")
        await other.start("--connect", port)
        await other.see("agreed on math, v1")
        other.type("if !rain(t+1): start(hike)")
        assert (await one.see("reads math")).startswith("reads math: If not rain at t+1, start hike. (session ")
        one.type("start(")
        await one.see("expected an argument")
        one.type("/fail")
        one.type("email(bob)")
        await other.see("reads math: email bob.")
        other.type("book(room)")
        await one.see("fails on purpose")
        await other.see("steps down to json: told to fail")
        await one.see("renews the context of the session")
        await one.see("reads json: book room.")
        other.type("/ping")
        await other.see("agreed on math, v1")
        other.type("/quit")
        assert (await other.end(), await one.end()) == (0, 0)

    asyncio.run(asyncio.wait_for(work(), 60))


def test_a_terminal_survives_what_is_no_conversation() -> None:
    async def work() -> Any:
        one = Terminal()
        await one.start("--listen", "0")
        port = int((await one.see("waiting for")).rpartition(" ")[2].strip("'"))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b'GET / HTTP/1.1\n\xff\xfe\n{"silp_encoding":"code"}\n')
        answers = [(await reader.readline()).decode() for _ in range(3)]
        writer.close()
        return answers, await one.end()

    answers, code = asyncio.run(asyncio.wait_for(work(), 60))
    assert code == 0
    assert all(answer.startswith("//error code=invalid_syntax") for answer in answers)
