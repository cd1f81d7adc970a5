"""Handlers that wait, on a real listener: until they are completed, until a deadline, and until the client has gone."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kquorum.broker.adapters.listener import BrokerListener
from kquorum.broker.apis.api import Authorized, BrokerApi, LocalAsync
from kquorum.broker.apis.registry import BROKER_APIS
from kquorum.broker.apis.services import BrokerServices, DelayedOperation
from kquorum.broker.apis.services import RequestContext as HandlerContext
from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.network.connection import KafkaConnection
from kquorum.network.errors import ConnectionLost
from kquorum.network.requests import RequestContext
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.heartbeat import HeartbeatResponse
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import RequestHeader
from tests.support.api_calls import message_of, request_of
from tests.support.broker.listening_broker import Broker, broker
from tests.support.broker_services import broker_services
from tests.support.running_controllers import eventually, run

# Longer than any test takes.
FOREVER_MS = 600_000
HEARTBEAT = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}
CLUSTER = {"include_cluster_authorized_operations": False, "include_fenced_brokers": False}
DONE, TIME_IS_UP = ErrorCode.none, ErrorCode.rebalance_in_progress


class Parked:
    """A handler of Heartbeat that waits for `complete`, or for its deadline."""

    def __init__(self, timeout_ms: int = FOREVER_MS, error: Exception | None = None) -> None:
        self._timeout_ms = timeout_ms
        self._error = error
        self.operations: list[DelayedOperation] = []
        self.cancelled = 0

    async def handle(
        self, _context: HandlerContext, _request: Any, services: BrokerServices
    ) -> HeartbeatResponse:
        operation = services.new_delayed_operation()
        self.operations.append(operation)
        try:
            is_done = await operation.wait(self._timeout_ms)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self._error is not None:
            raise self._error
        return HeartbeatResponse(error_code=DONE if is_done else TIME_IS_UP)

    @property
    def apis(self) -> dict[ApiKey, BrokerApi]:
        api = LocalAsync(ApiKey.HEARTBEAT, Authorized.NOT_NEEDED, handle=self.handle)
        return {**BROKER_APIS, ApiKey.HEARTBEAT: api}


@asynccontextmanager
async def another(node: Broker) -> AsyncIterator[KafkaConnection]:
    client = await KafkaConnection.connect("127.0.0.1", node.port, "another", 5_000)
    try:
        yield client
    finally:
        client.close()


def ask(node: Broker) -> "asyncio.Task[Any]":
    return asyncio.create_task(node.ask(ApiKey.HEARTBEAT, HEARTBEAT))


def test_an_answer_waits_for_what_it_needs_while_others_are_served() -> None:
    async def work() -> None:
        parked = Parked()
        async with broker(lambda: None, apis=parked.apis) as node, another(node) as other:
            asked = ask(node)
            await eventually(lambda: parked.operations)
            await other.call(message_of(ApiKey.DESCRIBE_CLUSTER, CLUSTER), 60_000)
            assert not asked.done()
            parked.operations[0].complete()
            parked.operations[0].complete()
            assert (await asked).error_code is DONE
            assert not parked.cancelled

    run(work())


def test_answers_of_one_connection_keep_the_order_of_their_requests() -> None:
    async def work() -> None:
        parked = Parked()
        async with broker(lambda: None, apis=parked.apis) as node:
            asked = ask(node)
            await eventually(lambda: parked.operations)
            behind = asyncio.create_task(node.ask(ApiKey.DESCRIBE_CLUSTER, CLUSTER))
            second = ask(node)
            # The request behind was served before this one, and its answer is held back.
            await eventually(lambda: len(parked.operations) == 2)
            assert not behind.done()
            parked.operations[0].complete()
            await asked
            await behind
            parked.operations[1].complete()
            assert (await second).error_code is DONE

    run(work())


def test_a_deadline_ends_the_wait_with_an_answer() -> None:
    async def work() -> ErrorCode:
        parked = Parked(timeout_ms=1)
        async with broker(lambda: None, apis=parked.apis) as node:
            error: ErrorCode = (await ask(node)).error_code
            assert not parked.cancelled
            return error

    assert run(work()) is TIME_IS_UP


def test_a_client_that_leaves_cancels_its_handler_and_no_other() -> None:
    async def work() -> None:
        parked = Parked()
        async with broker(lambda: None, apis=parked.apis) as node, another(node) as other:
            leaving = asyncio.create_task(other.call(message_of(ApiKey.HEARTBEAT, HEARTBEAT), 60_000))
            await eventually(lambda: len(parked.operations) == 1)
            staying = ask(node)
            await eventually(lambda: len(parked.operations) == 2)
            other.close()
            with pytest.raises(ConnectionLost):
                await leaving
            await eventually(lambda: parked.cancelled)
            assert parked.cancelled == 1
            parked.operations[1].complete()
            assert (await staying).error_code is DONE
            assert not node.listener._tasks

    run(work())


def test_what_was_answered_is_not_cancelled_when_its_client_leaves_afterwards() -> None:
    async def work() -> None:
        parked = Parked()
        async with broker(lambda: None, apis=parked.apis) as node, another(node) as other:
            answered = asyncio.create_task(other.call(message_of(ApiKey.HEARTBEAT, HEARTBEAT), 60_000))
            await eventually(lambda: parked.operations)
            parked.operations[0].complete()
            await answered
            other.close()
            await node.ask(ApiKey.DESCRIBE_CLUSTER, CLUSTER)
            assert not parked.cancelled

    run(work())


@pytest.mark.parametrize("waits", [1, 3])
def test_a_broker_that_stops_cancels_what_waits_and_takes_no_more(waits: int) -> None:
    async def work() -> None:
        parked = Parked()
        async with broker(lambda: None, apis=parked.apis) as node, another(node) as other:
            asked = [ask(node) for _ in range(waits)]
            await eventually(lambda: len(parked.operations) == waits)
            node.listener.end_waits()
            for each in asked:
                with pytest.raises(ConnectionLost):
                    await each
            assert parked.cancelled == waits
            # Other requests are served until the server stops.
            await other.call(message_of(ApiKey.DESCRIBE_CLUSTER, CLUSTER), 60_000)
            with pytest.raises(ConnectionLost):
                await other.call(message_of(ApiKey.HEARTBEAT, HEARTBEAT), 60_000)
            assert len(parked.operations) == waits, "no handler began after the end of waiting"

    run(work())


def test_a_handler_that_fails_ends_the_connection_of_its_client_alone() -> None:
    async def work() -> None:
        parked = Parked(error=RuntimeError("a fault of ours"))
        async with broker(lambda: None, apis=parked.apis) as node, another(node) as other:
            asked = ask(node)
            await eventually(lambda: parked.operations)
            parked.operations[0].complete()
            with pytest.raises(ConnectionLost):
                await asked
            await other.call(message_of(ApiKey.DESCRIBE_CLUSTER, CLUSTER), 60_000)

    run(work())


def test_a_client_that_has_left_already_costs_one_empty_reply() -> None:
    """Its handler is cancelled before its first step, and none of its code runs."""

    async def work() -> None:
        parked = Parked()
        listener = BrokerListener(broker_services(MetadataCache()), apis=parked.apis)

        def has_gone(call: Callable[[], object]) -> Callable[[], None]:
            call()
            return lambda: None

        version = listener.supported[ApiKey.HEARTBEAT][1]
        header = RequestHeader(ApiKey.HEARTBEAT, version, 1, None)
        context = RequestContext(1, "127.0.0.1", "PLAINTEXT", header, when_gone=has_gone)
        replies: list[Any] = []
        listener.handle(context, request_of(ApiKey.HEARTBEAT, version, HEARTBEAT), replies.append)
        await eventually(lambda: replies)
        await listener.stop()
        assert replies == [None]
        assert not parked.operations

    run(work())
