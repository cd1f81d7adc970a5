"""Replays batches that were read already into images and the quorum's state, reports each record that cannot be
replayed with its file, and compares the state with the hashes that a cluster recorded.

A node makes its state of whole batches, or up to the record before a transaction that is still open, so an offset that
a hash was recorded for may lie within a batch.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kquorum.metadata.image.diff import Action, FieldChange, Plain, StateChange, StateKind
from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.loader import MetadataLoader
from kquorum.metadata.log_check.findings import Check, Finding, Findings, Severity
from kquorum.metadata.state_hash.image_hash import hash_of_image, state_hash_text
from kquorum.wire.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    Voter,
    VotersRecord,
)
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from kquorum.wire.metadata_records.registry import BY_API_KEY
from kquorum.wire.record_batch import HEADER_BYTES, BatchHeader, Record
from kquorum.wire.record_frame import decode_record_lenient
from kquorum.wire.uuids import uuid_to_text


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumView:
    """`leader_id` is None before the first leader change seen; `voter_ids` are the last leader's, `voters` a dynamic
    quorum's."""

    leader_epoch: int = 0
    leader_id: int | None = None
    voter_ids: tuple[int, ...] = ()
    kraft_version: int = 0
    voters: VotersRecord | None = None

    def after(self, controls: Sequence[ControlRecord], epoch: int) -> "QuorumView":
        """The view after one control batch of this leader epoch."""
        view = replace(self, leader_epoch=epoch)
        for control in controls:
            if isinstance(control, LeaderChangeMessage):
                ids = tuple(sorted(voter.voter_id for voter in control.voters))
                view = replace(view, leader_id=control.leader_id, voter_ids=ids)
            elif isinstance(control, KRaftVersionRecord):
                view = replace(view, kraft_version=control.k_raft_version)
            elif isinstance(control, VotersRecord):
                view = replace(view, voters=control)
        return view

    @property
    def voter_texts(self) -> tuple[str, ...]:
        """`1` for a static voter, `1@<directory id>` for one of a dynamic quorum."""
        if self.voters is None:
            return tuple(str(voter_id) for voter_id in self.voter_ids)
        return tuple(
            f"{voter.voter_id}@{uuid_to_text(voter.voter_directory_id)}"
            for voter in sorted(self.voters.voters, key=lambda voter: voter.voter_id)
        )


def diff_quorums(before: QuorumView, after: QuorumView) -> Iterator[StateChange]:
    """One change with the fields that differ; nothing where none does.

    A view that began with a snapshot may not know the leader or the static voters; these are no differences then.
    """
    pairs: list[tuple[str, Plain, Plain]] = [
        ("leader_epoch", before.leader_epoch, after.leader_epoch),
        ("kraft.version", before.kraft_version, after.kraft_version),
    ]
    if after.leader_id is not None:
        pairs.insert(0, ("leader", before.leader_id, after.leader_id))
    if after.voter_texts:
        pairs.append(("voters", before.voter_texts, after.voter_texts))
    yield from _change(pairs)


def diff_voters(before: QuorumView, after: QuorumView) -> Iterator[StateChange]:
    """kraft.version and a dynamic quorum's voters only: that is what a snapshot holds of the quorum."""
    old, new = (_dynamic_voters(view) for view in (before, after))
    if before.kraft_version != after.kraft_version or old != new:
        yield from _change(
            [
                ("kraft.version", before.kraft_version, after.kraft_version),
                ("voters", before.voter_texts, after.voter_texts),
            ]
        )


def _dynamic_voters(view: QuorumView) -> tuple[Voter, ...]:
    if view.voters is None or not view.kraft_version:
        return ()
    return tuple(sorted(view.voters.voters, key=lambda voter: voter.voter_id))


def _change(pairs: list[tuple[str, Plain, Plain]]) -> Iterator[StateChange]:
    fields = tuple(FieldChange(name, old, new) for name, old, new in pairs if old != new)
    if fields:
        yield StateChange(StateKind.QUORUM, Action.CHANGED, "quorum", (), fields)


def is_unknown_record(value: bytes) -> bool:
    """Whether the value has a sound frame, but of a type or version that is not known here."""
    decoded = decode_record_lenient(value)
    if decoded.record is not None or decoded.api_key < 0 or decoded.version < 0:
        return False
    # A known type and version whose content cannot be decoded is damage, not a newer program's record.
    known = BY_API_KEY.get(decoded.api_key)
    return known is None or not known.versions[0] <= decoded.version <= known.versions[1]


# One image is made per so many records: enough to make its cost small, few enough to hold in memory.
_RECORDS_AT_A_TIME = 32_768
_TRANSACTION_MARKERS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


class ReadBatch(LogBatch):
    """A batch whose records were split already; of `data` only the header is kept."""

    __slots__ = ("split_records",)

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        leader_epoch: int,
        is_control: bool,
        data: bytes,
        split_records: tuple[Record, ...] = (),
    ) -> None:
        super().__init__(base_offset, last_offset, leader_epoch, is_control, data)
        self.split_records = split_records

    @property
    def records(self) -> tuple[Record, ...]:
        return self.split_records


@dataclass(frozen=True, slots=True)
class ReplayFault:
    """A record that could not be decoded (METADATA) or contradicts the state (REPLAY, TRANSACTIONS)."""

    check: Check
    severity: Severity
    file: str
    position: int
    offset: int
    reason: str


