"""UpdateFeatures: which levels may be set, in what order they are checked, and what is written then."""

from typing import Any

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.quorum.activation import LogUnsupported
from kquorum.raft.voters import ReplicaKey, Voter, VoterSet
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from kquorum.wire.record_frame import encode_record
from tests.support.api_calls import feature_values
from tests.support.controller_world import LEVELS, NODE_ID, World, assigned, at_level, kinds
from tests.support.metadata.feature_updates import (
    ELR,
    SAFE,
    UNSAFE,
    Upgrades,
    add,
    ask,
    change,
    controller,
    levels,
    ready_world,
    reason,
    update,
)

# What cannot be


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (update("group.version", 1, 0), "does not support the given upgrade type"),
        (update("group.version", 1, 9), "does not support the given upgrade type"),
        (update("group.version", -1), "cannot be less than 0"),
        (update("group.version", 0), "without setting the upgrade type"),
        (update("group.version", 2), f"Local controller {NODE_ID} only supports versions 0-1"),
        (update("transaction.version", 2, SAFE), "Can't downgrade to a newer version."),
        (update("transaction.version", 2, UNSAFE), "Can't downgrade to a newer version."),
        (update("no.such.version", 1), f"Local controller {NODE_ID} does not support this feature."),
        (update("metadata.version", 34), f"Local controller {NODE_ID} only supports versions 4-33"),
        (update("metadata.version", 24), "without setting the upgrade type"),
        (update("metadata.version", 26, SAFE), "Can't downgrade to a newer version."),
        (update("metadata.version", 22, SAFE), "downgrade from 25 to 22. Refusing to perform"),
        (update("metadata.version", 22, UNSAFE), "Unsafe metadata downgrade is not supported"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_else_of_the_request_is_done(
    wanted: dict[str, Any], words: str
) -> None:
    world = ready_world(group_version=1, transaction_version=1)
    upgrades = Upgrades(world)
    end = world.raft.log_end_offset
    answer = ask(world, update("kraft.version", 1), wanted)
    assert words in reason(answer)
    assert all(validate_only for _, _, validate_only in upgrades.asked)
    assert world.raft.log_end_offset == end


def test_a_level_below_those_with_a_record_for_levels_is_unknown() -> None:
    answer = ask(ready_world(), update("metadata.version", 3, SAFE))
    assert f"Local controller {NODE_ID} only supports versions 4-33" in reason(answer)


def test_below_version_2_each_feature_is_reported_too() -> None:
    world = ready_world()
    wanted = (update("group.version", 1), update("no.such.version", 7))
    answer = ask(world, *wanted, version=1)
    assert [(each.feature, each.error_code) for each in answer.results] == [
        ("group.version", ErrorCode.invalid_update_version),
        ("no.such.version", ErrorCode.invalid_update_version),
    ]


# Who must be able to run it


def test_a_fenced_broker_that_cannot_run_a_level_bars_it() -> None:
    world = ready_world()
    world.register(4, features=feature_values())
    world.register(5, features=LEVELS)
    answer = ask(world, update("share.version", 1))
    assert reason(answer) == (
        "Invalid update version 1 for feature share.version. Broker 5 does not support this feature."
    )
    assert "Broker 5 only supports versions 1-30" in reason(ask(world, update("metadata.version", 31)))


def test_level_0_of_an_unknown_feature_is_there_already() -> None:
    world = ready_world()
    world.register(5, features=LEVELS)
    assert change(world, update("some.future.version", 0)).error_code is ErrorCode.none


def test_another_controller_that_cannot_run_a_level_bars_it() -> None:
    world = ready_world()
    add(world, controller(1, group_version=(0, 1), metadata_version=(7, 25)), controller(NODE_ID))
    assert change(world, update("group.version", 1)).error_code is ErrorCode.none
    assert "Controller 1 only supports versions 7-25" in reason(ask(world, update("metadata.version", 26)))
    assert "Controller 1 does not support this feature" in reason(ask(world, update("share.version", 1)))


def test_a_voter_that_has_not_registered_may_not_support_it() -> None:
    world = ready_world()
    world.raft.voters = VoterSet.of(*(Voter(key=ReplicaKey(each)) for each in (1, 2, NODE_ID)))
    add(world, controller(1, group_version=(0, 1)))
    words = "controller 2 has not registered, and may not support this feature"
    assert words in reason(ask(world, update("group.version", 1)))
    add(world, controller(2, group_version=(0, 1)))
    assert change(world, update("group.version", 1)).error_code is ErrorCode.none


def test_before_controllers_register_support_is_unknown() -> None:
    world = at_level(14)
    world.commit()
    world.raft.voters = VoterSet.of(*(Voter(key=ReplicaKey(each)) for each in (1, NODE_ID)))
    assert change(world, update("metadata.version", 15)).error_code is ErrorCode.none


# What is written


def test_levels_go_up_down_and_off() -> None:
    world = ready_world(transaction_version=2, group_version=1)
    end = world.raft.log_end_offset
    answer = change(
        world,
        update("transaction.version", 1, SAFE),
        update("group.version", 0, UNSAFE),
        update("share.version", 2),
    )
    assert answer.error_code is ErrorCode.none
    assert levels(world) == {"metadata.version": 25, "transaction.version": 1, "share.version": 2}
    assert kinds(world, end) == ["FeatureLevelRecord"] * 3
    assert len({batch.base_offset for batch in world.raft.batches if batch.base_offset >= end}) == 1


@pytest.mark.parametrize(("start", "target"), [(25, 23), (25, 24), (22, 17), (29, 23), (31, 30), (10, 8)])
def test_a_way_down_over_no_change_of_the_metadata_is_safe(start: int, target: int) -> None:
    world = at_level(start)
    world.commit()
    assert change(world, update("metadata.version", target, SAFE)).error_code is ErrorCode.none
    assert levels(world)["metadata.version"] == target


@pytest.mark.parametrize(
    ("start", "target"),
    [*((level, level - 1) for level in (5, 6, 7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33)), (33, 4), (25, 22)],
)
def test_a_way_down_over_a_change_of_the_metadata_is_not(start: int, target: int) -> None:
    world = at_level(start)
    world.commit()
    assert f"downgrade from {start} to {target}." in reason(
        ask(world, update("metadata.version", target, SAFE))
    )


@pytest.mark.parametrize("level", range(4, 34))
def test_every_level_can_be_reached_and_left_upwards(level: int) -> None:
    world = at_level(level)
    world.commit()
    for target in (min(level + 1, 33), 33):
        assert change(world, update("metadata.version", target)).error_code is ErrorCode.none
    assert levels(world)["metadata.version"] == 33


def test_version_0_says_only_whether_the_way_down_is_allowed() -> None:
    world = ready_world(transaction_version=2)
    refused = ask(world, update("transaction.version", 1), version=0)
    assert "without setting the upgrade type" in reason(refused)
    wanted = (update("transaction.version", 1, allow=True), update("group.version", 1, allow=True))
    answer = change(world, *wanted, version=0)
    assert [each.error_code for each in answer.results] == [ErrorCode.none] * 2
    assert levels(world) == {"metadata.version": 25, "transaction.version": 1, "group.version": 1}


def test_a_request_for_nothing_succeeds() -> None:
    world = ready_world()
    end = world.raft.log_end_offset
    assert ask(world).error_code is ErrorCode.none
    assert world.raft.log_end_offset == end


# Eligible leader replicas


def broker_config(name: str, value: int) -> ConfigRecord:
    return ConfigRecord(resource_type=4, resource_name=name, name="min.insync.replicas", value=str(value))


def test_eligible_leader_replicas_need_a_metadata_version() -> None:
    world = at_level(22)
    world.commit()
    assert reason(ask(world, update(ELR, 1))).endswith(
        f"{ELR} could not be set to 1 because it depends on metadata.version level 23"
    )
    assert change(world, update(ELR, 1), update("metadata.version", 23)).error_code is ErrorCode.none


def test_turning_them_on_gives_the_cluster_one_minimum() -> None:
    world = World(ControllerConfig(bootstrap_records=bootstrap_records(25, {}), min_insync_replicas=2)).lead()
    add(world, broker_config("1", 3), broker_config("2", 1))
    start = world.raft.log_end_offset
    assert change(world, update(ELR, 1)).error_code is ErrorCode.none
    written = [
        each for each in world.raft.records(start) if isinstance(each, ConfigRecord | FeatureLevelRecord)
    ]
    assert written == [
        broker_config("", 2),
        ConfigRecord(resource_type=4, resource_name="1", name="min.insync.replicas", value=None),
        ConfigRecord(resource_type=4, resource_name="2", name="min.insync.replicas", value=None),
        FeatureLevelRecord(name=ELR, feature_level=1),
    ]


def test_a_minimum_of_the_cluster_stays() -> None:
    world = ready_world()
    add(world, broker_config("", 3))
    start = world.raft.log_end_offset
    change(world, update(ELR, 1))
    assert kinds(world, start) == ["FeatureLevelRecord"]


def test_turned_off_they_still_lead_partitions_without_another_leader() -> None:
    world = ready_world(eligible_leader_replicas_version=1)
    world.add_brokers(1, 2, features=feature_values())
    world.create(assigned("a", (1, 2)))
    for broker_id in (1, 2):
        world.heartbeat(broker_id, want_fence=True)
    assert world.partition("a").elr
    assert change(world, update(ELR, 0, SAFE)).error_code is ErrorCode.none
    assert ELR not in levels(world)
    assert world.partition("a").leader == -1
    world.heartbeat(2)
    assert world.partition("a").leader == 2


def turned_off_and_on(*topics: Any, fenced: tuple[int, ...]) -> World:
    """Brokers are fenced while the lists are kept, and the minimum is two; then they are not maintained for a while."""
    world = ready_world(eligible_leader_replicas_version=1)
    world.add_brokers(1, 2, 3, features=feature_values())
    add(world, broker_config("", 2))
    world.create(*topics)
    for broker_id in fenced:
        world.heartbeat(broker_id, want_fence=True)
    assert change(world, update(ELR, 0, SAFE)).error_code is ErrorCode.none
    assert change(world, update(ELR, 1)).error_code is ErrorCode.none
    return world


def test_lists_from_before_they_were_turned_off_are_worth_nothing() -> None:
    """Broker 1 alone was in sync with `a`: what it wrote meanwhile, the others lack."""
    world = turned_off_and_on(assigned("a", (1, 2)), assigned("b", (1, 2), (2, 3)), fenced=(2, 3))
    assert (world.partition("a").isr, world.partition("a").elr) == ((1,), ())
    assert (world.partition("b").isr, world.partition("b").elr) == ((1,), ())
    world.heartbeat(2)
    world.heartbeat(1, want_fence=True)
    assert world.partition("a").leader == -1


def test_a_list_that_is_the_only_record_of_the_data_stays() -> None:
    world = turned_off_and_on(assigned("b", (1, 2), (2, 3)), fenced=(2, 3))
    left = world.partition("b", 1)
    assert (left.leader, left.isr, set(left.elr)) == (-1, (), {2, 3})
    world.heartbeat(2)
    assert (world.partition("b", 1).leader, world.partition("b", 1).leader_recovery_state) == (2, 0)


# What a controller cannot run


@pytest.mark.parametrize(
    ("name", "level"), [("share.version", 3), ("metadata.version", 34), ("a.version", 1)]
)
def test_a_level_that_this_program_cannot_run_ends_the_controller(name: str, level: int) -> None:
    world = ready_world()
    world.follow(2, 2)
    record = FeatureLevelRecord(name=name, feature_level=level)
    world.raft.append(world.now_ms, [(None, encode_record(record, 0))])
    with pytest.raises(LogUnsupported, match=f"finalizes {name} {level}, but this program runs levels"):
        world.commit()
