"""Standing for election, winning it and making it known (rule R5)."""

import pytest

from kquorum.raft.messages import BeginQuorumEpochRequest, BeginQuorumEpochResponse, FetchRequest, VoteRequest
from kquorum.raft.ready import OutboundRequest, QuorumState
from kquorum.raft.voters import Endpoint
from kquorum.wire.control_records import LeaderChangeMessage, decode_control_record
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import RaftContext, batch, key_of


def leader_change(context: RaftContext) -> LeaderChangeMessage:
    """The record at the log's end."""
    (record,) = context.log[-1].records
    message = decode_control_record(record.key, record.value)
    assert isinstance(message, LeaderChangeMessage)
    return message


def votes_of(context: RaftContext) -> list[OutboundRequest]:
    """The votes asked for since the last look, without the pre-votes that came before them."""
    return [out for out in context.sent(VoteRequest) if not out.request.pre_vote]


# Winning


@pytest.mark.parametrize(("voters", "granting"), [((1, 2), (1, 2)), ((1, 2, 3), (1, 3))])
def test_a_majority_of_votes_makes_a_leader_that_says_who_voted_for_it(
    voters: tuple[int, ...], granting: tuple[int, ...]
) -> None:
    context = RaftContext(voters=voters)
    votes = {out.destination_id: out for out in context.become_candidate()}
    assert set(votes) == set(voters) - {1}
    for voter_id, out in votes.items():
        request = out.request
        assert (request.replica_epoch, request.last_offset, request.last_offset_epoch) == (1, 0, 0)
        assert (request.candidate, request.voter.id) == (key_of(1), voter_id)
    context.now_ms += 7
    context.vote(votes[granting[-1]])
    assert context.standing == ("leader", 1, 1)
    assert context.state == QuorumState(leader_epoch=1, leader_id=1, voted=key_of(1))
    message = leader_change(context)
    assert message.leader_id == 1
    assert tuple(voter.voter_id for voter in message.voters) == voters
    assert tuple(voter.voter_id for voter in message.granting_voters) == granting
    begins = context.sent(BeginQuorumEpochRequest)
    assert [(out.destination_id, out.request.leader_epoch) for out in begins] == [
        (voter_id, 1) for voter_id in voters[1:]
    ]


def test_the_epoch_begins_at_the_log_end_with_a_flushed_record_of_that_moment() -> None:
    context = RaftContext(log=[batch(0, 3, count=4)])
    epoch = context.become_leader()
    (record,) = context.log[-1].records
    assert (context.log[-1].base_offset, context.log[-1].leader_epoch) == (4, epoch)
    assert record.timestamp_ms == context.now_ms
    assert context.node.replica.log.flushed_offset == 5


def test_a_voter_stands_after_the_fetch_timeout_with_what_its_log_ends_in() -> None:
    context = RaftContext(log=[batch(0, 3, count=4)], state=QuorumState(leader_epoch=5, leader_id=2))
    context.advance(context.config.fetch_timeout_ms - 1)
    assert context.standing == ("follower", 5, 2)
    votes = context.become_candidate()
    assert context.state == QuorumState(leader_epoch=6, voted=key_of(1))
    assert {
        (vote.request.replica_epoch, vote.request.last_offset_epoch, vote.request.last_offset)
        for vote in votes
    } == {(6, 3, 4)}


# Not winning


def test_an_unanswered_vote_is_asked_for_again_and_only_the_second_answer_counts() -> None:
    context = RaftContext(voters=(1, 2), election_timeout_ms=10_000, request_timeout_ms=2_000)
    (first,) = context.become_candidate()
    context.advance(2_000)
    (second,) = context.sent(VoteRequest)
    assert second.request == first.request
    context.vote(first)
    assert context.node.role == "candidate"
    context.vote(second)
    assert context.node.role == "leader"


def test_a_rejected_candidate_remembers_its_vote_waits_and_stands_in_the_next_epoch() -> None:
    context = RaftContext(voters=(1, 2))
    (vote,) = context.become_candidate()
    context.vote(vote, granted=False)
    assert context.state == QuorumState(leader_epoch=1, voted=key_of(1))
    context.advance(context.config.election_timeout_ms - 1)
    assert (context.node.role, context.sent(VoteRequest)) == ("candidate", [])
    context.advance(1)
    (pre_vote,) = context.sent(VoteRequest)
    assert (pre_vote.request.pre_vote, pre_vote.request.replica_epoch) == (True, 1)
    assert context.state == QuorumState(leader_epoch=1, voted=key_of(1))
    context.vote(pre_vote)
    assert [out.request.replica_epoch for out in votes_of(context)] == [2]
    assert context.state == QuorumState(leader_epoch=2, voted=key_of(1))


