"""How the voters of the bootstrap checkpoint get into the log, and who reads them there."""

from dataclasses import replace

import pytest

from kquorum.raft.batches import quorum_batch
from kquorum.raft.messages import FetchRequest, FetchResponse, VoteRequest
from kquorum.raft.ready import QuorumState, VotersChanged
from kquorum.raft.voters import Endpoint, KRaftVersionAt, VotersAt, VoterSet, quorum_records, voters_record
from kquorum.wire.control_records import LeaderChangeMessage, decode_control_record
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import LOCAL, RaftContext, batch, key_of
from tests.support.raft.dynamic import (
    LISTENER,
    DynamicContext,
    endpoints_of,
    first_batch,
    set_of,
    voter_of,
)

THREE = set_of(1, 2, 3)


def test_the_first_leader_writes_version_and_voters_in_the_batch_of_its_leader_change() -> None:
    """testLeaderWritesBootstrapRecords"""
    context = DynamicContext()
    context.lead(committed=False)
    (written,) = context.log
    assert written.is_control
    first = decode_control_record(written.records[0].key, written.records[0].value)
    assert isinstance(first, LeaderChangeMessage)
    assert list(quorum_records(written)) == [KRaftVersionAt(1, 1), VotersAt(2, THREE)]
    assert context.node.replica.voter_history.voters_offset == 2


def test_a_sole_voter_writes_them_at_once() -> None:
    context = DynamicContext(voters=(1,))
    assert context.standing == ("leader", 1, LOCAL)
    assert [type(record) for record in quorum_records(context.log[0])] == [KRaftVersionAt, VotersAt]
    assert context.node.high_watermark == 3


def test_the_second_leader_does_not_write_them_again() -> None:
    context = DynamicContext(log=[first_batch(1, THREE)], state=QuorumState(leader_epoch=1))
    context.lead(committed=False)
    assert len(context.log[-1].records) == 1


def test_a_static_quorum_writes_the_leader_change_alone() -> None:
    """testLeaderDoesNotBootstrapRecordsWithKraftVersion0"""
    context = RaftContext()
    context.become_leader()
    (written,) = context.log
    (record,) = written.records
    message = decode_control_record(record.key, record.value)
    assert isinstance(message, LeaderChangeMessage)
    assert [voter.voter_id for voter in message.voters] == [1, 2, 3]
    assert context.node.kraft_version == 0


def test_the_bootstrap_checkpoint_is_not_offered_to_a_fetch_from_the_beginning() -> None:
    """testBootstrapCheckpointIsNotReturnedOnFetch"""
    context = DynamicContext(snapshots=[OffsetAndEpoch(0, 0)])
    context.lead(committed=False)
    response = context.receive(context.fetch(2, 0, 0))
    assert response.snapshot_id is None
    assert response.diverging is None
    assert response.records.start_offset == 0


def test_a_follower_that_is_offered_the_bootstrap_checkpoint_fetches_again() -> None:
    """testFollowerDoesNotRequestLeaderBootstrapSnapshot"""
    context = DynamicContext(snapshots=[OffsetAndEpoch(0, 0)])
    fetch = context.follow(2, 1)
    context.answer(
        fetch,
        FetchResponse(leader_id=2, leader_epoch=1, snapshot_id=OffsetAndEpoch(0, 0), log_start_offset=0),
    )
    context.advance(context.config.retry_backoff_ms)
    again = context.sent(FetchRequest)
    assert [outbound.request.fetch_offset for outbound in again] == [0]


def test_a_follower_takes_the_voters_it_reads_before_they_are_committed() -> None:
    """testFollowerReadsKRaftBootstrapRecords"""
    context = DynamicContext(voters=())
    assert context.voter_ids == ()
    context.begin(2, 1, leader_endpoints=endpoints_of(2))
    outbound = context.sent(FetchRequest)[-1]
    ready = context.answer(outbound, context.fetched(first_batch(1, THREE), high_watermark=0))
    assert context.node.high_watermark == 0
    assert context.node.voters == THREE
    assert context.node.kraft_version == 1
    assert ready.voters_changed in (None, VotersChanged(THREE, 1)), (
        "the flush's turn may have told it already"
    )
    assert context.node.replica.is_voter


def test_a_follower_gives_back_voters_that_are_cut_off_its_log() -> None:
    two = set_of(1, 2)
    context = DynamicContext(log=[first_batch(1, THREE), quorum_batch(3, 1, 1, [voters_record(two)])])
    assert context.voter_ids == (1, 2)
    outbound = context.follow(2, 2)
    ready = context.answer(outbound, context.fetched(diverging=OffsetAndEpoch(3, 1)))
    assert context.log_end_offset == 3
    assert context.voter_ids == (1, 2, 3)
    assert ready.voters_changed in (None, VotersChanged(THREE, 1))


def test_a_cut_back_to_nothing_leaves_the_voters_of_the_checkpoint() -> None:
    context = DynamicContext(voters=(1, 2), log=[first_batch(1, THREE)])
    assert context.voter_ids == (1, 2, 3)
    outbound = context.follow(2, 2)
    context.answer(outbound, context.fetched(diverging=OffsetAndEpoch(0, 0)))
    assert (context.log_end_offset, context.voter_ids) == (0, (1, 2))


