"""`kquorum log diff`: what changed between two offsets or times, as state."""

import json
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.cli.main import run
from kquorum.wire.metadata_records.features import BeginTransactionRecord
from kquorum.wire.metadata_records.topics import TopicRecord
from tests.support.metadata_folders import FIRST, SECOND, snapshot_path, write_folder
from tests.support.sample_logs import LogBuilder, write_sample, write_trimmed_sample

Change = dict[str, object]


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    made = write_folder(tmp_path / "node")
    capsys.readouterr()
    return made


def changes(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> list[Change]:
    return document(capsys, path, *options)["changes"]


def document(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> dict[str, list[Change]]:
    status = run(["log", "diff", str(path), "--json", *options])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    told: dict[str, list[Change]] = json.loads(captured.out)
    return told


def told(found: list[Change]) -> list[tuple[object, object, object]]:
    return [
        (
            each["kind"],
            each["action"],
            each.get("topic", each.get("broker", each.get("feature", each.get("resource_name")))),
        )
        for each in found
    ]


def test_from_nothing_to_the_end(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert told(changes(capsys, folder)) == [
        ("quorum", "changed", None),
        ("feature", "added", "metadata.version"),
        ("broker", "added", 1),
        ("broker", "added", 2),
        ("topic", "added", "committed"),
        ("partition", "added", "committed"),
    ]


def test_a_change_tells_both_sides(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (change,) = changes(capsys, folder, "--from", "8", "--to", "9")
    assert change == {
        "kind": "partition",
        "action": "changed",
        "topic": "orders",
        "topic_id": "AAAAAAAAAAAAAAAAAAAD6Q",
        "partition": 0,
        "fields": {
            "leader": {"before": 1, "after": 2},
            "leader_epoch": {"before": 0, "after": 1},
            "isr": {"before": [1, 2], "after": [2]},
            "partition_epoch": {"before": 0, "after": 1},
        },
    }


def test_a_removed_topic_takes_its_configs_along(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert told(changes(capsys, folder, "--from", "105", "--to", "106")) == [
        ("topic", "removed", "orders"),
        ("config", "removed", "orders"),
    ]


def test_an_offset_inside_a_batch_divides_it(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert told(changes(capsys, folder, "--from", "2", "--to", "3")) == [("broker", "added", 1)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--from-time", "1400", "--to-time", "1401"), (8, 9)),
        (("--from-time", "1300", "--to", "8"), (7, 8)),
        (("--from", "7", "--to-time", "1970-01-01T00:00:01.4"), (7, 8)),
        (("--from-time", "99999999"), (155, 155)),
        (("--to", "0"), (0, 0)),
    ],
)
def test_times_stand_for_the_first_batch_that_is_not_older(
    capsys: pytest.CaptureFixture[str], folder: Path, options: tuple[str, ...], expected: tuple[int, int]
) -> None:
    found = document(capsys, folder, *options)
    assert (found["from"]["offset"], found["to"]["offset"]) == expected  # type: ignore[call-overload]


def test_the_nearest_snapshot_is_where_the_replay_begins(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    sound = document(capsys, folder, "--from", "70", "--to", "106")
    assert sound["from"]["replayed_since"] == snapshot_path(folder).name  # type: ignore[call-overload]
    # The snapshot serves although the log before it cannot be read.
    path = folder / f"{FIRST}.log"
    path.write_bytes(b"\xff" * 100 + path.read_bytes()[100:])
    assert document(capsys, folder, "--from", "70", "--to", "106") == sound
    assert told(sound["changes"]) == [
        ("quorum", "changed", None),
        ("topic", "added", "committed"),
        ("partition", "added", "committed"),
        ("topic", "removed", "orders"),
        ("config", "removed", "orders"),
    ]


def test_damage_on_the_way_is_reported_with_its_place(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    path = folder / f"{SECOND}.log"
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    assert run(["log", "diff", str(folder), "--from", "70"]) == 3
    message = capsys.readouterr().err
    assert f"{path} is damaged at byte" in message
    assert "the state is known up to offset" in message


def test_a_trimmed_log_begins_with_its_snapshot(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write_trimmed_sample(tmp_path / "trimmed")
    (change,) = changes(capsys, path)
    assert (change["kind"], change["action"]) == ("partition", "changed")
    assert run(["log", "diff", str(path), "--from", "40"]) == 2
    assert "the log begins at offset 100" in capsys.readouterr().err
    assert run(["log", "diff", str(path), "--to", "40"]) == 2
    assert "at offset 100" in capsys.readouterr().err


def test_a_snapshot_behind_the_logs_end_is_passed_over(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    sound = document(capsys, folder, "--from", "7")
    snapshot_path(folder).rename(folder / f"{99_999:020d}-0000000001.checkpoint")
    assert run(["log", "diff", str(folder), "--json", "--from", "7"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["to"]["offset"] == 155
    assert found["changes"] == sound["changes"]
    assert "99999-0000000001.checkpoint is passed over: the log ends before it, at offset 155" in captured.err
    assert run(["log", "diff", str(folder), "--to", "99999"]) == 2
    assert "ends at offset 155" in capsys.readouterr().err
    # Nor does it prove that anything is committed.
    assert run(["snapshot", "take", str(folder)]) == 2
    assert "--committed" in capsys.readouterr().err


def test_many_logs_are_named_as_far_as_they_are_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for number in range(7):
        write_sample(tmp_path / f"sample-{number}")
    assert run(["log", "diff", str(tmp_path)]) == 2
    assert "sample-5 and 1 more): name one" in capsys.readouterr().err


def test_what_a_state_leaves_out_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write_sample(tmp_path / "sample")
    assert run(["log", "diff", str(path), "--from", "10", "--to", "12"]) == 0
    captured = capsys.readouterr()
    assert "the state after leaves out the transaction that began at offset 9" in captured.err
    assert "no difference" in captured.out
    assert run(["log", "diff", str(path), "--from", "13", "--to", "22"]) == 0
    captured = capsys.readouterr()
    assert "the state after lacks 2 records of types unknown" in captured.err
    assert "hunter2" not in captured.out
    assert "(withheld)" in captured.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--from", "9", "--to", "3"), "backwards"),
        (("--from-time", "9", "--to-time", "3"), "backwards"),
        (("--from", "50", "--to-time", "1200"), "is before offset 50"),
        (("--to", "900"), "ends at offset 155"),
        (("--from", "3", "--from-time", "4"), "exclude each other"),
    ],
)
def test_senseless_bounds_are_refused(
    capsys: pytest.CaptureFixture[str], folder: Path, options: tuple[str, ...], said: str
) -> None:
    assert run(["log", "diff", str(folder), *options]) == 2
    assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_long_changes_are_reported_whole(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log, name = LogBuilder(), "n" * 200
    log.leader(1_000, 1, 1, 2, epoch=1).records(1_001, TopicRecord(name=name, topic_id=UUID(int=7)))
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(bytes(log.data))
    assert run(["log", "diff", str(path)]) == 0
    told_lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(" ~   quorum   leader none -> 1;") for line in told_lines), told_lines
    assert any(f" {name} " in f"{line} " for line in told_lines)


def test_tables_are_cut_at_the_limit(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert run(["log", "diff", str(folder), "--limit", "1"]) == 0
    assert "and 1 more; --limit 0 shows all" in capsys.readouterr().out


def test_real_logs_have_a_state_at_every_offset_tried(
    capsys: pytest.CaptureFixture[str], real_logs: Path
) -> None:
    for source in ("early-3.0", "seven-epochs", "six-snapshots"):
        assert told(changes(capsys, real_logs / source))
    found = changes(capsys, real_logs / "six-snapshots", "--from", "3000", "--to", "47000")
    assert ("topic", "added", "test-topic") in told(found)


def test_an_open_transaction_at_the_first_offset_is_replayed_to_the_second(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    path = folder / f"{SECOND}.log"
    log = LogBuilder(next_offset=155, epoch=2).records(400_000, BeginTransactionRecord())
    log.records(400_001, TopicRecord(name="late", topic_id=UUID(int=9)))
    path.write_bytes(path.read_bytes() + log.data)
    found = document(capsys, folder, "--from", "103", "--to", "105")
    assert ("topic", "added", "committed") in told(found["changes"])
    assert run(["log", "diff", str(folder), "--from", "155"]) == 0
    assert "no difference" in capsys.readouterr().out
