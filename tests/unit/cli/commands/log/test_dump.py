"""`kquorum log dump`, as a user runs it: what it prints, what it says on standard error, and its exit status."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kquorum.cli.main import run
from tests.support.sample_logs import write_sample, write_trimmed_sample
from tests.support.storage.dumped_logs import dump_json
from tests.support.tree import ROOT


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return write_sample(tmp_path / "sample")


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return write_sample(tmp_path / "whole", torn=False)


def offsets(rows: list[dict[str, object]]) -> list[object]:
    return [row["offset"] for row in rows]


def in_a_process(*args: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "kquorum.cli.entry", *args],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_noops_can_be_left_out(capsys: pytest.CaptureFixture[str], whole: Path) -> None:
    rows, rest = dump_json(capsys, whole), dump_json(capsys, whole, "--no-noop")
    assert rest == [row for row in rows if row["type"] != "NoOpRecord"]
    assert len(rest) < len(rows)


@pytest.mark.parametrize(("asked", "nearest"), [("VotersRecord", "KRaftVoters"), ("Leader", "LeaderChange")])
def test_control_records_are_suggested_too(
    capsys: pytest.CaptureFixture[str], whole: Path, asked: str, nearest: str
) -> None:
    assert run(["log", "dump", str(whole), "--type", asked]) == 2
    assert f"did you mean {nearest}" in capsys.readouterr().err


def test_every_record_is_a_json_line_in_order(capsys: pytest.CaptureFixture[str], whole: Path) -> None:
    rows = dump_json(capsys, whole)
    assert offsets(rows) == list(range(29))
    assert rows[5] == {
        "source": "whole",
        "file": "00000000000000000000.log",
        "position": rows[6]["position"],
        "offset": 5,
        "batch_base_offset": 5,
        "leader_epoch": 1,
        "timestamp_ms": 2000,
        "timestamp": "1970-01-01T00:00:02.000Z",
        "is_control": False,
        "type": "TopicRecord",
        "api_key": 2,
        "version": 0,
        "topic_name": "orders",
        "payload": {"name": "orders", "topic_id": "AAAAAAAAAAAAAAAAAAAD6Q"},
    }


def test_lines_are_aligned_and_name_the_topic_of_a_partition(
    capsys: pytest.CaptureFixture[str], whole: Path
) -> None:
    assert run(["log", "dump", str(whole), "--from-offset", "8", "--to-offset", "9"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")] == [
        (
            "         8      1  1970-01-01T00:00:03.000Z  PartitionChangeRecord v2            topic=orders "
            "partition_id=0 topic_id=AAAAAAAAAAAAAAAAAAAD6Q isr=[2] leader=2 leader_recovery_state=-1"
        )
    ]


def test_a_torn_tail_is_reported_with_file_position_and_offset_and_the_rest_is_shown(
    capsys: pytest.CaptureFixture[str], sample: Path
) -> None:
    status = run(["log", "dump", str(sample), "--json"])
    captured = capsys.readouterr()
    file = sample / "__cluster_metadata-0" / "00000000000000000023.log"
    assert status == 3
    assert len(captured.out.splitlines()) == 29
    assert captured.err.startswith(f"torn: {file} at byte {file.stat().st_size - 40}, offset 29: ")


def test_a_flipped_byte_is_reported_and_the_rest_is_shown(
    capsys: pytest.CaptureFixture[str], whole: Path
) -> None:
    file = whole / "__cluster_metadata-0" / "00000000000000000023.log"
    data = bytearray(file.read_bytes())
    data[-2] ^= 1
    file.write_bytes(data)
    status = run(["log", "dump", str(file), "--json"])
    captured = capsys.readouterr()
    assert (status, len(captured.out.splitlines())) == (3, 5)
    assert captured.err.startswith(f"corrupt: {file} at byte {len(data) - 72}, offset 28: ")


def test_unknown_records_are_shown_raw(capsys: pytest.CaptureFixture[str], whole: Path) -> None:
    (row,) = dump_json(capsys, whole, "--type", "unknown")
    assert (row["offset"], row["api_key"], row["raw_hex"], row["payload"]) == (20, 99, "0163000707", None)
    assert row["problem"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--type", "topicrecord"), [5, 10, 17, 21]),
        (("--type", "TOPIC", "--type", "leaderchange"), [0, 5, 10, 17, 21, 23]),
        (("--from-offset", "26"), [26, 27, 28]),
        (("--to-offset", "2"), [0, 1]),
        (("--from-offset", "6", "--to-offset", "8"), [6, 7]),
        (("--from-time", "9100"), [26, 27, 28]),
        (("--from-time", "1970-01-01T00:00:09.1"), [26, 27, 28]),
        (("--from-time", "1970-01-01T02:00:09.1+02:00"), [26, 27, 28]),
        (("--to-time", "1100"), [0]),
        (("--topic", "orders"), [5, 6, 7, 8, 12, 24, 25]),
        (("--topic", "orders", "--from-offset", "20"), [24, 25]),
        (("--topic", "orders", "--type", "partition"), [6, 7]),
        (("--topic", "committed"), [17, 18]),
    ],
)
def test_filters(
    capsys: pytest.CaptureFixture[str], whole: Path, options: tuple[str, ...], expected: list[int]
) -> None:
    assert offsets(dump_json(capsys, whole, *options)) == expected


def test_a_topic_made_before_the_log_begins_is_known_from_its_snapshot(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = write_trimmed_sample(tmp_path / "trimmed")
    segment = folder / "__cluster_metadata-0" / "00000000000000000100.log"
    for path in (folder, segment):
        (row,) = dump_json(capsys, path, "--topic", "older")
        assert (row["offset"], row["topic_name"]) == (101, "older")


def test_a_topic_made_in_an_earlier_segment_is_known_when_one_segment_is_dumped(
    capsys: pytest.CaptureFixture[str], whole: Path
) -> None:
    segment = whole / "__cluster_metadata-0" / "00000000000000000023.log"
    assert offsets(dump_json(capsys, segment, "--topic", "orders")) == [24, 25]


def test_a_topic_that_never_was_is_reported_with_its_neighbours(
    capsys: pytest.CaptureFixture[str], whole: Path
) -> None:
    assert run(["log", "dump", str(whole), "--topic", "order"]) == 0
    assert "no topic named order in this log; near to it: orders" in capsys.readouterr().err


def test_secrets_are_redacted_unless_asked_for(capsys: pytest.CaptureFixture[str], whole: Path) -> None:
    config = ("--type", "ConfigRecord")
    hidden, shown = dump_json(capsys, whole, *config), dump_json(capsys, whole, *config, "--show-secrets")
    assert [row["payload"]["value"] for row in hidden + shown] == ["[redacted]", "hunter2"]  # type: ignore[index]


def test_batches_are_shown_with_their_place(capsys: pytest.CaptureFixture[str], whole: Path) -> None:
    rows = dump_json(capsys, whole, "--batches", "--to-offset", "8")
    assert [(row["base_offset"], row["last_offset"], row["record_count"], row["codec"]) for row in rows] == [
        (0, 0, 1, "none"),
        (1, 2, 2, "none"),
        (3, 4, 2, "none"),
        (5, 7, 3, "lz4"),
    ]
    assert rows[1]["position"] == rows[0]["size_in_bytes"]


def test_of_a_folder_the_snapshots_are_shown_where_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = write_trimmed_sample(tmp_path / "trimmed")
    assert len(dump_json(capsys, folder)) == 2
    assert len(dump_json(capsys, folder, "--snapshots")) == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--type", "TopikRecord"), "did you mean TopicRecord"),
        (("--type", "xyzzy"), "known are AbortTransactionRecord"),
        (("--from-time", "yesterday"), "--from-time yesterday: neither ISO 8601"),
        (("--batches", "--topic", "orders"), "do not go with --batches"),
    ],
)
def test_a_wrong_option_is_refused(
    capsys: pytest.CaptureFixture[str], whole: Path, options: tuple[str, ...], message: str
) -> None:
    assert run(["log", "dump", str(whole), *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in " ".join(captured.err.replace("│", " ").split())


@pytest.mark.parametrize("name", ["00000000000000000000.log", "notes.txt"])
def test_a_file_that_is_no_log_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    file.write_text("Dear operator, this is no log, but it is long enough to be mistaken for one.")
    assert run(["log", "dump", str(file)]) == 2
    assert f"{file} is not a Kafka log segment or snapshot" in capsys.readouterr().err


def test_a_folder_without_a_log_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["log", "dump", str(tmp_path)]) == 2
    assert f"{tmp_path} holds no metadata log" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error(whole: Path) -> None:
    process = in_a_process("log", "dump", str(whole))
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert (process.wait(timeout=60), process.stderr.read()) == (0, "")
    process.stderr.close()


def test_neither_spark_nor_grpc_is_imported() -> None:
    probe = (
        "import sys; from kquorum.cli.commands.log import command, dump; "
        "print(*sorted({'pyspark', 'grpc', 'pyarrow', 'asyncio', 'kio'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []
