"""`kquorum log verify`: a sound folder is called sound, and each planted fault is found by the check it belongs to."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.main import run
from tests.support.log_fault_table import FAULTS
from tests.support.log_faults import DAMAGED, SOUND, VIOLATED, batches_of, changed, flip_in
from tests.support.metadata_folders import FIRST, SECOND, snapshot_path, write_folder, write_indexes
from tests.support.sample_logs import UNKNOWN_KEY, LogBuilder, write_sample, write_trimmed_sample
from wire.log_scan import ScannedBatch, scan_batches
from wire.metadata_records.features import BeginTransactionRecord

Found = dict[str, dict[str, int]]


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    made = write_folder(tmp_path / "node")
    capsys.readouterr()
    return made


def verified(capsys: pytest.CaptureFixture[str], path: Path) -> tuple[int, Found, str]:
    """Exit status, the counts of findings by check, and everything that was said."""
    status = run(["log", "verify", str(path), "--json"])
    captured = capsys.readouterr()
    assert captured.err == ""
    (log,) = json.loads(captured.out)["logs"]
    found = {check["check"]: check["counts"] for check in log["checks"] if check["counts"]}
    return status, found, captured.out


def test_a_sound_folder_is_called_sound(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    status, found, _ = verified(capsys, folder.parent)
    assert (status, found) == (SOUND, {})
    assert run(["log", "verify", str(folder)]) == SOUND
    out = capsys.readouterr().out
    assert "offsets 0 to 154, epoch 2: sound" in out
    assert "snapshot = replay" in out


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_by_its_check(
    capsys: pytest.CaptureFixture[str], folder: Path, fault: str
) -> None:
    plant, status, check = FAULTS[fault]
    plant(folder)
    found_status, found, said = verified(capsys, folder)
    assert found_status == status, found
    assert check in found, found
    assert set(found[check]) & {"violation", "damage"}
    assert "remedy" in said


def test_a_finding_names_file_position_offset_and_remedy(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    changed(lambda batches: flip_in(batches, 2, 70))(folder)
    assert run(["log", "verify", str(folder.parent)]) == DAMAGED
    out = capsys.readouterr().out
    position = sum(map(len, batches_of(folder / f"{FIRST}.log")[:2]))
    assert f"damage batches: {FIRST}.log, byte {position}, offset 4" in out
    assert "-> start the node" in " ".join(out.split())
    assert "the log is corrupt behind offset 4" in " ".join(out.split())


def test_what_lies_behind_a_broken_length_is_still_checked(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    changed(lambda batches: flip_in(batches, 3, 8))(folder)
    _, _, said = verified(capsys, folder)
    assert json.loads(said)["logs"][0]["end_offset"] == 155


def test_lawful_oddities_are_notes(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    second = folder / f"{SECOND}.log"
    log = LogBuilder(next_offset=155, epoch=2).values(1, UNKNOWN_KEY).records(2, BeginTransactionRecord())
    second.write_bytes(second.read_bytes() + log.data)
    write_indexes(folder, SECOND)
    with (folder / f"{SECOND}.index").open("ab") as index:
        index.write(bytes(4096))
    (folder / f"{80:020d}-0000000001-abc.checkpoint.part").write_bytes(b"")
    (folder / "leader-epoch-checkpoint").write_text("0\n3\n1 0\n2 100\n3 157\n")
    status, found, _ = verified(capsys, folder)
    assert status == SOUND
    assert found == {
        "metadata records": {"note": 1},
        "transactions": {"note": 1},
        "leftover files": {"note": 1},
    }


def test_a_trimmed_log_is_replayed_from_its_snapshot(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, found, said = verified(capsys, write_trimmed_sample(tmp_path / "trimmed"))
    assert (status, found) == (SOUND, {})
    assert "the log begins at offset 100" in said


def test_a_snapshot_behind_damage_takes_the_replay_up_again(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert run(["snapshot", "take", str(folder), "--offset", "120", "--committed"]) == 0
    assert run(["snapshot", "take", str(folder), "--offset", "140", "--committed"]) == 0
    capsys.readouterr()
    changed(lambda batches: flip_in(batches, 90, 70))(folder)
    _, found, said = verified(capsys, folder)
    assert set(found) == {"batches"}
    (state,) = [c for c in json.loads(said)["logs"][0]["checks"] if c["check"] == "snapshot = replay"]
    assert (state["checked"], state["not_compared_count"]) == (2, 1)


def test_one_file_several_logs_and_no_log(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path
) -> None:
    assert run(["log", "verify", str(folder / f"{FIRST}.log")]) == SOUND
    assert run(["log", "verify", str(snapshot_path(folder))]) == SOUND
    write_sample(tmp_path / "sample")
    capsys.readouterr()
    assert run(["log", "verify", str(tmp_path), "--json"]) == DAMAGED
    logs = json.loads(capsys.readouterr().out)["logs"]
    assert [(log["source"], log["verdict"]) for log in logs] == [("node", "sound"), ("sample", "damaged")]
    (tmp_path / "empty").mkdir()
    assert run(["log", "verify", str(tmp_path / "empty")]) == 2
    assert "holds no metadata log" in capsys.readouterr().err


# The folder is written anew for every example.
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
