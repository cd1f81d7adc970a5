"""A server that speaks the Kafka protocol and answers what the test says: the far end of the client commands."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kquorum.network.api_versions import FinalizedFeature, ServerFeatures, SupportedFeature
from kquorum.network.limits import ServerLimits
from kquorum.network.server import KafkaServer, Reply, RequestContext
from kquorum.wire.message_schema import Response
from kquorum.wire.protocol.apis import ApiKey, supported_versions
from tests.support.api_calls import response_of

# All fields of the response as a mapping, or the response.
Answer = Callable[[Any], Mapping[str, object] | Response]


class FakeNode:
    """Serves in a thread of its own; `requests` holds what was asked."""

    def __init__(self, answers: Mapping[ApiKey, Answer], levels: Mapping[str, int] | None = None) -> None:
        """`levels` are the finalised features that ApiVersions tells."""
        self.requests: list[Any] = []
        self.mutes: set[ApiKey] = set()  # requests that are taken, and never answered
        self._levels = levels or {}
        self.ranges: dict[str, tuple[int, int]] = {}  # what ApiVersions tells that the node can run
        self.port = 0
        self._answers = answers
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(60)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    async def _serve(self) -> None:
        supported = {key: supported_versions(key) for key in (*self._answers, ApiKey.API_VERSIONS)}
        self._server = KafkaServer(
            host="127.0.0.1",
            port=0,
            handler=self._handle,
            supported=supported,
            listener_name="FAKE",
            limits=ServerLimits(),
            features=self._features,
        )
        await self._server.start()
        self.port = self._server.bound_port

    def _features(self) -> ServerFeatures:
        finalized = tuple(FinalizedFeature(name, level) for name, level in self._levels.items())
        supported = tuple(SupportedFeature(name, *each) for name, each in self.ranges.items())
        return ServerFeatures(supported=supported, finalized=finalized, finalized_epoch=1)

    def _handle(self, context: RequestContext, request: Any, reply: Reply) -> None:
        self.requests.append(request)
        api_key = ApiKey(context.header.api_key)
        if api_key in self.mutes:
            return
        values = self._answers[api_key](request)
        if not isinstance(values, Response):
            values = response_of(api_key, context.header.api_version, values)
        reply(values)


@contextmanager
def fake_node(
    answers: Mapping[ApiKey, Answer], levels: Mapping[str, int] | None = None
) -> Iterator[FakeNode]:
    node = FakeNode(answers, levels)
    node.start()
    try:
        yield node
    finally:
        node.stop()


def quorum_response(
    *, error_code: int = 0, leader_id: int = 1, nodes: tuple[tuple[int, int], ...] = ()
) -> dict[str, object]:
    """A DescribeQuorum response: voters 1 (end 100), 2 (end 97), 3 (unknown); observer 11. `nodes` are (id, port)."""
    ends = ((1, 100), (2, 97), (3, -1)) if not error_code else ()
    observers = ((11, 90),) if not error_code else ()
    return {
        "error_code": 0,
        "error_message": None,
        "topics": [
            {
                "topic_name": "__cluster_metadata",
                "partitions": [
                    {
                        "partition_index": 0,
                        "error_code": error_code,
                        "error_message": None,
                        "leader_id": leader_id,
                        "leader_epoch": 7,
                        "high_watermark": 97,
                        "current_voters": [_replica(*item) for item in ends],
                        "observers": [_replica(*item) for item in observers],
                    }
                ],
            }
        ],
        "nodes": [
            {"node_id": node_id, "listeners": [{"name": "CONTROLLER", "host": "127.0.0.1", "port": port}]}
            for node_id, port in nodes
        ],
    }


def _replica(replica_id: int, end: int) -> dict[str, object]:
    return {
        "replica_id": replica_id,
        "replica_directory_id": None,
        "log_end_offset": end,
        "last_fetch_timestamp": 1_700_000_000_000 if end >= 0 else -1,
        "last_caught_up_timestamp": 1_700_000_000_000 if end >= 0 else -1,
    }


def cluster_response(_: Any) -> dict[str, object]:
    brokers = [(12, "b", False), (11, "a", True)]
    return {
        "error_code": 0,
        "error_message": None,
        "endpoint_type": 1,
        "cluster_id": "abc",
        "controller_id": 11,
        "brokers": [
            {"broker_id": broker_id, "host": "127.0.0.1", "port": 9000, "rack": rack, "is_fenced": fenced}
            for broker_id, rack, fenced in brokers
        ],
        "cluster_authorized_operations": -(2**31),
    }
