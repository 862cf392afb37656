"""compile.lock: what is frozen stays, and whoever touches the record is found out."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

import silp
from silp.errors import ErrorCode, SilpError
from silp.lock import Lock, create_keys, ir_digest, sign
from silp.lock.entries import GENESIS, Entry, read_entry, seal, write_entry
from silp.testing import irs

WHEN = datetime(2026, 12, 1, 9, 30, 15, 123456, tzinfo=UTC)


def hike(number: int = 0) -> silp.SilpIR:
    return silp.decode(f"start(hike_{number})")


@pytest.fixture
def lock(tmp_path: Path) -> Lock:
    return Lock(tmp_path / ".silp" / "compile.lock", clock=lambda: WHEN)


@pytest.fixture
def filled(lock: Lock) -> Lock:
    for number in range(8):
        lock.compile(hike(number))
    return lock


def lines(lock: Lock) -> list[bytes]:
    return lock.path.read_bytes().splitlines(keepends=True)


def codes(lock: Lock, **options: Any) -> list[tuple[str, str]]:
    report = Lock(lock.path).verify(**options)
    assert report.ok == (not report.errors)
    return [(finding.code, finding.path) for finding in report.errors]


def resealed(entries: list[Entry], start: int = 0) -> bytes:
    """Return lines in which every digest fits, as a forger would make them who knows the format."""
    previous, data = GENESIS if not start else entries[start - 1].digest, b""
    for number, entry in enumerate(entries[start:], start + 1):
        members = entry._asdict() | {"previous": previous, "sequence": number}
        del members["digest"], members["payload_digest"]
        new = seal(**members)
        previous, data = new.digest, data + write_entry(new)
    return data


def test_an_entry_has_these_members_and_one_spelling(lock: Lock) -> None:
    payload = lock.compile(hike(), "json")
    line = lock.path.read_bytes()
    data = json.loads(line)
    assert line == rfc8785.dumps(data) + b"\n"
    own = data.pop("digest")
    assert own == "sha256:" + hashlib.sha256(rfc8785.dumps(data)).hexdigest()
    assert data.pop("payload_digest").removeprefix("sha256:")[:8] == silp.req_id(payload)
    assert data == {
        "codec": f"silp-codec/{silp.__version__}",
        "frontend": "json",
        "ir_digest": ir_digest(hike()),
        "payload": '{"intent":"!START","act":"hike_0"}',
        "previous": GENESIS,
        "sequence": 1,
        "time": "2026-12-01T09:30:15.123Z",
    }


def test_the_first_payload_of_an_ir_is_frozen(lock: Lock) -> None:
    first = {"intent": "!START", "meta": {"req_id": "0000", "x": 1, "y": 2}}
    again = {"meta": {"req_id": "1111", "y": 2, "x": 1, "priority": 0, "out": None}, "intent": "!START", "entities": []}
    assert lock.compile(first) == "start() # x:=1, y:=2"
    assert lock.compile(again) == "start() # x:=1, y:=2"
    assert silp.compile(again) == "start() # y:=2, x:=1"
    assert Lock(lock.path).compile(silp.decode(lock.compile(first))) == lock.compile(first)
    assert lock.compile(first, "math") == "start() # x:=1, y:=2"
    assert [entry.frontend for entry in lock.entries()] == ["code", "math"]


def test_what_is_not_equivalent_is_frozen_apart(lock: Lock) -> None:
    values: list[Any] = [1, 1.0, True, "1", None, [1], {"a": 1}, 2**53, 2**53 + 1, float(2**53), -(2**53), 10**400]
    values += [{"$integer": "9007199254740992"}, {"$float": 1.0}, {"$float": 1}, {"$object": {"$float": 1}}, 1e300]
    digests = [ir_digest({"intent": "!START", "meta": {"req_id": "0000", "x": value}}) for value in values]
    digests += [ir_digest(silp.decode(f'start("{unicodedata.normalize(form, "é")}")')) for form in ("NFC", "NFD")]
    assert len(set(digests)) == len(digests)


@settings(max_examples=150)
@given(irs(), irs())
def test_digests_are_equal_exactly_for_equivalent_irs(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (ir_digest(one) == ir_digest(other)) == silp.equivalent(one, other)
    for frontend in ("code", "math", "json"):
        assert ir_digest(silp.decode(silp.compile(one, frontend), frontend)) == ir_digest(one)


@settings(max_examples=150)
@given(irs(), st.text('\x00\x1f\b\t\n\f\r"\\/é\u2028\u2029\x85😀<>'))
def test_a_written_entry_is_read_back(ir: dict[str, Any], codec: str) -> None:
    payload = silp.compile(ir)
    entry = seal(
        codec=codec, frontend="code", ir_digest=ir_digest(ir), payload=payload, previous=GENESIS, sequence=2,
        time="2026-12-01T09:30:15.123Z",
    )  # fmt: skip
    assert read_entry(write_entry(entry)) == (entry, "")


def test_prose_is_not_locked_since_nobody_could_check_it(lock: Lock) -> None:
    with pytest.raises(SilpError, match="does not decode") as refused:
        lock.compile(hike(), "natural")
    assert refused.value.code is ErrorCode.UNSUPPORTED_FRONTEND
    assert not lock.path.exists()


def test_an_unsound_frontend_freezes_nothing(lock: Lock, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(silp.Frontend):
        name = "forgetful"

        def compile(self, ir: silp.SilpIR, **options: Any) -> str:
            return "start()"

        def decode(self, text: str, **options: Any) -> silp.SilpIR:
            return silp.decode(text)

    monkeypatch.setattr("silp.frontends._registry", {**silp.list_frontends()})
    silp.register_frontend(Forgetful())
    with pytest.raises(SilpError, match="decodes to another IR"):
        lock.compile(hike(), "forgetful")
    assert lock.compile(silp.decode("start()"), "forgetful") == "start()"


def test_an_intact_record_verifies_up_to_every_earlier_head(lock: Lock) -> None:
    heads = [GENESIS]
    for number in range(4):
        lock.compile(hike(number))
        heads.append(lock.head().digest)
    for head in heads:
        report = lock.verify(head=head)
        assert (report.ok, report.warnings, report.entries, report.head) == (True, (), 4, heads[-1])


def change(data: list[bytes], index: int, old: bytes, new: bytes) -> None:
    assert old in data[index]
    data[index] = data[index].replace(old, new)


TAMPERED: dict[str, tuple[Callable[[list[bytes]], object], list[tuple[str, str]]]] = {
    "a payload changed": (lambda d: change(d, 3, b"hike_3", b"hike_9"), [("changed", "$[3]")]),
    "a time changed": (lambda d: change(d, 0, b"09:30:15.123", b"09:30:15.124"), [("changed", "$[0]")]),
    "a digest changed": (lambda d: change(d, 3, b'"digest":"sha256:', b'"digest":"sha256:0000'), [("changed", "$[3]")]),
    "a space added": (lambda d: change(d, 3, b'"codec":', b'"codec": '), [("changed", "$[3]")]),
    "an escape respelled": (lambda d: change(d, 3, b"hike_3", b"hike\\u005f3"), [("changed", "$[3]")]),
    "bytes that are not UTF-8": (lambda d: change(d, 3, b"hike_3", b"hike\xff3"), [("changed", "$[3]")]),
    "line endings": (lambda d: change(d, 2, b"\n", b"\r\n"), [("changed", "$[2]")]),
    "a blank line": (lambda d: d.insert(2, b"\n"), [("changed", "$[2]"), ("inserted", "$[3]")]),
    "one removed": (lambda d: d.pop(3), [("removed", "$[3]")]),
    "the first removed": (lambda d: d.pop(0), [("removed", "$[0]")]),
    "several removed": (lambda d: d.__delitem__(slice(2, 6)), [("removed", "$[2]")]),
    "two removed apart": (lambda d: (d.pop(5), d.pop(2)), [("removed", "$[2]"), ("removed", "$[4]")]),
    "one repeated": (lambda d: d.insert(4, d[3]), [("duplicate", "$[4]")]),
    "an early one repeated at the end": (lambda d: d.append(d[0]), [("duplicate", "$[8]")]),
    "two swapped": (lambda d: d.insert(3, d.pop(4)), [("reordered", "$[3]")]),
    "one moved up": (lambda d: d.insert(1, d.pop(6)), [("reordered", "$[1]")]),
    "one moved down": (lambda d: d.insert(6, d.pop(1)), [("reordered", "$[1]")]),
    "all removed but the last": (lambda d: d.__delitem__(slice(0, 7)), [("removed", "$[0]")]),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_verify_says_what_was_done_and_where(filled: Lock, name: str) -> None:
    tamper, expected = TAMPERED[name]
    data = lines(filled)
    tamper(data)
    filled.path.write_bytes(b"".join(data))
    assert codes(filled) == expected
    fresh = Lock(filled.path)
    for use in (lambda: fresh.compile(hike(99)), fresh.head, fresh.check, lambda: list(fresh.entries())):
        with pytest.raises(SilpError, match="silp lock verify") as refused:
            use()
        assert refused.value.code is ErrorCode.DECODE_FAILED


def entries_of(lock: Lock) -> list[Entry]:
    return [read_entry(line)[0] for line in lines(lock)]


def test_an_entry_changed_and_hashed_again_is_found_by_the_next(filled: Lock) -> None:
    entries = entries_of(filled)
    other = entries[3]._replace(payload="start(evil)", ir_digest=ir_digest(silp.decode("start(evil)")))
    data = lines(filled)
    data[3] = resealed([*entries[:3], other], start=3)
    filled.path.write_bytes(b"".join(data))
    assert codes(filled) == [("changed", "$[4]")]
    assert "entry 4 was changed and hashed again" in Lock(filled.path).verify().errors[0].message


@pytest.mark.parametrize("index", [0, 3, 7])
def test_a_forged_payload_is_found_even_if_all_digests_fit(filled: Lock, index: int) -> None:
    entries = entries_of(filled)
    entries[index] = entries[index]._replace(payload="start(evil)")
    filled.path.write_bytes(resealed(entries))
    assert codes(filled, payloads=False) == []
    assert codes(filled) == [("forged", f"$[{index}]")]
    assert [finding.code for finding in Lock(filled.path).check().errors] == ["forged"]
    for use in (filled.compile, filled.find, filled.require):
        with pytest.raises(SilpError, match="is forged: its payload decodes to another IR"):
            use(hike(index))
    entries[index] = entries[index]._replace(payload="start(")
    filled.path.write_bytes(resealed(entries))
    assert codes(filled) == [("forged", f"$[{index}]")]


def test_an_inserted_entry_is_told_from_the_one_whose_place_it_takes(filled: Lock) -> None:
    entries, data = entries_of(filled), lines(filled)
    evil = entries[4]._replace(payload="start(evil)", ir_digest=ir_digest(silp.decode("start(evil)")))
    intruder = resealed([*entries[:4], evil], start=4)
    filled.path.write_bytes(b"".join([*data[:4], intruder, *data[4:]]))
    assert codes(filled) == [("inserted", "$[4]")]
    filled.path.write_bytes(b"".join([*data[:5], intruder, *data[5:]]))
    assert codes(filled) == [("inserted", "$[5]")]
    unlinked = write_entry(read_entry(intruder)[0]._replace(previous=GENESIS))
    filled.path.write_bytes(b"".join([*data[:4], unlinked, *data[4:]]))
    assert codes(filled)[0] == ("changed", "$[4]")


def test_a_cut_off_end_and_a_rewritten_history_are_found_by_an_anchored_head(filled: Lock) -> None:
    head, entries = filled.head().digest, entries_of(filled)
    filled.path.write_bytes(b"".join(lines(filled)[:-1]))
    assert codes(filled) == []
    assert codes(filled, head=head) == [("truncated", "$")]
    renamed = [entry._replace(codec="other/1") for entry in entries]
    filled.path.write_bytes(resealed(renamed))
    assert codes(filled) == []
    assert codes(filled, head=head) == [("truncated", "$")]


@pytest.mark.parametrize("head", ["", "abc", "sha256:", "SHA256:" + "0" * 64, "sha256:" + "0" * 64 + "\n"])
def test_a_head_that_is_no_digest_is_refused(filled: Lock, head: str) -> None:
    with pytest.raises(SilpError, match="is no digest") as refused:
        filled.verify(head=head)
    assert refused.value.code is ErrorCode.INVALID_SYNTAX


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_whatever_is_done_to_the_lines_is_found(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    lock = Lock(tmp_path_factory.mktemp("lock") / "compile.lock", clock=lambda: WHEN)
    for number in range(5):
        lock.compile(hike(number))
    original, head = lines(lock), lock.head().digest
    order = data.draw(st.lists(st.integers(0, 4), max_size=8))
    lock.path.write_bytes(b"".join(original[index] for index in order))
    assert (codes(lock, head=head) == []) == (order == [0, 1, 2, 3, 4])
    assert (codes(lock) == []) == (order == list(range(len(order))))
    content = b"".join(original)
    place = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[place]))
    lock.path.write_bytes(content[:place] + bytes([byte]) + content[place + 1 :])
    assert codes(lock, head=head)


def test_a_codec_that_compiles_differently_today_is_reported(filled: Lock, monkeypatch: pytest.MonkeyPatch) -> None:
    assert filled.check().ok
    assert filled.require(hike(2)).sequence == 3
    code = silp.get_frontend("code")

    class Newer(silp.Frontend):
        name = "code"

        def compile(self, ir: silp.SilpIR, **options: Any) -> str:
            return code.compile(ir, **options).replace("hike_2", '"hike_2"')

        def decode(self, text: str, **options: Any) -> silp.SilpIR:
            return code.decode(text, **options)

    monkeypatch.setattr("silp.frontends._registry", {**silp.list_frontends(), "code": Newer()})
    report = filled.check()
    assert [(finding.code, finding.path) for finding in report.errors] == [("drift", "$[2]")]
    assert 'start(hike_2), and compiles to start("hike_2") today' in report.errors[0].message
    assert filled.compile(hike(2)) == "start(hike_2)"
    with pytest.raises(SilpError, match="today"):
        filled.require(hike(2))


def test_check_finds_what_was_frozen_twice(filled: Lock) -> None:
    entries = entries_of(filled)
    filled.path.write_bytes(resealed([*entries, entries[2]]))
    assert [(finding.code, finding.path) for finding in filled.check().errors] == [("frozen_twice", "$[8]")]
    entry = filled.find(hike(2))
    assert entry is not None
    assert entry.sequence == 3


def test_an_entry_of_a_frontend_that_is_not_installed_is_a_warning(filled: Lock) -> None:
    entries = entries_of(filled)
    filled.path.write_bytes(resealed([entries[0]._replace(frontend="plugged")]))
    for report in (filled.verify(), filled.check()):
        assert report.ok
        assert [finding.code for finding in report.warnings] == ["unknown_frontend"]


def test_require_compares_with_the_frozen_payload(filled: Lock) -> None:
    assert filled.require(hike(1), payload="start(hike_1)").sequence == 2
    with pytest.raises(SilpError, match="not the frozen one") as refused:
        filled.require(hike(1), payload='start("hike_1")')
    assert (refused.value.expected, refused.value.found) == ("start(hike_1)", 'start("hike_1")')
    with pytest.raises(SilpError, match="silp lock add"):
        filled.require(hike(99))
    with pytest.raises(SilpError, match="silp lock add"):
        filled.require(hike(1), "math")


def test_a_torn_last_line_is_reported_and_mended_without_loss(filled: Lock) -> None:
    content, whole = filled.path.read_bytes(), lines(filled)
    start = len(content) - len(whole[-1])
    for cut in [*range(start + 1, len(content)), len(content) - 1]:
        filled.path.write_bytes(content[:cut])
        report = Lock(filled.path).verify()
        assert report.ok
        assert (report.entries, [finding.code for finding in report.warnings]) == (7, ["torn"])
        fresh = Lock(filled.path, clock=lambda: WHEN)
        assert fresh.compile(hike(100)) == "start(hike_100)"
        kept = 8 if cut == len(content) - 1 else 7
        assert lines(filled)[:kept] == whole[:kept]
        assert fresh.verify().entries == kept + 1
        assert fresh.verify().warnings == ()
        assert [finding.code for finding in fresh.repairs] == ["torn"]
        assert ("completed" if kept == 8 else "cut off") in fresh.repairs[0].message


def test_zeros_that_a_power_cut_left_at_the_end_are_cut_off(filled: Lock) -> None:
    content = filled.path.read_bytes()
    filled.path.write_bytes(content + b"\0" * 4096)
    filled.compile(hike(8))
    assert filled.path.read_bytes().startswith(content)
    assert (filled.verify().entries, filled.verify().ok) == (9, True)


@pytest.mark.parametrize("content", [b"notes of mine", b"\x89PNG", b"{}", b'{"code":1}', b"x" * 5000])
def test_a_file_that_is_no_record_is_left_as_it_is(lock: Lock, content: bytes) -> None:
    lock.path.parent.mkdir()
    lock.path.write_bytes(content)
    with pytest.raises(SilpError, match="is no record") as refused:
        lock.compile(hike())
    assert refused.value.code is ErrorCode.DECODE_FAILED
    assert lock.path.read_bytes() == content
    assert codes(lock) == [("changed", "$[0]")]


def test_threads_share_a_record(lock: Lock) -> None:
    def work(start: int) -> None:
        own = lock if start % 2 else Lock(lock.path)
        for number in range(25):
            own.compile(hike((start * 7 + number) % 40))

    threads = [threading.Thread(target=work, args=(start,)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lock.check().ok
    assert lock.verify().entries == len({(start * 7 + number) % 40 for start in range(8) for number in range(25)})


def append_until_killed(path: Path, worker: int, pipe: int) -> None:
    lock, number = Lock(path), 0
    while True:
        payload = lock.compile(silp.decode(f"start(hike_{worker}_{os.getpid()}_{number})"))
        os.write(pipe, payload.encode() + b"\n")
        number += 1


ROUNDS = int(os.environ.get("SILP_LOCK_ROUNDS", "4"))
APPENDS = int(os.environ.get("SILP_LOCK_APPENDS", "400"))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_no_acknowledged_entry_is_lost_when_writers_are_killed(tmp_path: Path) -> None:
    path, acknowledged = tmp_path / "compile.lock", set[str]()
    for _ in range(ROUNDS):
        read, write = os.pipe()
        workers: list[int] = []
        for worker in range(8):
            if (child := os.fork()) == 0:
                append_until_killed(path, worker, write)
            workers.append(child)
        os.close(write)
        with os.fdopen(read, "rb") as stream:
            enough = random.randint(1, 2 * APPENDS // ROUNDS)
            told = [stream.readline().decode().strip() for _ in range(enough)]
            for child in random.sample(workers, len(workers)):
                os.kill(child, 9)
                os.waitpid(child, 0)
            told += stream.read().decode().split("\n")[:-1]
        acknowledged.update(told)
        report = Lock(path).verify(payloads=False)
        assert report.ok
        assert acknowledged <= {entry.payload for entry in Lock(path).entries()}
    lock = Lock(path)
    assert len(acknowledged) >= ROUNDS
    lock.compile(hike())
    assert lock.check().ok
    assert lock.verify().warnings == ()


def test_a_full_disk_is_an_error_and_leaves_the_record_as_it_was(tmp_path: Path) -> None:
    code = f"""
