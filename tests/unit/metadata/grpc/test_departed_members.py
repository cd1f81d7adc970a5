"""A member that goes leaves nothing in the feed that others go on with; what one that comes says of its former life."""

import asyncio

from kquorum.metadata.grpc.broker.requests import Membership, registration_request
from kquorum.metadata.grpc.broker.watch import watch
from kquorum.metadata.grpc.feed import ChangeFeed
from kquorum.metadata.grpc.source import CommittedLog
from kquorum.wire.proto import broker_pb2 as pb
from tests.support.metadata.grpc_filled_source import filled_source

MEMBERSHIP = Membership(cluster_id="c", heartbeat_interval_ms=1, session_timeout_ms=2)


def test_the_feed_forgets_a_member_that_left_while_another_stays() -> None:
    async def main() -> list[int]:
        log = CommittedLog(filled_source())
        feed = ChangeFeed(log)
        streams = [watch(pb.WatchRequest(broker_id=number), log, feed, 100) for number in (1, 2)]
        for stream in streams:
            await anext(stream)  # the state
            await anext(stream)  # up to where it was caught up, so the watcher is attached
        counts = [len(feed._watchers)]
        for stream in streams:
            await stream.aclose()
            counts.append(len(feed._watchers))  # at once, and not when the loop comes to close what is inside
        return counts

    assert asyncio.run(asyncio.wait_for(main(), 20)) == [2, 1, 0]


def test_a_member_that_was_stopped_in_order_may_say_so() -> None:
    request = pb.RegisterRequest(broker_id=5, incarnation_id=b"i" * 16, previous_broker_epoch=41)
    assert registration_request(request, MEMBERSHIP).previous_broker_epoch == 41
    request.ClearField("previous_broker_epoch")
    assert registration_request(request, MEMBERSHIP).previous_broker_epoch == -1
