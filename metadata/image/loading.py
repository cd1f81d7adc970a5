"""A snapshot's record values to an image: what loading must do a million times is done by columns.

Partition records are gathered as bytes until they are many, and then read together. Anything out of the ordinary is
replayed record by record.
"""

from collections.abc import Iterable

from metadata.image.delta import MetadataDelta
from metadata.image.image import MetadataImage
from metadata.image.partition_reading import read_by_columns
from metadata.image.partition_records import IDENTITY, LISTS_AT, PARTITION_FRAME, TOPIC_ID, VERSION_AT
from wire.codegen.kinds import uuid_of
from wire.metadata_records.topics import TopicRecord
from wire.record_frame import decode_record

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
        # Two records of one partition count in their order, and what is wrong is told as of a single record.
        has_topics = all(self._delta.topics.has_topic(uuid_of(topic_id)) for topic_id in topic_ids)
        others: Iterable[int] = range(len(run))
        if has_topics and len({value[IDENTITY] for value in run}) == len(run):
            tables, others = read_by_columns(run)
            self._delta.replay_partitions(tables)
        for place in others:
            self._delta.replay(decode_record(run[place]), ordinals[place])
