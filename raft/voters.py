"""Who votes: replica keys, their endpoints, and what a majority of them is."""

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
class Voter:
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()

    def matches(self, replica: ReplicaKey) -> bool:
        """Whether `replica` is this voter; a voter without a directory id (static quorum) matches on id alone."""
        if replica.id != self.key.id:
            return False
        return self.key.directory_id == ZERO_DIRECTORY or replica.directory_id == self.key.directory_id


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The voters by node id."""

    voters: Mapping[int, Voter]

    @staticmethod
    def of(*voters: Voter) -> "VoterSet":
        return VoterSet({voter.key.id: voter for voter in sorted(voters, key=lambda voter: voter.key)})

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self.voters)

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def contains(self, replica: ReplicaKey) -> bool:
        voter = self.voters.get(replica.id)
        return voter is not None and voter.matches(replica)

    def others(self, node_id: int) -> tuple[int, ...]:
        return tuple(voter_id for voter_id in self.voters if voter_id != node_id)

    def __iter__(self) -> Iterator[Voter]:
        return iter(self.voters.values())

    def __len__(self) -> int:
        return len(self.voters)
