"""What a leader knows of its voters, after Kafka's LeaderStateTest (rules R7, R9)."""

from dataclasses import replace

import pytest

from kquorum.raft.messages import BeginQuorumEpochRequest, EndQuorumEpochRequest
from tests.support.raft.context import LOCAL, RaftContext, batch, key_of
from tests.support.raft.dynamic import DynamicContext, endpoints_of, voter_of

DYNAMIC_AND_STATIC = pytest.mark.parametrize("is_dynamic", [True, False], ids=["dynamic", "static"])


def leader_of(*voters: int, is_dynamic: bool = True) -> RaftContext:
    """A leader of these voters that no replica has fetched from yet."""
    context = DynamicContext(voters=voters) if is_dynamic else RaftContext(voters=voters)
    if context.node.role != "leader":
        for outbound in context.become_candidate():
            if context.node.role == "candidate":
                context.vote(outbound)
    assert context.node.role == "leader"
    context.requests.clear()
    return context


def dynamic_leader(*voters: int) -> DynamicContext:
    context = leader_of(*voters)
    assert isinstance(context, DynamicContext)
    return context


def write(context: RaftContext, records: int) -> int:
    """Answers the log's end."""
    context.node.propose(context.now_ms, context.node.leader_epoch, [b"value"] * records)
    context.turn()
    return context.log_end_offset


def acknowledge(context: RaftContext, node_id: int, offset: int) -> int:
    """A replica fetches from `offset`; answers the high watermark."""
    context.receive(context.fetch(node_id, offset, context.node.leader_epoch if offset else 0))
    return context.node.high_watermark


# The high watermark


def test_a_sole_voters_high_watermark_is_its_flushed_log() -> None:
    """testUpdateHighWatermarkQuorumSizeOne, testIdempotentEndOffsetUpdate"""
    context = leader_of(1, is_dynamic=False)
    assert context.node.high_watermark == context.log_end_offset == 1
    context.auto_flush = False
    write(context, 4)
    assert context.node.high_watermark == 1
    context.flush()
    assert context.node.high_watermark == 5
    assert context.flush().high_watermark is None, "told once"


@DYNAMIC_AND_STATIC
def test_of_two_voters_both_must_have_it(is_dynamic: bool) -> None:
    """testUpdateHighWatermarkQuorumSizeTwo"""
    context = leader_of(1, 2, is_dynamic=is_dynamic)
    begin = context.log_end_offset
    end = write(context, 3)
    assert acknowledge(context, 2, 0) == -1
    assert acknowledge(context, 2, begin) == begin
    assert acknowledge(context, 2, end) == end


@DYNAMIC_AND_STATIC
def test_of_three_voters_two_must_have_it(is_dynamic: bool) -> None:
    """testUpdateHighWatermarkQuorumSizeThree"""
    context = leader_of(1, 2, 3, is_dynamic=is_dynamic)
    end = write(context, 5)
    assert acknowledge(context, 2, 0) == -1
    assert acknowledge(context, 3, 0) == -1
    assert acknowledge(context, 3, end) == end
    further = write(context, 5)
    assert context.node.high_watermark == end
    assert acknowledge(context, 2, further) == further
    assert acknowledge(context, 3, further) == further


def test_the_first_high_watermark_is_above_the_start_of_the_epoch() -> None:
    """What older leaders left is on every disk here, and still not committed by that (Raft §5.4.2)."""
    context = RaftContext(log=[batch(0, 1, count=10)])
    context.become_leader()
    assert acknowledge_older(context, 2, 10) == -1
    assert acknowledge(context, 2, 11) == 11


def acknowledge_older(context: RaftContext, node_id: int, offset: int) -> int:
    context.receive(context.fetch(node_id, offset, 1))
    return context.node.high_watermark


@DYNAMIC_AND_STATIC
def test_a_follower_that_lost_its_disk_does_not_take_the_high_watermark_back(is_dynamic: bool) -> None:
    """testNonMonotonicHighWatermarkUpdate"""
    context = leader_of(1, 2, is_dynamic=is_dynamic)
    end = write(context, 9)
    assert acknowledge(context, 2, end) == end
    assert acknowledge(context, 2, 0) == end


