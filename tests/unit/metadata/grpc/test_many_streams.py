"""Many streams of one client: each costs little, and together they must neither fill a turn of the loop nor keep others
out."""

import asyncio
from collections import Counter
from typing import Any

import grpc
import pytest

from kquorum.metadata.grpc.feed import ChangeFeed, Watcher
from kquorum.metadata.grpc.inspect.messages import image_header
from kquorum.metadata.grpc.open_calls import OpenCalls, TooManyCalls
from kquorum.metadata.grpc.source import CommittedLog
from kquorum.metadata.grpc.turns import PIECES_AT_ONCE
from kquorum.network.limits import GrpcLimits
from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.proto import inspect_pb2_grpc
from tests.support.calls import calls_of
from tests.support.grpc_harness import failure_of, run, serving
from tests.support.grpc_source import FakeSource, partition, topic

STREAMS = 10 * PIECES_AT_ONCE


class Iterations:
    """How often `note` was called in each iteration of the loop."""

    def __init__(self) -> None:
        self.number = 0
        self.noted: Counter[int] = Counter()

    def note(self) -> None:
        self.noted[self.number] += 1

    async def until(self, total: int) -> None:
        while self.noted.total() < total:
            await asyncio.sleep(0)
            self.number += 1


def test_a_commit_wakes_the_streams_that_wait_a_few_at_a_time() -> None:
    async def main() -> Counter[int]:
        source, iterations = FakeSource(), Iterations()
        log = CommittedLog(source)

        async def wait() -> None:
            await log.wait_for(0)
            iterations.note()

        waiting = [asyncio.create_task(wait()) for _ in range(STREAMS)]
        await asyncio.sleep(0)
        source.commit(topic("a", 1))
        await iterations.until(STREAMS)
        await asyncio.gather(*waiting)
        return iterations.noted

    assert max(run(main).values()) <= PIECES_AT_ONCE


def test_a_log_that_does_not_grow_wakes_no_stream() -> None:
    """Also not when it is polled: a commit that changes no image is not announced."""

    async def main() -> tuple[int, int]:
        source = FakeSource()
        log = CommittedLog(source)
        looks = 0
        high_watermark = source.high_watermark

        def looked() -> int:
            nonlocal looks
            looks += 1
            return high_watermark()

        source.high_watermark = looked  # type: ignore[method-assign]
        waiting = [asyncio.create_task(log.wait_for(0)) for _ in range(STREAMS)]
        await log.wait_for_more()
        await log.wait_for_more()
        before = looks
        source.append(topic("a", 1))
        source.committed = source.end
        await asyncio.gather(*waiting)
        return before, looks

    before, _ = run(main)
    assert before < STREAMS + 10, "one look for each stream that begins to wait, and one for each poll"


def test_a_stream_that_gives_up_is_not_woken() -> None:
    async def main() -> None:
        source = FakeSource()
        log = CommittedLog(source)
        waiting = [asyncio.create_task(log.wait_for(0)) for _ in range(STREAMS)]
        await asyncio.sleep(0)
        source.commit(topic("a", 1))
        waiting[-1].cancel()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert answers[:-1] == [None] * (STREAMS - 1)
        assert isinstance(answers[-1], asyncio.CancelledError)

    run(main)


def test_a_batch_is_offered_to_the_watchers_a_few_at_a_time() -> None:
    async def main() -> tuple[int, list[int]]:
        source, iterations = FakeSource(), Iterations()

        class Noting(Watcher):
            def offer(self, changes: Any) -> None:
                iterations.note()
                super().offer(changes)

        log = CommittedLog(source)
        feed = ChangeFeed(log)
        feed.hold()
        watchers = [Noting((), 0, 100) for _ in range(STREAMS)]
        for watcher in watchers:
            feed.attach(watcher)
        await asyncio.sleep(0)
        source.commit(topic("a", 1))
        await iterations.until(1)
        # It attaches where the feed stands, which is behind this batch: it must not be offered it.
        late = Noting((), 0, 100)
        feed.attach(late)
        await iterations.until(STREAMS)
        most = max(iterations.noted.values())
        found = [(await anext(watcher.changes())).offset for watcher in watchers]
        source.commit(topic("b", 2))
        found.append((await anext(late.changes())).offset)
        feed.release()
        log.close()
        return most, found

    most, found = run(main)
    assert most <= PIECES_AT_ONCE
    assert found == [0] * STREAMS + [1]


