"""Does every node make the same state of the same log? Each replica reports its newest state; the leader compares.

A replica's Fetch carries the offset and the hash of its newest state. Nodes apply what is committed in pieces of
different sizes, so the leader remembers its own hashes of the last offsets, and a report of an offset that the leader
is yet to reach waits for it. Sans-IO; each mismatch goes to `on_mismatch`. The answer to DescribeQuorum carries the
reports as a message of the gRPC service `Quorum`.
"""

import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from google.protobuf.message import DecodeError as ProtobufError

from kquorum.metadata.state_hash.image_hash import SCHEME
from kquorum.raft.voters import ReplicaKey
from kquorum.wire.proto import quorum_pb2 as pb

REMEMBERED_STATES: Final = 4096
MOST_REPORTERS: Final = 4096
TOLD_AGAIN_AFTER_MS: Final = 60_000
_ANNOTATION: Final = struct.Struct(">BQ16s")


@dataclass(slots=True, init=False)
class StateAt:
    """`offset` is the last in the state."""

    offset: Final[int]
    state_hash: Final[int]

    def __init__(
        self,
        offset: int,
        state_hash: int,
    ) -> None:
        self.offset = offset
        self.state_hash = state_hash


@dataclass(frozen=True, slots=True)
class Mismatch:
    """At `offset` the replica's hash was not ours; first found at `found_ms`."""

    replica: ReplicaKey
    offset: int
    own_hash: int
    state_hash: int
    found_ms: int


@dataclass(slots=True, init=False)
class Report:
    """What is known of a replica's state. `agreed_offset` is the last one at which it was ours, None before the first;
    `mismatch` goes when a later state is ours again."""

    replica: Final[ReplicaKey]
    newest: Final[StateAt]
    agreed_offset: Final[int | None]
    mismatch: Final[Mismatch | None]
    is_compared: Final[bool]

    def __init__(
        self,
        replica: ReplicaKey,
        newest: StateAt,
        agreed_offset: int | None = None,
        mismatch: Mismatch | None = None,
        is_compared: bool = False,
    ) -> None:
        self.replica = replica
        self.newest = newest
        self.agreed_offset = agreed_offset
        self.mismatch = mismatch
        self.is_compared = is_compared


class StateComparison:
    def __init__(self, on_mismatch: Callable[[Mismatch], None]) -> None:
        """`on_mismatch` hears of each at once, and again while it lasts, once a minute at most for each replica."""
        self._on_mismatch = on_mismatch
        self._own: OrderedDict[int, int] = OrderedDict()
        self._reports: dict[ReplicaKey, Report] = {}
        self._told_ms: dict[ReplicaKey, int] = {}

    @property
    def own(self) -> StateAt | None:
        """The newest; None before there is any."""
        return StateAt(*next(reversed(self._own.items()))) if self._own else None

    @property
    def reports(self) -> Iterator[Report]:
        """By id of the replica."""
        return (self._reports[key] for key in sorted(self._reports))

    def note_own(self, now_ms: int, offset: int, state_hash: int) -> None:
        """The state of this node moved on to `offset`."""
        if offset < 0:
            return
        self._own[offset] = state_hash
        self._own.move_to_end(offset)
        if len(self._own) > REMEMBERED_STATES:
            self._own.popitem(last=False)
        for report in list(self._reports.values()):
            if report.newest.offset == offset and not report.is_compared:
                self._compare(now_ms, report)

    def note_report(self, now_ms: int, replica: ReplicaKey, annotation: bytes) -> None:
        """What came with a replica's Fetch; what another scheme of hashes made is of no use and passed over."""
        newest = state_of(annotation)
        if newest is None:
            return
        known = self._reports.get(replica)
        if known is None:
            if len(self._reports) >= MOST_REPORTERS:
                self.forget_reports()
            known = Report(replica, newest)
        if known.newest == newest and known.is_compared:
            self._maybe_tell(now_ms, known)
            return
        self._compare(now_ms, Report(replica, newest, known.agreed_offset, known.mismatch))

    def forget_reports(self) -> None:
        """Another leads now, and they report to it."""
        self._reports.clear()
        self._told_ms.clear()

    def _compare(self, now_ms: int, report: Report) -> None:
        offset, state_hash = report.newest.offset, report.newest.state_hash
        own_hash = self._own.get(offset)
        if own_hash == state_hash:
            report = Report(report.replica, report.newest, agreed_offset=offset, is_compared=True)
            self._told_ms.pop(report.replica, None)
        elif own_hash is not None:
            found_ms = now_ms if report.mismatch is None else report.mismatch.found_ms
            mismatch = Mismatch(report.replica, offset, own_hash, state_hash, found_ms)
            report = Report(report.replica, report.newest, report.agreed_offset, mismatch, is_compared=True)
        self._reports[report.replica] = report
        self._maybe_tell(now_ms, report)

    def _maybe_tell(self, now_ms: int, report: Report) -> None:
        told_ms = self._told_ms.get(report.replica)
        if report.mismatch is None or (told_ms is not None and now_ms < told_ms + TOLD_AGAIN_AFTER_MS):
            return
        self._told_ms[report.replica] = now_ms
        self._on_mismatch(report.mismatch)


