"""A request to the leader that is lost without a word must not keep the follower from fetching."""

from kquorum.raft.messages import FetchRequest, UpdateRaftVoterRequest
from tests.support.raft.context import LOCAL
from tests.support.raft.dynamic import DynamicContext, endpoints_of


def test_an_unanswered_update_is_followed_by_a_fetch() -> None:
    context = DynamicContext(endpoints=endpoints_of(LOCAL, 19093), fetch_timeout_ms=5000)
    fetch = context.follow(2, 1)
    context.now_ms += context.config.update_voter_period_ms - 1
    context.answer(fetch, context.fetched())
    (fetch,) = context.sent(FetchRequest)
    context.now_ms += 1
    context.answer(fetch, context.fetched())
    assert len(context.sent(UpdateRaftVoterRequest)) == 1
    context.advance(context.config.request_timeout_ms)
    assert [type(outbound.request) for outbound in context.requests] == [FetchRequest]
