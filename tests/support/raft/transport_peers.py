"""A transport between two peers on real sockets."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kquorum.network.requests import Reply, RequestContext
from kquorum.network.server import KafkaServer
from kquorum.raft.adapters.kafka_codec.codec import RAFT_APIS, build_response
from kquorum.raft.adapters.transport import KafkaTransport
from kquorum.raft.inputs import FailureReason, Input, RequestFailed
from kquorum.raft.messages import FetchRequest, Request, Response, VoteRequest
from kquorum.raft.ready import OutboundRequest
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.raft.driver_parts import until

HOST = "127.0.0.1"


PEER = 2


VOTE = VoteRequest(
    cluster_id="c",
    replica_epoch=3,
    candidate=ReplicaKey(1),
    voter=ReplicaKey(PEER),
    last_offset=0,
    last_offset_epoch=0,
)


FETCH = FetchRequest(
    cluster_id="c",
    replica=ReplicaKey(1),
    current_leader_epoch=3,
    fetch_offset=0,
    last_fetched_epoch=0,
    max_wait_ms=500,
    max_bytes=1000,
)


class Peer:
    """Answers each API with the response given for it; holds back what has none."""

    def __init__(self) -> None:
        self.answers: dict[int, Response] = {}
        self.held: list[Reply] = []
        self.requests = 0
        self.connections: set[int] = set()

    def handle(self, context: RequestContext, _entity: Any, reply: Reply) -> None:
        self.requests += 1
        self.connections.add(context.connection_id)
        api_key = context.header.api_key
        if api_key in self.answers:
            reply(build_response(api_key, self.answers[api_key], {}))
        else:
            self.held.append(reply)


@asynccontextmanager
async def listening(
    peer: Peer, supported: Mapping[ApiKey, tuple[int, int]] = RAFT_APIS, port: int = 0
) -> AsyncIterator[KafkaServer]:
    server = KafkaServer(
        host=HOST, port=port, handler=peer.handle, supported=supported, listener_name="CONTROLLER"
    )
    await server.start()
    try:
        yield server
    finally:
        for reply in peer.held:
            reply(None)
        await server.stop()


class Sender:
    """A transport to one peer, and the outcomes it told."""

    def __init__(
        self,
        port: int,
        request_timeout_ms: int = 5000,
        idle_timeout_ms: int = 60_000,
        listener: str = "CONTROLLER",
    ) -> None:
        self.outcomes: list[Input] = []
        self._sent = 0
        endpoints = {PEER: Endpoint(listener, HOST, port)}
        self.transport = KafkaTransport(
            1, endpoints, request_timeout_ms, self.outcomes.append, idle_timeout_ms
        )

    def send(self, request: Request, to: int = PEER, endpoint: Endpoint | None = None) -> None:
        self._sent += 1
        self.transport.send(OutboundRequest(self._sent, to, request, endpoint))

    async def outcome(self, count: int = 1) -> Input:
        await until(lambda: len(self.outcomes) >= count)
        return self.outcomes[count - 1]


def failed(correlation_id: int, reason: FailureReason) -> RequestFailed:
    return RequestFailed(correlation_id, PEER, reason)
