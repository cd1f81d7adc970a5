"""The registered brokers and controllers."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Protocol
from uuid import UUID

from immutables import Map


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`security_protocol`: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    name: str
    host: str
    port: int
    security_protocol: int


@dataclass(frozen=True, slots=True)
class SupportedFeature:
    name: str
    min_supported_version: int
    max_supported_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    """`epoch` is the log offset of the registration; a broker is `fenced` until it has caught up."""

    id: int
    epoch: int
    incarnation_id: UUID
    end_points: tuple[Endpoint, ...] = ()
    features: tuple[SupportedFeature, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None
    is_migrating_zk_broker: bool = False

    @property
    def is_active(self) -> bool:
        """Whether it may join an ISR and lead."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def uncordoned_log_dirs(self) -> tuple[UUID, ...]:
        """Where new replicas may go (KIP-1066)."""
        cordoned = self.cordoned_log_dirs
        return tuple(each for each in self.log_dirs if each not in cordoned) if cordoned else self.log_dirs

    @property
    def is_cordoned(self) -> bool:
        """Whether it has directories, and each is cordoned."""
        return bool(self.log_dirs) and not self.uncordoned_log_dirs

    def end_point(self, listener_name: str) -> Endpoint | None:
        return next((end_point for end_point in self.end_points if end_point.name == listener_name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRegistration:
    id: int
    incarnation_id: UUID
    zk_migration_ready: bool = False
    end_points: tuple[Endpoint, ...] = ()
    features: tuple[SupportedFeature, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterImage:
    brokers: Map[int, BrokerRegistration] = field(default_factory=Map)
    controllers: Map[int, ControllerRegistration] = field(default_factory=Map)

    @property
    def is_empty(self) -> bool:
        return not self.brokers and not self.controllers

    def is_active(self, broker_id: int) -> bool:
        """Registered, unfenced and not shutting down."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def with_broker(self, broker: BrokerRegistration) -> "ClusterImage":
        return replace(self, brokers=self.brokers.set(broker.id, broker))


class WireEndpoint(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def security_protocol(self) -> int: ...


class WireFeature(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def min_supported_version(self) -> int: ...
    @property
    def max_supported_version(self) -> int: ...


def endpoints_from(listeners: Iterable[WireEndpoint]) -> tuple[Endpoint, ...]:
    """Of a record or of a registration request: their fields have the same names. In order of the listeners' names:
    Kafka's records and snapshots have them in any."""
    found = [Endpoint(each.name, each.host, each.port, each.security_protocol) for each in listeners]
    return tuple(sorted(found, key=attrgetter("name")))


def features_from(features: Iterable[WireFeature]) -> tuple[SupportedFeature, ...]:
    """In order of their names, like `endpoints_from`."""
    found = [
        SupportedFeature(each.name, each.min_supported_version, each.max_supported_version)
        for each in features
    ]
    return tuple(sorted(found, key=attrgetter("name")))
