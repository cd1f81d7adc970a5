"""Turns committed batches into images: the same on controllers, brokers and tools.

Outside transactions each call makes one image. The records between Begin and End (KIP-868) are held back, however
many calls they span, and are discarded at Abort itself: what follows an Abort in the same batch is not mixed with
what it aborted.

A batch of very many records, and the batches of a transaction, whose End publishes all of it, are applied in slices,
between which the caller may do other things. Until the last slice the image, its hash and what publishers know are as
before.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.loading import replay_run, run_kind
from kquorum.metadata.state_hash.image_hash import MODULUS, hash_after, hash_of_image, hashes_of_change
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from kquorum.wire.record_batch import HEADER_BYTES, read_batch_header
from kquorum.wire.record_columns import located_in_slices, plain_values
from kquorum.wire.record_frame import decode_record
from kquorum.wire.schema import MetadataRecord

Publisher = Callable[[MetadataDelta, MetadataImage], None]
FaultHandler = Callable[[ReplayError], None]
# A record's offset and value.
Located = tuple[int, bytes | None]
# Work that pauses now and then, and ends with the image that it published last.
Slices = Generator[None, None, MetadataImage | None]

# What is replayed without a pause: about ten milliseconds of records that are replayed one by one.
RECORDS_AT_ONCE: Final = 1_000


class MetadataLoader:
    """Publishers are called in their order with each delta and the image that it led to.

    Without a fault handler a record that cannot be read or replayed raises ReplayError; with one it is reported,
    skipped, and loading goes on (what a broker does).
    """

    def __init__(self, image: MetadataImage | None = None, on_fault: FaultHandler | None = None) -> None:
        self.image = image or MetadataImage.empty()
        # Of the image; see metadata.state_hash.image_hash.
        self.state_hash = hash_of_image(self.image)
        self.publishers: list[Publisher] = []
        self.has_data = not self.image.is_empty
        self.transaction_start_offset: int | None = None
        # The newest audit note; a snapshot carries it on, as the next note holds its hash.
        self.last_audit_note: bytes | None = None
        self._on_fault = on_fault
        self._delta = MetadataDelta(self.image)
        self._position = self.image.provenance
        self._under_way: Slices | None = None

    @property
    def is_in_transaction(self) -> bool:
        return self.transaction_start_offset is not None

    @property
    def last_applied_offset(self) -> int:
        """The last offset in the image; it stands still while a transaction is open."""
        return self.image.provenance.last_contained_offset

    def handle_commit(self, batches: Sequence[LogBatch]) -> MetadataImage | None:
        """Apply committed batches; answers the new image, or None where a transaction is still open."""
        assert self._under_way is None, "what was begun in slices is finished first"
        return _finished(self._apply(batches))

    def handle_slice(self, batches: Sequence[LogBatch]) -> bool:
        """Apply some more of committed batches; whether all of them are applied then. To be called with the same
        batches until they are, unless a snapshot comes in between."""
        if self._under_way is None:
            self._under_way = self._apply(batches)
        under_way, self._under_way = self._under_way, None
        try:
            next(under_way)
        except StopIteration:
            return True
        self._under_way = under_way
        return False

    def _apply(self, batches: Sequence[LogBatch]) -> Slices:
        published = None
        for batch in batches:
            published = (yield from self._load(batch)) or published
        if self.transaction_start_offset is None and self._position != self.image.provenance:
            published = yield from self._publish()
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
        self._under_way = None
        self._delta = delta
        self._position = image.provenance
        self.transaction_start_offset = None
        return self._become(image, state_hash)

    def full_delta(self) -> MetadataDelta:
        """From nothing to the present image: what a publisher that joins late is given first."""
        delta = MetadataDelta(MetadataImage.empty())
        delta.become(self.image)
        return delta

    def _load(self, batch: LogBatch) -> Slices:
        published = None
        timestamp_ms = read_batch_header(batch.data).max_timestamp_ms
        if not batch.is_control:
            is_first = True
            for records in self._unseen(batch):
                if not is_first:
                    yield
                # Before the first, too: small batches of a long transaction come together to much.
                yield from self._settle(is_done=False)
                is_first = False
                published = (yield from self._replay_some(batch, records, timestamp_ms)) or published
        self._position = Provenance(
            last_contained_offset=batch.last_offset,
            last_contained_epoch=batch.leader_epoch,
            timestamp_ms=timestamp_ms,
        )
        return published

    def _replay_some(self, batch: LogBatch, some: Iterable[Located], timestamp_ms: int) -> Slices:
        published = None
        for kind, group in groupby(some, lambda pair: run_kind(pair[1])):
            records = list(group)
            end = _place_in(batch, records[-1][0], timestamp_ms)
            if kind:
                records = self._replay_together(records)
            for offset, record in self._decoded(records):
                if isinstance(record, BeginTransactionRecord):
                    published = (yield from self._begin(record, offset)) or published
                else:
                    self._replay(record, offset)
                self._position = _place_in(batch, offset, timestamp_ms)
            self._position = end
        return published

    def _settle(self, *, is_done: bool) -> Iterator[None]:
        """Put what was replayed into its tables, a part at a time, before it has become too much for one turn; all of
        it where the delta `is_done`."""
        if not self._delta.touches_topics:
            return
        topics = self._delta.topics
        while (is_done or topics.has_much_pending) and topics.settle_some(RECORDS_AT_ONCE):
            yield

    def _replay_together(self, records: Sequence[Located]) -> list[Located]:
        """Of partition records; answers those that are to be replayed one by one."""
        others = replay_run(self._delta, [value or b"" for _, value in records])
        return [records[place] for place in others]

    def _unseen(self, batch: LogBatch) -> Iterable[Iterable[Located]]:
        """The records that the image does not have, so many at a time: it may end inside this batch, where another
        state was adopted.

        A tool that has split the records already leaves but the header in `data`.
        """
        slices = _located(batch)
        if self._position.is_batch_aligned:
            return slices
        seen = self._position.last_contained_offset
        return ([each for each in located if each[0] > seen] for located in slices)

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

    def _begin(self, record: MetadataRecord, offset: int) -> Slices:
        """What came before is published first, so that an Abort has something to return to."""
        if self.transaction_start_offset is not None:
            self._fault(
                ReplayError(offset, record, f"a transaction is open since {self.transaction_start_offset}")
            )
            return None
        published = (yield from self._publish()) if self._position != self.image.provenance else None
        self.transaction_start_offset = offset
        return published

    def _close(self, record: MetadataRecord, offset: int) -> None:
        if self.transaction_start_offset is None:
            self._fault(ReplayError(offset, record, "no transaction is open"))
            return
        if isinstance(record, AbortTransactionRecord):
            self._delta = MetadataDelta(self.image)
        self.transaction_start_offset = None

    def _publish(self) -> Slices:
        """The image after what was replayed. The hash of a large change takes long, too."""
        yield from self._settle(is_done=True)
        image = self._delta.apply(self._position)
        state_hash = self.state_hash
        for part in hashes_of_change(self._delta, image):
            state_hash += part
            yield
        return self._become(image, state_hash % MODULUS)

    def _become(self, image: MetadataImage, state_hash: int) -> MetadataImage:
        delta = self._delta
        self.image = image
        self.state_hash = state_hash
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


def _located(batch: LogBatch) -> Iterable[Iterable[Located]]:
    is_whole = len(batch.data) > HEADER_BYTES
    if is_whole and batch.last_offset - batch.base_offset >= RECORDS_AT_ONCE:
        return located_in_slices(batch.data, RECORDS_AT_ONCE)
    values = plain_values(batch.data) if is_whole else None
    if values is None:
        return [[(record.offset, record.value) for record in batch.records]]
    return [enumerate(values, batch.base_offset)]


def _finished(slices: Slices) -> MetadataImage | None:
    """Without any pause."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            published: MetadataImage | None = end.value
            return published
