"""Partitions whose ISR a controller of Kafka's emptied, as it may with eligible leader replicas (KIP-966)."""

from typing import Any

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.image.metadata_version import ELIGIBLE_LEADER_REPLICAS_VERSION
from kquorum.metadata.image.partition_state import NO_LEADER, RECOVERED, RECOVERING, PartitionState
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.controller_world import LEVELS, World, assigned

FEATURES = [
    *LEVELS,
    {"name": ELIGIBLE_LEADER_REPLICAS_VERSION, "min_supported_version": 0, "max_supported_version": 1},
]
BROKER_CONFIG = 4


def with_feature(*brokers: int) -> World:
    records = bootstrap_records(25, {ELIGIBLE_LEADER_REPLICAS_VERSION: 1})
    world = World(ControllerConfig(bootstrap_records=records)).lead()
    return world.add_brokers(*brokers, features=FEATURES)


def add(world: World, *records: MetadataRecord) -> None:
    """Another controller leads, writes these, and hands over."""
    epoch = world.raft.leader_epoch
    world.follow(2, epoch + 1)
    world.raft.append(world.now_ms, [(None, encode_record(record, _version(record))) for record in records])
    world.lead(epoch + 2)
    world.commit()


def _version(record: MetadataRecord) -> int:
    return 2 if isinstance(record, PartitionChangeRecord) else 0


def change(world: World, **changes: Any) -> PartitionChangeRecord:
    topic_id = world.controller.image.topics.by_name["a"].id
    return PartitionChangeRecord(topic_id=topic_id, partition_id=0, **changes)


def min_in_sync(value: int) -> ConfigRecord:
    return ConfigRecord(
        resource_type=BROKER_CONFIG, resource_name="", name="min.insync.replicas", value=str(value)
    )


def emptied(*replicas: int, elr: tuple[int, ...], last_known_elr: tuple[int, ...]) -> World:
    """Every replica's broker is fenced, and the ISR of the topic `a` is empty."""
    world = with_feature(*replicas)
    world.create(assigned("a", replicas))
    for broker_id in replicas:
        world.heartbeat(broker_id, want_fence=True)
    lists = {"eligible_leader_replicas": elr, "last_known_elr": last_known_elr}
    add(world, change(world, isr=(), leader=NO_LEADER, **lists))
    assert (world.partition("a").leader, world.partition("a").isr) == (NO_LEADER, ())
    return world


def led_by_itself(state: PartitionState, leader: int) -> bool:
    return (state.leader, state.isr) == (leader, (leader,))


def test_eligible_replica_leads_when_its_broker_is_back() -> None:
    world = emptied(0, 1, 2, elr=(1, 2), last_known_elr=(0,))
    world.heartbeat(0)
    assert world.partition("a").leader == NO_LEADER, "it had left before the others did"
    world.heartbeat(2)
    state = world.partition("a")
    assert led_by_itself(state, 2)
    assert (state.leader_recovery_state, state.last_known_elr) == (RECOVERED, ())


def test_last_known_leader_leads_when_its_broker_is_back() -> None:
    world = emptied(0, 1, elr=(), last_known_elr=(1,))
    world.heartbeat(0)
    assert world.partition("a").leader == NO_LEADER
    world.heartbeat(1)
    assert led_by_itself(world.partition("a"), 1)
    assert world.partition("a").leader_recovery_state == RECOVERING


@pytest.mark.parametrize(("required", "expected"), [(None, ()), (1, ()), (2, (1, 2))])
def test_eligible_replicas_stay_while_too_few_are_in_sync(
    required: int | None, expected: tuple[int, ...]
) -> None:
    world = with_feature(0, 1, 2)
    world.create(assigned("a", (0, 1, 2)))
    configs = () if required is None else (min_in_sync(required),)
    add(world, *configs, change(world, isr=(0, 2), eligible_leader_replicas=(1,)))
    world.heartbeat(2, want_fence=True)
    assert (world.partition("a").isr, world.partition("a").elr) == ((0,), expected)


def test_eligible_replica_takes_over_when_the_last_of_the_isr_goes_again() -> None:
    world = with_feature(0, 1)
    world.create(assigned("a", (0, 1)))
    add(world, min_in_sync(2), change(world, isr=(0,), leader=NO_LEADER, eligible_leader_replicas=(1,)))
    world.heartbeat(0, want_fence=True)
    assert led_by_itself(world.partition("a"), 1)


def test_last_of_the_isr_is_eligible_when_it_stops() -> None:
    world = with_feature(0, 1)
    world.create(assigned("a", (0,)))
    world.heartbeat(0, want_shut_down=True)
    state = world.partition("a")
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (NO_LEADER, (), (0,), (0,))
    world.heartbeat(1, current_metadata_offset=world.raft.log_end_offset)
    assert world.heartbeat(0, want_shut_down=True).should_shut_down
    world.heartbeat(0)
    state = world.partition("a")
    assert led_by_itself(state, 0)
    assert (state.elr, state.last_known_elr, state.leader_recovery_state) == ((), (), RECOVERED)


@pytest.mark.parametrize(("required", "expected"), [(2, ()), (3, (2,))])
def test_leader_ends_them_when_it_reports_enough_in_sync(required: int, expected: tuple[int, ...]) -> None:
    world = with_feature(0, 1, 2)
    world.create(assigned("a", (0, 1, 2)))
    add(world, min_in_sync(required), change(world, isr=(0,), eligible_leader_replicas=(1, 2)))
    state, topic = world.partition("a"), world.controller.image.topics.by_name["a"]
    brokers = world.controller.image.cluster.brokers
    wanted = {
        "partition_index": 0,
        "leader_epoch": state.leader_epoch,
        "new_isr_with_epochs": [{"broker_id": each, "broker_epoch": brokers[each].epoch} for each in (0, 1)],
        "leader_recovery_state": RECOVERED,
        "partition_epoch": state.partition_epoch,
    }
    world.ask(
        ApiKey.ALTER_PARTITION,
        3,
        broker_id=0,
        broker_epoch=brokers[0].epoch,
        topics=[{"topic_id": topic.id, "partitions": [wanted]}],
    )
    assert (world.partition("a").isr, world.partition("a").elr) == ((0, 1), expected)
