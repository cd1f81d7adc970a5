"""Many connections that are ready at once get one turn together, not one each: what the node does for itself (timers,
its peers) comes in between. Counted in requests for each iteration of the loop, not in time."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

import pytest

from kquorum.broker.adapters import listener
from kquorum.network.long_replies import reply_in_slices
from kquorum.network.long_requests import MOST_ELEMENTS
from kquorum.network.requests import Reply, RequestContext
from kquorum.network.turns import TURN_S, turns_of
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from kquorum.wire.protocol.frames import encode_frame
from kquorum.wire.protocol.headers import EncodedBody, encode_request
from tests.attacks.rig import rig
from tests.support.api_calls import request_of
from tests.support.images import broker_record, image_of, partition_record, topic_records
from tests.support.network.long_bodies import long_request
from tests.support.network.peers import until
from tests.support.single_node import HOST

ALL_TOPICS = {
    "topics": None,
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
}
CONNECTIONS = 100
LONG_CONNECTIONS = 6
TOPICS = 60_000
# The first is read in the loop, the second aside.
FLOODS = {
    "CreateTopics": (ApiKey.CREATE_TOPICS, ("topics",), 200),
    "DeleteTopics": (ApiKey.DELETE_TOPICS, ("topics",), 1_900),
}


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("name", ["controller", "broker"])
def test_connections_that_are_ready_at_once_share_one_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, flood: str
) -> None:
    """Each connection once had a turn of 10 ms of its own, so 150 of them delayed Raft's timers for seconds."""

    async def work() -> None:
        async with rig(tmp_path, topics=1, allows_clients=False) as built:
            server, loop = built.servers[name], asyncio.get_running_loop()
            frame = encode_frame(long_request(*FLOODS[flood]))
            peers = [await asyncio.open_connection(HOST, server.bound_port) for _ in range(CONNECTIONS)]
            handle = server._state.handler
            served = most = 0
            all_served = asyncio.Event()

            def counted(*request: object) -> None:
                nonlocal served
                served += 1
                handle(*request)  # type: ignore[arg-type]
                if served == CONNECTIONS:
                    all_served.set()

            def tick(before: int) -> None:
                nonlocal most
                most = max(most, served - before)
                if not all_served.is_set():
                    loop.call_soon(tick, served)

            # Each look at the clock is as if a request had taken most of a turn.
            monkeypatch.setattr(turns_of(loop), "now_s", partial(next, count(step=0.6 * TURN_S)))
            server._state.handler = counted
            for _, writer in peers:
                writer.write(frame)
            tick(0)
            await all_served.wait()
            for reader, writer in peers:
                await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                writer.close()
            assert most <= 3

    asyncio.run(work())


def test_few_long_requests_are_under_way_at_the_same_time(tmp_path: Path) -> None:
    """Eight of 199,000 topics were all read before one was answered: garbage collection then took 380 ms of a turn."""

    async def work() -> None:
        async with rig(tmp_path, topics=1) as built:
            server = built.broker
            frame = encode_frame(long_request(ApiKey.METADATA, ("topics",), TOPICS))
            handle = server._state.handler
            under_way = most = served = 0

            def counted(context: RequestContext, request: Any, reply: Reply) -> None:
                nonlocal under_way, most, served
                under_way += context.elements
                most = max(most, under_way)
                served += 1

                def answered(answer: Any) -> None:
                    nonlocal under_way
                    under_way -= context.elements
                    reply(answer)

                handle(context, request, answered)

            server._state.handler = counted
            peers = [await asyncio.open_connection(HOST, server.bound_port) for _ in range(LONG_CONNECTIONS)]
            for _, writer in peers:
                writer.write(frame)
            # The last leaves without its answer, and its request with it.
            peers.pop()[1].transport.abort()
            for reader, writer in peers:
                await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                writer.close()
            assert served >= len(peers)
            assert TOPICS <= most < MOST_ELEMENTS + TOPICS
            assert under_way == 0

    asyncio.run(work())