def test_the_header_of_an_image_costs_no_more_with_many_topics() -> None:
    def cost(topics: int) -> int:
        source = FakeSource()
        source.commit(*(each for n in range(1, topics + 1) for each in (topic(f"t{n}", n), partition(n))))
        image = source.committed_image()
        assert image_header(source, image).partition_count == topics
        return calls_of(lambda: image_header(source, image))

    assert cost(500) == cost(5)


async def is_served(call: Any) -> bool:
    try:
        return bool((await call.read()).initial_state.node_id == FakeSource.node_id)
    except grpc.aio.AioRpcError:
        return False


def test_calls_above_the_limit_of_a_client_are_refused_until_one_has_ended() -> None:
    async def main() -> grpc.aio.AioRpcError:
        limits = GrpcLimits(max_open_calls=10, max_open_calls_per_client=2)
        async with serving(FakeSource(), limits=limits) as rig:
            calls = [rig.stub.Watch(pb.WatchRequest()) for _ in range(2)]
            for call in calls:
                await call.read()
            refused = await failure_of(rig.stub.Watch(pb.WatchRequest()).read())
            calls[0].cancel()
            while not await is_served(rig.stub.Watch(pb.WatchRequest())):
                pass  # until the server has heard of the end
            return refused

    error = run(main)
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error.details() == (
        "127.0.0.1 has 2 calls open at this node, and no more are allowed to one client: end some, or raise "
        "kquorum.grpc.max.open.calls.per.client"
    )


def test_a_connection_does_not_shut_out_the_others_of_its_address() -> None:
    """A client without a login took all calls of its address, and the next one there was refused."""

    async def main() -> tuple[int, str]:
        limits = GrpcLimits(max_open_calls=20, max_open_calls_per_client=4)
        async with serving(FakeSource(), limits=limits) as rig:
            calls = [rig.stub.Watch(pb.WatchRequest()) for _ in range(4)]
            for call in calls:
                await call.read()
            own_pool = (("grpc.use_local_subchannel_pool", 1),)
            async with grpc.aio.insecure_channel(f"127.0.0.1:{rig.server.bound_port}", own_pool) as channel:
                stub: Any = inspect_pb2_grpc.InspectStub(channel)  # type: ignore[no-untyped-call]
                others = [stub.Watch(pb.WatchRequest()) for _ in range(2)]
                for call in others:
                    await call.read()
                refused = await failure_of(stub.Watch(pb.WatchRequest()).read())
                more = await failure_of(rig.stub.Watch(pb.WatchRequest()).read())
                assert more.code() is refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            return len(others), str(refused.details())

    served, details = run(main)
    assert served == 2
    assert details.startswith("127.0.0.1 has 6 calls open")


def test_the_connections_of_an_address_share_its_calls_and_have_twice_as_many_at_most() -> None:
    calls = OpenCalls(most=1_000, most_of_client=4)
    held = [calls.take("10.0.0.1", "a") for _ in range(4)]
    with pytest.raises(TooManyCalls, match=r"10\.0\.0\.1 has 4 calls open"):
        calls.take("10.0.0.1", "a")
    held += [calls.take("10.0.0.1", each) for each in ("b", "b", "c", "d")]
    with pytest.raises(TooManyCalls, match=r"10\.0\.0\.1 has 8 calls open"):
        calls.take("10.0.0.1", "e")
    for give_back in held:
        give_back()
    assert (calls.open, calls.clients, calls.connections) == (0, Counter(), {})


def test_the_connections_of_a_principal_have_no_part_of_their_own() -> None:
    calls = OpenCalls(most=10, most_of_client=1)
    calls.take("User:a")
    with pytest.raises(TooManyCalls, match="User:a has 1 calls open"):
        calls.take("User:a")


def test_the_limit_of_all_holds_for_clients_who_have_not_reached_theirs() -> None:
    calls = OpenCalls(most=3, most_of_client=2)
    held = [calls.take("User:a"), calls.take("User:a"), calls.take("User:b")]
    with pytest.raises(TooManyCalls, match=r"3 calls are open.*kquorum\.grpc\.max\.open\.calls$"):
        calls.take("User:c")
    with pytest.raises(TooManyCalls, match="User:a has 2 calls open"):
        calls.take("User:a")
    held.pop()()
    with calls.held("User:c"):
        pass
    assert calls.open == 2
    for give_back in held:
        give_back()
    assert calls.open == 0
    assert not calls.clients
