"""Who votes: replica keys and voter sets, the control records that carry them, and the sets of the log by offset.

A voter set counts from the moment its record is appended, committed or not (rule R11.1; KIP-853). So a cut of the log
takes a set back, and `VoterHistory` answers which set was in force at an earlier offset: a snapshot there needs it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from kquorum.wire.control_records import (
    ControlRecordType,
    KRaftVersionFeature,
    KRaftVersionRecord,
    VoterEndpoint,
    VotersRecord,
    decode_control_record_lenient,
)
from kquorum.wire.control_records import Voter as VoterEntry
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_batch import LogBatch

ZERO_DIRECTORY = UUID(int=0)


@dataclass(frozen=True, slots=True, order=True)
class ReplicaKey:
    """A replica: node id and the id of its metadata folder (KIP-853: a replaced disk is another replica)."""

    id: int
    directory_id: UUID = ZERO_DIRECTORY

    def __hash__(self) -> int:
        """As equality has it. UUID's own hash, written in Python, would double the time of each lookup."""
        return hash((self.id, self.directory_id.int))


@dataclass(frozen=True, slots=True)
class Endpoint:
    listener: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class VersionRange:
    """The levels of a feature that a node supports, both ends included."""

    lowest: int
    highest: int

    def includes(self, version: int) -> bool:
        return self.lowest <= version <= self.highest


# What this code supports, and what is assumed of a voter that only the static configuration names.
SUPPORTED_KRAFT_VERSIONS = VersionRange(0, 1)
STATIC_KRAFT_VERSIONS = VersionRange(0, 0)


@dataclass(frozen=True, slots=True)
class Voter:
    """`kraft_versions` is what the voter said it supports; a voter of the static configuration said nothing."""

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    kraft_versions: VersionRange = STATIC_KRAFT_VERSIONS

    def matches(self, replica: ReplicaKey) -> bool:
        """Whether `replica` is this voter; a voter without a directory id (static quorum) matches on id alone."""
        if replica.id != self.key.id:
            return False
        # Every Fetch asks several times: comparing the integers takes a quarter of the time of comparing the UUIDs.
        directory = self.key.directory_id.int
        return directory == ZERO_DIRECTORY.int or replica.directory_id.int == directory


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The voters by node id, in ascending order."""

    voters: Mapping[int, Voter]

    @staticmethod
    def of(*voters: Voter) -> "VoterSet":
        return VoterSet({voter.key.id: voter for voter in sorted(voters, key=lambda voter: voter.key)})

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self.voters)

    @property
    def keys(self) -> frozenset[ReplicaKey]:
        return frozenset(voter.key for voter in self.voters.values())

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def contains(self, replica: ReplicaKey) -> bool:
        voter = self.voters.get(replica.id)
        return voter is not None and voter.matches(replica)

    def others(self, node_id: int) -> tuple[int, ...]:
        return tuple(voter_id for voter_id in self.voters if voter_id != node_id)

    # Changes, each answering a new set (KIP-853)

    def with_voter(self, voter: Voter) -> "VoterSet":
        """This set and `voter`, whose id must be new."""
        assert voter.key.id not in self.voters, f"node {voter.key.id} is a voter already"
        return VoterSet.of(*self, voter)

    def without(self, key: ReplicaKey) -> "VoterSet":
        """This set less the voter with exactly this key; the last voter cannot go."""
        assert self.contains(key), key
        assert len(self) > 1, key
        return VoterSet.of(*(voter for voter in self if voter.key.id != key.id))

    def updated(self, voter: Voter) -> "VoterSet":
        """This set with the endpoints and versions of a voter replaced; the voter's key must match."""
        assert self.contains(voter.key), voter.key
        return VoterSet.of(voter, *(other for other in self if other.key.id != voter.key.id))

    def overlaps_majority_of(self, other: "VoterSet") -> bool:
        """Whether any majority of one shares a voter with any majority of the other: one change at a time."""
        return len(self.keys - other.keys) <= 1 and len(other.keys - self.keys) <= 1

    def __iter__(self) -> Iterator[Voter]:
        return iter(self.voters.values())

    def __len__(self) -> int:
        return len(self.voters)

    def __bool__(self) -> bool:
        """mypyc does not see that `__len__` says so."""
        return len(self) > 0


NO_VOTERS = VoterSet({})


# The control records KRaftVersion and Voters, between bytes and the core's values


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


def check_voter_sets(records: Iterable[QuorumRecord]) -> None:
    """Raises DecodeError for a voter set without voters, which no leader writes: it could elect no leader."""
    if any(isinstance(record, VotersAt) and len(record.voters) == 0 for record in records):
        raise DecodeError("its voter set is empty")


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


# The voter sets of the log, by offset

# A set that did not come from the log: the static configuration's or the bootstrap checkpoint's.
BEFORE_THE_LOG = -1


