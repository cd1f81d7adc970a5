"""Long answers let others be served in between, and keep the order of their connection."""

import asyncio
import logging
import socket
from functools import partial
from typing import Any

import pytest

from kquorum.network.aside import Aside
from kquorum.network.limits import BudgetLimits, ServerLimits
from kquorum.network.long_replies import AnswersAside, reply_in_slices
from kquorum.network.request_budget import AnswerInMaking
from kquorum.network.requests import Reply, RequestContext
from kquorum.network.server import SharedLimits
from kquorum.wire.message_codec import encode
from kquorum.wire.protocol.frames import FrameDecoder
from kquorum.wire.protocol.headers import EncodedBody, RequestHeader
from tests.support.kio.frames import decode_response
from tests.support.network.budget_peers import Peer
from tests.support.network.peers import ECHO, FLEXIBLE, HOST, echo_request, echo_response, serving, until

LONG = 50
HEADER = RequestHeader(ECHO, FLEXIBLE, 1, None)


def answer(text: str) -> EncodedBody:
    return EncodedBody(encode(echo_response(FLEXIBLE, text), FLEXIBLE))


async def responses(reader: asyncio.StreamReader, count: int) -> list[str]:
    decoder, found = FrameDecoder(1 << 20), list[str]()
    async with asyncio.timeout(60):
        while len(found) < count and (data := await reader.read(1 << 16)):
            for frame in decoder.feed(data):
                entity: Any = decode_response(ECHO, FLEXIBLE, frame)[1]
                found.append(entity.coordinators[0].host if hasattr(entity, "coordinators") else entity.host)
    return found


def test_others_are_served_while_it_is_made_and_its_connection_keeps_the_order() -> None:
    turns: list[str] = []

    def handler(context: RequestContext, request: Any, reply: Reply) -> None:
        if request.key != "long":
            turns.append(request.key)
            reply(answer(request.key))
            return
        left = iter(range(LONG))

        def advance() -> EncodedBody | None:
            turns.append("slice")
            sum(range(100_000))  # a millisecond or more: all slices together exceed a turn of the connections
            return answer("long") if next(left, None) is None else None

        reply_in_slices(advance, reply)

    async def ask() -> None:
        async with serving(handler) as server:
            reader, writer = await asyncio.open_connection(HOST, server.bound_port)
            other_reader, other_writer = await asyncio.open_connection(HOST, server.bound_port)
            other_writer.write(echo_request("warm", 1))
            assert await responses(other_reader, 1) == ["warm"]
            writer.write(echo_request("long", 1) + echo_request("behind", 2))
            other_writer.write(echo_request("other", 2))
            assert await responses(reader, 2) == ["long", "behind"]
            assert await responses(other_reader, 1) == ["other"]
            writer.close()
            other_writer.close()

    asyncio.run(ask())
    assert turns.count("slice") == LONG + 1
    assert "slice" in turns[turns.index("other") :], "the other was served before the long answer was made"


def test_a_fault_in_a_later_slice_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    steps = iter([None])

    def handler(context: RequestContext, request: Any, reply: Reply) -> None:
        reply_in_slices(lambda: next(steps), reply)

    async def ask() -> bytes:
        async with serving(handler) as server:
            reader, writer = await asyncio.open_connection(HOST, server.bound_port)
            writer.write(echo_request("x", 1))
            async with asyncio.timeout(60):
                left = await reader.read()
            writer.close()
            return left

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(ask()) == b""
    assert "a long answer could not be made" in caplog.text


