"""`kquorum snapshot list|verify|diff|take`, as a user runs them."""

import json
import os
from pathlib import Path

import pytest

from kquorum.cli.main import run
from kquorum.metadata.snapshot import load_snapshot
from kquorum.snapshots.naming import snapshot_id_of
from kquorum.snapshots.reader import SnapshotReader
from kquorum.storage.folder_lock import FolderLock
from kquorum.wire.audit_note import AUDIT_NOTE_TAG
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import FeatureLevelRecord, NoOpRecord
from tests.support.metadata_folders import FIRST, SECOND, SNAPSHOT_OFFSET, snapshot_path, write_folder
from tests.support.sample_logs import LogBuilder, write_sample

USAGE, DAMAGED, REFUSED, IO_ERROR = 2, 3, 4, 74


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    made = write_folder(tmp_path / "node")
    capsys.readouterr()
    return made


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.endswith(".part")]


def test_a_taken_snapshot_is_one_that_the_log_agrees_with(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    for offset in ("9", "106", "155"):
        assert run(["snapshot", "take", str(folder.parent), "--offset", offset, "--committed"]) == 0
        assert "verified" in capsys.readouterr().out
    assert run(["log", "verify", str(folder)]) == 0
    names = sorted(path.name for path in folder.glob("*.checkpoint"))
    assert [(each.end_offset, each.epoch) for each in map(snapshot_id_of, names) if each] == [
        (9, 1),
        (60, 1),
        (106, 2),
        (155, 2),
    ]
    path = folder / names[-1]
    assert (path.stat().st_mode & 0o777, leftovers(folder)) == (0o400, [])
    assert SnapshotReader(path.read_bytes()).last_contained_log_timestamp_ms == 10_000 + 154 * 2000


def test_without_an_offset_the_whole_log_is_taken(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path
) -> None:
    assert run(["snapshot", "take", str(folder), "--output", str(tmp_path / "mine.checkpoint")]) == 0
    assert run(["snapshot", "verify", str(tmp_path / "mine.checkpoint")]) == 0
    assert (tmp_path / "mine.checkpoint").is_file()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--offset", "3"), "inside a batch; 1 and 4 can be taken"),
        (("--offset", "104"), "inside the transaction that began at offset 101"),
        (("--offset", "900"), "ends at offset 155"),
        (("--offset", str(SNAPSHOT_OFFSET)), "exists already"),
    ],
)
def test_what_would_be_no_snapshot_is_refused(
    capsys: pytest.CaptureFixture[str], folder: Path, options: tuple[str, ...], said: str
) -> None:
    before = sorted(folder.iterdir())
    assert run(["snapshot", "take", str(folder), "--committed", *options]) == USAGE
    assert said in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before


