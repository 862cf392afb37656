"""Coverage-guided fuzzing with Atheris: one target per process, a bounded time, and nothing but SilpError may escape.

    python fuzz/fuzz.py TARGET [SECONDS]

The corpus starts with the conformance vectors and the lexemes of the grammar are the dictionary. A finding is left in
`fuzz/findings/` by libFuzzer; it becomes a vector in `conformance/`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["silp"]):
    import silp
    from silp.hidden import sanitize
    from silp.receiving import Policy, inspect
    from silp.strict_json import parse_json, write_json

ROOT = Path(__file__).parents[1]
OPEN = Policy(verbs=None)


def decodes(frontend: str) -> Callable[[str], None]:
    def target(text: str) -> None:
        decoded = silp.decode(text, frontend)
        payload = silp.compile(decoded, frontend)
        assert silp.equivalent(silp.decode(payload, frontend), decoded)
        assert silp.SilpIR.from_dict(decoded.to_dict()) == decoded

    return target


def receives(text: str) -> None:
    inspect(text)
    received = silp.receive(text, policy=OPEN)
    payload = silp.compile(received.ir, received.frontend)
    assert silp.equivalent(silp.decode(payload, received.frontend), received.ir)


def sanitizes(text: str) -> None:
    for strict in (False, True):
        clean, _ = sanitize(text, strict=strict)
        assert sanitize(clean, strict=strict) == (clean, ())


def reads_json(text: str) -> None:
    value = parse_json(text)
    assert parse_json(write_json(value)) == value


TARGETS: dict[str, Callable[[str], None]] = {
    "code": decodes("code"),
    "math": decodes("math"),
    "json": decodes("json"),
    "receive": receives,
    "sanitize": sanitizes,
    "strict_json": reads_json,
}


def seeds(folder: Path) -> None:
    texts: set[str] = set()
    for path in (ROOT / "conformance").glob("*.jsonl"):
        for line in path.read_text("utf-8").split("\n"):
            vector = json.loads(line) if line else {}
            texts |= {vector[key] for key in ("code", "math", "json", "payload", "input") if key in vector}
    for index, text in enumerate(sorted(texts)):
        if len(text) < 2_000:
            (folder / f"seed-{index}").write_bytes(text.encode("utf-8", "surrogatepass"))


def main() -> None:
    name, limit = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "60"
    target = TARGETS[name]

    def run(data: bytes) -> None:
        try:
            target(data.decode("utf-8", "surrogateescape"))
        except silp.SilpError:
            return

    findings = ROOT / "fuzz" / "findings"
    findings.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as corpus:
        seeds(Path(corpus))
        words = [
            "if ",
            " else: ",
            " and ",
            "not ",
            " then ",
            " with ",
            " -> ",
            ":=",
            " ⇒ ",
            " ∧ ",
            "¬",
            " ⊕ ",
            " ≫ ",
            "loc=",
        ]
        dictionary = Path(corpus) / "lexemes.dict"
        dictionary.write_text(
            "\n".join('"' + "".join(f"\\x{byte:02x}" for byte in word.encode()) + '"' for word in words), "utf-8"
        )
        arguments = [sys.argv[0], corpus, f"-max_total_time={limit}", f"-dict={dictionary}", "-max_len=512"]
        atheris.Setup([*arguments, f"-artifact_prefix={findings}/{name}-", "-print_final_stats=1"], run)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
