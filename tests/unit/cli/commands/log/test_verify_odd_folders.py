"""`kquorum log verify` on garbage, unreadable files, every damage, real logs, and chains of notes that are broken."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kquorum.metadata.controller.log_writer import audit_record
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.replacement_mark import mark_replacement
from kquorum.wire.audit_note import note_hash
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.log_faults import DAMAGED, SOUND, VIOLATED
from tests.support.metadata_folders import FIRST, SECOND, snapshot_path
from tests.support.raft.log_folders import FIRST as FIRST_SEGMENT
from tests.support.raft.log_folders import batches, write_log, write_snapshot
from tests.support.sample_logs import LogBuilder
from tests.support.verified_logs import findings_of, verified


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("quorum-state", b"\xff\xfe{}", "it is not text: byte 0 is 0xff"),
        ("quorum-state", b'{"a":1\x00', "it is not text: byte 6 is 0x00"),
        ("leader-epoch-checkpoint", b"0\n1\n1 \x80", "it is not text: byte 6 is 0x80"),
        ("leader-epoch-checkpoint", b"0\n1\n1\n", "line 3, '1', is not an epoch and an offset"),
        ("leader-epoch-checkpoint", b"0\nx\n1 0\n", "line 2, 'x', is not a number"),
        ("leader-epoch-checkpoint", b"0\n", "the number of entries is missing"),
    ],
)
def test_garbage_is_reported_in_plain_words(
    capsys: pytest.CaptureFixture[str], folder: Path, file: str, content: bytes, said: str
) -> None:
    (folder / file).write_bytes(content)
    (finding,) = findings_of(verified(capsys, folder)[2], file)
    assert said in finding["reason"]
    assert not re.search("codec|literal|unpack", finding["reason"])


@pytest.mark.parametrize(
    ("file", "check"),
    [
        (f"{SECOND}.log", "segments"),
        ("quorum-state", "quorum-state"),
        ("recovery-point", "recovery-point"),
        (f"{FIRST}.timeindex", "time index"),
        (f"{60:020d}-0000000001.checkpoint", "snapshot files"),
    ],
)
def test_a_file_that_may_not_be_read_does_not_keep_the_rest_from_being_checked(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch, file: str, check: str
) -> None:
    opened, os_opened = io.open, os.open

    def refusing(path: object, *rest: object, **options: object) -> object:
        if Path(str(path)).name == file:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *rest, **options)

    def refusing_os(path: object, *rest: object, **options: object) -> object:
        if Path(str(path)).name == file:
            raise PermissionError(13, "Permission denied", str(path))
        return os_opened(path, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(io, "open", refusing)
    monkeypatch.setattr(os, "open", refusing_os)
    (folder / f"{FIRST}.index").write_bytes(b"torn")
    status, found, said = verified(capsys, folder)
    assert (status, found) == (DAMAGED, {"offset index": {"violation": 1}, check: {"damage": 1}})
    assert "it cannot be read: Permission denied" in said


def test_standard_error_holds_nothing_that_a_part_logs(folder: Path) -> None:
    # In a process of its own: pytest takes what is logged, Python would write it to standard error.
    (folder / "recovery-point").write_bytes(b"?" * 600)
    command = [sys.executable, "-m", "kquorum.cli.entry", "log", "verify", str(folder)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (VIOLATED, b"")
    assert b"recovery-point" in done.stdout


# The folder is written again for every example.
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_damage_is_silent_and_none_is_a_crash(
    data: st.DataObject, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [folder / f"{FIRST}.log", folder / f"{SECOND}.log", snapshot_path(folder)]
    path = data.draw(st.sampled_from(files))
    sound = path.read_bytes()
    position = data.draw(st.integers(0, len(sound) - 1))
    kind = data.draw(st.sampled_from(["flip", "cut", "insert", "zero"]))
    damaged = {
        "flip": sound[:position]
        + bytes([sound[position] ^ (1 << data.draw(st.integers(0, 7)))])
        + sound[position + 1 :],
        "cut": sound[:position],
        "insert": sound[:position] + data.draw(st.binary(min_size=1, max_size=80)) + sound[position:],
        "zero": sound[:position] + bytes(len(sound) - position),
    }[kind]
    path.chmod(0o644)
    path.write_bytes(damaged)
    try:
        status, found, _ = verified(capsys, folder)
    finally:
        path.write_bytes(sound)
    assert status in (VIOLATED, DAMAGED) or damaged == sound or is_a_shorter_log(damaged, sound), found


def is_a_shorter_log(damaged: bytes, sound: bytes) -> bool:
    """Cut exactly between two batches, the last segment is a sound log of fewer records."""
    return sound.startswith(damaged) and len(damaged) in {
        found.position for found in scan_batches(sound) if isinstance(found, ScannedBatch)
    }


def test_every_real_log_is_sound(capsys: pytest.CaptureFixture[str], real_logs: Path) -> None:
    for source in ("early-3.0", "seven-epochs", "single-node-3.6", "six-snapshots", "three-controllers-1"):
        status, found, _ = verified(capsys, real_logs / source)
        assert (source, status, found) == (source, SOUND, {})


def test_a_repair_that_is_not_finished_is_reported(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "damaged-range").write_text("?")
    status, found, said = verified(capsys, folder)
    assert (status, found) == (SOUND, {"leftover files": {"note": 1}})
    assert "a repair was begun" in said


def unfinished_repair(tmp_path: Path, fetched_until: int) -> Path:
    """A log of 20 records was damaged at offset 7, and the node stopped when it had fetched so many of them again."""
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    write_log(folder, batches(0, 20))
    path = folder / FIRST_SEGMENT
    content = bytearray(path.read_bytes())
    content[7 * len(content) // 20 + 80] ^= 1
    path.write_bytes(content)
    log = FileLog(folder, on_damage="report")
    log.set_damage_aside()
    log.append(batches(7, fetched_until))
    log.close()
    for _ in range(3):
        log = FileLog(folder, on_damage="report")
        log.set_damage_aside()
        log.close()
    return folder


@pytest.mark.parametrize("fetched_until", [9, 20])
def test_an_unfinished_repair_says_what_may_be_missing_and_calls_nothing_repaired(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, fetched_until: int
) -> None:
    folder = unfinished_repair(tmp_path, fetched_until)
    _, _, said = verified(capsys, folder)
    assert "all below offset" not in said, "what was durable is not there any more"
    assert "repaired itself" not in said
    told = {each["file"]: each for each in findings_of(said, "leftover files")}
    aside = told[f"{FIRST_SEGMENT}.damaged"]
    assert "not finished" in aside["reason"]
    assert "keep it" in aside["remedy"]
    if fetched_until == 20:
        assert told["damaged-range"]["severity"] == "note"
        assert "all that is known to have been lost is here again" in told["damaged-range"]["reason"]
    else:
        assert told["damaged-range"]["severity"] == "damage"
        assert "offsets 9 to 19 may be missing" in told["damaged-range"]["reason"]


def test_a_repair_that_is_finished_is_called_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = unfinished_repair(tmp_path, 20)
    log = FileLog(folder, on_damage="report")
    log.set_damage_aside()
    log.mark_repaired()
    log.close()
    _, _, said = verified(capsys, folder)
    (aside,) = findings_of(said, "leftover files")
    assert "repaired itself" in aside["reason"]


@pytest.mark.parametrize("has_snapshot", [True, False])
def test_a_log_that_is_being_replaced_is_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, *, has_snapshot: bool
) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    write_log(folder, batches(0, 12))
    mark_replacement(folder, OffsetAndEpoch(20, 1), 30)
    if has_snapshot:
        write_snapshot(folder, 20)
    _, _, said = verified(capsys, folder)
    (told,) = findings_of(said, "leftover files")
    assert told["file"] == "replaced-by-snapshot"
    if has_snapshot:
        assert told["severity"] == "note"
        assert "goes on with that" in told["reason"]
    else:
        assert told["severity"] == "damage"
        assert "offsets 12 to 29 are lost here" in told["reason"]


def test_a_broken_chain_of_audit_notes_is_found_with_the_offset(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for changed_note in (False, True):
        log = LogBuilder()
        previous = b""
        for number in range(3):
            request = ControllerRequest(
                api_key=ApiKey.DELETE_TOPICS, api_version=6, body=None, correlation_id=number
            )
            record = audit_record(
                request, reason="delete topics: a", previous_note_hash=previous, covered_records=1
            )
            log.records(1000 + number, record, NoOpRecord())
            previous = note_hash(record.unknown_tagged_fields[0][1])
            if number == 1 and changed_note:
                previous = note_hash(b"what it said before")
        folder = tmp_path / str(changed_note) / "__cluster_metadata-0"
        folder.mkdir(parents=True)
        (folder / "00000000000000000000.log").write_bytes(bytes(log.data))
        status, found, said = verified(capsys, folder)
        assert "audit notes" in said
        if changed_note:
            assert (status, found["audit notes"]) == (VIOLATED, {"violation": 1})
            assert "not the hash of the note at offset 2" in said
        else:
            assert status == SOUND, said
