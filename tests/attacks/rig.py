"""A controller and a broker with their real listeners, limits and forwarding, in the loop of the test.

What stands in for the rest: the controller's log is committed as soon as it is written.
"""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kquorum.broker.adapters.forwarding import Forwarder
from kquorum.broker.adapters.listener import BrokerListener
from kquorum.broker.adapters.topic_creation import AutoTopicCreation
from kquorum.broker.apis.services import BrokerServices
from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.broker.repeated_requests import RepeatedRequests
from kquorum.metadata.adapters.controller_channel import ControllerAddress, ControllerChannel
from kquorum.metadata.adapters.listener import ControllerListener
from kquorum.metadata.authorizer.authorizer import Authorizer, AuthorizerConfig
from kquorum.metadata.authorizer.denial_log import DenialLog
from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.metadata.image.security import AccessControlEntry
from kquorum.network.requests import ANONYMOUS, RequestContext
from kquorum.network.server import KafkaServer
from kquorum.node.config.load import load_config
from kquorum.node.config.model import NodeConfig
from kquorum.node.network_limits import server_limits
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.frames import encode_frame
from kquorum.wire.protocol.warm_up import warm_up
from tests.support.acl_worlds import creations
from tests.support.broker_services import LowestRandomSource, broker_services
from tests.support.config_files import SMALL
from tests.support.controller_world import World, topic
from tests.support.single_node import HOST

BROKERS_USER = "User:broker"


@dataclass
class Rig:
    world: World
    controller: KafkaServer
    broker: KafkaServer
    broker_listener: BrokerListener
    cache: MetadataCache

    def allow(self, *entries: AccessControlEntry) -> None:
        """At the controller and the broker from now on."""
        self.world.ask(ApiKey.CREATE_ACLS, 3, creations=creations(entries))
        self.cache.swap(self.world.controller.committed_image)

    @property
    def servers(self) -> dict[str, KafkaServer]:
        return {"controller": self.controller, "broker": self.broker}


@dataclass
class _Site:
    """What the controller and the broker share."""

    nodes: Mapping[int, NodeConfig]
    world: World
    cache: MetadataCache
    gate: RequestAuthorizer

    def wake(self) -> None:
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """What is due is done, a part in each turn of the loop, and what was written is committed."""
        controller, now_ms = self.world.controller, self.world.now_ms
        due_ms = controller.next_deadline_ms()
        if due_ms is not None and due_ms <= now_ms:
            controller.handle_time(now_ms)
            self.wake()
        self.world.commit()
        self.cache.swap(controller.committed_image)


@asynccontextmanager
async def rig(
    folder: Path,
    *,
    topics: int = 100,
    allows_clients: bool = True,
    config: str = "",
    creates_topics: bool = False,
) -> AsyncIterator[Rig]:
    """Clients may do everything (`allows_clients`) or nothing. The broker may do everything in both cases; its
    connections are to a listener of their own."""
    users = frozenset({ANONYMOUS, BROKERS_USER} if allows_clients else {BROKERS_USER})
    site = _site(folder, topics, users, config)
    of_controller = _controller_listener(site)
    controller = _controller_server(site, of_controller, lambda context: context)
    for_broker = _controller_server(
        site, of_controller, lambda context: replace(context, principal=BROKERS_USER)
    )
    await controller.start()
    await for_broker.start()
    channel = ControllerChannel(
        lambda: ControllerAddress(1, HOST, for_broker.bound_port),
        client_id="forwarding",
        request_timeout_ms=60_000,
        retry_timeout_ms=60_000,
    )
    forwarder = Forwarder(channel, RepeatedRequests(lambda _image, _name: ()))
    creation = AutoTopicCreation(forwarder)
    services = _broker_services(site, forwarder, creation if creates_topics else None)
    of_broker = BrokerListener(services)
    broker = KafkaServer(
        host=HOST,
        port=0,
        handler=of_broker.handle,
        supported=of_broker.supported,
        listener_name="PLAINTEXT",
        limits=server_limits(site.nodes[11], site.nodes[11].listeners[0]),
    )
    await broker.start()
    warm_up({**of_controller.supported, **of_broker.supported})
    try:
        yield Rig(site.world, controller, broker, of_broker, site.cache)
    finally:
        channel.close()
        await of_broker.stop()
        await creation.stop()
        await broker.stop()
        await for_broker.stop()
        await controller.stop()
        of_controller.stop()


def _site(folder: Path, topics: int, users: frozenset[str], config: str) -> _Site:
    """`users` may do everything; `config` are lines for both nodes."""
    path = folder / "quorum.toml"
    path.write_text(SMALL.replace("[defaults]\n", f"[defaults]\n{config}\n"))
    world = World().lead().add_brokers(1, 2, 3)
    world.create(*(topic(f"t{each}", num_partitions=2, replication_factor=3) for each in range(topics)))
    cache = MetadataCache()
    cache.swap(world.controller.committed_image)
    denials = DenialLog(lambda: world.now_ms, lambda _line: None)
    return _Site(
        nodes={node_id: load_config(path).node(node_id) for node_id in (1, 11)},
        world=world,
        cache=cache,
        gate=RequestAuthorizer(Authorizer(AuthorizerConfig(super_users=users)), denials),
    )


def _controller_listener(site: _Site) -> ControllerListener:
    world = site.world
    return ControllerListener(
        controller=world.controller,
        handle_raft=lambda _context, _request, reply: reply(None),
        now_ms=lambda: world.now_ms,
        wake=site.wake,
        image=lambda: world.controller.committed_image,
        node_id=1,
        gate=site.gate,
        topics=lambda: world.controller.image.topics,
    )


def _controller_server(
    site: _Site, listener: ControllerListener, as_user: Callable[[RequestContext], RequestContext]
) -> KafkaServer:
    """`as_user` is the principal of every client."""
    return KafkaServer(
        host=HOST,
        port=0,
        handler=lambda context, request, reply: listener.handle(as_user(context), request, reply),
        supported=listener.supported,
        listener_name="CONTROLLER",
        limits=server_limits(site.nodes[1], site.nodes[1].listeners[0]),
        admission=lambda context: listener.admit(as_user(context)),
    )


def _broker_services(site: _Site, forwarder: Forwarder, creation: AutoTopicCreation | None) -> BrokerServices:
    return broker_services(
        site.cache,
        forwarder,
        random_source=LowestRandomSource(),
        topic_creation=creation,
        node_id=1,
        authorizer=site.gate,
    )


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