def test_a_new_voter_that_has_more_raises_the_high_watermark() -> None:
    """testHighWatermarkDoesIncreaseFromNewVoter: of three, the two that have it are a majority again."""
    context = dynamic_leader(1, 2)
    middle = context.log_end_offset
    assert acknowledge(context, 2, middle) == middle
    end = write(context, 5)
    assert acknowledge(context, 4, end) == middle, "an observer counts for nothing"
    context.begin_add(4)
    assert context.node.high_watermark == end
    assert acknowledge(context, 4, end + 1) == end + 1


def test_a_new_voter_that_has_less_does_not_lower_the_high_watermark() -> None:
    """testHighWatermarkDoesNotDecreaseFromNewVoter"""
    context = dynamic_leader(1, 2, 3)
    end = write(context, 5)
    context.catch_up(4)
    assert acknowledge(context, 2, end) == end
    assert acknowledge(context, 3, end - 3) == end
    added = context.begin_add(4)
    acknowledge(context, 4, end - 3)
    assert context.node.high_watermark == end
    set_end = context.log_end_offset
    assert acknowledge(context, 2, set_end) == end, "two of four"
    assert acknowledge(context, 3, end - 1) == end
    assert acknowledge(context, 4, set_end) == set_end
    assert context.read_answer(added) is not None


def test_a_removed_voter_reverts_nothing_and_no_longer_counts() -> None:
    """testUpdateHighWatermarkRemovingFollowerFromVoterStates"""
    context = dynamic_leader(1, 2, 3)
    end = write(context, 5)
    assert acknowledge(context, 2, end) == end
    assert acknowledge(context, 3, end - 5) == end
    context.remove(key_of(2))
    further = context.log_end_offset
    assert acknowledge(context, 3, end - 1) == end
    assert acknowledge(context, 2, further) == end, "it is an observer now"
    assert acknowledge(context, 3, end) == end
    assert acknowledge(context, 3, further) == further


def test_a_leader_that_leaves_reverts_nothing_and_no_longer_counts_itself() -> None:
    """testUpdateHighWatermarkQuorumRemovingLeaderFromVoterStates"""
    context = dynamic_leader(1, 2, 3)
    end = write(context, 5)
    assert acknowledge(context, 2, end) == end
    assert acknowledge(context, 3, end - 5) == end
    context.remove(key_of(LOCAL))
    further = write(context, 2)
    assert acknowledge(context, 2, further) == end
    assert acknowledge(context, 3, end - 1) == end
    assert acknowledge(context, 3, end) == end
    assert acknowledge(context, 3, end + 1) == end + 1


def test_a_voter_of_the_same_id_on_another_disk_is_an_observer() -> None:
    context = dynamic_leader(1, 2)
    end = context.log_end_offset
    other_disk = voter_of(2, directory=99).key
    context.receive(replace(context.fetch(2, end, 1), replica=other_disk))
    assert context.node.high_watermark == -1
    assert [status.directory_id.int for status in context.describe().observers] == [99]


# Who is up to date


@DYNAMIC_AND_STATIC
def test_successors_are_named_by_fetch_offset_and_the_leader_is_not_among_them(is_dynamic: bool) -> None:
    """testGetNonLeaderFollowersByFetchOffsetDescending: unknown ones come last, equal ones by id."""
    context = leader_of(1, 2, 3, 4, 5, is_dynamic=is_dynamic)
    end = write(context, 5)
    acknowledge(context, 4, end)
    acknowledge(context, 3, end - 2)
    context.node.resign(context.now_ms, context.node.leader_epoch)
    context.turn()
    (request, *_) = [outbound.request for outbound in context.sent(EndQuorumEpochRequest)]
    assert [candidate.id for candidate in request.preferred_candidates] == [4, 3, 2, 5]


# Acknowledging the leader


@DYNAMIC_AND_STATIC
def test_begin_quorum_epoch_goes_to_every_voter_until_it_fetches(is_dynamic: bool) -> None:
    """testFollowerAcknowledgement, testBeginQuorumEpochTimer"""
    context = RaftContext() if not is_dynamic else DynamicContext()
    context.become_leader()
    assert told(context) == {2, 3}
    for outbound_id in (2, 3):
        acknowledge(context, outbound_id, 0)
    context.advance(context.config.begin_quorum_epoch_interval_ms - 1)
    assert told(context) == set()
    acknowledge(context, 2, 0)
    context.advance(context.config.request_timeout_ms)
    assert told(context) == {2, 3}, "neither has fetched for half a fetch timeout"


def told(context: RaftContext) -> set[int]:
    return {outbound.destination_id for outbound in context.sent(BeginQuorumEpochRequest)}


