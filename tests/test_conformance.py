"""The vectors of conformance/ hold for this implementation, and are fit for others."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import silp
from silp.errors import SilpError
from silp.lock import Lock, ir_digest
from silp.strict_json import parse_json
from silp.text import is_visible

Vector = dict[str, Any]

FOLDER = Path(__file__).parents[1] / "conformance"
NOTATIONS = ("code", "math", "json")
FIELDS = {
    "roundtrip": {"name", "ir", *NOTATIONS},
    "decode": {"name", "frontend", "payload", "ir", "canonical"},
    "invalid": {"name", "kind", "input", "code", "offset"},
    "normalize": {"name", "ir", "normal"},
    "equivalence": {"name", "a", "b", "equivalent"},
    "req_id": {"payload", "req_id", "req_id_scope_limited"},
    "validate": {"name", "ir", "policy", "errors", "warnings"},
    "lock_digest": {"name", "ir", "canonical", "digest"},
    "lock_verify": {"name", "text", "errors", "warnings"},
}
OPTIONAL = {
    "lock_verify": {"head"},
    "roundtrip": {"natural", *(f"{notation}_omit" for notation in NOTATIONS)},
    "invalid": {"frontend"},
}


def lines(kind: str) -> list[str]:
    return (FOLDER / f"{kind}.jsonl").read_text("utf-8").removesuffix("\n").split("\n")


VECTORS: dict[str, list[Vector]] = {kind: [json.loads(line) for line in lines(kind)] for kind in FIELDS}


def vectors(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", VECTORS[kind], ids=lambda vector: ascii(vector.get("name", vector)))


def exact(value: Any) -> str:
    """Return a text that is the same for JSON values of equal types and values, whatever the order of members."""
    return json.dumps(value, sort_keys=True)


def test_every_file_is_known_and_there_are_vectors_of_every_kind() -> None:
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(FIELDS)
    assert sum(map(len, VECTORS.values())) >= 300
    invalid = Counter(vector["kind"] for vector in VECTORS["invalid"])
    assert invalid.keys() == {"payload", "ir-json"}
    assert invalid["payload"] >= 80
    assert invalid["ir-json"] >= 40
    for kind in ("decode", "invalid"):
        assert {*NOTATIONS} <= {vector.get("frontend") for vector in VECTORS[kind]}
    page = (FOLDER / "README.md").read_text("utf-8")
    for kind, fields in FIELDS.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{kind}.jsonl` |"))
        for field in (fields | OPTIONAL.get(kind, set())) - {"name"}:
            assert f"`{field}`" in row


@pytest.mark.parametrize("kind", FIELDS)
def test_lines_are_strict_json_that_can_be_read_by_eye(kind: str) -> None:
    for number, (line, vector) in enumerate(zip(lines(kind), VECTORS[kind], strict=True), 1):
        where = f"{kind}.jsonl:{number}"
        assert is_visible(line), where
        assert exact(parse_json(line)) == exact(vector), where
        assert vector.keys() >= FIELDS[kind], where
        assert vector.keys() <= FIELDS[kind] | OPTIONAL.get(kind, set()), where
        if kind == "invalid":
            assert ("frontend" in vector) == (vector["kind"] == "payload"), where
    names = Counter(vector.get("name", vector.get("payload")) for vector in VECTORS[kind])
    assert [name for name, count in names.items() if count > 1] == []


@vectors("roundtrip")
def test_an_ir_goes_through_every_notation_and_back(vector: Vector) -> None:
    ir = silp.SilpIR.from_json(json.dumps(vector["ir"]))
    for frontend in NOTATIONS:
        payload = vector[frontend]
        assert silp.compile(vector["ir"], frontend) == payload
        assert silp.compile(ir, frontend) == payload
        decoded = silp.decode(payload, frontend)
        assert silp.equivalent(decoded, vector["ir"])
        assert decoded.meta.req_id == hashlib.sha256(payload.encode()).hexdigest()[:8]
        assert silp.compile(decoded, frontend) == payload


@vectors("roundtrip")
def test_an_ir_goes_without_meta_too(vector: Vector) -> None:
    for frontend in NOTATIONS:
        payload = vector.get(f"{frontend}_omit", vector[frontend])
        assert silp.compile(vector["ir"], frontend, meta="omit") == payload
        decoded = silp.decode(payload, frontend)
        assert silp.compile(decoded, frontend) == payload
        found, expected = silp.normalize(decoded), silp.normalize(vector["ir"])
        meta, whole = found.pop("meta"), expected.pop("meta")
        assert exact(found) == exact(expected)
        assert exact(meta) == exact({"priority": 0, "confidence": 1.0, "seq": meta["seq"], "out": "natural"})
        assert meta["seq"] in ([], whole["seq"])


@pytest.mark.parametrize(
    "vector", [vector for vector in VECTORS["roundtrip"] if "natural" in vector], ids=lambda vector: vector["name"]
)
def test_prose_is_the_same_in_both_frontends(vector: Vector) -> None:
    assert silp.compile(vector["ir"], "natural") == vector["natural"]
    assert json.loads(silp.compile(vector["ir"], "nl_json")) == {"task_description": vector["natural"]}


@vectors("decode")
def test_another_spelling_is_decoded_and_compiled_as_the_canonical_one(vector: Vector) -> None:
    frontend, payload, canonical = vector["frontend"], vector["payload"], vector["canonical"]
    assert payload != canonical
    decoded = silp.decode(payload, frontend)
    assert exact(silp.normalize(decoded)) == exact(vector["ir"])
    assert decoded.meta.req_id == hashlib.sha256(payload.encode()).hexdigest()[:8]
    assert silp.compile(decoded, frontend) == canonical
    assert silp.equivalent(silp.decode(canonical, frontend), decoded)


def read(vector: Vector) -> None:
    if vector["kind"] == "payload":
        silp.decode(vector["input"], vector["frontend"])
    else:
        silp.compile(silp.SilpIR.from_json(vector["input"]))


@vectors("invalid")
def test_an_invalid_text_is_refused_with_its_code_and_offset(vector: Vector) -> None:
    with pytest.raises(SilpError) as refused:
        read(vector)
    assert (str(refused.value.code), refused.value.offset) == (vector["code"], vector["offset"])


@vectors("normalize")
def test_an_ir_has_its_normal_form(vector: Vector) -> None:
    assert exact(silp.normalize(vector["ir"])) == exact(vector["normal"])


@vectors("equivalence")
def test_irs_are_equivalent_or_not(vector: Vector) -> None:
    assert silp.equivalent(vector["a"], vector["b"]) is vector["equivalent"]
    assert silp.equivalent(vector["b"], vector["a"]) is vector["equivalent"]


@vectors("req_id")
def test_a_payload_has_its_request_ids(vector: Vector) -> None:
    assert silp.req_id(vector["payload"]) == vector["req_id"]
    assert silp.req_id(vector["payload"], scope_limited=True) == vector["req_id_scope_limited"]


@vectors("lock_digest")
def test_an_ir_has_its_digest(vector: Vector) -> None:
    assert vector["digest"] == "sha256:" + hashlib.sha256(vector["canonical"].encode()).hexdigest()
    assert ir_digest(vector["ir"]) == vector["digest"]


@vectors("lock_verify")
def test_a_record_is_verified(vector: Vector, tmp_path: Path) -> None:
    record = tmp_path / "compile.lock"
    record.write_bytes(vector["text"].encode())
    assert_findings(Lock(record).verify(head=vector.get("head")), vector)


@vectors("validate")
def test_validation_finds_what_is_wrong(vector: Vector) -> None:
    assert_findings(silp.validate(vector["ir"], policy=vector["policy"]), vector)


def assert_findings(report: silp.Report, vector: Vector) -> None:
    for findings, expected in ((report.errors, vector["errors"]), (report.warnings, vector["warnings"])):
        found = [{"code": finding.code, "path": finding.path} for finding in findings]
        assert sorted(map(exact, found)) == sorted(map(exact, expected))
