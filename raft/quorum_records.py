"""The control records that say who votes: KRaftVersion and Voters, between bytes and the core's values (KIP-853)."""

from collections.abc import Iterator
from dataclasses import dataclass

from raft.voters import Endpoint, ReplicaKey, VersionRange, Voter, VoterSet
from wire.control_records import (
    ControlRecordType,
    KRaftVersionFeature,
    KRaftVersionRecord,
    VoterEndpoint,
    VotersRecord,
    decode_control_record_lenient,
)
from wire.control_records import Voter as VoterEntry
from wire.errors import DecodeError
from wire.log_batch import LogBatch


@dataclass(frozen=True, slots=True)
class KRaftVersionAt:
    """From `offset` on, this is the finalised kraft.version."""

    offset: int
    kraft_version: int


@dataclass(frozen=True, slots=True)
class VotersAt:
    """From `offset` on, these are the voters."""

    offset: int
    voters: VoterSet


QuorumRecord = KRaftVersionAt | VotersAt


def quorum_records(batch: LogBatch) -> Iterator[QuorumRecord]:
    """What a batch says of the quorum; nothing for data batches and other control records.

    Raises DecodeError when it says something that cannot be read: to pass over a change of the voters would leave
    others in force than everywhere else.
    """
    if not batch.is_control:
        return
    for record in batch.records:
        decoded = decode_control_record_lenient(record.key, record.value)
        if isinstance(decoded.record, KRaftVersionRecord):
            yield KRaftVersionAt(record.offset, decoded.record.k_raft_version)
        elif isinstance(decoded.record, VotersRecord):
            yield VotersAt(record.offset, voter_set_of(decoded.record))
        elif decoded.control_type in (ControlRecordType.KRAFT_VERSION, ControlRecordType.KRAFT_VOTERS):
            raise DecodeError(f"the voters at offset {record.offset} cannot be read: {decoded.problem}")


def voter_set_of(record: VotersRecord) -> VoterSet:
    """Raises DecodeError for ids that no leader writes: one of two voters would be lost, or taken for a server."""
    ids = [entry.voter_id for entry in record.voters]
    if len(set(ids)) != len(ids):
        raise DecodeError("its voter set names a node twice")
    if min(ids, default=0) < 0:
        raise DecodeError(f"its voter set names node {min(ids)}; node ids are not negative")
    return VoterSet.of(*(_voter(entry) for entry in record.voters))


def _voter(entry: VoterEntry) -> Voter:
    return Voter(
        key=ReplicaKey(entry.voter_id, entry.voter_directory_id),
        endpoints=tuple(Endpoint(item.name, item.host, item.port) for item in entry.endpoints),
        kraft_versions=VersionRange(
            entry.k_raft_version_feature.min_supported_version,
            entry.k_raft_version_feature.max_supported_version,
        ),
    )


def voters_record(voters: VoterSet) -> VotersRecord:
    return VotersRecord(voters=tuple(_entry(voter) for voter in voters))


def _entry(voter: Voter) -> VoterEntry:
    return VoterEntry(
        voter_id=voter.key.id,
        voter_directory_id=voter.key.directory_id,
        endpoints=tuple(
            VoterEndpoint(name=item.listener, host=item.host, port=item.port) for item in voter.endpoints
        ),
        k_raft_version_feature=KRaftVersionFeature(
            min_supported_version=voter.kraft_versions.lowest,
            max_supported_version=voter.kraft_versions.highest,
        ),
    )
