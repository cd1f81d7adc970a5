"""The listening side of a node: Kafka-protocol servers, and the gRPC server where the config has one."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.quota_precedence import ConnectionRates
from kquorum.network.api_versions import Ranges, ServerFeatures
from kquorum.network.request_times import RequestTimes
from kquorum.network.requests import Admission, admit_all
from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.security.names import PROTOCOLS
from kquorum.network.server import Handler, KafkaServer
from kquorum.node.config.addresses import Listener
from kquorum.node.config.model import NodeConfig
from kquorum.node.endpoints import reachable_host
from kquorum.node.inspect_source import NodeInspectSource
from kquorum.node.network_limits import (
    grpc_limits,
    grpc_shared_limits,
    is_protected,
    server_limits,
    shared_limits,
)
from kquorum.node.quorum_source import NodeQuorumSource
from kquorum.node.security import image_lookup, listener_security
from kquorum.wire.messages import broker_registration, controller_registration
from kquorum.wire.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kquorum.metadata.grpc.access import MemberGate
    from kquorum.metadata.grpc.broker.service import BrokerCalls
    from kquorum.metadata.grpc.quorum.service import MembersSource
    from kquorum.metadata.grpc.server import InspectServer

L = TypeVar("L", broker_registration.Listener, controller_registration.Listener)


class StoppableServer(Protocol):
    async def stop(self) -> None: ...


def kafka_servers(
    config: NodeConfig,
    listeners: Sequence[Listener],
    handler: Handler,
    supported: Mapping[ApiKey, tuple[int, int]],
    features: Callable[[], ServerFeatures],
    *,
    image: Callable[[], MetadataImage],
    now_ms: Callable[[], int],
    admission: Admission = admit_all,
    answered_elsewhere: Callable[[], Ranges | None] = lambda: None,
    times: RequestTimes,
) -> list[KafkaServer]:
    """`image` has the credentials of users and the quotas of addresses. Raises SecurityConfigError, which
    `check_security` has found before."""
    lookup = image_lookup(config, image, now_ms)
    shared = shared_limits(config)
    shared.quota.rate_of_address = ConnectionRates(lambda: image().client_quotas).of
    return [
        KafkaServer(
            host=listener.host,
            port=listener.port,
            handler=times.measured(handler),
            supported=supported,
            listener_name=listener.name,
            limits=server_limits(config, listener),
            features=features,
            security=listener_security(config, listener.name, lookup, now_ms),
            shared=shared,
            is_protected=is_protected(config, listener, len(listeners)),
            admission=admission,
            answered_elsewhere=answered_elsewhere,
        )
        for listener in listeners
    ]


async def start_grpc(
    config: NodeConfig,
    source: NodeInspectSource,
    quorum: NodeQuorumSource,
    members: "MembersSource",
    broker_calls: Callable[[], "BrokerCalls"],
    gate: Callable[[], "MemberGate"],
    security: ListenerSecurity,
) -> "InspectServer | None":
    """None where the config has no `kquorum.grpc.listener`; gRPC is imported only if it has."""
    address = config.kquorum_grpc_listener
    if address is None:
        return None
    from kquorum.metadata.grpc.server import start_inspect_server

    return await start_inspect_server(
        address.host,
        address.port,
        source,
        quorum=quorum,
        members=members,
        broker_calls=broker_calls(),
        gate=gate(),
        security=security,
        shared=grpc_shared_limits(config),
        limits=grpc_limits(config),
    )


def advertised(config: NodeConfig, listeners: Sequence[Listener], of: type[L]) -> tuple[L, ...]:
    """As a broker registers them, or a controller."""
    return tuple(
        of(
            name=listener.name,
            host=reachable_host(listener.host),
            port=listener.port,
            security_protocol=PROTOCOLS[config.protocol_of(listener.name)],
        )
        for listener in listeners
    )