class StateReplay:
    """The image and the quorum as of the last batch taken, from `image` on.

    `unknown_count` counts records of unknown types, which an image lacks; `fault_count` everything graver.
    """

    def __init__(
        self, image: MetadataImage, quorum: QuorumView, report: Callable[[ReplayFault], None]
    ) -> None:
        self._loader = MetadataLoader(image, on_fault=self._on_fault)
        self._report = report
        self._waiting: list[LogBatch] = []
        self._waiting_records = 0
        self._places: list[tuple[int, str, int]] = []
        self.quorum = quorum
        self.unknown_count = 0
        self.fault_count = 0

    def take(
        self, file: str, position: int, header: BatchHeader, data: memoryview, records: Sequence[Record]
    ) -> None:
        """Replay a data batch, or as many of its records as are given."""
        self._places.append((header.base_offset, file, position))
        self._waiting.append(
            ReadBatch(
                base_offset=header.base_offset,
                last_offset=records[-1].offset if records else header.last_offset,
                leader_epoch=header.partition_leader_epoch,
                is_control=header.is_control,
                data=bytes(data[:HEADER_BYTES]),
                split_records=tuple(records),
            )
        )
        self._waiting_records += len(records)
        if self._waiting_records >= _RECORDS_AT_A_TIME:
            self._flush()

    def take_controls(self, controls: Sequence[ControlRecord], epoch: int) -> None:
        self.quorum = self.quorum.after(controls, epoch)

    @property
    def image(self) -> MetadataImage:
        """As of the last batch; while a transaction is open, as of the record before it."""
        self._flush()
        return self._loader.image

    @property
    def transaction_start_offset(self) -> int | None:
        self._flush()
        return self._loader.transaction_start_offset

    @property
    def last_audit_note(self) -> bytes | None:
        """The newest that came by in what the image contains."""
        self._flush()
        return self._loader.last_audit_note

    def finish(self) -> None:
        """Replay what waits, so that every fault is reported."""
        self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._loader.handle_commit(self._waiting)
            self._waiting, self._places, self._waiting_records = [], [], 0

    def _on_fault(self, error: ReplayError) -> None:
        # Faults come when waiting batches are replayed, so the batch is found by the record's offset.
        _, file, position = self._places[
            bisect_right(self._places, error.offset, key=lambda place: place[0]) - 1
        ]
        check, severity, reason = _classified(error)
        if severity is Severity.NOTE:
            self.unknown_count += 1
        else:
            self.fault_count += 1
        self._report(ReplayFault(check, severity, file, position, error.offset, reason))


def _classified(error: ReplayError) -> tuple[Check, Severity, str]:
    record = error.record
    if record is None or isinstance(record, bytes):
        if record is not None and is_unknown_record(record):
            return Check.METADATA, Severity.NOTE, error.reason
        return Check.METADATA, Severity.DAMAGE, f"the record cannot be read: {error.reason}"
    reason = f"{type(record).__name__}: {error.reason}"
    if isinstance(record, _TRANSACTION_MARKERS):
        return Check.TRANSACTIONS, Severity.VIOLATION, reason
    return Check.REPLAY, Severity.VIOLATION, reason


_REMEDY = (
    "one of the two has a damaged log, or another program: compare the folders of the nodes with "
    "`kquorum log verify` and `kquorum log state-hash`"
)


@dataclass(frozen=True, slots=True)
class RecordedHash:
    """`offset` is the last in the state; `text` are 32 hexadecimal digits, as `kquorum quorum status` shows them."""

    offset: int
    text: str


class HashComparison:
    """Each recorded hash is compared when the replay comes by its offset."""

    def __init__(self, findings: Findings, recorded: Sequence[RecordedHash]) -> None:
        self._findings = findings
        self._waiting = sorted(recorded, key=lambda each: each.offset)

    def pieces(self, records: Sequence[Record]) -> Sequence[Sequence[Record]]:
        """The records of a batch, cut behind every one that a hash was recorded for."""
        if not records or not self._waiting or self._waiting[0].offset > records[-1].offset:
            return (records,)
        # A node hashes its state between records, wherever it was asked; an image exists only at the end of a piece.
        cuts = {each.offset + 1 - records[0].offset for each in self._waiting}
        places = [0, *sorted(cut for cut in cuts if 0 < cut < len(records)), len(records)]
        return [records[start:end] for start, end in pairwise(places)]

    def reach(self, offset: int, replay: StateReplay | None, why_unknown: str) -> None:
        """The replay has come up to `offset`, or there is none, and why not."""
        while self._waiting and self._waiting[0].offset <= offset:
            recorded = self._waiting.pop(0)
            if replay is None:
                self._skip(recorded, why_unknown)
            elif recorded.offset < offset:
                self._skip(recorded, "the log does not hold this offset")
            elif replay.fault_count or replay.unknown_count:
                self._skip(recorded, "records before it could not be replayed")
            elif replay.transaction_start_offset is not None:
                self._skip(recorded, "it lies inside a transaction, where no node has a state")
            else:
                self._compare(recorded, replay)

    def finish(self, why: Callable[[], str]) -> None:
        """The log has ended."""
        for recorded in self._waiting:
            self._skip(recorded, why())
        self._waiting = []

    def _compare(self, recorded: RecordedHash, replay: StateReplay) -> None:
        self._findings.checked(Check.STATE_HASH)
        text = state_hash_text(hash_of_image(replay.image))
        if text == recorded.text:
            return
        reason = f"the replay has the hash {text}, but {recorded.text} was recorded"
        self._findings.add(
            Finding(
                check=Check.STATE_HASH,
                severity=Severity.VIOLATION,
                file="",
                reason=reason,
                remedy=_REMEDY,
                offset=recorded.offset,
            )
        )

    def _skip(self, recorded: RecordedHash, reason: str) -> None:
        self._findings.skip(Check.STATE_HASH, f"offset {recorded.offset}: {reason}")
