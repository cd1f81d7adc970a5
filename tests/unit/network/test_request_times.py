"""The time of each request, apart for its wait in the queue, its handler, and its wait for others."""

from collections.abc import Callable
from typing import Any

from kquorum.network.request_times import RequestTimes, TimesOfKind
from kquorum.network.requests import RequestContext
from kquorum.wire.messages.fetch import FetchRequest, ReplicaState
from kquorum.wire.messages.metadata import MetadataRequest
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import NO_ANSWER, RequestHeader


class Clock:
    now_s = 10.0

    def __call__(self) -> float:
        return self.now_s


def sums(times: TimesOfKind) -> tuple[float, ...]:
    parts = (times.queue, times.local, times.remote, times.total)
    return tuple(round(each.sum_ms, 6) for each in parts)


def serve(
    times: RequestTimes, clock: Clock, request: Any, api_key: int, *, takes_s: float, later_s: float | None
) -> None:
    """The request waited for 7 ms; without `later_s` its handler answers."""
    context = RequestContext(1, "127.0.0.1", "L", RequestHeader(api_key, 0, 1, "client"), waited_ms=7)
    told: list[object] = []
    owed: list[Callable[[Any], None]] = []

    def handle(_context: RequestContext, _request: Any, reply: Callable[[Any], None]) -> None:
        clock.now_s += takes_s
        if later_s is None:
            reply(NO_ANSWER)
        else:
            owed.append(reply)

    times.measured(handle)(context, request, told.append)
    if later_s is not None:
        clock.now_s += later_s
        owed[0](NO_ANSWER)
    assert told == [NO_ANSWER]


def test_a_request_that_is_answered_at_once_waits_for_none() -> None:
    clock = Clock()
    times = RequestTimes(now_s=clock)
    serve(times, clock, MetadataRequest(), ApiKey.METADATA, takes_s=0.003, later_s=None)
    assert list(times.by_kind) == ["Metadata"]
    assert sums(times.by_kind["Metadata"]) == (7, 3, 0, 10)


def test_what_comes_after_the_handler_is_the_wait_for_others() -> None:
    clock = Clock()
    times = RequestTimes(now_s=clock)
    for _ in range(2):
        serve(times, clock, MetadataRequest(), ApiKey.METADATA, takes_s=0.002, later_s=0.5)
    assert sums(times.by_kind["Metadata"]) == (14, 4, 1_000, 1_018)
    assert sum(times.by_kind["Metadata"].total.counts) == 2


def test_requests_of_one_api_may_be_of_several_kinds() -> None:
    def kind(request: FetchRequest) -> str:
        return "of a follower" if request.replica_state.replica_id >= 0 else "of a consumer"

    clock = Clock()
    times = RequestTimes({ApiKey.FETCH: kind}, now_s=clock)
    serve(times, clock, FetchRequest(), ApiKey.FETCH, takes_s=0.001, later_s=None)
    follower = FetchRequest(replica_state=ReplicaState(replica_id=3))
    serve(times, clock, follower, ApiKey.FETCH, takes_s=0.002, later_s=None)
    assert sums(times.by_kind["of a consumer"])[1] == 1
    assert sums(times.by_kind["of a follower"])[1] == 2
