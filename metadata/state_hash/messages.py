"""States and their comparison as messages of the gRPC service `Quorum`."""

from uuid import UUID

from google.protobuf.message import DecodeError as ProtobufError

from metadata.state_hash.comparison import Mismatch, Report, StateAt, StateComparison
from raft.voters import ReplicaKey
from wire.proto import quorum_pb2 as pb

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
