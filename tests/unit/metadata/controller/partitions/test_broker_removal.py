"""Requests that take a broker off many partitions: these go first, some in each turn."""

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.partitions import batched_update, change_batch
from kquorum.metadata.image.metadata_version import ELIGIBLE_LEADER_REPLICAS_VERSION
from kquorum.metadata.image.partition_state import NO_LEADER
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.cluster import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import Values
from tests.support.controller_world import SESSION_MS, World, assigned
from tests.support.metadata.feature_updates import FEATURES

AT_ONCE = 4
PARTITIONS = 11


@pytest.fixture(autouse=True)
def _few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_batch, "CHANGES_AT_ONCE", AT_ONCE)
    monkeypatch.setattr(batched_update, "PARTITIONS_PER_SLICE", AT_ONCE)


def world_of(*brokers: int, elr: int = 0) -> World:
    """Three topics on the first two brokers, eleven partitions each."""
    records = bootstrap_records(25, {ELIGIBLE_LEADER_REPLICAS_VERSION: elr})
    config = ControllerConfig(
        bootstrap_records=records, metadata_max_idle_interval_ms=0, min_insync_replicas=2
    )
    world = World(config).lead().add_brokers(*brokers, features=FEATURES)
    for name in "abc":
        world.create(assigned(name, *[brokers[:2]] * PARTITIONS))
    return world


def turns(world: World, answers: list[Values], changes_before: int = 0) -> int:
    """How many turns it takes until the request is answered; all that it does is due at once."""
    start, taken = world.raft.log_end_offset, 0
    while not answers:
        assert world.controller.next_deadline_ms() == 0
        world.controller.handle_time(world.now_ms)
        world.commit()
        taken += 1
        assert taken < 100
    changes = [isinstance(each, PartitionChangeRecord) for each in world.raft.records(start)]
    assert changes_before + sum(changes) == 3 * PARTITIONS
    return taken


def in_sync(world: World) -> set[tuple[int, ...]]:
    return {world.partition(name, index).isr for name in "abc" for index in range(PARTITIONS)}


@pytest.mark.parametrize("elr", [0, 1])
def test_unregistration(elr: int) -> None:
    world = world_of(0, 1, elr=elr)
    answers = world.send(ApiKey.UNREGISTER_BROKER, 0, broker_id=0)
    assert turns(world, answers) == 10
    assert answers[0].error_code is ErrorCode.none
    assert isinstance(world.raft.records()[-1], UnregisterBrokerRecord)
    assert in_sync(world) == {(1,)}
    assert {world.partition(name).elr for name in "abc"} == {()}
    assert 0 not in world.controller.committed_image.cluster.brokers


def test_meanwhile_it_neither_joins_an_isr_nor_leads() -> None:
    world = world_of(0, 1)
    world.send(ApiKey.UNREGISTER_BROKER, 0, broker_id=0)
    world.controller.handle_time(world.now_ms)
    name = next(each for each in "abc" if world.partition(each).isr == (1,))
    state, topic = world.partition(name), world.controller.image.topics.by_name[name]
    wanted = {
        "partition_index": 0,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "leader_recovery_state": 0,
        "new_isr_with_epochs": [{"broker_id": each, "broker_epoch": -1} for each in (1, 0)],
    }
    epoch = world.controller.image.cluster.brokers[1].epoch
    topics = [{"topic_id": topic.id, "partitions": [wanted]}]
    answer = world.ask(ApiKey.ALTER_PARTITION, 3, broker_id=1, broker_epoch=epoch, topics=topics)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.ineligible_replica
    world.send_heartbeat(1, want_fence=True)
    while world.controller.next_deadline_ms() == 0:
        world.controller.handle_time(world.now_ms)
    led = {world.partition(each, index).leader for each in "abc" for index in range(PARTITIONS)}
    assert led == {NO_LEADER}


def test_wish_to_be_fenced() -> None:
    """It is fenced at once, and its partitions go after that."""
    world = world_of(0, 1)
    answer = world.heartbeat(0, want_fence=True, want_shut_down=True)
    assert (answer.is_fenced, answer.should_shut_down) == (True, True)
    last = world.raft.records()[-1]
    assert isinstance(last, BrokerRegistrationChangeRecord)
    assert (last.broker_id, last.fenced) == (0, 1)
    assert in_sync(world) == {(0, 1)}
    world.advance(0)
    world.commit()
    assert in_sync(world) == {(1,)}
    assert not world.heartbeat(0).is_fenced, "nothing keeps it from coming back"


def test_heartbeats_while_it_is_fenced_find_their_answers() -> None:
    world = world_of(0, 1)
    first = world.send_heartbeat(0, want_fence=True)
    second = world.send_heartbeat(0, want_fence=True)
    world.commit()
    assert (first[0].is_fenced, second[0].is_fenced) == (True, True)
    world.advance(0)
    assert world.controller.next_deadline_ms() != 0
    assert in_sync(world) == {(1,)}