def test_long_metadata_answers_of_many_connections_are_one_slice_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight clients that ask for all of 10,000 topics at once take no more of an iteration than one."""
    image = image_of(
        broker_record(1),
        *chain.from_iterable(
            topic_records(each, f"t{each}", partition_record(each, 0, (1,))) for each in range(1, 10_001)
        ),
    )
    slices = most = 0

    def counted(advance: Callable[[], EncodedBody | None], *rest: Any) -> None:
        def advance_counted() -> EncodedBody | None:
            nonlocal slices
            slices += 1
            return advance()

        reply_in_slices(advance_counted, *rest)

    async def work() -> None:
        async with rig(tmp_path, topics=0) as built:
            built.cache.swap(image)
            loop, are_answered = asyncio.get_running_loop(), asyncio.Event()
            version = supported_versions(ApiKey.METADATA)[1]
            request = request_of(ApiKey.METADATA, version, ALL_TOPICS)
            frame = encode_frame(encode_request(ApiKey.METADATA, version, 1, "client", request))
            peers = [await asyncio.open_connection(HOST, built.broker.bound_port) for _ in range(8)]

            def tick(before: int) -> None:
                nonlocal most
                most = max(most, slices - before)
                if not are_answered.is_set():
                    loop.call_soon(tick, slices)

            # Each look at the clock is as if a slice had taken a whole turn.
            monkeypatch.setattr(turns_of(loop), "now_s", partial(next, count(step=1.1 * TURN_S)))
            monkeypatch.setattr(listener, "reply_in_slices", counted)
            tick(0)
            for _, writer in peers:
                writer.write(frame)
            for reader, writer in peers:
                answer = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                assert b"t10000" in answer
                writer.close()
            are_answered.set()

    asyncio.run(work())
    assert slices >= 2 * 8
    assert most == 1


def test_a_request_that_is_never_answered_holds_other_long_ones_up_for_a_time_only(tmp_path: Path) -> None:
    async def work() -> None:
        async with rig(tmp_path, topics=1) as built:
            state = built.broker._state
            state.limits = replace(state.limits, request_timeout_ms=300)
            handle, came = state.handler, asyncio.Event()

            def forgetful(*_request: object) -> None:
                state.handler = handle
                came.set()

            state.handler = forgetful
            frame = encode_frame(long_request(ApiKey.METADATA, ("topics",), MOST_ELEMENTS + 1))
            _, forgotten = await asyncio.open_connection(HOST, built.broker.bound_port)
            forgotten.write(frame)
            await came.wait()
            forgotten.transport.abort()
            frame = encode_frame(long_request(ApiKey.METADATA, ("topics",), 10_000))
            reader, writer = await asyncio.open_connection(HOST, built.broker.bound_port)
            writer.write(frame)
            async with asyncio.timeout(30):
                assert await reader.readexactly(4)
            writer.close()

    asyncio.run(work())


def test_an_answered_long_request_makes_room_while_its_connection_stays(tmp_path: Path) -> None:
    """The room of a request came back when its connection closed, at the latest: one that stays needs it before."""

    async def work() -> None:
        async with rig(tmp_path, topics=1) as built:
            frame = encode_frame(long_request(ApiKey.METADATA, ("topics",), MOST_ELEMENTS // 2 + 1))
            reader, writer = await asyncio.open_connection(HOST, built.broker.bound_port)
            for _ in range(3):
                writer.write(frame)
                async with asyncio.timeout(30):
                    await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            assert not built.broker._state.shared.long_requests._elements
            writer.close()

    asyncio.run(work())


def test_a_long_request_of_a_client_that_has_gone_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with rig(tmp_path, topics=1) as built:
            state = built.broker._state
            frame = encode_frame(long_request(ApiKey.METADATA, ("topics",), TOPICS))
            goes_on, begun, begin = threading.Event(), [0], state.reader.begin

            def held(read: Callable[[], Any]) -> Any:
                begun[0] += 1
                return begin(lambda: (goes_on.wait(60), read())[1])

            monkeypatch.setattr(state.reader, "begin", held)
            peers = [await asyncio.open_connection(HOST, built.broker.bound_port)]
            peers[0][1].write(frame)
            await until(lambda: begun[0] == 1)
            peers.append(await asyncio.open_connection(HOST, built.broker.bound_port))
            peers[1][1].write(frame)
            await until(lambda: len(state.shared.long_requests._waiting) == 1)
            connections = len(state.connections)
            peers[1][1].transport.abort()
            await until(lambda: len(state.connections) < connections)
            goes_on.set()
            reader, writer = peers[0]
            await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            await until(lambda: not state.shared.long_requests._waiting)
            assert begun[0] == 1
            writer.close()

    asyncio.run(work())
