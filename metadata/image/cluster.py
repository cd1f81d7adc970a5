"""The registered brokers and controllers, and how records change their registrations."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Protocol
from uuid import UUID

from immutables import Map

from kquorum.metadata.image.errors import CannotReplayError
from kquorum.wire.metadata_records.cluster import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)


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


class ClusterDelta:
    """`changed_*` hold the new registration of each id that changed, None where it was removed."""

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self.changed_brokers: dict[int, BrokerRegistration | None] = {}
        self.changed_controllers: dict[int, ControllerRegistration | None] = {}

    def replay_register_broker(self, record: RegisterBrokerRecord) -> None:
        self._put(
            BrokerRegistration(
                id=record.broker_id,
                epoch=record.broker_epoch,
                incarnation_id=record.incarnation_id,
                end_points=endpoints_from(record.end_points),
                features=features_from(record.features),
                rack=record.rack,
                fenced=record.fenced,
                in_controlled_shutdown=record.in_controlled_shutdown,
                log_dirs=tuple(sorted(record.log_dirs)),
                cordoned_log_dirs=record.cordoned_log_dirs,
                is_migrating_zk_broker=record.is_migrating_zk_broker,
            )
        )

    def replay_unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        self._registered(record.broker_id, record.broker_epoch)
        self.image = replace(self.image, brokers=self.image.brokers.delete(record.broker_id))
        self.changed_brokers[record.broker_id] = None

    def replay_fence_broker(self, record: FenceBrokerRecord) -> None:
        self._put(replace(self._registered(record.id, record.epoch), fenced=True))

    def replay_unfence_broker(self, record: UnfenceBrokerRecord) -> None:
        self._put(replace(self._registered(record.id, record.epoch), fenced=False))

    def replay_broker_registration_change(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = self._registered(record.broker_id, record.broker_epoch)
        cordoned = record.cordoned_log_dirs
        self._put(
            replace(
                broker,
                fenced=_after_change(broker.fenced, record.fenced),
                in_controlled_shutdown=_after_change(
                    broker.in_controlled_shutdown, record.in_controlled_shutdown
                ),
                log_dirs=record.log_dirs or broker.log_dirs,
                cordoned_log_dirs=broker.cordoned_log_dirs if cordoned is None else cordoned,
            )
        )

    def replay_register_controller(self, record: RegisterControllerRecord) -> None:
        controller = ControllerRegistration(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            zk_migration_ready=record.zk_migration_ready,
            end_points=endpoints_from(record.end_points),
            features=features_from(record.features),
        )
        self.image = replace(self.image, controllers=self.image.controllers.set(controller.id, controller))
        self.changed_controllers[controller.id] = controller

    def replay_unregister_controller(self, record: UnregisterControllerRecord) -> None:
        if record.controller_id not in self.image.controllers:
            raise CannotReplayError(f"controller {record.controller_id} is not registered")
        self.image = replace(self.image, controllers=self.image.controllers.delete(record.controller_id))
        self.changed_controllers[record.controller_id] = None

    def become(self, target: ClusterImage) -> None:
        for broker_id in set(self.image.brokers) | set(target.brokers):
            broker = target.brokers.get(broker_id)
            if broker != self.image.brokers.get(broker_id):
                self.changed_brokers[broker_id] = broker
        for controller_id in set(self.image.controllers) | set(target.controllers):
            controller = target.controllers.get(controller_id)
            if controller != self.image.controllers.get(controller_id):
                self.changed_controllers[controller_id] = controller
        self.image = target

    def _put(self, broker: BrokerRegistration) -> None:
        self.image = self.image.with_broker(broker)
        self.changed_brokers[broker.id] = broker

    def _registered(self, broker_id: int, epoch: int) -> BrokerRegistration:
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            raise CannotReplayError(f"broker {broker_id} is not registered")
        if broker.epoch != epoch:
            raise CannotReplayError(
                f"broker {broker_id} is registered with epoch {broker.epoch}, not {epoch}"
            )
        return broker


def _after_change(current: bool, change: int) -> bool:
    """1 sets, -1 clears, 0 leaves (BrokerRegistrationChangeRecord)."""
    if change not in (-1, 0, 1):
        raise CannotReplayError(f"{change} is no registration change; it must be -1, 0 or 1")
    return current if change == 0 else change > 0