def test_who_is_unregistered_is_fenced_first_and_stays_so() -> None:
    """It serves until then: Kafka's leaders would wait for it where it has left the ISR and is not fenced."""
    world = world_of(0, 1)
    start = world.raft.log_end_offset
    answers = world.send(ApiKey.UNREGISTER_BROKER, 0, broker_id=0)
    (fence,) = world.raft.records(start)
    assert isinstance(fence, BrokerRegistrationChangeRecord)
    assert (fence.broker_id, fence.fenced) == (0, 1)
    world.controller.handle_time(world.now_ms)
    assert world.heartbeat(0).is_fenced
    assert turns(world, answers, changes_before=AT_ONCE) == 9
    assert 0 not in world.controller.committed_image.cluster.brokers


def test_a_new_process_waits_behind_the_fence_of_the_old_one() -> None:
    """The session of the old one has ended, and its fence was not yet due."""
    world = world_of(0, 1)
    world.now_ms += SESSION_MS - 1
    world.heartbeat(1)
    world.now_ms += 2
    broker = world.controller.image.cluster.brokers[0]
    start = world.raft.log_end_offset
    values = {
        "broker_id": 0,
        "cluster_id": world.controller._cluster_id,
        "incarnation_id": None,
        "listeners": [{"name": "P", "host": "h", "port": 1, "security_protocol": 0}],
        "features": FEATURES,
        "rack": None,
        "log_dirs": broker.log_dirs,
    }
    answers = world.send(ApiKey.BROKER_REGISTRATION, 4, **values)
    (fence,) = world.raft.records(start)
    assert isinstance(fence, BrokerRegistrationChangeRecord)
    assert (fence.broker_id, fence.fenced) == (0, 1)
    assert turns(world, answers) == 10
    assert isinstance(world.raft.records()[-1], RegisterBrokerRecord)


@pytest.mark.parametrize("clean", [True, False])
def test_new_process_of_a_broker_that_was_in_many(clean: bool) -> None:
    world = world_of(0, 1, elr=1)
    world.now_ms += SESSION_MS - 1
    world.heartbeat(1)
    world.now_ms += 2
    broker = world.controller.image.cluster.brokers[0]
    values = {
        "cluster_id": world.controller._cluster_id,
        "incarnation_id": None,
        "listeners": [{"name": "P", "host": "h", "port": 1, "security_protocol": 0}],
        "features": FEATURES,
        "rack": None,
        "log_dirs": broker.log_dirs,
        "previous_broker_epoch": broker.epoch if clean else -1,
    }
    world.controller._active.liveness.refresh(0, world.now_ms)  # type: ignore[union-attr]
    world.now_ms += SESSION_MS + 1
    world.heartbeat(1)
    answers = world.send(ApiKey.BROKER_REGISTRATION, 4, broker_id=0, **values)
    while not answers:
        world.controller.handle_time(world.now_ms)
        world.commit()
    assert answers[0].error_code is ErrorCode.none
    assert isinstance(world.raft.records()[-1], RegisterBrokerRecord)
    assert in_sync(world) == {(1,)}
    assert {world.partition(name).elr for name in "abc"} == {(0,) if clean else ()}


def test_failed_directory_with_many_partitions() -> None:
    world = world_of(0, 1)
    disk = world.controller.image.cluster.brokers[0].log_dirs[0]
    world.register(0, features=FEATURES, log_dirs=[disk, disk.__class__(int=99_000)])
    world.commit()
    answers = world.send_heartbeat(0, offline_log_dirs=[disk])
    assert turns(world, answers) == 10
    assert in_sync(world) == {(1,)}
    assert world.controller.image.cluster.brokers[0].log_dirs == (disk.__class__(int=99_000),)


def test_waiting_clients_learn_of_a_new_controller() -> None:
    world = world_of(0, 1)
    answers = world.send(ApiKey.UNREGISTER_BROKER, 0, broker_id=0)
    world.controller.handle_time(world.now_ms)
    assert answers == []
    world.follow(2, 9)
    assert answers[0].error_code is ErrorCode.not_controller


def test_partitions_that_do_not_change_are_not_waited_for() -> None:
    """Without eligible leader replicas the last member stays in the ISR: there is nothing to be done first."""
    world = world_of(0)
    assert world.heartbeat(0, want_fence=True).is_fenced
    world.advance(0)
    world.commit()
    assert in_sync(world) == {(0,)}
    world.register(0, 2, features=FEATURES)
    assert world.ask(ApiKey.UNREGISTER_BROKER, 0, broker_id=0).error_code is ErrorCode.none


def test_deleted_topics_and_changed_partitions_are_passed_over() -> None:
    world = world_of(0, 1)
    answers = world.send(ApiKey.UNREGISTER_BROKER, 0, broker_id=0)
    world.delete("a", "b")
    while not answers:
        world.controller.handle_time(world.now_ms)
        world.commit()
    assert {world.partition("c", index).isr for index in range(PARTITIONS)} == {(1,)}
