"""Folders of a controller, filled with as many partitions and changes as asked for, as if it had written them."""

import io
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from itertools import islice
from pathlib import Path
from uuid import UUID

from kquorum.cli.main import run
from kquorum.raft.adapters.file_log import FOLDER_NAME, FileLog
from kquorum.storage.leader_epoch_checkpoint import FILE_NAME as EPOCHS
from kquorum.storage.recovery_point import FILE_NAME as RECOVERY_POINT
from kquorum.wire.log_batch import LogBatch, build_batch
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from kquorum.wire.record_batch import CompressionCodec
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.cluster import Cluster

PARTITIONS_OF_TOPIC = 100
BROKERS = 12
REPLICATION_FACTOR = 3
# Records of a batch: a creation of topics is a large request, a change a small one.
RECORDS_OF_CREATE, RECORDS_OF_CHANGE = 1_000, 10
FLUSH_BATCHES = 1_000
FIRST_TIMESTAMP_MS = 1_790_000_000_000
SEGMENT_SUFFIXES = (".log", ".index", ".timeindex")


def topic_id(number: int) -> UUID:
    return UUID(int=(1 << 80) + number)


def partition_records(count: int) -> Iterator[MetadataRecord]:
    """Topics of 100 partitions each, three replicas on twelve brokers, which are not registered, as nothing checks
    that."""
    directories = [UUID(int=(1 << 90) + broker) for broker in range(BROKERS)]
    for number in range(count):
        topic, index = divmod(number, PARTITIONS_OF_TOPIC)
        if index == 0:
            yield TopicRecord(name=f"topic-{topic:06d}", topic_id=topic_id(topic))
        replicas = tuple((number + place) % BROKERS for place in range(REPLICATION_FACTOR))
        yield PartitionRecord(
            partition_id=index,
            topic_id=topic_id(topic),
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(directories[broker] for broker in replicas),
        )


def change_records(count: int, partitions: int) -> Iterator[MetadataRecord]:
    """In-sync replicas that shrink and grow, partition after partition."""
    for number in range(count):
        place = number * 7919 % partitions
        topic, index = divmod(place, PARTITIONS_OF_TOPIC)
        replicas = tuple((place + step) % BROKERS for step in range(REPLICATION_FACTOR))
        isr = replicas if number % 2 else replicas[:2]
        yield PartitionChangeRecord(partition_id=index, topic_id=topic_id(topic), isr=isr)


def append(folder: Path, records: Iterable[MetadataRecord], records_of_batch: int) -> int:
    """Append to the metadata log in a data folder, under the last epoch that it has; answers the log's end."""
    log = FileLog(folder / FOLDER_NAME)
    summary = log.summary()
    epoch = summary.epochs[-1][0] if summary.epochs else summary.snapshots[-1].epoch
    values, count = iter(records), 0
    while chunk := list(islice(values, records_of_batch)):
        log.append([_batch(log.end_offset, epoch, chunk)])
        count += 1
        if count % FLUSH_BATCHES == 0:
            log.flush()
    end_offset = log.end_offset
    log.close()
    return end_offset


def _batch(offset: int, epoch: int, records: Sequence[MetadataRecord]) -> LogBatch:
    values = [(None, encode_record(record)) for record in records]
    codec = CompressionCodec.LZ4 if len(records) >= RECORDS_OF_CREATE else CompressionCodec.NONE
    return build_batch(offset, epoch, FIRST_TIMESTAMP_MS + offset, values, codec=codec)


def take_snapshot(folder: Path) -> None:
    """`kquorum snapshot take` at the log's end, and then a log that begins there. Raises RuntimeError."""
    with redirect_stdout(io.StringIO()) as told:
        status = run(["snapshot", "take", str(folder / FOLDER_NAME), "--committed"])
    if status != 0:
        raise RuntimeError(f"no snapshot could be taken of {folder}: {told.getvalue()}")
    for path in (folder / FOLDER_NAME).iterdir():
        if path.suffix in SEGMENT_SUFFIXES or path.name in (RECOVERY_POINT, EPOCHS):
            path.unlink()


def base_folder(cluster: Cluster, node_id: int) -> Path:
    """The data folder of a node that has been started once, and has led."""
    cluster.write_config()
    cluster.start()
    cluster.leader_id()
    cluster.terminate(node_id)
    return cluster.data_folder(node_id)


def replace_folder(folder: Path, source: Path) -> None:
    """The data folder as it is in `source`."""
    shutil.rmtree(folder)
    shutil.copytree(source, folder)
