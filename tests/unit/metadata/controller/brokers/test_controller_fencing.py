"""What happens when brokers fall silent, are fenced, and come back."""

from uuid import UUID

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.image.partition_state import NO_LEADER
from kquorum.wire.metadata_records.cluster import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.schema import MetadataRecord
from tests.support.controller_world import SESSION_MS, World, assigned, at_level, kinds


def test_silent_brokers_are_fenced_one_at_a_time() -> None:
    world = World().lead().add_brokers(0, 1, 2)
    world.create(assigned("a", (0, 1, 2)), assigned("b", (1, 2, 0)))
    world.now_ms += SESSION_MS - 1000
    world.heartbeat(2)
    world.now_ms += 1001
    for expected in ({0}, {0, 1}, {0, 1}):
        world.controller.handle_time(world.now_ms)
        brokers = world.controller.image.cluster.brokers
        assert {broker.id for broker in brokers.values() if broker.fenced} == expected
    world.commit()
    assert (world.partition("a").leader, world.partition("a").isr) == (2, (2,))
    assert (world.partition("b").leader, world.partition("b").isr) == (2, (2,))


def test_partitions_are_moved_before_the_broker_is_fenced() -> None:
    world = World(ControllerConfig(metadata_max_idle_interval_ms=0)).lead().add_brokers(0, 1)
    world.create(assigned("a", (0, 1)))
    start = world.raft.log_end_offset
    world.heartbeat(0, want_fence=True)
    change, fence = world.raft.records(start)
    assert isinstance(change, PartitionChangeRecord)
    assert (change.leader, change.isr) == (1, (1,))
    assert isinstance(fence, BrokerRegistrationChangeRecord)
    assert fence.fenced == 1


def test_session_lasts_exactly_its_time() -> None:
    world = World(ControllerConfig(metadata_max_idle_interval_ms=0)).lead().add_brokers(0)
    due = world.controller.next_deadline_ms()
    assert due == world.now_ms + SESSION_MS + 1
    world.controller.handle_time(due - 1)
    assert not world.controller.image.cluster.brokers[0].fenced
    world.controller.handle_time(due)
    assert world.controller.image.cluster.brokers[0].fenced


def test_last_member_keeps_the_isr_and_leads_again_when_it_returns() -> None:
    world = World().lead().add_brokers(0, 1)
    world.create(assigned("a", (0, 1)))
    world.heartbeat(1, want_fence=True)
    world.heartbeat(0, want_fence=True)
    state = world.partition("a")
    assert (state.leader, state.isr) == (NO_LEADER, (0,))
    world.heartbeat(1)
    assert world.partition("a").leader == NO_LEADER, "broker 1 lacks what broker 0 took alone"
    world.heartbeat(0)
    state = world.partition("a")
    assert (state.leader, state.isr) == (0, (0,))
    assert state.leader_epoch == 2, "one for losing its leader, one for getting it back"


def test_unfence_stands_before_the_elections_it_allows() -> None:
    world = World().lead().add_brokers(0)
    world.create(assigned("a", (0,)), assigned("b", (0,)))
    world.heartbeat(0, want_fence=True)
    start = world.raft.log_end_offset
    world.heartbeat(0)
    assert kinds(world, start) == ["BrokerRegistrationChangeRecord"] + ["PartitionChangeRecord"] * 2


def test_unclean_election_where_the_topic_allows_it() -> None:
    world = World().lead().add_brokers(0, 1)
    configs = [{"name": "unclean.leader.election.enable", "value": "true"}]
    world.create(assigned("a", (0, 1)) | {"configs": configs}, assigned("b", (0, 1)))
    world.heartbeat(1, want_fence=True)
    world.heartbeat(0, want_fence=True)
    world.heartbeat(1)
    lossy, safe = world.partition("a"), world.partition("b")
    assert (lossy.leader, lossy.isr, lossy.leader_recovery_state) == (1, (1,), 1)
    assert safe.leader == NO_LEADER


def test_new_controller_gives_everyone_a_full_session() -> None:
    world = World(ControllerConfig(metadata_max_idle_interval_ms=0)).lead().add_brokers(0)
    world.now_ms += SESSION_MS - 1
    world.follow(1, 2)
    world.lead(3)
    assert world.controller.next_deadline_ms() == world.now_ms + SESSION_MS + 1


def test_old_level_uses_the_old_records_and_bumps_epochs_on_shrink() -> None:
    world = at_level(5).add_brokers(0, 1)
    world.create(assigned("a", (0, 1)))
    start = world.raft.log_end_offset
    world.heartbeat(1, want_fence=True)
    change, fence = world.raft.records(start)
    assert isinstance(fence, FenceBrokerRecord)
    assert isinstance(change, PartitionChangeRecord)
    assert (change.leader, change.isr) == (0, (0,))
    assert world.partition("a").leader_epoch == 1
    world.heartbeat(1)
    assert isinstance(world.raft.records()[-1], UnfenceBrokerRecord)


def test_new_level_keeps_the_leader_epoch_on_shrink() -> None:
    world = World().lead().add_brokers(0, 1)
    world.create(assigned("a", (0, 1)))
    world.heartbeat(1, want_fence=True)
    state = world.partition("a")
    assert (state.isr, state.leader_epoch, state.partition_epoch) == ((0,), 0, 1)


