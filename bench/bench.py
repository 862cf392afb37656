"""Speed of the codec, as ratios to something measured in the same run.

A machine may change its speed from one moment to the next. So every round times the base right before each subject, and
the result is the median of the ratios of all rounds. Absolute times are those of the best round, for orientation only.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import resources
from typing import Any

import toon_format

import silp

Subject = tuple[Callable[[Any], object], Sequence[Any]]


def seconds(subject: Subject, repeat: int = 25) -> float:
    """Return the seconds per item of one round."""
    function, items = subject
    start = time.perf_counter()
    for _ in range(repeat):
        for item in items:
            function(item)
    return (time.perf_counter() - start) / repeat / len(items)


def compare(base: str, subjects: dict[str, Subject], targets: dict[str, float], rounds: int = 30) -> None:
    """Print the time of each subject, and its ratio to that of the base."""
    best = dict.fromkeys(subjects, float("inf"))
    ratios: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, subject in subjects.items():
            unit, own = seconds(subjects[base]), seconds(subject)
            best[name] = min(best[name], own)
            ratios[name].append(own / unit)
    for name in subjects:
        ratio, target = statistics.median(ratios[name]), targets.get(name)
        verdict = "" if target is None else f"  target {target:.1f}  {'ok' if ratio <= target else 'MISSED'}"
        print(f"  {name:34}{best[name] * 1e6:9.1f} us {ratio:7.2f}x{verdict}")


def examples() -> list[silp.SilpIR]:
    folder = resources.files("silp") / "data" / "examples"
    return [silp.SilpIR.from_json(path.read_text("utf-8")) for path in sorted(folder.iterdir(), key=lambda p: p.name)]


def codec() -> None:
    irs = examples()
    texts = [json.dumps(ir.model_dump(), ensure_ascii=False, separators=(",", ":")) for ir in irs]
    data = [ir.to_dict() for ir in irs]
    payloads = {name: [silp.compile(ir, name) for ir in irs] for name in ("code", "math", "json")}
    toon = [toon_format.encode(item) for item in data]

    print(f"decoding, against pydantic's model_validate_json of the same IR ({len(irs)} examples)")
    subjects: dict[str, Subject] = {
        "model_validate_json": (silp.SilpIR.model_validate_json, texts),
        "decode code": (silp.decode, payloads["code"]),
        "decode math": (partial(silp.decode, frontend="math"), payloads["math"]),
        "decode json": (partial(silp.decode, frontend="json"), payloads["json"]),
        "SilpIR.from_json": (silp.SilpIR.from_json, texts),
        "json.loads, no model": (json.loads, texts),
        "toon decode, no model": (toon_format.decode, toon),
    }
    compare("model_validate_json", subjects, {"decode code": 1.8, "decode json": 1.8})

    print("compiling, against pydantic's model_dump_json of the same IR")
    subjects = {
        "model_dump_json": (silp.SilpIR.model_dump_json, irs),
        "compile code": (silp.compile, irs),
        "compile math": (partial(silp.compile, frontend="math"), irs),
        "compile json": (partial(silp.compile, frontend="json"), irs),
        "compile natural": (partial(silp.compile, frontend="natural"), irs),
        "json.dumps of plain data": (json.dumps, data),
        "toon encode of plain data": (toon_format.encode, data),
    }
    compare("model_dump_json", subjects, {"compile code": 1.3, "compile json": 1.3})


def growth() -> None:
    """Print how the time per character grows with the size of a payload; pydantic's beside it, for the same IRs."""
    sizes = (20, 2_000, 200_000)
    irs = [
        silp.SilpIR.from_dict(
            {
                "intent": "!START",
                "entities": [{"id": "act", "value": "word and word"}] * size,
                "constraints": [{"type": "rain", "value": "heavy", "time": "t+1"}] * size,
                "meta": {"req_id": "0000"},
            }
        )
        for size in sizes
    ]
    payloads = {name: [silp.compile(ir, name) for ir in irs] for name in ("code", "math", "json")}
    texts = [ir.model_dump_json() for ir in irs]
    works: dict[str, tuple[Callable[[Any], object], Sequence[Any], Sequence[str]]] = {
        "model_dump_json": (silp.SilpIR.model_dump_json, irs, texts),
        "model_validate_json": (silp.SilpIR.model_validate_json, texts, texts),
    }
    for name, texts in payloads.items():
        works[f"compile {name}"] = (partial(silp.compile, frontend=name), irs, texts)
        works[f"decode {name}"] = (partial(silp.decode, frontend=name), texts, texts)
    print("growth: time per character, against that at 1 KB")
    for name, (function, items, measured) in works.items():
        times = [
            min(seconds((function, [item]), 1) for _ in range(rounds))
            for item, rounds in zip(items, (200, 20, 2), strict=True)
        ]
        small, *larger = (total / len(text) for total, text in zip(times, measured, strict=True))
        ratios = "  ".join(
            f"{len(text) / 1e6:5.2f} MB {each / small:5.2f}x" for each, text in zip(larger, measured[1:], strict=True)
        )
        print(f"  {name:34}{ratios}")


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
    for name, total in times.items():
        ratio = (total - nothing) / (times["import pydantic"] - nothing)
        verdict = f"  target 1.5  {'ok' if ratio <= 1.5 else 'MISSED'}" if name == "import silp" else ""
        print(f"  {name:34}{(total - nothing) * 1e3:9.1f} ms {ratio:7.2f}x{verdict}")


if __name__ == "__main__":
    codec()
    start_up()
    growth()
