"""Batches that a producer must not send, through the handler of Produce into a log on disk: each gets Kafka's error
code, changes nothing, and takes the event loop for less than 50 ms."""

import struct
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kquorum.broker.log.log_config import LogConfig
from kquorum.broker.replica.partition import TopicPartition
from kquorum.wire.compression import CompressionCodec, compress
from kquorum.wire.data_batch import Record, write_data_batch
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.batches import batch_of, with_valid_crc
from tests.support.broker.data_world import NOW_MS, ORDERS, ORDERS_ID, DataWorld, MemoryLogs
from tests.support.broker.disk_logs import data, log_dir_at, marker, open_log
from tests.support.wire.legacy import legacy_message

TURN_S = 0.05
CODECS = (CompressionCodec.GZIP, CompressionCodec.SNAPPY, CompressionCodec.LZ4, CompressionCodec.ZSTD)
CONFIG = LogConfig()
BOUND = 16 * CONFIG.max_message_bytes
IDEMPOTENT = {"producer_id": 5, "producer_epoch": 3}
SOUND = data("a", "b", "c", base_sequence=10, **IDEMPOTENT)
EMPTY_RECORD = b"\x0c\0\0\0\1\1\0"


class DiskLogs(MemoryLogs):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._log_dir = log_dir_at(folder)

    def open(
        self, topic_partition: TopicPartition, topic_id: UUID, *, directory_id: UUID, is_new: bool
    ) -> Any:
        opened = open_log(self._log_dir, CONFIG, name=tuple(topic_partition), topic_id=topic_id)
        self.logs[topic_partition] = opened  # type: ignore[assignment]
        return opened


def changed(batch: bytes, position: int, form: str, value: int) -> bytes:
    """With a right checksum."""
    written = struct.pack(form, value)
    return with_valid_crc(batch[:position] + written + batch[position + len(written) :])


def flipped(batch: bytes) -> bytes:
    return batch[:-3] + bytes([batch[-3] ^ 1]) + batch[-2:]


def of_deltas(*deltas: int, codec: CompressionCodec = CompressionCodec.NONE) -> bytes:
    """A batch whose records have these offset deltas."""
    payload = b"".join(b"\x0c\0\0" + bytes([2 * delta]) + b"\1\1\0" for delta in deltas)
    return batch_of(compress(codec, payload), record_count=len(deltas), attributes=codec)


def bomb(codec: CompressionCodec) -> bytes:
    return batch_of(compress(codec, bytes(BOUND + 1)), attributes=codec)


REFUSED = {
    "a wrong checksum": (flipped(SOUND), "corrupt_message"),
    "magic 3": (SOUND[:16] + b"\3" + SOUND[17:], "corrupt_message"),
    "magic -1": (SOUND[:16] + b"\xff" + SOUND[17:], "corrupt_message"),
    "magic 1": (legacy_message(0, None, b"v"), "invalid_record"),
    "magic 0": (legacy_message(0, None, b"v", magic=0), "invalid_record"),
    "a length that cannot be right": (SOUND[:8] + b"\0\0\0\5" + SOUND[12:], "corrupt_message"),
    "two batches": (SOUND + SOUND, "invalid_record"),
    "a base offset": (changed(SOUND, 0, ">q", 7), "invalid_record"),
    "more records than there are": (
        changed(changed(SOUND, 57, ">i", 4), 23, ">i", 3),
        "invalid_record",
    ),
    "fewer records than there are": (
        changed(changed(SOUND, 57, ">i", 2), 23, ">i", 1),
        "invalid_record",
    ),
    "a count of 2**31 - 1": (
        changed(changed(SOUND, 57, ">i", 2**31 - 1), 23, ">i", 2**31 - 2),
        "message_too_large",
    ),
    "a negative count": (changed(SOUND, 57, ">i", -2), "invalid_record"),
    "a count that is not that of the offsets": (changed(SOUND, 23, ">i", 9), "invalid_record"),
    "no records": (batch_of(b"", record_count=0, last_offset_delta=0), "invalid_record"),
    "a record of negative length": (batch_of(b"\x01" + EMPTY_RECORD[1:]), "invalid_record"),
    "codec 5": (batch_of(EMPTY_RECORD, attributes=5), "unknown_server_error"),
    "codec 7": (batch_of(EMPTY_RECORD, attributes=7), "unknown_server_error"),
    "above max.message.bytes": (data(bytes(CONFIG.max_message_bytes)), "message_too_large"),
    "too many records": (batch_of(EMPTY_RECORD * 131_073, record_count=131_073), "message_too_large"),
    "LogAppendTime without a time": (data("v", log_append_time_ms=-1), "invalid_timestamp"),
    "a timestamp of the far future": (data("v", timestamp_ms=NOW_MS + 10**12), "invalid_timestamp"),
    # It is of a transaction, and the request names none.
    "a transaction's marker": (
        marker(commit=True, producer_id=5),
        "transactional_id_authorization_failed",
    ),
    "a control batch": (changed(data("v"), 21, ">h", 0x20), "invalid_record"),
    "an older producer epoch": (
        data("v", producer_id=5, producer_epoch=2, base_sequence=13),
        "invalid_producer_epoch",
    ),
    "a gap of sequences": (data("v", base_sequence=20, **IDEMPOTENT), "out_of_order_sequence_number"),
    "a new epoch that does not begin at 0": (
        data("v", producer_id=5, producer_epoch=4, base_sequence=1),
        "out_of_order_sequence_number",
    ),
    **{f"a bomb of {codec.name}": (bomb(codec), "message_too_large") for codec in CODECS},
}


