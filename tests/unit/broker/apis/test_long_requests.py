"""Requests whose few bytes stand for very much: refused, or answered while others are served."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kquorum.broker.apis.api import Local, Refused
from kquorum.broker.apis.registry import BROKER_APIS
from kquorum.network.aside import Aside
from kquorum.network.connection import KafkaConnection
from kquorum.network.errors import ConnectionLost
from kquorum.network.limits import ServerLimits
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import message_of
from tests.support.broker.listening_broker import Broker, broker
from tests.support.running_controllers import eventually, run

NAME = {"client_software_name": "test", "client_software_version": "1"}
MOST = ServerLimits().max_request_elements
METADATA = {
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
    "include_cluster_authorized_operations": False,
}
LONG: list[tuple[ApiKey, dict[str, Any]]] = [
    (ApiKey.FIND_COORDINATOR, {"key_type": 0, "coordinator_keys": ["g"] * 20_000}),
    (ApiKey.FIND_COORDINATOR, {"key_type": 1, "coordinator_keys": ["t"] * 20_000}),
]


@asynccontextmanager
async def another_client(node: Broker) -> AsyncIterator[KafkaConnection]:
    client = await KafkaConnection.connect("127.0.0.1", node.port, "another", 5_000)
    try:
        await client.call(message_of(ApiKey.API_VERSIONS, NAME), 60_000)
        yield client
    finally:
        client.close()


@pytest.mark.parametrize(("api_key", "values"), LONG, ids=lambda each: getattr(each, "name", ""))
def test_others_are_served_while_a_long_request_is_answered(api_key: ApiKey, values: dict[str, Any]) -> None:
    async def work() -> bool:
        released = threading.Event()
        async with broker(lambda: None) as node, another_client(node) as other:
            # The thread of the long answers is held, so the long request cannot end before the other one.
            held = asyncio.create_task(node.listener._long_answers._aside.make(released.wait))
            try:
                long = asyncio.create_task(node.ask(api_key, values))
                await eventually(lambda: node.listener._long_answers.under_way > 0)
                await other.call(message_of(ApiKey.API_VERSIONS, NAME), 60_000)
                is_first = not long.done()
            finally:
                released.set()
            await held
            await long
            return is_first

    api = BROKER_APIS[api_key]
    assert isinstance(api, Local | Refused)
    assert api.is_pure
    assert run(work())


def test_a_request_of_nothing_but_empty_names_ends_its_connection_before_it_is_read() -> None:
    async def work() -> None:
        async with broker(lambda: None) as node, another_client(node) as other:
            topics = [{"name": "", "topic_id": None}] * (MOST + 1)
            with pytest.raises(ConnectionLost):
                await node.ask(ApiKey.METADATA, {"topics": topics, **METADATA})
            assert await other.call(message_of(ApiKey.API_VERSIONS, NAME), 60_000)

    run(work())


def test_names_that_are_all_the_same_are_one() -> None:
    async def work() -> list[Any]:
        async with broker(lambda: None) as node:
            topics = [{"name": "", "topic_id": None}] * 50_000
            return list((await node.ask(ApiKey.METADATA, {"topics": topics, **METADATA})).topics)

    assert len(run(work())) == 1


def test_answers_are_made_one_by_one_until_the_listener_stops() -> None:
    async def work() -> None:
        answers = Aside("answers")
        assert (
            await asyncio.gather(*(answers.make(threading.get_ident) for _ in range(5)))
            == [await answers.make(threading.get_ident)] * 5
        )
        answers.close()
        with pytest.raises(RuntimeError, match="after shutdown"):
            await answers.make(threading.get_ident)

    run(work())


def test_a_long_request_that_reaches_no_controller_is_refused_entry_by_entry() -> None:
    async def work() -> list[Any]:
        async with broker(lambda: None, retry_timeout_ms=50) as node:
            values = {
                "topics": [{"name": str(each), "topic_id": None} for each in range(2_000)],
                "timeout": 50,
            }
            return list((await node.ask(ApiKey.DELETE_TOPICS, values)).responses)

    answers = run(work())
    assert [each.name for each in answers] == [str(each) for each in range(2_000)]
    assert {each.error_code for each in answers} == {ErrorCode.request_timed_out}
