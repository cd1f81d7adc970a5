"""The replay of one log for `audit check`: snapshots and recorded hashes, without Spark."""

from dataclasses import replace
from pathlib import Path

import pytest

from kquorum.cli.main import run
from kquorum.metadata.log_check.state_replay import RecordedHash
from kquorum.spark_replay.audit_manifest import AuditedSource, member_of_files
from kquorum.spark_replay.checks.replaying import Replayed, replay_source
from kquorum.spark_replay.decode.bases import state_bases
from kquorum.spark_replay.decode.sources import find_log_files
from kquorum.wire.metadata_records.topics import PartitionRecord
from tests.support.spark.planted import (
    History,
    change_snapshot,
    lawful_steps,
    segment_of,
    write_history,
)


@pytest.fixture
def sound(tmp_path: Path) -> tuple[Path, History]:
    folder = tmp_path / "sound"
    return folder, write_history(folder, lawful_steps())


def source_of(folder: Path) -> AuditedSource:
    files = find_log_files(folder)
    (base,) = state_bases(files)
    return AuditedSource(
        source=base.source,
        files=files,
        member=member_of_files(files),
        base=base,
        start_offset=0,
        end_offset=0,
    )


def replayed(folder: Path, *recorded: RecordedHash) -> Replayed:
    return replay_source(source_of(folder), recorded)


def take_snapshot(folder: Path, offset: int) -> Path:
    assert run(["snapshot", "take", str(folder), "--offset", str(offset), "--committed"]) == 0
    (path,) = (folder / "__cluster_metadata-0").glob("*.checkpoint")
    return path


def hash_at(folder: Path, offset: int, capsys: pytest.CaptureFixture[str]) -> RecordedHash:
    capsys.readouterr()
    assert run(["log", "state-hash", str(folder), "--offset", str(offset)]) == 0
    return RecordedHash(offset, capsys.readouterr().out.split()[0])


def test_a_sound_log_with_its_snapshot_has_no_finding(sound: tuple[Path, History]) -> None:
    folder, history = sound
    take_snapshot(folder, history.at["transaction"])
    result = replayed(folder)
    assert result.findings == ()
    assert result.checked["snapshot = replay"] == 1
    assert result.checked["replay"] == sum(len(step.records) for step in history.steps)


def test_a_snapshot_that_differs_in_one_field_is_named(sound: tuple[Path, History]) -> None:
    folder, history = sound
    end = history.at["transaction"]
    path = take_snapshot(folder, end)

    def change(record: PartitionRecord) -> PartitionRecord:
        return replace(record, leader_epoch=record.leader_epoch + 1)

    change_snapshot(path, change)
    (finding,) = replayed(folder).findings
    check, severity, _, file, _, offset, proof, subject, reason = finding
    assert (check, severity, file, offset, proof) == ("snapshot = replay", "violation", path.name, end, [end])
    assert subject == f"snapshot {end}-1"
    assert "leader_epoch 1 -> 2" in reason


def test_recorded_hashes_are_compared_also_within_a_batch(
    sound: tuple[Path, History], capsys: pytest.CaptureFixture[str]
) -> None:
    """A node's state stands still at the record before a transaction that is open."""
    folder, history = sound
    inside, behind = history.at["topic"], history.at["aborted"]
    recorded = [hash_at(folder, offset, capsys) for offset in (inside, behind)]
    result = replayed(folder, *recorded)
    assert (result.findings, result.checked["state hash"]) == ((), 2)
    wrong = RecordedHash(inside, recorded[1].text)
    ((check, severity, _, _, _, offset, _, _, reason),) = replayed(folder, wrong, recorded[1]).findings
    assert (check, severity, offset) == ("state hash", "violation", inside)
    assert recorded[0].text in reason
    assert recorded[1].text in reason


def test_the_hash_at_the_end_is_that_of_log_state_hash(
    sound: tuple[Path, History], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, history = sound
    end = history.at["end"]
    result = replayed(folder)
    assert (result.state_offset, result.state_hash) == (end, hash_at(folder, end, capsys).text)


@pytest.mark.parametrize(
    ("offset_of", "why"),
    [
        ("begun", "it lies inside a transaction, where no node has a state"),
        (None, "the log ends at "),
    ],
)
def test_a_hash_that_cannot_be_compared_is_skipped_with_the_reason(
    sound: tuple[Path, History], offset_of: str | None, why: str
) -> None:
    folder, history = sound
    offset = 10_000 if offset_of is None else history.at[offset_of]
    result = replayed(folder, RecordedHash(offset, "0" * 32))
    assert (result.findings, result.checked["state hash"]) == ((), 0)
    ((reason,),) = [each for name, each in result.skipped.items() if name == "state hash"]
    assert why in reason


def test_a_log_that_is_gone_or_shorter_is_not_checked(sound: tuple[Path, History]) -> None:
    folder, _ = sound
    source = source_of(folder)
    segment = segment_of(folder)
    segment.write_bytes(segment.read_bytes()[:-1])
    assert "is shorter than when it was audited" in (replay_source(source, ()).why_not or "")
    segment.unlink()
    assert "cannot be read any more" in (replay_source(source, ()).why_not or "")
