"""The ways into a node: which listener, as whom, and what is thrown there."""

from dataclasses import dataclass
from typing import Protocol

from kquorum.network.connection import KafkaConnection
from kquorum.network.peer_versions import ask_versions
from kquorum.network.security.plain import encode_plain
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.fuzz.listener.inputs import Input, Inputs
from tests.fuzz.listener.peer import Peer
from tests.fuzz.listener.target import small_image
from tests.fuzz.node.grpc_peer import GrpcPeer
from tests.fuzz.node.http_inputs import HttpInputs
from tests.fuzz.node.kafka_inputs import KafkaInputs, authenticate, handshake
from tests.fuzz.node.measured_node import SECRET, SUPER_USER, USER, MeasuredNode
from tests.fuzz.node.tls_inputs import TlsInputs
from tests.fuzz.node.tls_peer import GrpcTlsPeer, TlsPeer
from tests.support.cluster import CLUSTER_ID
from tests.support.network.grpc_inputs import GrpcInputs
from tests.support.single_node import HOST


class Maker(Protocol):
    def make(self, number: int) -> Input: ...


class Thrower(Protocol):
    @property
    def connections(self) -> int: ...

    async def throw(self, thrown: Input) -> str | None:
        """What the server did wrong; None if nothing."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Way:
    """`share` is its part of all inputs. Its connections log in as `user`, or not at all (None). `logs_in`: many inputs
    try to."""

    name: str
    is_secured: bool
    listener: str
    share: float
    user: str | None = None
    logs_in: bool = False

    async def maker(self, node: MeasuredNode, seed: int) -> Maker:
        if self.listener == "grpc":
            calls = GrpcInputs(seed)
            return TlsInputs(calls, seed) if self.is_secured else calls
        if self.listener == "metrics":
            return HttpInputs(seed)
        # The listener with TLS offers what the one without does.
        offered = await _offered(node.ports["LOGIN" if self.listener == "TLS" else self.listener])
        inputs = _inputs(tuple(offered.items()), seed)
        made = KafkaInputs(inputs, offered, seed, logs_in=self.logs_in)
        return TlsInputs(made, seed) if self.listener == "TLS" else made

    def peer(self, node: MeasuredNode) -> Thrower:
        port = node.ports[self.listener]
        if self.listener == "grpc":
            return GrpcTlsPeer(HOST, port, node.trust) if self.is_secured else GrpcPeer(HOST, port)
        if self.listener == "TLS":
            return TlsPeer(HOST, port, node.trust)
        if self.user is None:
            return Peer(HOST, port)
        return Peer(HOST, port, (handshake("PLAIN"), authenticate(encode_plain(self.user, SECRET))))


# Those that change the node's state come last on their node.
WAYS: tuple[Way, ...] = (
    Way("http", False, "metrics", 0.05),
    Way("grpc", False, "grpc", 0.04),
    Way("broker", False, "PLAINTEXT", 0.12),
    Way("controller", False, "CONTROLLER", 0.12),
    Way("grpc-tls", True, "grpc", 0.04),
    Way("broker-no-acls", True, "PLAINTEXT", 0.05),
    Way("broker-before-login", True, "LOGIN", 0.08, logs_in=True),
    Way("controller-before-login", True, "CONTROLLER", 0.06, logs_in=True),
    Way("tls-before-login", True, "TLS", 0.06, logs_in=True),
    Way("broker-user", True, "LOGIN", 0.11, user=USER),
    Way("controller-user", True, "CONTROLLER", 0.11, user=USER),
    Way("broker-super", True, "LOGIN", 0.13, user=SUPER_USER),
    Way("controller-super", True, "CONTROLLER", 0.12, user=SUPER_USER),
)

_made: dict[object, Inputs] = {}


def _inputs(offered: tuple[tuple[ApiKey, tuple[int, int]], ...], seed: int) -> Inputs:
    """Made once for listeners that offer the same."""
    key = offered, seed
    if key not in _made:
        _made[key] = Inputs(dict(offered), small_image(), seed, CLUSTER_ID)
    return _made[key]


async def _offered(port: int) -> dict[ApiKey, tuple[int, int]]:
    """What the listener says it serves, as far as this side can write it."""
    connection = await KafkaConnection.connect(HOST, port, "fuzz", 10_000)
    try:
        told = await ask_versions(connection)
    finally:
        connection.close()
    offered = {}
    for number, (lowest, highest) in sorted(told.items()):
        ours = supported_versions(ApiKey(number))
        offered[ApiKey(number)] = max(lowest, ours[0]), min(highest, ours[1])
    return {api_key: versions for api_key, versions in offered.items() if versions[0] <= versions[1]}
