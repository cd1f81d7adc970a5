"""The controller's state ahead of the commit, and the entries that a decision adds to it.

The controller decides on the newest image, which includes what is proposed; readers see the committed one (rule C2).
Images are immutable, so the states between the two are kept in a queue: a commit moves to the next, the loss of
leadership drops them all. An entry of a decision is a record, or a RecordRun: records that were decided together, by
columns.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from immutables import Map

from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.loading import WORTH_COLUMNS, replay_runs
from kquorum.metadata.loader import MetadataLoader
from kquorum.metadata.snapshot import LoadedSnapshot
from kquorum.wire.audit_note import NO_NOTE_HASH, note_hash
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.record_batch import read_batch_header
from kquorum.wire.schema import MetadataRecord


class RecordRun:
    """As many records as there are `values`, which are theirs, in their order."""

    __slots__ = ()

    values: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.values)

    def __bool__(self) -> bool:
        """mypyc does not see that `__len__` says so."""
        return len(self) > 0

    def replay(self, delta: MetadataDelta, offset: int) -> None:
        """What replaying the records one by one would do; `offset` is that of the first."""
        raise NotImplementedError


Entry = MetadataRecord | RecordRun


def record_count(entries: Iterable[Entry]) -> int:
    return sum(len(each) if isinstance(each, RecordRun) else 1 for each in entries)


def stretches(entries: Iterable[Entry]) -> Iterator[RecordRun | list[MetadataRecord]]:
    """The runs, and what stands between them, in their order."""
    records: list[MetadataRecord] = []
    for each in entries:
        if isinstance(each, RecordRun):
            if records:
                yield records
                records = []
            yield each
        else:
            records.append(each)
    if records:
        yield records


def plain_records(entries: Iterable[Entry]) -> list[MetadataRecord]:
    """The entries without runs."""
    records: list[MetadataRecord] = []
    for each in entries:
        assert not isinstance(each, RecordRun), "these records are decided one by one"
        records.append(each)
    return records


RECORDS_AHEAD: Final = 8192

Publisher = Callable[[MetadataImage, MetadataDelta], None]


@dataclass(slots=True, init=False)
class Derived:
    """Derived from the log but not part of an image: neither compared nor snapshotted."""

    registration_offsets: Final[Map[int, int]]
    last_note_hash: Final[bytes]

    def __init__(
        self,
        registration_offsets: Map[int, int] | None = None,
        last_note_hash: bytes = NO_NOTE_HASH,
    ) -> None:
        self.registration_offsets = Map() if registration_offsets is None else registration_offsets
        self.last_note_hash = last_note_hash

    def after(self, delta: MetadataDelta) -> "Derived":
        offsets = self.registration_offsets.update(delta.registration_offsets)
        for broker_id, broker in delta.changed_brokers.items():
            if broker is None and broker_id in offsets:
                offsets = offsets.delete(broker_id)
        last = note_hash(delta.audit_notes[-1]) if delta.audit_notes else self.last_note_hash
        return Derived(offsets, last)


@dataclass(slots=True, init=False)
class Proposed:
    """The state after an own proposal, which has the records from `base_offset` to `end_offset`, both included; a
    transaction's stand in several batches."""

    base_offset: Final[int]
    end_offset: Final[int]
    delta: Final[MetadataDelta]
    image: Final[MetadataImage]
    derived: Final[Derived]

    def __init__(
        self,
        base_offset: int,
        end_offset: int,
        delta: MetadataDelta,
        image: MetadataImage,
        derived: Derived,
    ) -> None:
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.delta = delta
        self.image = image
        self.derived = derived


