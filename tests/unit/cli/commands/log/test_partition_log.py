"""`log dump` and `log verify` of a partition's folder."""

import gzip
import json
import struct
from collections.abc import Callable
from pathlib import Path

import crc32c
import pytest

from kquorum.broker.log.log_config import LogConfig
from kquorum.broker.log.partition_log import AppendOrigin
from kquorum.cli.commands.log.partition_log import (
    PartitionCheck,
    PartitionDump,
    dump_partition,
    is_of_partition,
)
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.main import run
from kquorum.spark_replay.decode.sources import METADATA_FOLDER, NoLogFound, find_log_files
from kquorum.wire.data_batch import Record, write_data_batch
from kquorum.wire.transaction_records import (
    PartitionsOfTopic,
    TransactionValue,
    encode_transaction_key,
    encode_transaction_value,
)
from tests.support.broker.disk_logs import NOW_MS, data, log_dir_at, marker, open_log
from tests.support.wire.legacy import legacy_message


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve records with keys in several segments, an aborted transaction, and a stop in order."""
    log = open_log(log_dir_at(tmp_path), LogConfig(segment_bytes=400, index_interval_bytes=1))
    for number in range(12):
        sequence = {"producer_id": 5, "producer_epoch": 0, "base_sequence": number}
        log.append_as_leader(data(f"secret {number}", key=b"k", **sequence), leader_epoch=3, now_ms=NOW_MS)
    log.append_as_leader(
        data("gone", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True),
        leader_epoch=3,
        now_ms=NOW_MS,
    )
    log.append_as_leader(
        marker(commit=False, producer_id=7), leader_epoch=3, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    log.close()
    return log.folder


def dumped(path: Path, **fields: object) -> list[dict[str, object]]:
    lines: list[str] = []
    request = PartitionDump(path=path, as_json=True, **fields)  # type: ignore[arg-type]
    assert dump_partition(request, lines.append) is ExitStatus.OK
    return [json.loads(line) for line in lines]


def test_records_are_shown_with_keys_and_producers_and_without_values(folder: Path) -> None:
    rows = dumped(folder)
    assert [row["offset"] for row in rows] == list(range(14))
    assert (rows[0]["kind"], rows[0]["key"], rows[0]["producer_id"]) == ("record", "k", 5)
    assert rows[0]["value_bytes"] == len("secret 0")
    assert "secret" not in json.dumps(rows)
    assert (rows[13]["kind"], rows[13]["marker"], rows[13]["producer_id"]) == ("marker", "abort", 7)


def test_values_are_shown_where_asked_for(folder: Path) -> None:
    assert dumped(folder, values=True)[3]["value"] == "secret 3"


def test_offsets_bound_what_is_shown(folder: Path) -> None:
    assert [row["offset"] for row in dumped(folder, from_offset=3, to_offset=6)] == [3, 4, 5]


def test_batches_indexes_and_snapshots_are_shown(folder: Path) -> None:
    kinds = {row["kind"] for row in dumped(folder, files=True)}
    assert kinds == {"record", "marker", "index", "time", "producer", "aborted"}
    batch = dumped(folder, batches=True)[0]
    assert (batch["codec"], batch["leader_epoch"], batch["base_sequence"]) == ("none", 3, 0)
    assert dumped(folder / "leader-epoch-checkpoint")[0]["leader_epoch"] == 3


def test_a_line_for_the_eye_has_no_value_either(folder: Path) -> None:
    lines: list[str] = []
    dump_partition(PartitionDump(path=folder), lines.append)
    assert "offset=3" in lines[3]
    assert "secret" not in "".join(lines)


def test_a_sound_folder_has_no_findings(folder: Path) -> None:
    check = PartitionCheck(folder)
    check.run()
    assert (check.findings, check.records, check.end_offset) == ([], 14, 14)


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x11
    path.write_bytes(bytes(content))


def last(folder: Path, pattern: str) -> Path:
    return max(each for each in folder.glob(pattern) if each.stat().st_size > 10)


@pytest.mark.parametrize(
    ("harm", "status"),
    [
        pytest.param(lambda f: flip(last(f, "*.log"), 70), ExitStatus.DAMAGED_INPUT, id="a batch"),
        pytest.param(lambda f: flip(last(f, "*.index"), 7), ExitStatus.FAILED, id="an offset index"),
        pytest.param(lambda f: flip(last(f, "*.timeindex"), 1), ExitStatus.FAILED, id="a time index"),
        pytest.param(lambda f: last(f, "*.txnindex").unlink(), ExitStatus.FAILED, id="a transaction index"),
        pytest.param(lambda f: flip(last(f, "*.snapshot"), 30), ExitStatus.FAILED, id="a snapshot"),
        pytest.param(
            lambda f: (f / "leader-epoch-checkpoint").write_text("0\n1\n9 0\n"),
            ExitStatus.FAILED,
            id="the epochs",
        ),
        pytest.param(
            lambda f: last(f, "*.log").write_bytes(last(f, "*.log").read_bytes()[:-3]),
            ExitStatus.OK,
            id="a torn end is cut by a recovery",
        ),
    ],
)
def test_what_is_wrong_is_found(folder: Path, harm: Callable[[Path], object], status: ExitStatus) -> None:
    harm(folder)
    check = PartitionCheck(folder)
    check.run()
    assert check.findings
    assert check.status is status


def test_folders_of_metadata_and_other_files_are_not_taken_for_a_partition(folder: Path) -> None:
    assert is_of_partition(folder)
    assert is_of_partition(next(folder.glob("*.log")))
    (folder / "quorum-state").write_text("{}")
    assert not is_of_partition(folder)
    assert not is_of_partition(folder.parent)


def test_a_damaged_checkpoint_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    path.write_text("0\n7\nt 0 1\n")
    with pytest.raises(CliError, match="recovery-point-offset-checkpoint"):
        dumped(path)


def legacy_folder(folder: Path) -> Path:
    """As Kafka before 0.11 wrote it: records 0 to 2 compressed in one message of magic 1, then 3; the index names the
    first offset of a message, as Kafka did before 2.0."""
    folder.mkdir(parents=True)
    inner = b"".join(legacy_message(each, None, b"value %d" % each, timestamp_ms=9) for each in range(3))
    wrapper = legacy_message(2, None, gzip.compress(inner), attributes=1, timestamp_ms=9)
    plain = legacy_message(3, None, b"value 3", magic=0)
    (folder / f"{0:020}.log").write_bytes(wrapper + plain)
    (folder / f"{0:020}.index").write_bytes(struct.pack(">iiii", 0, 0, 3, len(wrapper)))
    return folder


def test_a_compressed_message_of_an_old_format_is_shown_with_all_its_records(tmp_path: Path) -> None:
    folder = legacy_folder(tmp_path / "old-0")
    first, second = dumped(folder, batches=True)
    assert (first["base_offset"], first["last_offset"], first["records"]) == (0, 2, 3)
    assert (second["base_offset"], second["records"], second["max_timestamp_ms"]) == (3, 1, -1)
    assert [row["offset"] for row in dumped(folder, from_offset=1, to_offset=2)] == [1]
    lines: list[str] = []
    dump_partition(PartitionDump(path=folder), lines.append)
    assert "no time" in lines[3]


def test_the_index_of_an_old_broker_is_sound(tmp_path: Path) -> None:
    check = PartitionCheck(legacy_folder(tmp_path / "old-0"))
    check.run()
    assert (check.findings, check.start_offset, check.end_offset, check.records) == ([], 0, 4, 4)


def log_directory(folder: Path) -> Path:
    """Beside `folder` a partition of an old broker, without partition.metadata, one that waits for its removal, and the
    checkpoint files."""
    legacy_folder(folder.parent / "old-10")
    legacy_folder(folder.parent / "old-9")
    legacy_folder(folder.parent / f"gone-0.{'a' * 32}-delete")
    (folder.parent / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    return folder.parent


def test_a_log_directory_is_verified_partition_by_partition(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = log_directory(folder)
    assert run(["log", "verify", str(log_dir), "--json"]) == ExitStatus.OK
    told = json.loads(capsys.readouterr().out)
    assert [each["partition"] for each in told["partitions"]] == ["old-9", "old-10", folder.name]
    assert (told["verdict"], told["logs"]) == ("sound", [])
    assert run(["log", "verify", str(log_dir)]) == ExitStatus.OK
    assert "3 partitions: sound" in capsys.readouterr().out
    flip(log_dir / "old-9" / f"{0:020}.log", 20)
    assert run(["log", "verify", str(log_dir)]) == ExitStatus.DAMAGED_INPUT
    out = capsys.readouterr().out
    assert "damage old-9/00000000000000000000.log, position 0: " in out
    assert "3 partitions: 1 not sound" in out


def test_the_dump_of_a_log_directory_asks_for_a_partition(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = log_directory(folder)
    assert run(["log", "dump", str(log_dir)]) == ExitStatus.USAGE
    said = capsys.readouterr().err.replace("\n", " ")
    assert "is a log directory with 3 partitions: name the folder of one" in said


def test_a_search_for_metadata_logs_passes_over_the_partitions_of_old_brokers(folder: Path) -> None:
    log_dir = log_directory(folder)
    with pytest.raises(NoLogFound):
        find_log_files(log_dir)
    (log_dir / METADATA_FOLDER).mkdir()
    (log_dir / METADATA_FOLDER / f"{0:020}.log").write_bytes(b"")
    assert {file.source for file in find_log_files(log_dir)} == {log_dir.name}


@pytest.mark.slow
def test_folders_of_real_brokers_are_sound(real_data: Path) -> None:
    checked = 0
    for folder in sorted(real_data.glob("*/*-[0-9]*")):
        if is_of_partition(folder):
            check = PartitionCheck(folder)
            check.run()
            assert check.status is ExitStatus.OK, (folder, check.findings)
            checked += check.batches
    assert checked > 10_000


def test_records_that_cannot_be_read_are_damage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their batch has the checksum that its bytes give: a program wrote them so."""
    first = min(folder.glob("*.log"))
    content = bytearray(first.read_bytes())
    size = 12 + int.from_bytes(content[8:12], "big")
    content[61] = 0x7F  # the length of the first record
    content[17:21] = crc32c.crc32c(bytes(content[21:size])).to_bytes(4, "big")
    first.write_bytes(content)
    assert run(["log", "dump", str(folder)]) == ExitStatus.DAMAGED_INPUT
    assert f"{first}: byte 0: " in capsys.readouterr().err.replace("\n", "")