@pytest.fixture
def world(tmp_path: Path) -> DataWorld:
    """A log with three records of producer 5, epoch 3, sequences 10 to 12."""
    made = DataWorld(logs=DiskLogs(tmp_path))
    assert produce(made, SOUND)[0] is ErrorCode.none
    return made


def produce(world: DataWorld, batch: bytes) -> tuple[ErrorCode, int]:
    named = PartitionProduceData(index=0, records=batch)
    topic = TopicProduceData(name=ORDERS, topic_id=ORDERS_ID, partition_data=(named,))
    answer = world.ask(ProduceRequest(acks=1, timeout_ms=1_000, topic_data=(topic,))).answer
    [told] = answer.responses[0].partition_responses
    return told.error_code, told.base_offset


def state_of(world: DataWorld) -> tuple[object, ...]:
    log: Any = world.partition().log
    files = {path.name: path.read_bytes() for path in log.folder.iterdir()}
    return log.log_end_offset, log.high_watermark, log.leader_epochs, log.producers.snapshot_bytes(), files


def seconds_of_a_turn(world: DataWorld, batch: bytes) -> float:
    """Of the processor, so that other processes do not count; the least of three."""
    taken = []
    for _ in range(3):
        began_s = time.thread_time()
        produce(world, batch)
        taken.append(time.thread_time() - began_s)
    return min(taken)


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_batch_gets_its_error_and_changes_nothing(world: DataWorld, name: str) -> None:
    batch, expected = REFUSED[name]
    before = state_of(world)
    assert produce(world, batch) == (ErrorCode[expected], -1)
    assert state_of(world) == before
    assert seconds_of_a_turn(world, batch) < TURN_S
    assert produce(world, data("d", base_sequence=13, **IDEMPOTENT)) == (ErrorCode.none, 3)


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, *CODECS])
def test_offsets_out_of_order_inside_a_batch_are_never_stored(
    world: DataWorld, codec: CompressionCodec
) -> None:
    """As with Kafka, records are numbered by their places; what the producer numbered otherwise does not count."""
    before = world.partition().log.log_end_offset
    error, first = produce(world, of_deltas(0, 2, 1, codec=codec))
    log: Any = world.partition().log
    if error is ErrorCode.none:
        assert (first, log.log_end_offset) == (before, before + 3)
        found = log.segments[-1].headers(0)
        assert [header.last_offset for _, header in found] == [2, 5]
    else:
        assert (error, log.log_end_offset) == (ErrorCode.invalid_record, before)


def test_a_repeat_is_answered_and_not_appended(world: DataWorld) -> None:
    before = state_of(world)
    assert produce(world, SOUND) == (ErrorCode.none, 0)
    assert state_of(world) == before


def test_the_largest_lawful_batch_takes_a_short_turn(world: DataWorld) -> None:
    """Compressed, so that the broker has to unfold it."""
    records = [Record(place, NOW_MS, None, bytes(110)) for place in range(100_000)]
    batch = write_data_batch(records, codec=CompressionCodec.LZ4)
    assert seconds_of_a_turn(world, batch) < TURN_S
    assert world.partition().log.log_end_offset == 3 + 3 * len(records)