class Timeline:
    def __init__(self, image: MetadataImage | None = None) -> None:
        self.loader = MetadataLoader(image)
        self.publishers: list[Publisher] = []
        self._proposed: deque[Proposed] = deque()
        # Committed batches of an own transaction whose end is not committed yet.
        self._held_back: list[LogBatch] = []
        self._committed_derived = Derived().after(self.loader.full_delta())
        self.loader.publishers.append(self._handle_publish)

    @property
    def committed_image(self) -> MetadataImage:
        return self.loader.image

    @property
    def image(self) -> MetadataImage:
        """The newest, which includes what is not committed yet."""
        return self._proposed[-1].image if self._proposed else self.loader.image

    @property
    def derived(self) -> Derived:
        return self._proposed[-1].derived if self._proposed else self._committed_derived

    @property
    def has_uncommitted(self) -> bool:
        return bool(self._proposed)

    @property
    def is_far_ahead(self) -> bool:
        """Whether so many records are uncommitted that the controller should start no further work by itself: slice
        after slice would leave the leader's loop no time for the followers' fetches, and a leader without fetches
        resigns."""
        return self.last_offset - self.loader.last_applied_offset >= RECORDS_AHEAD

    @property
    def last_offset(self) -> int:
        """Of the last record in the newest state."""
        return self._proposed[-1].end_offset if self._proposed else self.loader.last_applied_offset

    def decide(
        self, entries: Sequence[Entry], base_offset: int, values: Sequence[bytes] | None = None
    ) -> Proposed:
        """The state after `entries`, which is not taken up yet: the log may refuse them. Where the values of all
        records are known, many partitions are quicker replayed."""
        delta = MetadataDelta(self.image)
        if len(entries) < WORTH_COLUMNS and not any(isinstance(each, RecordRun) for each in entries):
            for offset, record in enumerate(plain_records(entries), base_offset):
                delta.replay(record, offset)
            return self._proposed_by(delta, base_offset, base_offset + len(entries) - 1)
        offset = base_offset
        for stretch in stretches(entries):
            if isinstance(stretch, RecordRun):
                stretch.replay(delta, offset)
            elif values is not None:
                start = offset - base_offset
                replay_runs(delta, stretch, values[start : start + len(stretch)], offset)
            else:
                for place, record in enumerate(stretch, offset):
                    delta.replay(record, place)
            offset += len(stretch)
        return self._proposed_by(delta, base_offset, offset - 1)

    def _proposed_by(self, delta: MetadataDelta, base_offset: int, end_offset: int) -> Proposed:
        image = delta.apply(Provenance(last_contained_offset=end_offset, is_batch_aligned=False))
        return Proposed(base_offset, end_offset, delta, image, self.derived.after(delta))

    def propose(self, proposed: Proposed) -> None:
        """The log took the records of this state."""
        assert proposed.end_offset > self.last_offset, "a proposal comes after those before it"
        self._proposed.append(proposed)

    def commit(self, batches: Sequence[LogBatch]) -> None:
        """Own proposals were replayed when they were made; everything else is loaded now."""
        if not self._proposed:
            self.loader.handle_commit(batches)
            return
        for batch in batches:
            # Control batches within an own open transaction wait with it: the loader gets batches in their order.
            if self._held_back and batch.is_control:
                self._held_back.append(batch)
            elif batch.is_control:
                self.loader.handle_commit([batch])
            else:
                self._commit_own(batch)

    def commit_slice(self, batches: Sequence[LogBatch]) -> bool:
        """Some more of these batches; whether all of them are committed then."""
        if self._proposed:
            self.commit(batches)
            return True
        return self.loader.handle_slice(batches)

    def handle_snapshot(self, snapshot: LoadedSnapshot) -> None:
        """Start over from a snapshot: either a standby that was far behind received it, or the node starts with its
        own."""
        assert not self._proposed, "who follows proposes nothing"
        note = snapshot.last_audit_note
        self._committed_derived = Derived(last_note_hash=NO_NOTE_HASH if note is None else note_hash(note))
        self.loader.handle_snapshot(snapshot.image, note, snapshot.state_hash)

    def revert(self) -> None:
        """Drop what was proposed and not committed. From now on the loader holds back the committed part of an open
        transaction: another controller will end it."""
        self._proposed.clear()
        held_back, self._held_back = self._held_back, []
        # Committed, but never loaded: they were to be adopted as one state at the transaction's end.
        if held_back:
            self.loader.handle_commit(held_back)

    def _commit_own(self, batch: LogBatch) -> None:
        if not self._proposed:
            self.loader.handle_commit([batch])
            return
        timestamp_ms = read_batch_header(batch.data).max_timestamp_ms
        delta: MetadataDelta | None = None
        newest: Proposed | None = None
        while self._proposed and self._proposed[0].end_offset <= batch.last_offset:
            proposed = self._proposed.popleft()
            # The decisions of a turn stand in one batch and are published together, as a follower publishes a batch.
            if newest is not None and delta is not None and not delta.absorb(proposed.delta):
                self._adopt(delta, newest, batch, timestamp_ms)
                delta = None
            delta = proposed.delta if delta is None else delta
            newest = proposed
        if newest is not None and delta is not None:
            self._adopt(delta, newest, batch, timestamp_ms)
        if self._proposed and self._proposed[0].base_offset <= batch.last_offset:
            self._held_back.append(batch)
            return
        assert self.loader.last_applied_offset == batch.last_offset, (
            f"the leader's log got records that its controller did not propose, up to {batch.last_offset}"
        )

    def _adopt(self, delta: MetadataDelta, newest: Proposed, batch: LogBatch, timestamp_ms: int) -> None:
        provenance = Provenance(
            last_contained_offset=newest.end_offset,
            last_contained_epoch=batch.leader_epoch,
            timestamp_ms=timestamp_ms,
            is_batch_aligned=newest.end_offset == batch.last_offset,
        )
        self._held_back.clear()
        self.loader.adopt(delta, newest.image.at(provenance))

    def _handle_publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._committed_derived = self._committed_derived.after(delta)
        for publisher in self.publishers:
            publisher(image, delta)