@pytest.mark.parametrize("ends", ["its session ended", "it asked for it", "it shuts down"])
def test_a_fence_is_in_the_batch_of_the_changes(ends: str) -> None:
    """Kafka's leaders, when they learn of a smaller ISR, wait for who left it while that one counts as unfenced, and
    do not look again before a follower fetches something new (KIP-497, KIP-841)."""
    world = World(ControllerConfig(metadata_max_idle_interval_ms=0)).lead().add_brokers(0, 1)
    world.create(*(assigned(f"t{number}", *[(1, 0)] * 100) for number in range(6)))
    start = len(world.raft.batches)
    if ends == "its session ended":
        world.now_ms += SESSION_MS - 1
        world.heartbeat(1)
        world.now_ms += 2
        world.controller.handle_time(world.now_ms)
    else:
        world.heartbeat(0, want_fence=ends == "it asked for it", want_shut_down=ends == "it shuts down")
    (batch,) = [batch for batch in world.raft.batches[start:] if len(batch.records)]
    records = world.raft.records(batch.base_offset)
    assert len(records) == len(batch.records) == 601
    assert all(isinstance(each, PartitionChangeRecord) for each in records[:-1])
    assert isinstance(records[-1], BrokerRegistrationChangeRecord)
    assert (records[-1].broker_id, records[-1].fenced) == (0, 1)


@pytest.mark.parametrize("ends", ["its session ended", "it asked for it"])
def test_beyond_one_decision_the_fence_comes_first(ends: str) -> None:
    config = ControllerConfig(max_records_per_batch=10, metadata_max_idle_interval_ms=0)
    world = World(config).lead().add_brokers(0, 1)
    for name in "abc":
        world.create(assigned(name, *[(0, 1)] * 7))
    before = len(world.raft.batches)
    if ends == "its session ended":
        world.now_ms += SESSION_MS - 1
        world.heartbeat(1)
        world.now_ms += 2
    else:
        world.heartbeat(0, want_fence=True)
    world.advance(0)
    world.commit()
    assert [len(batch.records) for batch in world.raft.batches[before:]] == [1, 10, 10, 1]
    assert isinstance(
        world.raft.records(world.raft.batches[before].base_offset)[0], BrokerRegistrationChangeRecord
    )
    assert world.controller.committed_image.cluster.brokers[0].fenced
    partitions = world.controller.committed_image.topics.by_name["c"].partitions
    assert partitions.leaders.tolist().count(1) == 7


def only_batch(world: World, start: int) -> list[MetadataRecord]:
    """The records of the only batch since then; an audit note is left out."""
    (batch,) = [each for each in world.raft.batches if each.base_offset >= start]
    return [each for each in world.raft.records(batch.base_offset) if not isinstance(each, NoOpRecord)]


def test_an_unfence_and_the_elections_that_it_allows_are_one_batch() -> None:
    world = World(ControllerConfig(metadata_max_idle_interval_ms=0)).lead().add_brokers(0)
    world.create(assigned("a", *[(0,)] * 600))
    world.heartbeat(0, want_fence=True)
    start = world.raft.log_end_offset
    world.heartbeat(0)
    unfence, *changes = only_batch(world, start)
    assert isinstance(unfence, BrokerRegistrationChangeRecord)
    assert unfence.fenced == -1
    assert [each.leader for each in changes if isinstance(each, PartitionChangeRecord)] == [0] * 600


def test_a_shutdown_and_what_it_gives_away_are_one_batch() -> None:
    world = World(ControllerConfig(metadata_max_idle_interval_ms=0)).lead().add_brokers(0, 1)
    world.create(assigned("a", *[(0, 1)] * 600))
    start = world.raft.log_end_offset
    world.heartbeat(0, want_shut_down=True)
    leaving, *changes = only_batch(world, start)
    assert isinstance(leaving, BrokerRegistrationChangeRecord)
    assert leaving.in_controlled_shutdown == 1
    assert [each.leader for each in changes if isinstance(each, PartitionChangeRecord)] == [1] * 600


def test_the_end_of_a_registration_stands_behind_its_partitions_in_their_batch() -> None:
    world = World(ControllerConfig(metadata_max_idle_interval_ms=0)).lead().add_brokers(0, 1, 2)
    world.create(assigned("a", *[(0, 1, 2)] * 600))
    start = world.raft.log_end_offset
    world.ask(ApiKey.UNREGISTER_BROKER, 0, broker_id=0)
    *changes, unregistered = only_batch(world, start)
    assert isinstance(unregistered, UnregisterBrokerRecord)
    assert sum(isinstance(each, PartitionChangeRecord) for each in changes) == len(changes) == 600
    world.now_ms += SESSION_MS - 1
    world.heartbeat(2)
    world.now_ms += 2
    start = world.raft.log_end_offset
    world.register(1, incarnation=2)
    *changes, registered = only_batch(world, start)
    assert isinstance(registered, RegisterBrokerRecord)
    assert registered.broker_epoch == start
    assert sum(isinstance(each, PartitionChangeRecord) for each in changes) == len(changes) == 600


def test_the_loss_of_a_directory_stands_behind_its_partitions_in_their_batch() -> None:
    disks = [UUID(int=1_001), UUID(int=1_002)]
    world = World(ControllerConfig(metadata_max_idle_interval_ms=0)).lead()
    world.add_brokers(1).add_brokers(0, log_dirs=disks[:1])
    world.create(assigned("a", *[(0, 1)] * 600))
    world.register(0, log_dirs=disks)
    start = world.raft.log_end_offset
    world.heartbeat(0, offline_log_dirs=disks[:1])
    *changes, directories = only_batch(world, start)
    assert isinstance(directories, BrokerRegistrationChangeRecord)
    assert directories.log_dirs == (disks[1],)
    assert sum(isinstance(each, PartitionChangeRecord) for each in changes) == len(changes) == 600