def test_records_that_arrive_after_the_candidacy_began_are_not_taken() -> None:
    context = RaftContext()
    fetch = context.follow(leader_id=2, epoch=1)
    late = context.fetched(batch(0, 1))
    context.become_candidate()
    context.answer(fetch, late)
    assert (context.node.role, context.log_end_offset) == ("candidate", 0)


def test_a_candidate_fences_a_departure_of_an_older_epoch_and_keeps_its_time() -> None:
    context = RaftContext(voters=(1, 2), state=QuorumState(leader_epoch=4))
    context.become_candidate()
    deadline_ms = context.node.replica.role.election_deadline_ms
    response = context.end(2, 4, 1)
    assert (response.error, response.leader_id, response.leader_epoch) == (
        ErrorCode.fenced_leader_epoch,
        -1,
        5,
    )
    assert context.standing == ("candidate", 5, -1)
    assert context.node.replica.role.election_deadline_ms == deadline_ms
    context.advance(deadline_ms - context.now_ms)
    (pre_vote,) = [out for out in context.sent(VoteRequest) if out.request.pre_vote]
    context.vote(pre_vote)
    assert context.standing == ("candidate", 6, -1)


# Making it known


def test_a_voter_that_voted_follows_the_leader_of_the_same_epoch() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2, voted=key_of(2)))
    response = context.begin(leader_id=2, epoch=2)
    assert (response.error, response.leader_id, response.leader_epoch) == (ErrorCode.none, 2, 2)
    assert context.standing == ("follower", 2, 2)
    assert context.state == QuorumState(leader_epoch=2, leader_id=2, voted=key_of(2))


def test_a_follower_that_hears_of_its_leader_again_gives_it_no_more_time() -> None:
    context = RaftContext(state=QuorumState(leader_epoch=2, leader_id=2))
    context.now_ms += context.config.fetch_timeout_ms - 1
    assert context.begin(leader_id=2, epoch=2).error is ErrorCode.none
    assert context.standing == ("follower", 2, 2)
    context.advance(1)
    assert context.node.role == "prospective"


def test_a_follower_learns_where_its_leader_listens_from_a_later_announcement() -> None:
    first, second = Endpoint("CONTROLLER", "a", 9093), Endpoint("OTHER", "b", 9094)
    context = RaftContext(state=QuorumState(leader_epoch=2, leader_id=2))
    assert context.node.endpoint_of(2) is None, "static voters whose endpoints were not told"
    for endpoints in ((first,), (first, second), ()):
        response = context.begin(leader_id=2, epoch=2, leader_endpoints=endpoints)
        assert (response.error, response.leader_id) == (ErrorCode.none, 2)
        assert context.standing == ("follower", 2, 2)
        assert context.node.endpoint_of(2) == first


def test_a_new_leader_is_announced_at_every_interval_and_not_in_between() -> None:
    context = RaftContext()
    epoch = context.become_leader()
    interval_ms = context.config.begin_quorum_epoch_interval_ms
    for _ in range(2):
        begins = context.sent(BeginQuorumEpochRequest)
        assert [out.destination_id for out in begins] == [2, 3]
        for out in begins:
            context.answer(out, BeginQuorumEpochResponse(leader_id=1, leader_epoch=epoch))
        context.advance(interval_ms // 2)
        assert context.sent(BeginQuorumEpochRequest) == []
        context.advance(interval_ms - interval_ms // 2)


def test_a_fetch_stands_for_the_answer_to_an_announcement_that_got_lost() -> None:
    context = RaftContext(request_timeout_ms=500)
    epoch = context.become_leader()
    assert len(context.sent(BeginQuorumEpochRequest)) == 2
    context.advance(499)
    context.receive(context.fetch(2, offset=0, last_epoch=0))
    context.advance(context.config.begin_quorum_epoch_interval_ms - 499)
    assert [out.destination_id for out in context.sent(BeginQuorumEpochRequest)] == [3]
    assert context.standing == ("leader", epoch, 1)


def test_a_candidate_that_hears_of_its_epochs_leader_fetches_from_it() -> None:
    context = RaftContext()
    context.become_candidate()
    assert context.begin(leader_id=3, epoch=1).error is ErrorCode.none
    assert context.standing == ("follower", 1, 3)
    assert [out.destination_id for out in context.sent(FetchRequest)] == [3]
