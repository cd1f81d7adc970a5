"""The active controller is killed while requests go through a broker: each client gets one true answer."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.processes import wait_until
from kquorum.network.connection import KafkaConnection
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import message_of
from tests.support.cluster import Cluster

pytestmark = pytest.mark.slow

CONNECTIONS = 8
REQUESTS_EACH = 12
PULLED_AFTER = 20
ANSWERED_WITHIN_MS = 60_000
ROUNDS = 3


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, controllers=3, brokers=2) as running:
        running.start()
        yield running


class Clients:
    """Connections to one broker, each with many requests on their way at once."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.answered = 0

    async def ask_all(self, api_key: ApiKey, bodies: list[dict[str, Any]], pull: Any) -> list[Any]:
        """The answers, in the order of `bodies`; `pull` is called once, in the midst of them."""
        connections = [
            await KafkaConnection.connect("127.0.0.1", self._port, f"client-{number}", 5_000)
            for number in range(CONNECTIONS)
        ]
        pulled = asyncio.Event()

        async def ask(number: int, body: dict[str, Any]) -> Any:
            connection = connections[number % CONNECTIONS]
            answer = await connection.call(message_of(api_key, body), ANSWERED_WITHIN_MS)
            self.answered += 1
            if self.answered >= PULLED_AFTER and not pulled.is_set():
                pulled.set()
                pull()
            return answer

        try:
            return await asyncio.gather(*(ask(number, body) for number, body in enumerate(bodies)))
        finally:
            for connection in connections:
                connection.close()


def creation(name: str) -> dict[str, Any]:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()}
    return {"topics": [topic], "timeout_ms": 30_000, "validate_only": False}


def deletion(name: str) -> dict[str, Any]:
    return {"topics": [{"name": name, "topic_id": None}], "timeout_ms": 30_000}


async def topic_names(port: int) -> set[str]:
    connection = await KafkaConnection.connect("127.0.0.1", port, "reader", 5_000)
    flags = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}
    answer: Any = await connection.call(message_of(ApiKey.METADATA, {"topics": None, **flags}), 10_000)
    connection.close()
    return {topic.name for topic in answer.topics}


def test_every_request_on_its_way_gets_one_true_answer(cluster: Cluster) -> None:
    port = cluster.ports[cluster.broker_ids[0]]
    outcomes: Counter[ErrorCode] = Counter()
    for number in range(ROUNDS):
        names = [f"round-{number}-{index}" for index in range(CONNECTIONS * REQUESTS_EACH)]
        for api_key, body_of in ((ApiKey.CREATE_TOPICS, creation), (ApiKey.DELETE_TOPICS, deletion)):
            leader = cluster.leader_id()
            bodies = [body_of(name) for name in names]
            asked = Clients(port).ask_all(api_key, bodies, lambda: cluster.kill(leader))  # noqa: B023
            codes = [error_of(answer) for answer in asyncio.run(asked)]
            outcomes.update(codes)
            # No other client touches these topics, so "exists already" and "is not there" would be lies.
            assert set(codes) <= {ErrorCode.none, ErrorCode.request_timed_out}, Counter(codes)
            done = {name for name, code in zip(names, codes, strict=True) if code is ErrorCode.none}
            is_reported = (
                (lambda: done <= asyncio.run(topic_names(port)))  # noqa: B023
                if api_key is ApiKey.CREATE_TOPICS
                else (lambda: not done & asyncio.run(topic_names(port)))  # noqa: B023
            )
            assert wait_until(is_reported, 40), "what was reported as done is not"
            cluster.start_node(leader)
    assert outcomes[ErrorCode.none] > sum(outcomes.values()) * 0.9, outcomes


def error_of(answer: Any) -> ErrorCode:
    [entry] = getattr(answer, "topics", None) or answer.responses
    code: ErrorCode = entry.error_code
    return code