import resource, signal, silp
from silp.lock import Lock
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
lock = Lock({str(tmp_path / "compile.lock")!r})
lock.compile(silp.decode("start(first)"))
before = lock.path.read_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, resource.RLIM_INFINITY))
try:
    lock.compile(silp.decode("start(second)"))
except silp.SilpError as error:
    print(error.code, lock.path.read_bytes() == before, "cannot append to" in error.message)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
lock.compile(silp.decode("start(second)"))
print(lock.verify().entries, lock.verify().warnings, lock.repairs)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("decode_failed True True\n2 () []\n", "")


def test_a_disk_that_fails_to_sync_acknowledges_nothing(filled: Lock, monkeypatch: pytest.MonkeyPatch) -> None:
    before = filled.path.read_bytes()

    def fail(handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(SilpError, match="Input/output error"):
        filled.compile(hike(99))
    monkeypatch.undo()
    assert filled.path.read_bytes() == before
    assert filled.compile(hike(99)) == "start(hike_99)"


@pytest.mark.parametrize("path", ["/proc/silp/compile.lock", "/dev/null/compile.lock"])
def test_a_place_that_cannot_be_written_is_an_error(path: str) -> None:
    with pytest.raises(SilpError, match=f"cannot append to {path}") as refused:
        Lock(path).compile(hike())
    assert refused.value.code is ErrorCode.DECODE_FAILED


def test_what_is_frozen_is_found_without_writing(filled: Lock, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(f"{filled.path}.lock").unlink(missing_ok=True)
    monkeypatch.setattr("silp.lock.record.Lock._exclusively", None)
    assert Lock(filled.path).compile(hike(3)) == "start(hike_3)"


def test_a_record_that_is_missing_or_a_folder_is_an_error(tmp_path: Path) -> None:
    assert Lock(tmp_path / "none").find(hike()) is None
    for path, reason in ((tmp_path / "none", "no such file"), (tmp_path, "directory")):
        for use in (Lock(path).verify, Lock(path).check, Lock(path).head):
            with pytest.raises(SilpError, match=reason) as refused:
                use()
            assert refused.value.code is ErrorCode.DECODE_FAILED


def test_waiting_for_others_ends_with_a_timeout(filled: Lock) -> None:
    other = Lock(filled.path, timeout=0.05)
    with filled._exclusively(), pytest.raises(SilpError, match=r"0\.05 seconds") as refused:
        other.compile(hike(99))
    assert refused.value.code is ErrorCode.TIMEOUT
    assert other.compile(hike(99)) == "start(hike_99)"


def test_a_record_replaced_by_another_is_read_anew(filled: Lock, tmp_path: Path) -> None:
    other = Lock(tmp_path / "other.lock")
    for number in range(20, 40):
        other.compile(hike(number))
    other.path.replace(filled.path)
    assert filled.find(hike(1)) is None
    assert filled.compile(hike(1)) == "start(hike_1)"
    assert filled.verify().entries == 21
    content = filled.path.read_bytes()
    filled.path.write_bytes(b"".join(lines(filled)[:3]))
    assert filled.head().sequence == 3
    filled.path.write_bytes(content)
    assert filled.head().sequence == 21
    filled.path.unlink()
    assert filled.compile(hike(1)) == "start(hike_1)"
    assert filled.head().sequence == 1


def test_values_that_break_other_records_are_one_line_each(lock: Lock) -> None:
    values = ["a\u2028b\u2029c\x85d\r\ne", "\U0001f468\u200d\U0001f469", "x" * 2**20, "\\u2028", '"', "\u0000"]
    for value in values:
        for frontend in ("code", "math", "json"):
            lock.compile(
                {"intent": "!A", "entities": [{"id": "act", "value": value}], "meta": {"req_id": "0000"}}, frontend
            )
    assert len(lock.path.read_bytes().split(b"\n")) == 3 * len(values) + 1
    assert (lock.verify().ok, lock.verify().entries) == (True, 3 * len(values))
    for entry in lock.entries():
        value = silp.decode(entry.payload, entry.frontend).entities[0].value
        assert value == values[(entry.sequence - 1) // 3]


def test_an_entry_beyond_the_limit_is_refused_on_both_ways(lock: Lock) -> None:
    small = Lock(lock.path, max_entry_bytes=1000)
    with pytest.raises(SilpError, match="more than 1000: raise max_entry_bytes"):
        small.compile({"intent": "!A", "entities": [{"id": "act", "value": "x" * 1000}], "meta": {"req_id": "0000"}})
    lock.compile({"intent": "!A", "entities": [{"id": "act", "value": "x" * 1000}], "meta": {"req_id": "0000"}})
    with pytest.raises(SilpError, match="longer than 1000 bytes: raise max_entry_bytes"):
        small.verify()


@pytest.mark.parametrize("data", [{"intent": "start"}, {"intent": "!A", "meta": {"req_id": "0000", "x": "\ud800"}}])
def test_an_invalid_ir_is_an_error_of_ours(lock: Lock, data: dict[str, Any]) -> None:
    for use in (lock.compile, lock.find, lock.require, ir_digest):
        with pytest.raises(SilpError) as refused:
            use(data)
        assert refused.value.code is ErrorCode.INVALID_SYNTAX


def test_deep_nesting_is_an_error_of_ours(lock: Lock) -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    for use in (lock.compile, ir_digest):
        with pytest.raises(SilpError) as refused:
            use({"intent": "!A", "meta": {"req_id": "0000", "x": deep}})
        assert refused.value.code is ErrorCode.INVALID_SYNTAX


class TestSignatures:
    @pytest.fixture
    def key(self, tmp_path: Path) -> Path:
        assert create_keys(tmp_path / "key") == tmp_path / "key.pub"
        assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
        return tmp_path / "key.pub"

    def test_a_signed_record_verifies_and_says_what_is_not_signed_yet(self, filled: Lock, key: Path) -> None:
        sign(filled.path, filled.head(), key.with_suffix(""))
        assert (filled.verify(key=key).ok, filled.verify(key=key).warnings) == (True, ())
        filled.compile(hike(99))
        report = filled.verify(key=key)
        assert report.ok
        assert [(finding.code, finding.path) for finding in report.warnings] == [("unsigned", "$[8]")]
        sign(filled.path, filled.head(), key.with_suffix(""))
        assert filled.verify(key=key).warnings == ()

    def test_a_record_cut_or_rewritten_after_signing_is_found(self, filled: Lock, key: Path) -> None:
        sign(filled.path, filled.head(), key.with_suffix(""))
        content, entries = filled.path.read_bytes(), entries_of(filled)
        filled.path.write_bytes(b"".join(lines(filled)[:-1]))
        assert codes(filled, key=key) == [("truncated", "$")]
        filled.path.write_bytes(resealed([entry._replace(codec="other/1") for entry in entries]))
        assert codes(filled, key=key) == [("bad_signature", "$[7]")]
        filled.path.write_bytes(content)
        assert codes(filled, key=key) == []

    def test_signatures_of_others_do_not_count(self, filled: Lock, key: Path, tmp_path: Path) -> None:
        assert codes(filled, key=key) == [("bad_signature", "$")]
        other = create_keys(tmp_path / "other")
        sign(filled.path, filled.head(), other.with_suffix(""))
        assert codes(filled, key=key) == [("bad_signature", "$")]
        assert codes(filled, key=other) == []

    @pytest.mark.parametrize(
        ("old", "new", "faults"),
        [('"sequence":8', '"sequence":7', 2), ("head v1", "head v2", 1), ('"signature":"', '"signature":"00', 2)],
    )
    def test_a_changed_signature_is_found(self, filled: Lock, key: Path, old: str, new: str, faults: int) -> None:
        sign(filled.path, filled.head(), key.with_suffix(""))
        path = Path(f"{filled.path}.sig")
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        assert codes(filled, key=key) == [("bad_signature", "$")] * faults

    @pytest.mark.parametrize("junk", ["", "{}", "[]", "5", '{"key":5}', "\xff", "{" * 500, '{"digest":1,"digest":2}'])
    def test_junk_among_the_signatures_is_reported(self, filled: Lock, key: Path, junk: str) -> None:
        sign(filled.path, filled.head(), key.with_suffix(""))
        path = Path(f"{filled.path}.sig")
        path.write_bytes(junk.encode("latin-1") + b"\n" + path.read_bytes())
        assert codes(filled, key=key) in ([("bad_signature", "$")], [])

    def test_signatures_that_cannot_be_read_are_an_error_of_ours(self, filled: Lock, key: Path) -> None:
        Path(f"{filled.path}.sig").mkdir()
        for use in (lambda: filled.verify(key=key), lambda: sign(filled.path, filled.head(), key.with_suffix(""))):
            with pytest.raises(SilpError, match="directory") as refused:
                use()
            assert refused.value.code is ErrorCode.DECODE_FAILED

    def test_keys_that_cannot_be_used_are_errors_of_ours(self, filled: Lock, key: Path, tmp_path: Path) -> None:
        (tmp_path / "junk").write_text("junk")
        uses: list[Callable[[], object]] = [
            lambda: create_keys(key.with_suffix("")),
            lambda: filled.verify(key=tmp_path / "none"),
            lambda: filled.verify(key=tmp_path / "junk"),
            lambda: filled.verify(key=key.with_suffix("")),
            lambda: sign(filled.path, filled.head(), key),
            lambda: sign(filled.path, filled.head()._replace(sequence=0), key.with_suffix("")),
        ]
        for use in uses:
            with pytest.raises(SilpError) as refused:
                use()
            assert refused.value.code is ErrorCode.DECODE_FAILED

    def test_without_the_extra_the_error_names_it(
        self, filled: Lock, key: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "cryptography", None)
        with pytest.raises(SilpError, match=r"silp-codec\[lock\]"):
            filled.verify(key=key)
        assert filled.verify().ok
