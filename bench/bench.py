"""Speed of the codec, as ratios to something measured in the same run.

Every comparison alternates between its two sides in many short rounds and takes the best round of each, so that a busy
machine disturbs both alike. Absolute times are printed for orientation only.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any

import toon_format

import silp

ROUNDS = 50


def best(sides: dict[str, tuple[Callable[[Any], object], Sequence[Any]]], rounds: int = ROUNDS) -> dict[str, float]:
    """Return for each side the seconds per item in its best round."""
    result = dict.fromkeys(sides, float("inf"))
    for _ in range(rounds):
        for name, (function, items) in sides.items():
            start = time.perf_counter()
            for _ in range(5):
                for item in items:
                    function(item)
            result[name] = min(result[name], (time.perf_counter() - start) / 5 / len(items))
    return result


def row(name: str, seconds: float, base: float, target: float | None = None) -> None:
    ratio = seconds / base
    verdict = "" if target is None else f"  target {target:.1f}  {'ok' if ratio <= target else 'MISSED'}"
    print(f"  {name:34}{seconds * 1e6:9.1f} us {ratio:7.2f}x{verdict}")


def examples() -> list[silp.SilpIR]:
    folder = resources.files("silp") / "data" / "examples"
    return [silp.SilpIR.from_json(path.read_text("utf-8")) for path in sorted(folder.iterdir(), key=lambda p: p.name)]


def codec() -> None:
    irs = examples()
    texts = [json.dumps(ir.model_dump(), ensure_ascii=False, separators=(",", ":")) for ir in irs]
    data = [ir.to_dict() for ir in irs]
    payloads = {name: [silp.compile(ir, name) for ir in irs] for name in ("code", "math", "json", "natural")}
    toon = [toon_format.encode(item) for item in data]

    print(f"decoding, against pydantic's model_validate_json of the same IR ({len(irs)} examples)")
    sides: dict[str, tuple[Callable[[Any], object], Sequence[Any]]] = {
        "model_validate_json": (silp.SilpIR.model_validate_json, texts),
        "decode code": (silp.decode, payloads["code"]),
        "decode math": (lambda text: silp.decode(text, "math"), payloads["math"]),
        "decode json": (lambda text: silp.decode(text, "json"), payloads["json"]),
        "SilpIR.from_json": (silp.SilpIR.from_json, texts),
        "json.loads, no model": (json.loads, texts),
        "toon decode, no model": (toon_format.decode, toon),
    }
    times = best(sides)
    targets = {"decode code": 1.8, "decode json": 1.8}
    for name, seconds in times.items():
        row(name, seconds, times["model_validate_json"], targets.get(name))

    print("compiling, against pydantic's model_dump_json of the same IR")
    sides = {
        "model_dump_json": (silp.SilpIR.model_dump_json, irs),
        "compile code": (silp.compile, irs),
        "compile math": (lambda ir: silp.compile(ir, "math"), irs),
        "compile json": (lambda ir: silp.compile(ir, "json"), irs),
        "compile natural": (lambda ir: silp.compile(ir, "natural"), irs),
        "json.dumps of plain data": (json.dumps, data),
        "toon encode of plain data": (toon_format.encode, data),
    }
    times = best(sides)
    targets = {"compile code": 1.3, "compile json": 1.3}
    for name, seconds in times.items():
        row(name, seconds, times["model_dump_json"], targets.get(name))


def growth() -> None:
    print("growth: seconds per character at 10 MB, against 1 KB")
    for name in ("code", "math", "json"):
        small, large = (
            silp.SilpIR.from_dict(
                {
                    "intent": "!START",
                    "entities": [{"id": "act", "value": "word and word"}] * count,
                    "constraints": [{"type": "rain", "value": "heavy", "time": "t+1"}] * count,
                    "meta": {"req_id": "0000"},
                }
            )
            for count in (20, 200_000)
        )
        few, many = silp.compile(small, name), silp.compile(large, name)
        for work, items in (
            (lambda ir: silp.compile(ir, name), (small, large)),
            (lambda text: silp.decode(text, name), (few, many)),
        ):
            function: Callable[[Any], object] = work
            times = [
                best({"": (function, [item])}, rounds)[""] for item, rounds in zip(items, (ROUNDS, 1), strict=True)
            ]
            per_character = [seconds / len(text) for seconds, text in zip(times, (few, many), strict=True)]
            verb = "compile" if items == (small, large) else "decode"
            row(f"{verb} {name} ({len(few)} to {len(many)})", per_character[1], per_character[0], 2.0)


def start_up() -> None:
    print("import, in a fresh interpreter, against import pydantic")

    def run(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    codes = {
        "import nothing": "pass",
        "import pydantic": "import pydantic",
        "import silp": "import silp",
        "import silp, first decode": "import silp; silp.decode('start(hike)')",
        "a first pydantic model": "import pydantic\nclass Model(pydantic.BaseModel):\n    name: str",
    }
    times = {name: min(run(code) for _ in range(10)) for name, code in codes.items()}
    nothing = times.pop("import nothing")
    for name, seconds in times.items():
        row(name, seconds - nothing, times["import pydantic"] - nothing, 1.5 if name == "import silp" else None)


if __name__ == "__main__":
    codec()
    start_up()
    growth()