def test_what_slow_readers_do_not_read_bounds_the_answers_that_are_made() -> None:
    """200 clients that asked for 20 MB each and read nothing took a broker to 4 GB: all the answers were made."""
    budget, size, slices, clients = 8_000_000, 4_000_000, 10, 20
    shared, whole = SharedLimits(budget=BudgetLimits(max_bytes=budget)), list[int]()
    most, most_whole = 0, 3 * budget // size + 2

    def handler(context: RequestContext, request: Any, reply: Reply) -> None:
        if request.key == "short":
            reply(answer("short"))
            return
        left = iter(range(slices))
        data = answer("x" * 30_000).data

        def advance() -> EncodedBody | None:
            nonlocal most
            most = max(most, shared.budget.held_bytes)
            if next(left, None) is not None:
                context.making.note_made(size // slices)
                return None
            whole.append(1)
            return EncodedBody(data + bytes(size))

        reply_in_slices(advance, reply, context)

    async def ask() -> None:
        limits = ServerLimits(drain_timeout_ms=10)
        async with serving(handler, shared=shared, limits=limits) as server:
            slow: list[asyncio.StreamWriter] = []
            try:
                for number in range(clients):
                    # What the kernel takes is small beside an answer.
                    client = socket.socket()
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                    client.connect((HOST, server.bound_port))
                    _, writer = await asyncio.open_connection(sock=client)
                    writer.transport.pause_reading()  # type: ignore[attr-defined]
                    writer.write(echo_request("long", number))
                    slow.append(writer)
                await until(lambda: shared.budget.waiting >= 5 or len(whole) > most_whole)
                assert len(whole) <= most_whole, "answers are made, though nothing of them is read"
                fair_reader, fair = await asyncio.open_connection(HOST, server.bound_port)
                fair.write(echo_request("short", 1))
                assert await responses(fair_reader, 1) == ["short"]
                assert len(whole) < clients
                assert max(most, shared.budget.held_bytes) <= 3 * budget + 2 * size
                for writer in slow[:-1]:
                    writer.transport.abort()
                slow[-1].transport.resume_reading()  # type: ignore[attr-defined]
                fair.write(echo_request("long", 2))
                async with asyncio.timeout(60):
                    await fair_reader.readexactly(size)
                fair.close()
                slow[-1].transport.abort()
                await until(lambda: shared.budget.held_bytes == 0)
                assert shared.budget.waiting == shared.budget.unsent_bytes == 0
            finally:
                # The server waits for them when it stops.
                for writer in slow:
                    writer.transport.abort()

    asyncio.run(ask())


def test_nothing_more_is_made_for_a_connection_that_is_gone() -> None:
    made: list[int] = []

    def advance() -> EncodedBody | None:
        made.append(1)
        return None

    async def ask() -> object:
        replied: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        context = RequestContext(1, HOST, "TEST", HEADER, is_gone=lambda: len(made) == 3)
        reply_in_slices(advance, replied.set_result, context)
        async with asyncio.timeout(60):
            return await replied

    assert asyncio.run(ask()) is None
    assert len(made) == 3


class Budget:
    """100,000 bytes, and a peer that may leave so much unread."""

    def __init__(self) -> None:
        self.shared = SharedLimits(budget=BudgetLimits(max_bytes=100_000))
        self.slow = Peer(self.shared.budget, "slow", [])

    def leaves_unread(self, size: int) -> None:
        self.slow.holds(size, unsent_bytes=size)

    def context(self, address: str, **others: Any) -> RequestContext:
        making = AnswerInMaking(self.shared.budget, address)
        return RequestContext(1, address, "TEST", HEADER, making=making, **others)


def test_an_answer_that_waits_for_room_keeps_no_other_from_being_made_aside() -> None:
    made: list[str] = []

    def make(name: str) -> EncodedBody:
        made.append(name)
        return EncodedBody(bytes(1_000))

    async def ask() -> None:
        loop, budget = asyncio.get_running_loop(), Budget()
        answers = AnswersAside(Aside("test"))
        budget.leaves_unread(60_000)
        replies: dict[str, asyncio.Future[Any]] = {}
        for name, address in (("slow", budget.slow.address), ("gone", budget.slow.address), ("other", HOST)):
            replies[name] = loop.create_future()
            context = budget.context(address, is_gone=lambda name=name: name == "gone")
            answers.begin(context, partial(make, name), replies[name].set_result)
        async with asyncio.timeout(60):
            assert await replies["other"] == EncodedBody(bytes(1_000))
            assert await replies["gone"] is None
            assert made == ["other"]
            budget.leaves_unread(40_000)
            assert await replies["slow"] == EncodedBody(bytes(1_000))
            await until(lambda: budget.shared.budget.held_bytes == 40_000)
        assert budget.shared.budget.waiting == 0
        answers.close()

    asyncio.run(ask())


def test_what_is_made_aside_is_given_up_with_the_listener() -> None:
    async def ask() -> None:
        budget = Budget()
        answers = AnswersAside(Aside("test"))
        budget.leaves_unread(60_000)
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answers.begin(budget.context(budget.slow.address), lambda: EncodedBody(b""), reply.set_result)
        await until(lambda: budget.shared.budget.waiting == 1)
        answers.close()
        async with asyncio.timeout(60):
            assert await reply is None
        assert budget.shared.budget.waiting == 0

    asyncio.run(ask())


def test_an_answer_that_cannot_be_made_aside_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    def make() -> EncodedBody:
        raise ValueError("no answer")

    async def ask() -> None:
        answers = AnswersAside(Aside("test"))
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answers.begin(Budget().context(HOST), make, reply.set_result)
        async with asyncio.timeout(60):
            assert await reply is None
        answers.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(ask())
    assert "a long answer could not be made" in caplog.text