@pytest.mark.parametrize(
    "option",
    [("--type", "TopicRecord"), ("--topic", "a"), ("--no-noop",), ("--from-time", "1"), ("--to-time", "1")],
)
def test_options_that_choose_metadata_are_refused(
    folder: Path, option: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["log", "dump", str(folder), *option]) == ExitStatus.USAGE
    assert option[0] in capsys.readouterr().err


def test_what_a_coordinator_of_transactions_wrote_is_shown(tmp_path: Path) -> None:
    folder = tmp_path / "__transaction_state-3"
    folder.mkdir()
    value = TransactionValue(
        producer_id=5,
        producer_epoch=1,
        timeout_ms=60_000,
        status=1,
        partitions=(PartitionsOfTopic(topic="orders", partition_ids=(0, 2)),),
        start_timestamp_ms=NOW_MS,
        last_update_timestamp_ms=NOW_MS,
        client_transaction_version=2,
    )
    key = encode_transaction_key("orders-1")
    records = [
        Record(0, NOW_MS, key, encode_transaction_value(value, 1)),
        Record(1, NOW_MS, key, None),
        Record(2, NOW_MS, b"\x00\x07later", b""),
    ]
    (folder / "00000000000000000000.log").write_bytes(write_data_batch(records))
    first, second, third = dumped(folder)
    assert (first["kind"], first["transactional_id"], first["state"]) == (
        "record",
        "orders-1",
        "Ongoing",
    )
    assert (first["producer_id"], first["producer_epoch"], first["partitions"]) == (
        5,
        1,
        ["orders-0", "orders-2"],
    )
    assert first["client_transaction_version"] == 2
    assert (second["transactional_id"], second["state"]) == ("orders-1", None)
    assert third["record_type"] == 7


