"""A controller and a broker with their real listeners, limits and forwarding, in the loop of the test.

What stands in for the rest: the controller's log is committed as soon as it is written.
"""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from broker.adapters.forwarding import Forwarder
from broker.adapters.listener import BrokerListener
from broker.metadata_cache import MetadataCache
from broker.repeated_requests import RepeatedRequests
from metadata.adapters.controller_channel import ControllerAddress, ControllerChannel
from metadata.adapters.listener import ControllerListener
from metadata.authorizer.authorizer import Authorizer, AuthorizerConfig
from metadata.authorizer.denial_log import DenialLog
from metadata.authorizer.gate import Gate
from network.requests import ANONYMOUS, RequestContext
from network.server import KafkaServer
from node.config.load import load_config
from node.network_limits import server_limits
from tests.support.config_files import SMALL
from tests.unit.metadata.controller_world import World, topic
from wire.protocol.frames import encode_frame
from wire.protocol.warm_up import warm_up

HOST = "127.0.0.1"


class Dice:
    def randint(self, low: int, high: int) -> int:
        assert low <= high
        return low


@dataclass
class Rig:
    world: World
    controller: KafkaServer
    broker: KafkaServer
    broker_listener: BrokerListener

    @property
    def servers(self) -> dict[str, KafkaServer]:
        return {"controller": self.controller, "broker": self.broker}


@asynccontextmanager
async def rig(
    folder: Path,
    *,
    topics: int = 100,
    allows_clients: bool = True,
    config: str = "",
    creates_topics: bool = False,
) -> AsyncIterator[Rig]:
    """Anybody may do everything, or else clients nothing and brokers, whose connections are other ones, what they
    must."""
    path = folder / "quorum.toml"
    brokers_user = "User:broker"
    path.write_text(SMALL.replace("[defaults]\n", f"[defaults]\n{config}\n"))
    nodes = {node_id: load_config(path).node(node_id) for node_id in (1, 11)}
    world = World().lead().add_brokers(1, 2, 3)
    world.create(*(topic(f"t{each}", num_partitions=2, replication_factor=3) for each in range(topics)))
    denials = DenialLog(lambda: world.now_ms, lambda _line: None)
    users = frozenset({ANONYMOUS, brokers_user} if allows_clients else {brokers_user})
    loop = asyncio.get_running_loop()

    def turn() -> None:
        due_ms = world.controller.next_deadline_ms()
        if due_ms is not None and due_ms <= world.now_ms:
            world.controller.handle_time(world.now_ms)
            loop.call_soon(turn)
        world.commit()
        cache.swap(world.controller.committed_image)

    cache = MetadataCache()
    cache.swap(world.controller.committed_image)
    of_controller = ControllerListener(
        controller=world.controller,
        handle_raft=lambda _context, _request, reply: reply(None),
        now_ms=lambda: world.now_ms,
        wake=lambda: loop.call_soon(turn) and None,
        image=lambda: world.controller.committed_image,
        node_id=1,
        gate=Gate(Authorizer(AuthorizerConfig(super_users=users)), denials),
        topics=lambda: world.controller.image.topics,
    )
    controller = KafkaServer(
        host=HOST,
        port=0,
        handler=of_controller.handle,
        supported=of_controller.supported,
        listener_name="CONTROLLER",
        limits=server_limits(nodes[1], nodes[1].listeners[0]),
        admission=of_controller.admit,
    )
    await controller.start()

    def as_broker(context: RequestContext) -> RequestContext:
        return replace(context, principal=brokers_user)

    for_brokers = KafkaServer(
        host=HOST,
        port=0,
        handler=lambda context, request, reply: of_controller.handle(as_broker(context), request, reply),
        supported=of_controller.supported,
        listener_name="CONTROLLER",
        limits=server_limits(nodes[1], nodes[1].listeners[0]),
        admission=lambda context: of_controller.admit(as_broker(context)),
    )
    await for_brokers.start()
    channel = ControllerChannel(
        lambda: ControllerAddress(1, HOST, for_brokers.bound_port),
        client_id="forwarding",
        request_timeout_ms=60_000,
        retry_timeout_ms=60_000,
    )
    of_broker = BrokerListener(
        cache=cache,
        forwarder=Forwarder(channel, RepeatedRequests(lambda _image, _name: ())),
        cluster_id="the-cluster",
        dice=Dice(),
        auto_create_topics=creates_topics,
        node_id=1,
        gate=Gate(Authorizer(AuthorizerConfig(super_users=users)), denials),
    )
    broker = KafkaServer(
        host=HOST,
        port=0,
        handler=of_broker.handle,
        supported=of_broker.supported,
        listener_name="PLAINTEXT",
        limits=server_limits(nodes[11], nodes[11].listeners[0]),
    )
    await broker.start()
    warm_up({**of_controller.supported, **of_broker.supported})
    try:
        yield Rig(world, controller, broker, of_broker)
    finally:
        channel.close()
        await of_broker.stop()
        await broker.stop()
        await for_brokers.stop()
        await controller.stop()
        of_controller.stop()


async def send(port: int, request: bytes, timeout_s: float = 60.0) -> bytes | None:
    """The answer's bytes, or None where the connection was closed instead. The peer is in a thread of its own."""
    return await asyncio.to_thread(_send, port, request, timeout_s)


def _send(port: int, request: bytes, timeout_s: float) -> bytes | None:
    with socket.create_connection((HOST, port), timeout=timeout_s) as peer:
        try:
            peer.sendall(encode_frame(request))
            head = _read(peer, 4)
            return None if head is None else _read(peer, struct.unpack(">i", head)[0])
        except (ConnectionResetError, BrokenPipeError):
            return None


def _read(peer: socket.socket, count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        piece = peer.recv(min(count - len(data), 1 << 20))
        if not piece:
            return None
        data += piece
    return bytes(data)
