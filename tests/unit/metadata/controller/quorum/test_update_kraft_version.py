"""UpdateFeatures for kraft.version, which is the quorum's own feature: it stands in the log, not in the image."""

import pytest

from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.api_calls import feature_values
from tests.support.controller_world import at_level
from tests.support.metadata.feature_updates import (
    SAFE,
    UNSAFE,
    UPGRADE,
    Upgrades,
    ask,
    change,
    levels,
    ready_world,
    reason,
    send,
    update,
)


def test_an_upgrade_is_answered_when_it_is_committed() -> None:
    world = ready_world()
    upgrades = Upgrades(world)
    answers = send(world, update("kraft.version", 1))
    assert upgrades.asked == [(1, 1, True), (1, 1, False)]
    assert answers == []
    world.commit()
    assert answers[0].error_code is ErrorCode.none
    assert [item.feature for item in answers[0].results] == ["kraft.version"]


def test_version_2_answers_without_a_result_for_each_feature() -> None:
    world = ready_world()
    Upgrades(world)
    assert change(world, update("kraft.version", 1)).results == ()


def test_other_requests_go_on_beside_an_uncommitted_upgrade() -> None:
    world = ready_world()
    Upgrades(world)
    world.add_brokers(1, features=feature_values())
    upgrade = send(world, update("kraft.version", 1))
    heartbeat = world.send_heartbeat(1)
    world.commit()
    assert len(upgrade) == len(heartbeat) == 1


def test_only_looking_changes_nothing() -> None:
    world = ready_world()
    upgrades = Upgrades(world)
    end = world.raft.log_end_offset
    answer = ask(world, update("kraft.version", 1), update("group.version", 1), validate_only=True)
    assert answer.error_code is ErrorCode.none
    assert upgrades.asked == [(1, 1, True)]
    assert world.raft.log_end_offset == end


def test_the_quorums_refusal_is_passed_on_word_for_word() -> None:
    world = ready_world()
    Upgrades(world, "node 3 has not told the leader its directory id")
    answer = ask(world, update("kraft.version", 1), version=1)
    assert "node 3 has not told the leader its directory id" in reason(answer)
    assert answer.results[0].error_code is ErrorCode.invalid_update_version


def test_a_dynamic_quorum_needs_a_metadata_version_that_knows_it() -> None:
    world = at_level(20)
    world.commit()
    Upgrades(world)
    assert "depends on metadata.version level 21" in reason(ask(world, update("kraft.version", 1)))


def test_both_can_be_raised_at_once() -> None:
    world = at_level(20)
    world.commit()
    Upgrades(world)
    answer = change(world, update("kraft.version", 1), update("metadata.version", 22))
    assert answer.error_code is ErrorCode.none
    assert levels(world)["metadata.version"] == 22


@pytest.mark.parametrize("upgrade_type", [UPGRADE, SAFE, UNSAFE])
def test_the_voters_of_the_log_stay_there(upgrade_type: int) -> None:
    world = ready_world()
    Upgrades(world)
    world.raft.kraft_version = 1
    assert "Can't downgrade the version of this feature" in reason(
        ask(world, update("kraft.version", 0, upgrade_type))
    )


def test_the_metadata_stays_at_a_level_that_dynamic_voters_need() -> None:
    world = ready_world(21)
    world.raft.kraft_version = 1
    answer = ask(world, update("metadata.version", 20, SAFE))
    assert "kraft.version could not be set to 1" in reason(answer)
