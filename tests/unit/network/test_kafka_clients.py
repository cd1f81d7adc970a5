"""Two real clients start up against the server: one in Python, one on librdkafka. A handler of ten lines does."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kquorum.network.requests import Reply, RequestContext
from kquorum.network.server import KafkaServer
from kquorum.wire.protocol.apis import ApiKey
from tests.support.api_calls import response_of
from tests.support.network.peers import HOST

pytestmark = pytest.mark.interop

BROKER_ID = 5
CLUSTER_ID = "kq-test-cluster-id-000"
PARTITION = {
    "error_code": 0,
    "partition_index": 0,
    "leader_id": BROKER_ID,
    "leader_epoch": 3,
    "replica_nodes": [BROKER_ID],
    "isr_nodes": [BROKER_ID],
    "offline_replicas": [],
}
TOPIC = {"error_code": 0, "name": "orders", "topic_id": None, "is_internal": False, "partitions": [PARTITION]}
# What the two clients need to start and to list topics, in all versions there are.
SUPPORTED = {ApiKey.METADATA: (0, 13)}


class ServerThread:
    """A server on a loop of its own, as the clients block the thread that they run in."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.server: KafkaServer
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(60), "the server does not start"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(60)
        assert not self._thread.is_alive()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self.server = KafkaServer(
            host=HOST, port=0, handler=self._handle, supported=SUPPORTED, listener_name="TEST"
        )
        await self.server.start()
        self.port = self.server.bound_port
        self._started.set()
        await self._stopping.wait()
        await self.server.stop()

    def _handle(self, context: RequestContext, _request: Any, reply: Reply) -> None:
        header = context.header
        self.asked.append((header.api_key, header.api_version))
        values = {
            "error_code": 0,
            "cluster_id": CLUSTER_ID,
            "controller_id": BROKER_ID,
            "brokers": [{"node_id": BROKER_ID, "host": HOST, "port": self.port}],
            "topics": [TOPIC],
        }
        reply(response_of(header.api_key, header.api_version, values))


@pytest.fixture
def server() -> Iterator[ServerThread]:
    thread = ServerThread()
    thread.start()
    yield thread
    thread.stop()
    assert thread.server.counters.failed_requests == 0
    assert thread.server.counters.unparsable_requests == 0


def test_kafka_python_starts_and_sees_the_topic(server: ServerThread) -> None:
    kafka = pytest.importorskip("kafka")
    client = kafka.KafkaAdminClient(bootstrap_servers=server.address, request_timeout_ms=8000)
    try:
        assert client.list_topics() == ["orders"]
        assert client.describe_cluster()["cluster_id"] == CLUSTER_ID
    finally:
        client.close()
    assert ApiKey.METADATA in {api_key for api_key, _ in server.asked}


def test_librdkafka_starts_and_sees_the_topic(server: ServerThread) -> None:
    admin = pytest.importorskip("confluent_kafka.admin")
    client = admin.AdminClient({"bootstrap.servers": server.address, "log_level": 0})
    metadata = client.list_topics(timeout=40)
    assert metadata.cluster_id == CLUSTER_ID
    assert list(metadata.brokers) == [BROKER_ID]
    assert metadata.topics["orders"].partitions[0].leader == BROKER_ID
    assert ApiKey.METADATA in {api_key for api_key, _ in server.asked}