def test_observers_and_unknown_nodes_acknowledge_nothing() -> None:
    """testNonFollowerAcknowledgement"""
    context = dynamic_leader(1, 2)
    acknowledge(context, 9, 0)
    assert context.node.high_watermark == -1
    context.advance(context.config.request_timeout_ms)
    assert told(context) == {2}


def test_the_leader_names_where_it_listens() -> None:
    """testLeaderEndpoints"""
    context = dynamic_leader(1, 2, 3)
    response = context.ask_for_vote(2, context.node.leader_epoch)
    assert (response.leader_id, response.leader_endpoints) == (LOCAL, endpoints_of(LOCAL))


@pytest.mark.parametrize("last_offset", [0, 10_000])
def test_a_leader_grants_neither_vote_nor_pre_vote_in_its_epoch(last_offset: int) -> None:
    """testGrantVote"""
    context = leader_of(1, 2, 3)
    epoch = context.node.leader_epoch
    fields = {"last_offset": last_offset, "last_offset_epoch": epoch - 1}
    assert not context.ask_for_vote(2, epoch, **fields).vote_granted
    assert not context.ask_for_pre_vote(2, epoch, **fields).vote_granted
    assert context.node.role == "leader"


# Holding on to a majority


@pytest.mark.parametrize(
    ("voters", "needed"), [((1, 2), 1), ((1, 2, 3), 1), ((1, 2, 3, 4), 2), ((1, 2, 3, 4, 5), 2)]
)
def test_a_leader_holds_on_with_fetches_of_a_majority_less_itself(
    voters: tuple[int, ...], needed: int
) -> None:
    """testCheckQuorum"""
    for fetching in range(needed + 1):
        context = leader_of(*voters)
        context.advance(context.config.check_quorum_timeout_ms - 1)
        for node_id in voters[1 : 1 + fetching]:
            acknowledge(context, node_id, 0)
        context.advance(1)
        assert context.node.role == ("leader" if fetching == needed else "resigned"), fetching
    context.advance(context.config.check_quorum_timeout_ms - 2)
    assert context.node.role == "leader"
    context.advance(1)
    assert context.node.role == "resigned", "the fetches of the period before count no more"


def test_the_same_voters_fetches_are_not_counted_twice() -> None:
    """testCheckQuorum"""
    context = leader_of(1, 2, 3, 4, 5)
    for _ in range(4):
        context.advance(context.config.check_quorum_timeout_ms // 4)
        acknowledge(context, 2, 0)
    assert context.node.role == "resigned"


def test_a_sole_voter_holds_on_alone() -> None:
    """testCheckQuorumWithOneVoter"""
    context = leader_of(1)
    context.advance(10 * context.config.check_quorum_timeout_ms)
    assert context.node.role == "leader"


def test_what_is_needed_changes_with_the_voters() -> None:
    """testCheckQuorumAfterVoterSetChanges"""
    context = dynamic_leader(1, 2, 3)
    context.commit()
    context.begin_add(4)
    context.commit()
    acknowledge(
        context, 3, context.log_end_offset
    )  # with node 4's that is enough, and the count starts again
    context.advance(context.config.check_quorum_timeout_ms // 2)
    acknowledge(context, 2, context.log_end_offset)
    context.advance(context.config.check_quorum_timeout_ms // 2 + 1)
    assert context.node.role == "resigned", "one of three others is too few once there are four voters"


def test_a_voter_that_was_removed_does_not_keep_the_leader() -> None:
    """testCheckQuorumAfterVoterSetChanges"""
    context = dynamic_leader(1, 2, 3)
    context.commit()
    context.remove(key_of(3))
    context.commit()
    for _ in range(2):
        context.advance(context.config.check_quorum_timeout_ms // 2)
        acknowledge(context, 3, context.log_end_offset)
    assert context.node.role == "resigned"


def test_what_a_voter_fetched_before_it_was_removed_counts_no_more() -> None:
    """testCheckQuorumAfterVoterSetChanges"""
    context = dynamic_leader(1, 2, 3, 4, 5)
    context.commit()
    context.advance(context.config.check_quorum_timeout_ms // 2)
    acknowledge(context, 5, context.log_end_offset)
    context.remove(key_of(5))
    acknowledge(context, 2, 0)
    context.advance(context.config.check_quorum_timeout_ms // 2)
    assert context.node.role == "resigned"
