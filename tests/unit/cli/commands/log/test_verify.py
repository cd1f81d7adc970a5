"""`kquorum log verify`: a sound folder is called sound, and each planted fault is found by the check it belongs to."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kquorum.cli.commands.log import files as log_end
from kquorum.cli.main import run
from kquorum.wire.metadata_records.features import BeginTransactionRecord
from tests.support.log_fault_table import FAULTS
from tests.support.log_faults import (
    DAMAGED,
    SOUND,
    batches_of,
    changed,
    changed_bytes,
    flip_in,
    renamed,
    without_middle_segment,
)
from tests.support.metadata_folders import FIRST, SECOND, snapshot_path, write_indexes
from tests.support.sample_logs import UNKNOWN_KEY, LogBuilder, write_sample, write_trimmed_sample
from tests.support.verified_logs import findings_of, verified


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


def test_valid_oddities_are_notes(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
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


def test_missing_offsets_are_reported_with_the_file_that_held_them(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    without_middle_segment(folder)
    (finding,) = findings_of(verified(capsys, folder)[2], "segments")
    assert finding["reason"] == f"offsets 100 to 119 are missing before it: {SECOND}.log should be there"
    (folder / f"{SECOND}.log").mkdir()
    found = findings_of(verified(capsys, folder)[2], "segments")
    assert [(each["file"], each["reason"]) for each in found[:1]] == [
        (f"{SECOND}.log", "it is a folder with the name of a segment")
    ]
    assert len(found) == 2


def test_a_snapshot_whose_end_is_missing_is_not_said_to_have_a_wrong_name(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert run(["snapshot", "take", str(folder), "--offset", "110", "--committed"]) == 0
    capsys.readouterr()
    without_middle_segment(folder)
    _, found, said = verified(capsys, folder)
    assert "snapshot names" not in found
    assert "the record that it ends with is missing in the log" in said


@pytest.mark.parametrize("base_offset", [0, 60, 99_999])
def test_a_snapshot_may_be_ahead_of_a_log_without_records(
    capsys: pytest.CaptureFixture[str], folder: Path, base_offset: int
) -> None:
    for path in folder.iterdir():
        if path != snapshot_path(folder):
            path.unlink()
    (folder / f"{base_offset:020d}.log").touch()
    renamed(f"{99_999:020d}-0000000001.checkpoint")(folder)
    assert verified(capsys, folder)[:2] == (SOUND, {})


def test_a_snapshot_that_may_stand_for_damaged_records_is_not_to_be_moved_away(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert run(["snapshot", "take", str(folder), "--offset", "155", "--committed"]) == 0
    capsys.readouterr()
    changed_bytes(f"{SECOND}.log", lambda data: data.__delitem__(slice(-5, None)))(folder)
    assert verified(capsys, folder)[1]["snapshot names"] == {"note": 1}


def test_the_snapshot_of_a_node_at_work_may_be_ahead_of_what_was_read(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["snapshot", "take", str(folder), "--offset", "155", "--committed"]) == 0
    capsys.readouterr()
    # A segment has this name until it is durable; what a stopped node left of it is not the log's.
    (folder / f"{SECOND}.log").rename(folder / f"{SECOND}.log.rolling")
    (folder / "recovery-point").unlink()
    assert "violation" in verified(capsys, folder)[1]["snapshot names"]
    monkeypatch.setattr(log_end, "is_folder_in_use", lambda _: True)
    assert "snapshot names" not in verified(capsys, folder)[1]


def test_a_running_node_is_known_by_its_lock(folder: Path) -> None:
    assert not log_end.is_folder_in_use(folder.parent)
    code = (
        "import sys; from pathlib import Path; from kquorum.storage.folder_lock import FolderLock\n"
        "lock = FolderLock(Path(sys.argv[1])); print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(folder.parent)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert log_end.is_folder_in_use(folder.parent)
        holder.communicate()
    assert not log_end.is_folder_in_use(folder.parent)
