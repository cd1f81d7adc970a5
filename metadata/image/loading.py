"""Many records at once into an image: runs of partition records in a log, and the record values of a snapshot.

When topics are made or a broker fails, thousands of records of one kind follow each other, each of another partition;
a snapshot has up to a million. They are gathered as bytes, and read and replayed together by columns. Any other record
is replayed alone.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_changes import CHANGE_FRAME, changes_of
from kquorum.metadata.image.partition_records import (
    IDENTITY,
    LISTS_AT,
    PARTITION_FRAME,
    TOPIC_ID,
    VERSION_AT,
    read_by_columns,
)
from kquorum.wire.codegen.kinds import uuid_of
from kquorum.wire.metadata_records.topics import TopicRecord
from kquorum.wire.record_frame import decode_record
from kquorum.wire.schema import MetadataRecord

# Shorter runs are quicker replayed one by one.
WORTH_COLUMNS: Final = 16


def run_kind(value: bytes | None) -> bytes:
    """The first bytes of a partition record of some kind; none for a record that is in no run."""
    kind = value[:VERSION_AT] if value is not None and len(value) >= LISTS_AT else b""
    return kind if kind in (PARTITION_FRAME, CHANGE_FRAME) else b""


def replay_run(delta: MetadataDelta, values: Sequence[bytes]) -> Sequence[int]:
    """Replay what can be by columns of records of one kind; answers the places of the others, to be replayed one by
    one. What is wrong with a record is left to that."""
    everything = range(len(values))
    # Two records of one partition count in their order.
    if len(values) < WORTH_COLUMNS or len({value[IDENTITY] for value in values}) < len(values):
        return everything
    if values[0][:VERSION_AT] == CHANGE_FRAME:
        changes, others = changes_of(values)
        return others if delta.replay_changes(changes) else everything
    if not all(delta.topics.has_topic(uuid_of(raw)) for raw in {value[TOPIC_ID] for value in values}):
        return everything
    tables, others = read_by_columns(values)
    delta.replay_partitions(tables)
    return others


def replay_runs(
    delta: MetadataDelta, records: Sequence[MetadataRecord], values: Sequence[bytes], base_offset: int
) -> None:
    """Replay records whose values are known, the first of them at `base_offset`: runs together, the others one by one.

    Raises ReplayError.
    """
    for kind, group in groupby(range(len(records)), lambda place: run_kind(values[place])):
        places = list(group)
        if kind:
            others = replay_run(delta, [values[place] for place in places])
            places = [places[other] for other in others]
        for place in places:
            delta.replay(records[place], base_offset + place)


# How many are gathered at most: with their columns some 4 MB, which is what loading holds beside the image.
MOST_AT_ONCE = 8192


def delta_from_values(values: Iterable[bytes]) -> MetadataDelta:
    """What a snapshot's record values make of nothing.

    Raises DecodeError and ReplayError, whose offset is the record's ordinal.
    """
    return _Loading().load(values)


class _Loading:
    """`_run` are partition records not replayed yet, with their ordinals and the topics they are of."""

    def __init__(self) -> None:
        self._delta = MetadataDelta(MetadataImage.empty())
        self._run: list[bytes] = []
        self._ordinals: list[int] = []
        self._topic_ids: set[bytes] = set()

    def load(self, values: Iterable[bytes]) -> MetadataDelta:
        topic_id = b""
        for ordinal, value in enumerate(values):
            if value[:VERSION_AT] == PARTITION_FRAME and len(value) > LISTS_AT:
                self._run.append(value)
                self._ordinals.append(ordinal)
                if value[TOPIC_ID] != topic_id:
                    topic_id = value[TOPIC_ID]
                    self._topic_ids.add(topic_id)
                if len(self._run) >= MOST_AT_ONCE:
                    self._replay_run()
                    topic_id = b""
            else:
                self._replay_other(value, ordinal)
                topic_id = b""
        self._replay_run()
        return self._delta

    def _replay_other(self, value: bytes, ordinal: int) -> None:
        record = decode_record(value)
        # A new topic does not care for the partitions of others; so those of many small topics are read together.
        if not isinstance(record, TopicRecord) or record.topic_id.bytes in self._topic_ids:
            self._replay_run()
        self._delta.replay_of_snapshot(record, ordinal)

    def _replay_run(self) -> None:
        run, ordinals, topic_ids = self._run, self._ordinals, self._topic_ids
        self._run, self._ordinals, self._topic_ids = [], [], set()
        # Two records of one partition count in their order, and an error names a single record.
        has_topics = all(self._delta.topics.has_topic(uuid_of(topic_id)) for topic_id in topic_ids)
        others: Iterable[int] = range(len(run))
        if has_topics and len({value[IDENTITY] for value in run}) == len(run):
            tables, others = read_by_columns(run)
            self._delta.replay_partitions(tables)
        for place in others:
            self._delta.replay(decode_record(run[place]), ordinals[place])
