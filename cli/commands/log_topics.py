"""Which name a topic id stands for, learnt from the TopicRecords seen so far."""

from collections.abc import Iterable

from spark_replay.decode import RecordDecoder, origin_of, scan
from spark_replay.files import map_file
from spark_replay.rows import DamageRow, RecordRow
from spark_replay.sources import LogFile
from wire.log_scan import ScannedBatch

_TOPIC = "TopicRecord"
_TOPIC_FRAME = b"\x01\x02"
_CODEC_MASK = 0x07


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

    def learn_batch(self, decoder: RecordDecoder, batch: ScannedBatch) -> None:
        """Learn from a batch which is not shown; nearly all are told from their bytes to hold no TopicRecord."""
        if batch.header.is_control:
            return
        if not batch.header.attributes & _CODEC_MASK and _TOPIC_FRAME not in bytes(batch.data):
            return
        for row in decoder.rows(batch):
            if isinstance(row, RecordRow):
                self.observe(row)

    def learn_files(self, files: Iterable[LogFile]) -> None:
        """Learn from files which come before the ones shown; what is damaged in them is not told here."""
        for file in files:
            origin = origin_of(file)
            decoder = RecordDecoder(origin, wants=_TOPIC.__eq__)
            for item in scan(map_file(file.path), origin):
                if not isinstance(item, DamageRow):
                    self.learn_batch(decoder, item)
