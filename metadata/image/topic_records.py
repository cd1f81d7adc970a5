"""Topics and their partitions as records: one by one, and as the values of many."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from metadata.image.directories import MIGRATING
from metadata.image.metadata_version import DIRECTORIES, partition_record_version
from metadata.image.partition_state import PartitionState
from metadata.image.partition_writing import partition_values
from metadata.image.partitions import PartitionTable
from metadata.image.topics import TopicImage, TopicsImage
from wire.metadata_records.topics import PartitionRecord, TopicRecord
from wire.record_frame import encode_record
from wire.schema import MetadataRecord

_PARTITIONS_AT_ONCE = 4096


def topic_records(image: TopicsImage, metadata_version: int) -> Iterator[MetadataRecord]:
    for _, topic in sorted(image.by_name.items()):
        yield TopicRecord(name=topic.name, topic_id=topic.id)
        yield from _partitions(topic, metadata_version)


def _partitions(topic: TopicImage, metadata_version: int) -> Iterator[PartitionRecord]:
    for partition_id, state in topic.partitions.items():
        yield partition_record(topic, partition_id, state, metadata_version)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some partitions of a topic; `is_first` for those that the topic's own record precedes."""

    topic: TopicImage
    partitions: PartitionTable
    is_first: bool


def topic_values(image: TopicsImage, metadata_version: int) -> Iterator[Sequence[bytes]]:
    """The topics by name, each with its partitions; as many together as have some thousand."""
    some: list[_Piece] = []
    count = 0
    for piece in _pieces(image):
        some.append(piece)
        count += len(piece.partitions)
        if count >= _PARTITIONS_AT_ONCE:
            yield from _values_of(some, metadata_version)
            some, count = [], 0
    yield from _values_of(some, metadata_version)


def _pieces(image: TopicsImage) -> Iterator[_Piece]:
    for _, topic in sorted(image.by_name.items()):
        yield _Piece(topic, topic.partitions.part(0, _PARTITIONS_AT_ONCE), is_first=True)
        for start in range(_PARTITIONS_AT_ONCE, len(topic.partitions), _PARTITIONS_AT_ONCE):
            part = topic.partitions.part(start, start + _PARTITIONS_AT_ONCE)
            yield _Piece(topic, part, is_first=False)


def values_of_partitions(
    topic: TopicImage, partitions: PartitionTable, metadata_version: int
) -> Sequence[bytes]:
    """The values of the records of these partitions of the topic."""
    (values,) = _values_of([_Piece(topic, partitions, is_first=False)], metadata_version)
    return values


def _values_of(pieces: Sequence[_Piece], metadata_version: int) -> Iterator[Sequence[bytes]]:
    version = partition_record_version(metadata_version)
    columns: Iterator[Sequence[bytes | None]]
    if version == 0 and any(each != MIGRATING for piece in pieces for each in piece.partitions.directory_ids):
        # Either the codec refuses what the level has no field for, or no partition uses these directories any more.
        columns = iter([[None] * len(piece.partitions) for piece in pieces])
    else:
        columns = partition_values([(piece.topic.id, piece.partitions) for piece in pieces], version)
    for piece, values in zip(pieces, columns, strict=True):
        if piece.is_first:
            yield [encode_record(TopicRecord(name=piece.topic.name, topic_id=piece.topic.id), 0)]
        yield _completed(piece, values, metadata_version)


def _completed(piece: _Piece, values: Sequence[bytes | None], metadata_version: int) -> Sequence[bytes]:
    """The values with those of rare partitions put in."""
    done = [value for value in values if value is not None]
    if len(done) == len(values):
        return done
    version = partition_record_version(metadata_version)
    return [
        encode_record(partition_record(piece.topic, partition_id, state, metadata_version), version)
        if value is None
        else value
        for (partition_id, state), value in zip(piece.partitions.items(), values, strict=True)
    ]


def partition_record(
    topic: TopicImage, partition_id: int, state: PartitionState, metadata_version: int
) -> PartitionRecord:
    """Directories are left out only where the level has no field for them and none of them says anything."""
    has_directories = metadata_version >= DIRECTORIES or any(each != MIGRATING for each in state.directories)
    return PartitionRecord(
        partition_id=partition_id,
        topic_id=topic.id,
        replicas=state.replicas,
        isr=state.isr,
        removing_replicas=state.removing_replicas,
        adding_replicas=state.adding_replicas,
        leader=state.leader,
        leader_recovery_state=state.leader_recovery_state,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        directories=state.directories if has_directories else (),
        eligible_leader_replicas=state.elr or None,
        last_known_elr=state.last_known_elr or None,
    )
