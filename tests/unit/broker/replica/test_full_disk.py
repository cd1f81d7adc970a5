"""A replica whose disk is full leaves its ISR and leadership where others can lead, and comes back with the space."""

from uuid import UUID

import pytest

from kquorum.broker.log.errors import NoSpaceLeft
from kquorum.broker.replica.full_disk import FullDisk
from kquorum.broker.replica.partition import ACKS_ALL
from kquorum.broker.replica.replica_manager import ReplicaManager, ReplicaSettings
from kquorum.metadata.image.directories import LOST
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.schema import MetadataRecord
from tests.support.broker.data_world import BROKER, NOW_MS, MemoryLogs
from tests.support.broker.disk_logs import data, of_leader
from tests.support.images import (
    LISTENER,
    after,
    broker_record,
    fencing,
    log_dir,
    partition_record,
    topic_id,
    topic_records,
)

OWN = log_dir(BROKER)
TOPIC_ID = topic_id(1)


class World:
    """Broker 1 with one partition; `assigned` has what the controller was asked for."""

    def __init__(self, replicas: tuple[int, ...], *, isr: tuple[int, ...] | None = None) -> None:
        self.logs = MemoryLogs()
        self.assigned: list[UUID] = []
        self.full_disk = FullDisk(BROKER, lambda _topic, _index, directory: self.assigned.append(directory))
        self.replicas = ReplicaManager(ReplicaSettings(BROKER, LISTENER), self.logs, full_disk=self.full_disk)
        self.image = MetadataImage.empty()
        brokers = [broker_record(each) for each in (1, 2, 3)]
        partition = partition_record(1, 0, replicas, isr=isr)
        self.change(*brokers, *topic_records(1, "orders", partition))
        [self.log] = self.logs.logs.values()
        [self.partition] = self.replicas.all_online()
        self.log.is_full = True

    def change(self, *records: MetadataRecord) -> None:
        delta, self.image = after(self.image, *records)
        self.replicas.handle_image(NOW_MS, delta, self.image)

    def tell(self, **fields: object) -> None:
        self.change(PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields))  # type: ignore[arg-type]

    def refuse(self) -> None:
        """Records come, and the disk is full."""
        with pytest.raises(NoSpaceLeft):
            self.append()
        self.replicas.submit_isr_changes()

    def append(self) -> None:
        if self.partition.is_leader:
            self.partition.append(NOW_MS, data("x"), required_acks=ACKS_ALL)
        else:
            self.partition.append_as_follower(NOW_MS, of_leader(0, "x", epoch=3), 3)


def test_a_leader_leaves_with_the_first_refusal_and_asks_once() -> None:
    world = World((1, 2, 3))
    world.refuse()
    assert world.assigned == [LOST]
    assert world.full_disk.is_away(TOPIC_ID, 0)
    world.refuse()
    assert world.assigned == [LOST]


def test_a_follower_leaves_with_the_second() -> None:
    world = World((2, 1, 3))
    world.refuse()
    assert world.assigned == []
    world.refuse()
    assert world.assigned == [LOST]


def test_a_replica_that_came_back_into_the_isr_without_space_leaves_again() -> None:
    world = World((1, 2))
    world.refuse()
    world.tell(directories=(LOST, log_dir(2)), leader=2, isr=(2,))
    world.tell(isr=(2, 1))
    world.refuse()
    assert world.assigned == [LOST, LOST]


@pytest.mark.parametrize(
    "reason", ["it is alone", "the other is fenced", "the other has no space", "it is out of the ISR"]
)
def test_where_no_other_can_lead_it_stays(reason: str) -> None:
    world = World((1,)) if reason == "it is alone" else World((1, 2, 3), isr=(1, 2))
    if reason == "the other is fenced":
        world.change(fencing(2, fenced=True))
    elif reason == "the other has no space":
        world.tell(directories=(OWN, LOST, log_dir(3)))
    elif reason == "it is out of the ISR":
        world.tell(leader=2, isr=(2, 3))
    for _ in range(3):
        world.refuse()
    assert world.assigned == []
    assert not world.full_disk.is_away(TOPIC_ID, 0)


def test_it_is_assigned_to_its_directory_when_there_is_space() -> None:
    world = World((1, 2))
    world.refuse()
    world.replicas.has_space(UUID(int=999))
    assert world.assigned == [LOST], "there is space elsewhere"
    world.replicas.has_space(world.log.directory_id)
    assert world.assigned == [LOST, world.log.directory_id]
    assert not world.full_disk.is_away(TOPIC_ID, 0)


def test_a_replica_whose_directory_failed_is_not_assigned_any_more() -> None:
    world = World((1, 2))
    world.refuse()
    world.replicas.directory_failed(world.log.directory_id)
    world.replicas.has_space(world.log.directory_id)
    assert world.assigned == [LOST]


class FullLogs(MemoryLogs):
    is_full = True

    def open(self, *given, **more):  # type: ignore[no-untyped-def]  # noqa: ANN002, ANN003, ANN201
        if self.is_full:
            raise NoSpaceLeft("no space is left")
        return super().open(*given, **more)


def test_a_log_for_which_there_was_no_space_is_opened_when_there_is() -> None:
    logs = FullLogs()
    replicas = ReplicaManager(ReplicaSettings(BROKER, LISTENER), logs)
    records = [broker_record(1), *topic_records(1, "orders", partition_record(1, 0, (1,)))]
    delta, image = after(MetadataImage.empty(), *records)
    replicas.handle_image(NOW_MS, delta, image)
    assert list(replicas.all_online()) == []
    replicas.tick(NOW_MS)
    assert list(replicas.all_online()) == []
    logs.is_full = False
    replicas.has_space(OWN)
    replicas.tick(NOW_MS)
    [partition] = replicas.all_online()
    assert partition.is_leader
