"""A voter whose log lost what it had acknowledged: when it votes, stands and counts again (raft/recovery.py)."""

import pytest

from kquorum.raft.messages import EndQuorumEpochRequest, FetchRequest, FetchResponse
from kquorum.raft.ready import OutboundRequest, QuorumState
from kquorum.raft.recovery import ANONYMOUS, FARTHEST_OFFSET
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import RaftContext, batch, key_of

EPOCH = 3


def damaged(leader_id: int = 2, *, epoch: int = EPOCH) -> RaftContext:
    """Sound up to offset 2 (epoch 1), and in epoch 3 when it lost the rest."""
    state = QuorumState(leader_epoch=epoch, leader_id=leader_id)
    return RaftContext(log=[batch(0, 1, 2)], state=state, damaged_until=9)


def told(context: RaftContext, end_offset: int) -> OutboundRequest:
    """The leader of the epoch of the loss says where its log ends; answers the Fetch that follows."""
    (asked,) = context.sent(FetchRequest)
    context.answer(asked, context.fetched(diverging=OffsetAndEpoch(end_offset, EPOCH)))
    return fetch_of(context)


def fetch_of(context: RaftContext) -> OutboundRequest:
    (fetch,) = context.sent(FetchRequest)
    return fetch


def votes(context: RaftContext, last_epoch: int, last_offset: int = 50, epoch: int = 9) -> bool:
    return context.ask_for_vote(3, epoch, last_offset_epoch=last_epoch, last_offset=last_offset).vote_granted


@pytest.mark.parametrize(("last_epoch", "is_granted"), [(1, False), (EPOCH, False), (EPOCH + 1, True)])
def test_it_votes_only_for_a_log_of_a_later_epoch_than_that_of_its_loss(
    last_epoch: int, is_granted: bool
) -> None:
    assert votes(damaged(), last_epoch) is is_granted


@pytest.mark.parametrize(("last_epoch", "is_granted"), [(EPOCH, False), (EPOCH + 1, True)])
def test_pre_votes_are_given_as_votes_are(last_epoch: int, is_granted: bool) -> None:
    response = damaged().ask_for_pre_vote(3, 9, last_offset_epoch=last_epoch, last_offset=50)
    assert response.vote_granted is is_granted


def test_the_epoch_of_the_loss_is_the_logs_where_the_election_state_is_older() -> None:
    context = RaftContext(log=[batch(0, 5, 2)], state=QuorumState(leader_epoch=3), damaged_until=9)
    assert not votes(context, 5)


def test_a_vote_once_given_is_not_given_to_another() -> None:
    context = damaged()
    assert votes(context, EPOCH + 1)
    assert not context.ask_for_vote(2, 9, last_offset_epoch=EPOCH + 1, last_offset=50).vote_granted


def test_it_does_not_stand_however_long_it_hears_of_no_leader() -> None:
    context = damaged()
    for _ in range(20):
        context.advance(1_000)
    assert (context.node.role, context.node.leader_epoch) == ("unattached", EPOCH)


def test_it_asks_the_leader_of_its_epoch_for_the_end_of_its_log_and_acknowledges_nothing_by_that() -> None:
    """In its own name: a leader that holds it to be caught up learns that it is not (`raft.leader.fetch_handler`)."""
    request = fetch_of(damaged()).request
    assert request.replica == key_of(1)
    assert (request.fetch_offset, request.last_fetched_epoch) == (FARTHEST_OFFSET, EPOCH)
    assert request.current_leader_epoch == EPOCH


def test_a_leader_says_where_its_log_ends_and_counts_nothing() -> None:
    context = RaftContext(log=[batch(0, 1, 2)])
    epoch = context.become_leader()
    response = context.receive(context.fetch(2, FARTHEST_OFFSET, epoch))
    assert response.diverging == OffsetAndEpoch(3, epoch)
    assert context.node.high_watermark == -1
    assert [status.log_end_offset for status in context.describe().current_voters] == [3, -1, -1]


def test_it_fetches_under_its_own_name() -> None:
    request = told(damaged(), 7).request
    assert (request.replica.id, request.fetch_offset, request.last_fetched_epoch) == (1, 2, 1)


def test_what_the_leader_says_of_its_end_cuts_nothing() -> None:
    context = damaged()
    told(context, 0)
    assert context.log_end_offset == 2


def test_in_its_own_epoch_it_is_whole_where_the_leaders_log_ended_however_much_follows() -> None:
    context = damaged()
    fetch = told(context, 7)
    ready = context.answer(fetch, context.fetched(batch(2, 2, 3), high_watermark=5))
    # All that is committed is here. It had acknowledged more.
    assert context.node.high_watermark == 5
    assert not ready.has_caught_up
    ready = context.answer(fetch_of(context), context.fetched(batch(5, EPOCH, 1), high_watermark=5))
    assert not ready.has_caught_up
    pre_vote = context.ask_for_pre_vote(3, EPOCH, last_offset_epoch=EPOCH, last_offset=6)
    assert not pre_vote.vote_granted
    ready = context.answer(fetch_of(context), context.fetched(batch(6, EPOCH, 2), high_watermark=5))
    assert ready.has_caught_up
    assert votes(context, EPOCH, last_offset=8)
    assert not votes(context, EPOCH, last_offset=7, epoch=10), "it compares what it has"


