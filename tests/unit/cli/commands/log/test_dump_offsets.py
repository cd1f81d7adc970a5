"""`kquorum log dump` of some offsets: the same rows as of the whole log, without reading all of it."""

from pathlib import Path
from uuid import UUID

import pytest

from kquorum.cli.main import run
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, TopicRecord
from kquorum.wire.record_batch import CompressionCodec
from tests.support.metadata_folders import write_indexes
from tests.support.sample_logs import LogBuilder, partition
from tests.support.storage.dumped_logs import dump_json

NAME = f"{0:020d}"
TOPICS = 40


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Topics with partitions, some batches compressed, then changes of all, and what an idle cluster writes."""
    builder = LogBuilder().leader(1000, 1, 1, 2, epoch=1)
    for number in range(TOPICS):
        codec = CompressionCodec.LZ4 if number % 3 else CompressionCodec.NONE
        topic = TopicRecord(name=f"topic-{number}" * (number % 4 + 1), topic_id=UUID(int=1000 + number))
        partitions = [partition(topic.topic_id, index, 1, (1, 2, 3)) for index in range(5)]
        builder.records(2000 + number, topic, *partitions, codec=codec)
        builder.records(2000 + number, NoOpRecord())
    for number in range(3 * TOPICS):
        change = PartitionChangeRecord(partition_id=1, topic_id=UUID(int=1000 + number % TOPICS), leader=2)
        builder.records(3000 + number, change)
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(builder.data)
    write_indexes(tmp_path, NAME)
    return path


@pytest.mark.parametrize("start", [0, 1, 90, 281, 330, 390, 401, 5000])
def test_rows_and_names_of_topics_are_the_same(
    capsys: pytest.CaptureFixture[str], log: Path, start: int
) -> None:
    whole = dump_json(capsys, log)
    wanted = [row for row in whole if start <= int(str(row["offset"])) < start + 20]
    options = ("--from-offset", str(start), "--to-offset", str(start + 20))
    assert dump_json(capsys, log, *options) == wanted
    assert all(row["topic_name"] for row in wanted if row["type"] == "PartitionChangeRecord")
    assert dump_json(capsys, log, *options, "--batches") == [
        row
        for row in dump_json(capsys, log, "--batches")
        if int(str(row["last_offset"])) >= start and int(str(row["base_offset"])) < start + 20
    ]


def test_what_is_not_asked_for_is_not_read(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    data[-1] ^= 1
    log.write_bytes(data)
    assert run(["log", "dump", str(log)]) == 3
    capsys.readouterr()
    assert len(dump_json(capsys, log, "--from-offset", "380", "--to-offset", "390")) == 10


@pytest.mark.parametrize("index", [b"", b"\x00" * 80, b"\x00\x00\x00\x09\x00\x00\x00\x21" * 3, b"\xff" * 13])
def test_an_index_is_not_trusted_but_where_the_segment_agrees(
    capsys: pytest.CaptureFixture[str], log: Path, index: bytes
) -> None:
    options = ("--from-offset", "350", "--to-offset", "353")
    wanted = dump_json(capsys, log, *options)
    log.with_suffix(".index").write_bytes(index)
    assert dump_json(capsys, log, *options) == wanted
    log.with_suffix(".index").unlink()
    assert dump_json(capsys, log, *options) == wanted
