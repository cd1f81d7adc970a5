"""Planted bugs: each breaks one safeguard of the protocol, and the simulation must notice.

A checker is trusted once it has caught what it is for; a mutant that survives is a hole in the suite.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from raft import elections, following, leadership
from raft.log_index import LogIndex
from raft.messages import VoteRequest
from raft.replica import Replica
from raft.replication import majority_offset
from raft.roles import Leader
from raft.voters import Voter
from tests.simulation.world import Host, World

Mutant = Callable[[], Iterator[None]]


@contextmanager
def vote_without_persisting() -> Iterator[None]:
    """The vote is forgotten when the voter crashes."""
    crash = World.crash

    def forgetful(self: World, host: Host) -> None:
        crash(self, host)
        state = host.disk.state
        if state is not None and state.voted is not None:
            host.disk.state = type(state)(leader_epoch=state.leader_epoch, leader_id=state.leader_id)

    with patch.object(World, "crash", forgetful):
        yield


@contextmanager
def acknowledge_before_flush() -> Iterator[None]:
    """A follower fetches on, which acknowledges, before its log is on disk."""
    append = LogIndex.append

    def hasty(self: LogIndex, batch: object) -> None:
        append(self, batch)  # type: ignore[arg-type]
        self.flushed_offset = self.log_end_offset

    with patch.object(LogIndex, "append", hasty):
        yield


@contextmanager
def commit_older_epochs_by_counting() -> Iterator[None]:
    """The leader commits what a majority holds although no record of its own epoch is among it (Raft figure 8)."""

    def eager(replica: Replica, leader: Leader) -> None:
        reached = majority_offset(
            leadership._voter_end_offset(replica, leader, voter) for voter in replica.voters
        )
        replica.high_watermark = max(replica.high_watermark, reached)

    with patch.object(leadership, "maybe_advance_high_watermark", eager):
        yield


@contextmanager
def skip_truncation() -> Iterator[None]:
    """A follower told that it diverged keeps its tail and only pretends to have cut it."""

    def keep(replica: Replica, end_offset: int) -> None:
        replica.log.log_end_offset = replica.log.log_end_offset

    with patch.object(following, "_truncate", keep):
        yield


@contextmanager
def vote_for_anybody() -> Iterator[None]:
    """The log of the candidate is not compared (Raft §5.4.1 left out)."""

    def lax(replica: Replica, last_epoch: int, last_offset: int) -> bool:
        return True

    with patch.object(elections, "is_up_to_date", lax):
        yield


@contextmanager
def vote_twice() -> Iterator[None]:
    """A voter grants every candidate of the epoch."""
    may_grant = elections.may_grant_vote

    def generous(replica: Replica, request: VoteRequest) -> bool:
        if elections.is_up_to_date(replica, request.last_offset_epoch, request.last_offset):
            return True
        return may_grant(replica, request)

    with patch.object(elections, "may_grant_vote", generous):
        yield


@contextmanager
def count_any_fetch_position() -> Iterator[None]:
    """A diverged follower's fetch offset is counted as if its log were the leader's."""

    def never(*_: object) -> None:
        return None

    with patch.object(leadership, "diverging_point", never):
        yield


@contextmanager
def minority_commits() -> Iterator[None]:
    """One other replica is enough to commit, however many voters there are."""

    def second_best(end_offsets: Iterator[int]) -> int:
        return sorted(end_offsets, reverse=True)[1]

    with patch.object(leadership, "majority_offset", second_best):
        yield


@contextmanager
def leader_counts_unflushed() -> Iterator[None]:
    """The leader counts its own log up to its end, flushed or not."""
    end_offset_of = leadership._voter_end_offset

    def bold(replica: Replica, leader: Leader, voter: Voter) -> int:
        if voter.key.id == replica.config.node_id:
            return replica.log.log_end_offset
        return end_offset_of(replica, leader, voter)

    with patch.object(leadership, "_voter_end_offset", bold):
        yield


MUTANTS = {
    mutant.__name__: mutant
    for mutant in (
        vote_without_persisting,
        acknowledge_before_flush,
        commit_older_epochs_by_counting,
        skip_truncation,
        vote_for_anybody,
        vote_twice,
        count_any_fetch_position,
        minority_commits,
        leader_counts_unflushed,
    )
}
