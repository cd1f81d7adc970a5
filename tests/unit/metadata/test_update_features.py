"""UpdateFeatures: kraft.version goes to the quorum, everything else is refused for now."""

from collections.abc import Sequence
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from metadata.controller.requests import Values
from tests.unit.metadata.controller_world import World, at_level
from wire.protocol.api_keys import ApiKey


class Upgrades:
    """What the quorum is asked; it appends a control batch, as the core does."""

    def __init__(self, world: World, refusal: str | None = None) -> None:
        self.asked: list[tuple[int, int, bool]] = []
        self._world = world
        self._refusal = refusal
        world.raft.upgrade_kraft_version = self.upgrade  # type: ignore[attr-defined]

    def upgrade(
        self, now_ms: int, leader_epoch: int, level: int, *, validate_only: bool = False
    ) -> str | None:
        self.asked.append((leader_epoch, level, validate_only))
        if self._refusal is None and not validate_only:
            self._world.raft.append(now_ms, [(b"\0\0\0\5", b"\0\0\0\1\0")], control=True)
        return self._refusal


def update(feature: str, level: int, **changes: Any) -> dict[str, Any]:
    return {"feature": feature, "max_version_level": level, "upgrade_type": 1, **changes}


def send(
    world: World, *updates: dict[str, Any], version: int = 1, validate_only: bool = False
) -> Sequence[Values]:
    return world.send(
        ApiKey.UPDATE_FEATURES, version, timeout=1000, feature_updates=updates, validate_only=validate_only
    )


def ready_world() -> World:
    world = at_level(25)
    world.commit()
    return world


def test_an_upgrade_is_answered_when_it_is_committed() -> None:
    world = ready_world()
    upgrades = Upgrades(world)
    answers = send(world, update("kraft.version", 1))
    assert upgrades.asked == [(1, 1, True), (1, 1, False)]
    assert answers == []
    world.commit()
    assert answers[0]["error_code"] is ErrorCode.none
    assert [item["feature"] for item in answers[0]["results"]] == ["kraft.version"]


def test_version_2_answers_without_a_result_for_each_feature() -> None:
    world = ready_world()
    Upgrades(world)
    answers = send(world, update("kraft.version", 1), version=2)
    world.commit()
    assert "results" not in answers[0]


def test_other_requests_go_on_beside_an_uncommitted_upgrade() -> None:
    world = ready_world()
    Upgrades(world)
    world.add_brokers(1)
    upgrade = send(world, update("kraft.version", 1))
    heartbeat = world.send_heartbeat(1)
    world.commit()
    assert len(upgrade) == len(heartbeat) == 1


def test_only_looking_changes_nothing() -> None:
    world = ready_world()
    upgrades = Upgrades(world)
    (answer,) = send(world, update("kraft.version", 1), validate_only=True)
    assert answer["error_code"] is ErrorCode.none
    assert upgrades.asked == [(1, 1, True)]


def test_the_quorums_refusal_is_told_in_its_words() -> None:
    world = ready_world()
    Upgrades(world, "node 3 has not told the leader its directory id")
    (answer,) = send(world, update("kraft.version", 1))
    assert answer["error_code"] is ErrorCode.invalid_update_version
    assert answer["error_message"] == "node 3 has not told the leader its directory id"
    assert answer["results"][0]["error_code"] is ErrorCode.invalid_update_version


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (update("metadata.version", 26), "cannot change metadata.version yet"),
        (update("eligible.leader.replicas.version", 1), "cannot change eligible.leader.replicas.version yet"),
        (update("no.such.version", 1), "no.such.version is not a supported feature"),
        (update("kraft.version", 2), "has the levels 0 to 1, not 2"),
        (update("kraft.version", -1), "has the levels 0 to 1, not -1"),
        (update("kraft.version", 1, upgrade_type=9), "no upgrade type 9"),
    ],
)
def test_what_cannot_be_updated_is_refused_and_nothing_else_of_the_request_is_done(
    wanted: dict[str, Any], words: str
) -> None:
    world = ready_world()
    upgrades = Upgrades(world)
    (answer,) = send(world, update("kraft.version", 1), wanted)
    assert answer["error_code"] is ErrorCode.invalid_update_version
    assert words in answer["error_message"]
    assert all(validate_only for _, _, validate_only in upgrades.asked)


def test_a_dynamic_quorum_needs_a_metadata_version_that_knows_it() -> None:
    world = at_level(20)
    world.commit()
    Upgrades(world)
    (answer,) = send(world, update("kraft.version", 1))
    assert "needs metadata.version 21" in answer["error_message"]
