"""Which name a topic id stands for, learnt from the TopicRecords seen so far."""

import contextlib
from collections.abc import Iterable, Mapping

from spark_replay.decode import origin_of, scan
from spark_replay.files import map_file
from spark_replay.rows import DamageRow, RecordRow
from spark_replay.sources import LogFile
from wire.errors import DecodeError
from wire.log_scan import ScannedBatch
from wire.topic_records import names_in_batch

_TOPIC = "TopicRecord"


class TopicNames:
    """Ids are never used again, so a removed topic keeps its name here: its last records still are about it."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def observe(self, row: RecordRow) -> None:
        if row.record_type == _TOPIC and row.topic_id is not None and row.topic_name is not None:
            self._names[row.topic_id] = row.topic_name

    def name_of(self, row: RecordRow) -> str | None:
        """The name of the topic that the record is about, by its own words or by its topic id."""
        if row.topic_name is not None or row.topic_id is None:
            return row.topic_name
        return self._names.get(row.topic_id)

    def known(self) -> frozenset[str]:
        return frozenset(self._names.values())

    def learn(self, names: Mapping[str, str]) -> None:
        """By the texts of their ids."""
        self._names.update(names)

    def learn_batch(self, batch: ScannedBatch) -> None:
        """Learn from a batch which is not shown, and need not be decoded for that. One that cannot be read teaches
        nothing."""
        if not batch.header.is_control:
            with contextlib.suppress(DecodeError):
                self.learn(names_in_batch(batch.data))

    def learn_files(self, files: Iterable[LogFile]) -> None:
        """Learn from files which come before the ones shown; what is damaged in them is not told here."""
        for file in files:
            origin = origin_of(file)
            for item in scan(map_file(file.path), origin):
                if not isinstance(item, DamageRow):
                    self.learn_batch(item)