SMALL_FILES = ("00000000000000000000.index", "00000000000000000000.timeindex", "leader-epoch-checkpoint")


@pytest.mark.parametrize("name", [*SMALL_FILES, "00000000000000000003.snapshot"])
def test_a_sparse_file_does_not_fill_the_memory(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It took gigabytes, without an end."""
    with (folder / name).open("ab") as file:
        file.truncate(1 << 40)
    assert run(["log", "verify", str(folder)]) == ExitStatus.IO_ERROR
    told = capsys.readouterr().err
    assert f"{name}: it has 1,099,511,627,776 bytes" in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("name", [*SMALL_FILES, "00000000000000000000.log"])
def test_a_link_in_the_folder_is_not_followed(
    folder: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The writer of the folder chose where it leads; what is there was shown as damaged records."""
    operators = tmp_path / "operators.log"
    (folder / name).rename(operators)
    (folder / name).symlink_to(operators)
    commands = ["verify", "dump"] if name.endswith(".log") else ["verify"]
    for command in commands:
        assert run(["log", command, str(folder)]) == ExitStatus.IO_ERROR
        assert f"{name}: it is a symbolic link" in capsys.readouterr().err


def test_a_link_that_is_an_argument_is_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link.log").symlink_to(folder / f"{0:020}.log")
    request = PartitionDump(path=tmp_path / "link.log", as_json=True)
    lines: list[str] = []
    assert dump_partition(request, lines.append) is ExitStatus.OK
    assert json.loads(lines[0])["offset"] == 0