def test_a_log_as_long_as_the_leaders_was_is_not_whole_with_older_records() -> None:
    """What it has of older epochs may have to be cut yet."""
    state = QuorumState(leader_epoch=EPOCH, leader_id=2)
    context = RaftContext(log=[batch(0, 1, 4), batch(4, 1, 5)], state=state, damaged_until=12)
    fetch = told(context, 5)
    assert not context.last_ready.has_caught_up
    context.answer(fetch, context.fetched(diverging=OffsetAndEpoch(4, 1)))
    assert context.log_end_offset == 4
    assert context.answer(fetch_of(context), context.fetched(batch(4, EPOCH))).has_caught_up


def test_the_last_flush_makes_it_whole_though_the_leader_is_gone() -> None:
    context = damaged()
    fetch = told(context, 7)
    context.auto_flush = False
    context.answer(fetch, context.fetched(batch(2, EPOCH, 5)))
    context.advance(2 * context.config.fetch_timeout_ms)
    assert context.standing == ("unattached", EPOCH, 2)
    assert context.flush().has_caught_up
    context.advance(context.config.election_timeout_ms)
    assert context.node.role == "prospective", "like any voter that hears of no leader"


def test_the_end_is_asked_for_once() -> None:
    """The leader is given up and found again: its log cannot have become shorter."""
    context = damaged()
    told(context, 7)
    context.advance(2 * context.config.fetch_timeout_ms)
    assert context.node.role == "unattached"
    context.sent(FetchRequest)
    assert context.follow(leader_id=2, epoch=EPOCH).request.fetch_offset == 2


def test_an_end_that_was_not_reported_is_requested_again() -> None:
    context = damaged()
    context.fail(fetch_of(context))
    context.advance(2 * context.config.fetch_timeout_ms)
    context.sent(FetchRequest)
    assert context.follow(leader_id=2, epoch=EPOCH).request.fetch_offset == FARTHEST_OFFSET


@pytest.mark.parametrize("diverging", [None, OffsetAndEpoch(1, EPOCH - 1)])
def test_after_an_answer_without_sense_it_waits_for_an_empty_one(diverging: OffsetAndEpoch | None) -> None:
    context = damaged()
    context.answer(fetch_of(context), context.fetched(diverging=diverging))
    assert context.log_end_offset == 2, "no cut for that"
    ready = context.answer(fetch_of(context), context.fetched(batch(2, EPOCH, 9)))
    assert not ready.has_caught_up
    assert context.answer(fetch_of(context), context.fetched()).has_caught_up


def test_the_leader_of_a_later_epoch_is_not_asked_for_its_end() -> None:
    fetch = damaged().follow(leader_id=3, epoch=EPOCH + 1)
    assert fetch.request.fetch_offset == 2


def test_an_empty_answer_of_a_later_epoch_proves_nothing() -> None:
    """That leader may not have sent its first record yet; until then it may commit nothing either."""
    context = damaged()
    fetch = context.follow(leader_id=3, epoch=EPOCH + 1)
    assert not context.answer(fetch, context.fetched(high_watermark=2)).has_caught_up
    assert not votes(context, EPOCH)


def test_a_record_of_a_later_epoch_proves_that_all_before_it_is_here() -> None:
    context = damaged()
    fetch = context.follow(leader_id=3, epoch=EPOCH + 1)
    ready = context.answer(fetch, context.fetched(batch(2, EPOCH, 3), batch(5, EPOCH + 1)))
    assert ready.has_caught_up
    assert votes(context, EPOCH + 1)
    assert not votes(context, EPOCH, epoch=10), "it compares what it has"


def test_it_is_not_whole_before_the_proof_is_flushed() -> None:
    context = damaged()
    fetch = context.follow(leader_id=3, epoch=EPOCH + 1)
    context.auto_flush = False
    ready = context.answer(fetch, context.fetched(batch(2, EPOCH, 3), batch(5, EPOCH + 1)))
    assert not ready.has_caught_up
    assert context.sent(FetchRequest) == [], "nothing is acknowledged before"
    assert context.flush().has_caught_up


def test_what_is_left_may_have_to_be_cut() -> None:
    context = damaged()
    fetch = context.follow(leader_id=3, epoch=EPOCH + 1)
    context.answer(fetch, context.fetched(diverging=OffsetAndEpoch(0, 0)))
    assert context.log_end_offset == 0
    (fetch,) = context.sent(FetchRequest)
    assert context.answer(fetch, context.fetched(batch(0, 2, 3), batch(3, EPOCH + 1))).has_caught_up


