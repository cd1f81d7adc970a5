"""How records change the registrations."""

from dataclasses import replace

from metadata.image.cluster import (
    BrokerRegistration,
    ClusterImage,
    ControllerRegistration,
    endpoints_from,
    features_from,
)
from metadata.image.errors import CannotReplayError
from wire.metadata_records.cluster import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)


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
