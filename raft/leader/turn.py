"""The leading side: a turn of the leader, holding on to a majority, and making itself known."""

from kquorum.raft.leader.fetch_handler import complete_delayed_fetches
from kquorum.raft.leader.leadership_transfer import poll_transfer, resign
from kquorum.raft.leader.majority import (
    confirm_by_answer,
    confirm_reads,
    is_asked_for,
    maybe_advance_high_watermark,
)
from kquorum.raft.membership import maybe_add_voter, poll_change
from kquorum.raft.messages import BeginQuorumEpochRequest
from kquorum.raft.replica import Replica
from kquorum.raft.roles import CHECK_QUORUM, REMOVED, Leader


def poll_leader(replica: Replica, leader: Leader, now_ms: int) -> None:
    maybe_add_voter(replica, leader, now_ms)
    for batch in replica.accumulator.drain():
        replica.append(batch)
    maybe_advance_high_watermark(replica, leader)
    complete_delayed_fetches(replica, leader, now_ms)
    confirm_reads(replica, leader)
    if poll_change(replica, leader, now_ms):
        resign(replica, now_ms, REMOVED)
        return
    poll_transfer(replica, leader, now_ms)
    if replica.role is leader:
        _check_quorum(replica, leader, now_ms)
    if replica.role is leader:
        _begin_quorum_epoch(replica, leader, now_ms)


def _check_quorum(replica: Replica, leader: Leader, now_ms: int) -> None:
    """Resign if no majority has fetched within the timeout: another leader may have been elected (rules R9.1, R9.2;
    KAFKA-15489)."""
    needed = replica.voters.majority - (1 if replica.is_voter else 0)
    if len(leader.fetched_since_check.intersection(replica.other_voters)) >= needed:
        leader.fetched_since_check.clear()
        leader.check_quorum_deadline_ms = now_ms + replica.config.check_quorum_timeout_ms
    elif now_ms >= leader.check_quorum_deadline_ms:
        resign(replica, now_ms, CHECK_QUORUM)


def _begin_quorum_epoch(replica: Replica, leader: Leader, now_ms: int) -> None:
    """Send BeginQuorumEpoch to the voters that do not fetch (rule R5.7), and to those whose confirmation a linearizable
    read waits for."""
    for voter_id in replica.other_voters:
        is_due = leader.begin_epoch_due_ms.get(voter_id, now_ms) <= now_ms
        is_due = is_due or (bool(leader.reads) and is_asked_for(leader, voter_id))
        if is_due and replica.connections.is_ready(voter_id, now_ms):
            leader.begin_epoch_due_ms[voter_id] = now_ms + replica.config.begin_quorum_epoch_interval_ms
            request = BeginQuorumEpochRequest(
                cluster_id=replica.config.cluster_id,
                leader_id=replica.config.node_id,
                leader_epoch=replica.epoch,
                leader_endpoints=replica.known_leader_endpoints,
                voter=replica.voters.voters[voter_id].key,
            )
            replica.send(voter_id, request, now_ms)


def handle_begin_quorum_epoch_response(
    replica: Replica, now_ms: int, source_id: int, correlation_id: int
) -> None:
    """The voter has heard it; its next sign of life is its Fetch. Errors were dealt with by the common rules."""
    leader = replica.role
    if isinstance(leader, Leader):
        leader.begin_epoch_due_ms[source_id] = now_ms + replica.config.begin_quorum_epoch_interval_ms
        confirm_by_answer(leader, source_id, correlation_id)