def test_a_leader_tells_the_others_to_begin_at_once_and_resigns() -> None:
    context = damaged(leader_id=1)
    assert context.node.role == "resigned"
    ends = context.sent(EndQuorumEpochRequest)
    assert [end.destination_id for end in ends] == [2, 3]
    assert {key.id for key in ends[0].request.preferred_candidates} == {2, 3}
    for _ in range(20):
        context.advance(1_000)
    assert (context.node.role, context.node.leader_epoch) == ("unattached", EPOCH + 1)


def test_an_observer_is_whole_before_it_has_flushed() -> None:
    """Nothing waits for its flushes, so they may take long; the repair is recorded after a flush."""
    state = QuorumState(leader_epoch=EPOCH, leader_id=2)
    context = RaftContext(voters=(2, 3), log=[batch(0, 1, 2)], state=state, damaged_until=9, auto_flush=False)
    assert context.answer(told(context, 5), context.fetched(batch(2, EPOCH, 3))).has_caught_up


def test_trust_in_its_votes_is_trust_in_its_log() -> None:
    """With every voter's word for the leader, and all that this one has, there is nothing left to be proven."""
    state = QuorumState(leader_epoch=EPOCH, leader_id=2)
    context = RaftContext(log=[batch(0, 1, 2)], state=state, damaged_until=9, has_lost_its_state=True)
    fetches = {fetch.destination_id: fetch for fetch in context.sent(FetchRequest)}
    naming = FetchResponse(error=ErrorCode.not_leader_or_follower, leader_id=2, leader_epoch=EPOCH)
    context.answer(fetches[3], naming)
    assert fetches[2].request.fetch_offset == FARTHEST_OFFSET
    context.answer(fetches[2], context.fetched(high_watermark=3, diverging=OffsetAndEpoch(3, EPOCH)))
    context.answer(fetch_of(context), context.fetched(batch(2, EPOCH)))
    assert context.answer(fetch_of(context), context.fetched(high_watermark=3)).has_caught_up
    context.advance(2 * context.config.fetch_timeout_ms)
    assert context.node.role == "prospective"


@pytest.mark.parametrize(("end", "is_trusted"), [(3, True), (4, False)])
def test_lost_votes_are_trusted_under_load_once_all_is_back_that_the_leader_had(
    end: int, is_trusted: bool
) -> None:
    state = QuorumState(leader_epoch=EPOCH, leader_id=2)
    context = RaftContext(log=[batch(0, 1, 2)], state=state, has_lost_its_state=True)
    fetches = {fetch.destination_id: fetch for fetch in context.sent(FetchRequest)}
    naming = FetchResponse(error=ErrorCode.not_leader_or_follower, leader_id=2, leader_epoch=EPOCH)
    context.answer(fetches[3], naming)
    told = context.fetched(high_watermark=3, diverging=OffsetAndEpoch(end, EPOCH))
    assert not context.answer(fetches[2], told).has_caught_up
    assert not context.answer(fetch_of(context), context.fetched(batch(2, EPOCH))).has_caught_up
    fetch = fetch_of(context)
    context.auto_flush = False
    assert (
        context.answer(fetch, context.fetched(batch(3, EPOCH), high_watermark=3)).has_caught_up is is_trusted
    )


def test_a_replica_that_lost_its_votes_as_well_waits_for_the_confirmations() -> None:
    state = QuorumState(leader_epoch=EPOCH, leader_id=2)
    context = RaftContext(log=[batch(0, 1, 2)], state=state, damaged_until=9, has_lost_its_state=True)
    fetches = context.sent(FetchRequest)
    question = next(fetch for fetch in fetches if fetch.destination_id == 2)
    context.answer(question, context.fetched(high_watermark=2, diverging=OffsetAndEpoch(2, EPOCH)))
    to_leader = fetch_of(context)
    assert to_leader.request.replica == ANONYMOUS, "the request bears no name"
    assert not context.answer(to_leader, context.fetched(high_watermark=2)).has_caught_up
    assert not votes(context, 8)


def test_a_voter_that_lost_its_votes_first_reports_offset_0_and_acknowledges_nothing_by_that() -> None:
    state = QuorumState(leader_epoch=EPOCH, leader_id=2)
    context = RaftContext(voters=(2, 3), log=[batch(0, 1, 2)], state=state, has_lost_its_state=True)
    fetches = {fetch.destination_id: fetch.request for fetch in context.sent(FetchRequest)}
    assert (fetches[2].replica, fetches[2].fetch_offset) == (key_of(1), FARTHEST_OFFSET)
    assert (fetches[3].replica, fetches[3].fetch_offset) == (ANONYMOUS, 2)
