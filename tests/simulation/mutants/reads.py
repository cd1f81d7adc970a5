"""Safeguards of linearizable majority."""

from kquorum.raft.leader import majority
from kquorum.raft.ready import ReadConfirmed
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Leader
from tests.simulation.mutants.registry import Patch, everywhere, mutant, with_reads


def _answer_all(replica: Replica, leader: Leader) -> None:
    for read in leader.reads:
        replica.outbox.reads.append(ReadConfirmed(read.read_id, replica.high_watermark))
    leader.reads = []


@mutant(schedule="read_at_a_leader_that_slept", worlds=with_reads)
def read_without_asking() -> Patch:
    """A read is answered when a majority has said that it still follows."""

    def trusting(replica: Replica, leader: Leader) -> None:
        if replica.high_watermark > leader.epoch_start_offset:
            _answer_all(replica, leader)

    return everywhere(majority.confirm_reads, trusting)


@mutant(schedule="read_and_a_fetch_from_before", worlds=with_reads)
def read_confirmed_by_any_fetch() -> Patch:
    """A Fetch confirms a read only if it must have been sent after the read began (etcd#20418)."""

    def naive(leader: Leader, voter_id: int, fetch_offset: int) -> None:
        for read in leader.reads:
            read.confirmed_by.add(voter_id)

    return everywhere(majority.confirm_by_fetch, naive)


@mutant(schedule="read_and_an_answer_from_before", worlds=with_reads)
def read_confirmed_by_any_answer() -> Patch:
    """So does an answer, only if its request was sent after the read began."""

    def naive(leader: Leader, voter_id: int, correlation_id: int) -> None:
        for read in leader.reads:
            read.confirmed_by.add(voter_id)

    return everywhere(majority.confirm_by_answer, naive)


@mutant(schedule="read_before_the_first_commit", worlds=with_reads)
def read_before_the_first_commit() -> Patch:
    """A leader answers no read before a record of its epoch is committed (Raft §8)."""

    def early(replica: Replica, leader: Leader) -> None:
        own = 1 if replica.is_voter else 0
        for read in list(leader.reads):
            if own + len(read.confirmed_by.intersection(replica.other_voters)) >= replica.voters.majority:
                leader.reads.remove(read)
                replica.outbox.reads.append(ReadConfirmed(read.read_id, replica.high_watermark))

    return everywhere(majority.confirm_reads, early)
