"""Who votes: replica keys, their endpoints, and what a majority of them is (KIP-595, KIP-853)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

ZERO_DIRECTORY = UUID(int=0)


@dataclass(frozen=True, slots=True, order=True)
class ReplicaKey:
    """A replica: node id and the id of its metadata folder (KIP-853: a replaced disk is another replica)."""

    id: int
    directory_id: UUID = ZERO_DIRECTORY


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
        return self.key.directory_id == ZERO_DIRECTORY or replica.directory_id == self.key.directory_id


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


NO_VOTERS = VoterSet({})