@pytest.mark.parametrize("node_id", [2, 3])
def test_the_checkpoint_overrides_the_static_configuration(node_id: int) -> None:
    """testStaticVotersIgnoredWithBootstrapSnapshot"""
    context = DynamicContext(voters=(1, node_id), static=(1, 4, 5))
    context.advance(context.config.fetch_timeout_ms)
    assert {outbound.destination_id for outbound in context.sent(VoteRequest)} == {node_id}


def test_a_new_leader_that_moved_writes_where_it_listens_in_its_first_batch() -> None:
    """testLeaderUpdatesVoter"""
    moved = (*endpoints_of(LOCAL), Endpoint("ANOTHER", "node1", 9094))
    context = DynamicContext(log=[first_batch(1, THREE)], state=QuorumState(leader_epoch=1), endpoints=moved)
    context.lead(committed=False)
    expected = THREE.updated(replace(voter_of(LOCAL), endpoints=moved))
    assert list(quorum_records(context.log[-1]))[-1] == VotersAt(5, expected)
    assert context.node.voters == expected


def test_an_observer_without_any_voters_asks_a_bootstrap_server() -> None:
    """testObserverDiscoversLeaderWithUnknownVoters"""
    server = Endpoint(LISTENER, "somewhere", 9093)
    context = DynamicContext(voters=(), bootstrap_servers=(server,))
    (outbound,) = context.sent(FetchRequest)
    assert (outbound.destination_id, outbound.endpoint) == (-2, server)
    context.answer(
        outbound,
        FetchResponse(leader_id=2, leader_epoch=4, leader_endpoints=endpoints_of(2)),
    )
    assert context.standing == ("follower", 4, 2)
    (outbound,) = context.sent(FetchRequest)
    assert (outbound.destination_id, outbound.endpoint) == (2, endpoints_of(2)[0])


def test_more_endpoints_of_the_leader_are_taken_over_and_the_follower_stays() -> None:
    """testHandleBeginQuorumRequestMoreEndpoints"""
    context = DynamicContext()
    context.follow(2, 1)
    more = (*endpoints_of(2), Endpoint("ANOTHER", "node2", 9094))
    assert context.begin(2, 1, leader_endpoints=more).error == 0
    assert context.standing == ("follower", 1, 2)
    assert context.node.replica.leader_endpoints == more


def test_a_leader_that_is_not_among_the_known_voters_is_followed_if_it_says_where_it_listens() -> None:
    """QuorumStateTest.testCanBecomeFollowerOfNonVoter"""
    context = DynamicContext()
    context.begin(9, 1, leader_endpoints=endpoints_of(9))
    assert context.standing == ("follower", 1, 9)
    outbound = context.sent(FetchRequest)[-1]
    assert (outbound.destination_id, outbound.endpoint) == (9, endpoints_of(9)[0])
    assert context.begin(8, 2).error != 0
    assert context.standing == ("follower", 1, 9)


def test_a_dynamic_replica_of_another_disk_is_no_voter() -> None:
    context = DynamicContext(voters=(voter_of(1, directory=77), 2, 3))
    assert not context.node.replica.is_voter
    context.advance(10 * context.config.fetch_timeout_ms)
    assert context.sent(VoteRequest) == []
    assert context.ask_for_vote(2, 3).vote_granted, "it may still vote (KIP-853)"
    assert context.state == QuorumState(leader_epoch=3, voted=key_of(2))


def test_a_batch_that_skips_a_step_between_voter_sets_is_not_appended() -> None:
    """VoterSetHistoryTest.testAddAtNonOverlapping, at the door: no leader of ours would have written it."""
    context = DynamicContext(log=[first_batch(1, THREE)])
    outbound = context.follow(2, 1)
    far_off = quorum_batch(4, 1, 1, [voters_record(VoterSet.of(voter_of(2), voter_of(4), voter_of(5)))])
    context.answer(outbound, context.fetched(batch(3, 1), far_off))
    assert (context.log_end_offset, context.voter_ids) == (4, (1, 2, 3))


def test_an_observer_that_gave_its_leader_up_believes_news_of_another_address() -> None:
    """Hearsay of the address that was tried in vain is not believed, of a new one it is: the leader may have moved."""
    context = DynamicContext(voters=(2, 3))
    context.follow(2, 1)
    context.advance(2 * context.config.fetch_timeout_ms)
    assert (context.node.role, context.node.leader_id) == ("unattached", 2)
    moved = endpoints_of(2, 29093)
    for endpoints, role in ((endpoints_of(2), "unattached"), (moved, "follower")):
        context.advance(context.config.retry_backoff_ms)
        asked = next(outbound for outbound in context.sent(FetchRequest) if outbound.destination_id == 3)
        answer = FetchResponse(
            error=ErrorCode.not_leader_or_follower, leader_id=2, leader_epoch=1, leader_endpoints=endpoints
        )
        context.answer(asked, answer)
        assert context.node.role == role
    assert context.sent(FetchRequest)[-1].endpoint == moved[0]