class VoterHistory:
    """Invariant: offsets ascend; each set of the log differs from the one before it in the log by at most one voter
    added and one removed (the static configuration's and the bootstrap checkpoint's are exempt)."""

    def __init__(self, static: VoterSet = NO_VOTERS) -> None:
        """`static` is the configuration's (`controller.quorum.voters`), in force while the log says nothing."""
        self.static = static
        # The newest set; kept, because every turn asks for it dozens of times.
        self.voters = static
        self._sets: list[VotersAt] = []
        self._versions: list[KRaftVersionAt] = []

    @staticmethod
    def of(static: VoterSet, records: Iterable[QuorumRecord]) -> "VoterHistory":
        """The history at start: `records` are the bootstrap checkpoint's (at offset -1), a snapshot's (at its last
        contained offset) and the log's, in ascending order."""
        history = VoterHistory(static)
        for record in records:
            history.add(record)
        return history

    # What is in force

    @property
    def voters_offset(self) -> int:
        """Where the newest set stands; -1 when it did not come from the log."""
        return self._sets[-1].offset if self._sets else BEFORE_THE_LOG

    @property
    def kraft_version(self) -> int:
        return self._versions[-1].kraft_version if self._versions else 0

    @property
    def kraft_version_offset(self) -> int:
        return self._versions[-1].offset if self._versions else BEFORE_THE_LOG

    def voters_at(self, offset: int) -> VoterSet:
        """The set in force once everything up to and including `offset` was appended."""
        position = bisect_right(self._sets, offset, key=_offset_of)
        return self._sets[position - 1].voters if position else self.static

    def kraft_version_at(self, offset: int) -> int:
        position = bisect_right(self._versions, offset, key=_offset_of)
        return self._versions[position - 1].kraft_version if position else 0

    def was_removed(self, key: ReplicaKey) -> bool:
        """Whether this replica voted once and no longer does: only an operator takes it back (KAFKA-19850)."""
        if self.voters.contains(key):
            return False
        return any(entry.voters.contains(key) for entry in self._sets)

    def is_leaving(self, key: ReplicaKey, high_watermark: int) -> bool:
        """Whether the newest set left this replica out, and is not known to be committed (-1: nothing is)."""
        if self.voters_offset < high_watermark or self.voters.contains(key):
            return False
        previous = self._sets[-2].voters if len(self._sets) > 1 else self.static
        return bool(self._sets) and previous.contains(key)

    # Changes

    def append(self, batch: LogBatch) -> None:
        for record in quorum_records(batch):
            self.add(record)

    def accepts(self, before: Iterable[LogBatch], batch: LogBatch) -> bool:
        """Whether a control batch that a peer sent may follow this history and the batches `before` it: it can be
        read, every set in it has voters, and differs from its predecessor by one change at most. No leader of ours
        wrote another."""
        try:
            added = [record for earlier in before for record in quorum_records(earlier)]
            return self._accepts(added, list(quorum_records(batch)))
        except DecodeError:
            return False

    def _accepts(self, before: list[QuorumRecord], records: list[QuorumRecord]) -> bool:
        known = [VotersAt(self.voters_offset, self.voters)]
        known.extend(record for record in before if isinstance(record, VotersAt))
        for record in records:
            if isinstance(record, VotersAt):
                is_exempt = known[-1].offset == BEFORE_THE_LOG
                if len(record.voters) == 0:
                    return False
                if not (is_exempt or record.voters.overlaps_majority_of(known[-1].voters)):
                    return False
                known.append(record)
        return True

    def add(self, record: QuorumRecord) -> None:
        if isinstance(record, KRaftVersionAt):
            assert record.offset > self.kraft_version_offset or not self._versions, record
            self._versions.append(record)
            return
        assert record.offset > self.voters_offset or not self._sets, record
        if self.voters_offset != BEFORE_THE_LOG:
            assert record.voters.overlaps_majority_of(self.voters), (self.voters, record)
        self._sets.append(record)
        self.voters = record.voters

    def truncate_to(self, end_offset: int) -> None:
        """The log was cut: forget what stood at and above `end_offset`."""
        del self._sets[bisect_left(self._sets, end_offset, key=_offset_of) :]
        del self._versions[bisect_left(self._versions, end_offset, key=_offset_of) :]
        self.voters = self._sets[-1].voters if self._sets else self.static

    def trim_to(self, start_offset: int) -> None:
        """The log begins at `start_offset` now: keep what was in force there, and what follows.

        The newest entry below it stays even if there is one exactly at it: that one may yet be cut off again.
        """
        del self._sets[: max(0, bisect_left(self._sets, start_offset, key=_offset_of) - 1)]
        del self._versions[: max(0, bisect_left(self._versions, start_offset, key=_offset_of) - 1)]


def _offset_of(record: QuorumRecord) -> int:
    return record.offset