def annotation_of(state: StateAt | None) -> bytes:
    """What a Fetch carries: the scheme of the hash (1 byte), offset (8) and hash (16); nothing before any state."""
    if state is None:
        return b""
    return _ANNOTATION.pack(SCHEME, state.offset, state.state_hash.to_bytes(16, "big"))


def state_of(annotation: bytes) -> StateAt | None:
    """None for what is not ours to understand."""
    if len(annotation) != _ANNOTATION.size or annotation[0] != SCHEME:
        return None
    _, offset, state_hash = _ANNOTATION.unpack(annotation)
    return StateAt(offset, int.from_bytes(state_hash, "big"))


_HASH_SIZE = 16


def reports_message(comparison: StateComparison) -> pb.StateReports:
    own = comparison.own
    return pb.StateReports(
        own=None if own is None else _state_message(own),
        replicas=[_report_message(report) for report in comparison.reports],
    )


def reports_of(message: pb.StateReports) -> tuple[StateAt | None, tuple[Report, ...]]:
    """The answering node's own state, and what it knows of others."""
    own = _state_of(message.own) if message.HasField("own") else None
    return own, tuple(_report_of(report) for report in message.replicas)


def reports_in(annotation: bytes) -> tuple[StateAt | None, tuple[Report, ...]]:
    """Of what an answer to DescribeQuorum carries; nothing where it carries nothing that we know."""
    try:
        return reports_of(pb.StateReports.FromString(annotation))
    except (ProtobufError, ValueError):
        return None, ()


def _state_message(state: StateAt) -> pb.StateAt:
    return pb.StateAt(offset=state.offset, hash=state.state_hash.to_bytes(_HASH_SIZE, "big"))


def _report_message(report: Report) -> pb.StateReport:
    mismatch = report.mismatch
    return pb.StateReport(
        replica_id=report.replica.id,
        directory_id=report.replica.directory_id.bytes,
        newest=_state_message(report.newest),
        agreed_offset=report.agreed_offset,
        mismatch=None if mismatch is None else _mismatch_message(mismatch),
    )


def _mismatch_message(mismatch: Mismatch) -> pb.StateMismatch:
    return pb.StateMismatch(
        offset=mismatch.offset,
        own_hash=mismatch.own_hash.to_bytes(_HASH_SIZE, "big"),
        hash=mismatch.state_hash.to_bytes(_HASH_SIZE, "big"),
        found_ms=mismatch.found_ms,
    )


def _state_of(message: pb.StateAt) -> StateAt:
    return StateAt(message.offset, int.from_bytes(message.hash, "big"))


def _report_of(message: pb.StateReport) -> Report:
    replica = ReplicaKey(message.replica_id, UUID(bytes=message.directory_id))
    mismatch = None
    if message.HasField("mismatch"):
        found = message.mismatch
        own_hash, state_hash = int.from_bytes(found.own_hash, "big"), int.from_bytes(found.hash, "big")
        mismatch = Mismatch(replica, found.offset, own_hash, state_hash, found.found_ms)
    agreed_offset = message.agreed_offset if message.HasField("agreed_offset") else None
    return Report(replica, _state_of(message.newest), agreed_offset, mismatch)