def test_what_may_be_uncommitted_is_not_put_into_a_nodes_folder(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert run(["snapshot", "take", str(folder), "--offset", "155"]) == USAGE
    assert "--committed" in capsys.readouterr().err
    # What an existing snapshot contains is committed.
    assert run(["snapshot", "take", str(folder), "--offset", "50"]) == 0


def test_elsewhere_it_may_hold_what_is_not_committed_and_says_so(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path
) -> None:
    out = ["--output", str(tmp_path)]
    assert run(["snapshot", "take", str(folder), "--offset", "155", *out]) == 0
    assert capsys.readouterr().err == (
        "warning: whether the records below offset 155 are committed is not in the files: read this snapshot, but do "
        "not put it into the folder of a node\n"
    )
    assert run(["snapshot", "take", str(folder), "--offset", "50", *out]) == 0
    assert run(["snapshot", "take", str(folder), "--offset", "106", "--committed", *out]) == 0
    assert capsys.readouterr().err == ""


def test_a_folder_that_is_not_there_is_not_made_a_file(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    assert run(["snapshot", "take", str(folder), "--output", str(backup)]) == USAGE
    assert f"--output {backup} is no folder: make it first" in capsys.readouterr().err
    assert not backup.exists()


def test_unknown_records_are_not_lost_silently(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write_sample(tmp_path / "sample", torn=False)
    assert run(["snapshot", "take", str(path), "--output", str(tmp_path)]) == DAMAGED
    assert "3 records below offset 29 are unknown" in capsys.readouterr().err


def test_a_running_node_keeps_its_folder(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    lock = FolderLock(folder.parent)
    try:
        assert run(["snapshot", "take", str(folder), "--committed"]) == REFUSED
        assert "is in use by" in capsys.readouterr().err
    finally:
        lock.release()


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failing_disk_leaves_no_half_snapshot(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error", str(folder))

    if failing == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    assert run(["snapshot", "take", str(folder), "--committed"]) == IO_ERROR
    assert "Input/output error" in capsys.readouterr().err
    assert (leftovers(folder), len(list(folder.glob("*.checkpoint")))) == ([], 1)


def test_what_reads_back_otherwise_gets_no_name(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kquorum.cli.commands.snapshot import take as snapshot_take

    monkeypatch.setattr(snapshot_take, "snapshot_values", lambda *_: iter(()))
    assert run(["snapshot", "take", str(folder), "--committed"]) == IO_ERROR
    assert "not what was written" in capsys.readouterr().err
    assert (leftovers(folder), len(list(folder.glob("*.checkpoint")))) == ([], 1)


def test_the_list_tells_whole_from_damaged_and_unfinished(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    whole = snapshot_path(folder).read_bytes()
    (folder / f"{90:020d}-0000000001.checkpoint").write_bytes(whole[:-10])
    (folder / f"{95:020d}-0000000001-x1.checkpoint.part").write_bytes(b"")
    (folder / f"{20:020d}-0000000001.checkpoint.deleted").write_bytes(whole)
    assert run(["snapshot", "list", str(folder.parent), "--json"]) == DAMAGED
    listed = json.loads(capsys.readouterr().out)
    assert [(each["end_offset"], each["state"], each["records"]) for each in listed] == [
        (60, "whole", 7),
        (90, "damaged", 7),
        (None, "being deleted", 7),
        (None, "unfinished", 0),
    ]
    run(["snapshot", "list", str(folder.parent)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "node: 2 snapshots, 1 of them damaged, 1 unfinished, 1 being deleted"
    (unfinished,) = [line for line in lines if "unfinished" in line][1:]
    assert unfinished.split() == ["95", "1", "0", "0", "unfinished"]
    assert len(unfinished) < 80


def test_the_records_are_compressed_as_a_node_does_it(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path
) -> None:
    for number in range(40):
        config = ConfigRecord(
            resource_type=2, resource_name="orders", name=f"key{number}", value="value" * 20
        )
        log = LogBuilder(next_offset=155 + number, epoch=2).records(500_000 + number, config)
        second = folder / f"{SECOND}.log"
        second.write_bytes(second.read_bytes() + log.data)
    codecs: dict[tuple[str, ...], set[CompressionCodec]] = {}
    for options in ((), ("--compression", "none"), ("--compression", "lz4")):
        path = tmp_path / f"taken{len(codecs)}.checkpoint"
        assert run(["snapshot", "take", str(folder.parent), "--output", str(path), *options]) == 0
        batches = [each for each in scan_batches(path.read_bytes()) if isinstance(each, ScannedBatch)]
        codecs[options] = {each.header.codec for each in batches if not each.header.is_control}
    assert list(codecs.values()) == [{CompressionCodec.LZ4}, {CompressionCodec.NONE}, {CompressionCodec.LZ4}]
    assert run(["snapshot", "take", str(folder), "--compression", "gzip"]) == USAGE


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied"), "run it as the user who owns that folder"),
        (FileNotFoundError(2, "No such file or directory"), "check that folder and its disk"),
        (OSError(28, "No space left on device"), "make space there"),
    ],
)
def test_what_cannot_be_written_concerns_no_node(
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: OSError,
    said: str,
) -> None:
    opened = os.open

    def refusing(path: object, *rest: object, **options: object) -> object:
        if str(path).endswith((".part", ".lock")):
            raise error
        return opened(path, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refusing)
    for options in (["--committed"], ["--output", str(tmp_path)]):
        assert run(["snapshot", "take", str(folder), *options]) == IO_ERROR
        message = capsys.readouterr().err
        assert message.startswith(f"error: cannot write in {tmp_path}")
        assert f"{error.strerror}; no snapshot was taken" in message
        assert said in message
        assert "node stops" not in message


def test_a_segment_is_no_snapshot(capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes((folder / f"{SECOND}.log").read_bytes())
    snapshot = str(snapshot_path(folder))
    for segment in (folder / f"{FIRST}.log", copy):
        for both in ([snapshot, str(segment)], [str(segment), snapshot]):
            assert run(["snapshot", "diff", *both]) == USAGE
            assert (
                f"{segment} is a log segment, not a snapshot: `kquorum log diff`" in capsys.readouterr().err
            )
        assert run(["snapshot", "verify", str(segment)]) == USAGE
        assert "`kquorum log verify`" in capsys.readouterr().err


def test_a_snapshot_of_another_name_is_said_to_be_checked_less(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "snap.checkpoint"
    copy.write_bytes(snapshot_path(folder).read_bytes())
    assert run(["snapshot", "verify", str(copy)]) == 0
    out = capsys.readouterr().out
    assert "neither the epoch nor the end offset was checked against it" in " ".join(out.split())
    assert out.endswith("snap.checkpoint: sound\n")
    assert run(["snapshot", "verify", str(snapshot_path(folder))]) == 0
    assert "not compared:" not in capsys.readouterr().out


def test_a_folder_in_a_snapshots_place_is_named(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / f"{90:020d}-0000000001.checkpoint").mkdir()
    assert run(["snapshot", "list", str(folder)]) == DAMAGED
    assert "damaged: it is a folder, not a file" in capsys.readouterr().out
    assert run(["snapshot", "verify", str(folder)]) == DAMAGED
    out = capsys.readouterr().out
    assert "it is a folder, not a file" in out
    assert out.endswith("2 snapshots: 1 sound, 1 damaged\n")


def test_verify_tells_a_sound_one_from_a_cut_one(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert run(["snapshot", "verify", str(folder)]) == 0
    assert "checkpoint: sound" in " ".join(capsys.readouterr().out.split())
    cut = folder / f"{90:020d}-0000000001.checkpoint"
    cut.write_bytes(snapshot_path(folder).read_bytes()[:-75])
    assert run(["snapshot", "verify", str(cut)]) == DAMAGED
    assert "footer is missing" in " ".join(capsys.readouterr().out.split())
    empty = folder / f"{91:020d}-0000000001.checkpoint"
    empty.touch()
    assert run(["snapshot", "diff", str(snapshot_path(folder)), str(empty)]) == DAMAGED
    assert "kquorum snapshot verify" in capsys.readouterr().err
    for command in (["verify"], ["diff", str(cut)]):
        assert run(["snapshot", *command, str(folder / f"{FIRST}.index")]) == USAGE
        assert "is not a Kafka log segment or snapshot" in capsys.readouterr().err


def test_diff_of_two_snapshots_is_the_diff_of_their_states(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert run(["snapshot", "take", str(folder), "--offset", "155", "--committed"]) == 0
    newer = folder / f"{155:020d}-0000000002.checkpoint"
    capsys.readouterr()
    assert run(["snapshot", "diff", str(snapshot_path(folder)), str(newer), "--json"]) == 0
    by_snapshots = json.loads(capsys.readouterr().out)["changes"]
    (folder / f"{SECOND}.log").touch()
    assert run(["log", "diff", str(folder), "--from", "60", "--to", "155", "--json"]) == 0
    by_log = json.loads(capsys.readouterr().out)["changes"]
    assert [each for each in by_snapshots if each["kind"] != "quorum"] == [
        each for each in by_log if each["kind"] != "quorum"
    ]
    assert len(by_snapshots) > 3


def test_real_snapshots_are_whole(capsys: pytest.CaptureFixture[str], real_logs: Path) -> None:
    assert run(["snapshot", "list", str(real_logs), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 9
    assert run(["snapshot", "verify", str(real_logs)]) == 0


def test_the_chain_of_audit_notes_goes_on_behind_a_taken_snapshot(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = LogBuilder().leader(1000, 1, 1, 2, epoch=1)
    log.records(1100, FeatureLevelRecord(name="metadata.version", feature_level=25))
    for note in (b"an older note", b"the last note"):
        log.records(1200, NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, note),)), NoOpRecord())
    segment = tmp_path / f"{FIRST}.log"
    segment.write_bytes(log.data)
    for offset, expected in (("2", None), ("4", b"an older note"), ("6", b"the last note")):
        path = tmp_path / f"until-{offset}.checkpoint"
        assert run(["snapshot", "take", str(segment), "--offset", offset, "--output", str(path)]) == 0
        assert load_snapshot(path.read_bytes(), OffsetAndEpoch(int(offset), 1)).last_audit_note == expected


@pytest.mark.parametrize("is_last", [True, False])
def test_a_batch_with_a_negative_leader_epoch_is_damage_of_the_log_and_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, *, is_last: bool
) -> None:
    """The checksum does not cover the epoch; no snapshot has a name for one below 0."""
    log = LogBuilder().leader(1_000, 1, 1, 2, epoch=1).records(2_000, NoOpRecord())
    log.epoch = -5
    damaged_at = log.next_offset
    log.records(3_000, NoOpRecord())
    if not is_last:
        log.epoch = 1
        log.records(4_000, NoOpRecord())
    folder = tmp_path / "node" / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    (folder / "00000000000000000000.log").write_bytes(log.data)
    assert run(["snapshot", "take", str(folder), "--output", str(tmp_path)]) == DAMAGED
    said = " ".join(capsys.readouterr().err.split())
    assert f"the batch at offset {damaged_at} has the leader epoch -5" in said
    assert "disk" not in said
    assert not list(tmp_path.glob("*.checkpoint*"))
