"""Turns committed batches into images: the same on controllers, brokers and tools.

Outside transactions each call makes one image. The records between Begin and End (KIP-868) are held back, however
many calls they span, and are discarded at Abort itself: what follows an Abort in the same batch is not mixed with
what it aborted.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from metadata.image.delta import MetadataDelta
from metadata.image.errors import ReplayError
from metadata.image.image import MetadataImage, Provenance
from metadata.image.run_replay import replay_run, run_kind
from metadata.image.state_hash import hash_after, hash_of_image
from raft.batches import LogBatch
from wire.errors import DecodeError
from wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from wire.record_batch import HEADER_BYTES, read_batch_header
from wire.record_columns import plain_values
from wire.record_frame import decode_record
from wire.schema import MetadataRecord

Publisher = Callable[[MetadataDelta, MetadataImage], None]
FaultHandler = Callable[[ReplayError], None]
# A record's offset and value.
Located = tuple[int, bytes | None]


class MetadataLoader:
    """Publishers are called in their order with each delta and the image that it led to.

    Without a fault handler a record that cannot be read or replayed raises ReplayError; with one it is reported,
    skipped, and loading goes on (what a broker does).
    """

    def __init__(self, image: MetadataImage | None = None, on_fault: FaultHandler | None = None) -> None:
        self.image = image or MetadataImage.empty()
        # Of the image; see metadata.image.state_hash.
        self.state_hash = hash_of_image(self.image)
        self.publishers: list[Publisher] = []
        self.has_data = not self.image.is_empty
        self.transaction_start_offset: int | None = None
        # The newest audit note; a snapshot carries it on, as the next note holds its hash.
        self.last_audit_note: bytes | None = None
        self._on_fault = on_fault
        self._delta = MetadataDelta(self.image)
        self._position = self.image.provenance

    @property
    def last_applied_offset(self) -> int:
        """The last offset in the image; it stands still while a transaction is open."""
        return self.image.provenance.last_contained_offset

    def handle_commit(self, batches: Sequence[LogBatch]) -> MetadataImage | None:
        """Apply committed batches; answers the new image, or None where a transaction is still open."""
        published = None
        for batch in batches:
            published = self._load(batch) or published
        if self.transaction_start_offset is None and self._position != self.image.provenance:
            published = self._publish()
        return published

    def handle_snapshot(
        self, image: MetadataImage, last_audit_note: bytes | None = None, state_hash: int | None = None
    ) -> MetadataImage:
        """Replace everything by a loaded snapshot's image; an open transaction is forgotten. The image's hash is made
        here unless it is given, which takes a second for a million partitions."""
        delta = MetadataDelta(self.image)
        delta.become(image)
        self.last_audit_note = last_audit_note
        return self._adopt(delta, image, hash_of_image(image) if state_hash is None else state_hash)

    def adopt(self, delta: MetadataDelta, image: MetadataImage) -> MetadataImage:
        """Take over an image that was made elsewhere: by the leader, which replays before it proposes."""
        return self._adopt(delta, image, hash_after(self.state_hash, delta, image))

    def _adopt(self, delta: MetadataDelta, image: MetadataImage, state_hash: int) -> MetadataImage:
        self._delta = delta
        self._position = image.provenance
        self.transaction_start_offset = None
        self.image = image
        return self._publish(state_hash)

    def full_delta(self) -> MetadataDelta:
        """From nothing to the present image: what a publisher that joins late is given first."""
        delta = MetadataDelta(MetadataImage.empty())
        delta.become(self.image)
        return delta

    def _load(self, batch: LogBatch) -> MetadataImage | None:
        published = None
        timestamp_ms = read_batch_header(batch.data).max_timestamp_ms
        if not batch.is_control:
            for kind, group in groupby(self._unseen(batch), lambda pair: run_kind(pair[1])):
                records = list(group)
                end = _place_in(batch, records[-1][0], timestamp_ms)
                if kind:
                    records = self._replay_together(records)
                for offset, record in self._decoded(records):
                    if isinstance(record, BeginTransactionRecord):
                        published = self._begin(record, offset) or published
                    else:
                        self._replay(record, offset)
                    self._position = _place_in(batch, offset, timestamp_ms)
                self._position = end
        self._position = Provenance(
            last_contained_offset=batch.last_offset,
            last_contained_epoch=batch.leader_epoch,
            timestamp_ms=timestamp_ms,
        )
        return published

    def _replay_together(self, records: Sequence[Located]) -> list[Located]:
        """Of partition records; answers those that are to be replayed one by one."""
        others = replay_run(self._delta, [value or b"" for _, value in records])
        return [records[place] for place in others]

    def _unseen(self, batch: LogBatch) -> Iterable[Located]:
        """The records that the image does not have: it may end inside this batch, where another state was adopted.

        A tool that has split the records already leaves but the header in `data`.
        """
        is_whole = len(batch.data) > HEADER_BYTES
        values = plain_values(batch.data) if is_whole else None
        located: Iterable[Located] = (
            ((record.offset, record.value) for record in batch.records)
            if values is None
            else enumerate(values, batch.base_offset)
        )
        if self._position.is_batch_aligned:
            return located
        return [each for each in located if each[0] > self._position.last_contained_offset]

    def _decoded(self, records: Iterable[Located]) -> Iterable[tuple[int, MetadataRecord]]:
        for offset, value in records:
            try:
                yield offset, decode_record(value or b"")
            except DecodeError as error:
                self._fault(ReplayError(offset, value, str(error)))

    def _replay(self, record: MetadataRecord, offset: int) -> None:
        if isinstance(record, EndTransactionRecord | AbortTransactionRecord):
            self._close(record, offset)
            return
        try:
            self._delta.replay(record, offset)
        except ReplayError as error:
            self._fault(error)

    def _begin(self, record: MetadataRecord, offset: int) -> MetadataImage | None:
        """What came before is published first, so that an Abort has something to return to."""
        if self.transaction_start_offset is not None:
            self._fault(
                ReplayError(offset, record, f"a transaction is open since {self.transaction_start_offset}")
            )
            return None
        published = self._publish() if self._position != self.image.provenance else None
        self.transaction_start_offset = offset
        return published

    def _close(self, record: MetadataRecord, offset: int) -> None:
        if self.transaction_start_offset is None:
            self._fault(ReplayError(offset, record, "no transaction is open"))
            return
        if isinstance(record, AbortTransactionRecord):
            self._delta = MetadataDelta(self.image)
        self.transaction_start_offset = None

    def _publish(self, adopted_hash: int | None = None) -> MetadataImage:
        """Of what was replayed, or of the image that was adopted with this hash."""
        delta = self._delta
        if adopted_hash is None:
            self.image = delta.apply(self._position)
            self.state_hash = hash_after(self.state_hash, delta, self.image)
        else:
            self.state_hash = adopted_hash
        self.has_data = self.has_data or not delta.is_empty
        if delta.audit_notes:
            self.last_audit_note = delta.audit_notes[-1]
        self._delta = MetadataDelta(self.image)
        for publisher in self.publishers:
            publisher(delta, self.image)
        return self.image

    def _fault(self, error: ReplayError) -> None:
        if self._on_fault is None:
            raise error
        self._on_fault(error)


def _place_in(batch: LogBatch, offset: int, timestamp_ms: int) -> Provenance:
    return Provenance(
        last_contained_offset=offset,
        last_contained_epoch=batch.leader_epoch,
        timestamp_ms=timestamp_ms,
        is_batch_aligned=False,
    )
