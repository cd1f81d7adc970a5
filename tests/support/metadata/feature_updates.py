"""UpdateFeatures as tests send it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.image.metadata_version import ELIGIBLE_LEADER_REPLICAS_VERSION
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.cluster import (
    ControllerFeature,
    RegisterControllerRecord,
)
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.api_calls import Values
from tests.support.controller_world import LEVELS, World

UPGRADE, SAFE, UNSAFE = 1, 2, 3
ELR = "eligible.leader.replicas.version"
PREFIX = "The update failed for all features since the following feature had an error: "


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


def update(feature: str, level: int, upgrade_type: int = UPGRADE, *, allow: bool = False) -> dict[str, Any]:
    return {
        "feature": feature,
        "max_version_level": level,
        "upgrade_type": upgrade_type,
        "allow_downgrade": allow,
    }


def send(
    world: World, *updates: dict[str, Any], version: int = 1, validate_only: bool = False
) -> Sequence[Values]:
    return world.send(
        ApiKey.UPDATE_FEATURES, version, timeout=1000, feature_updates=updates, validate_only=validate_only
    )


def ask(world: World, *updates: dict[str, Any], version: int = 2, validate_only: bool = False) -> Values:
    """For what writes nothing, and is answered at once."""
    (answer,) = send(world, *updates, version=version, validate_only=validate_only)
    return answer


def change(world: World, *updates: dict[str, Any], **how: Any) -> Values:
    """Send, commit, answer."""
    answers = send(world, *updates, **{"version": 2, **how})
    world.commit()
    return answers[0]


def reason(answer: Values) -> str:
    """Why all was refused, without the words that stand before each."""
    assert answer.error_code is ErrorCode.invalid_update_version, answer
    assert answer.error_message.startswith(PREFIX)
    return str(answer.error_message.removeprefix(PREFIX))


def ready_world(level: int = 25, **features: int) -> World:
    records = bootstrap_records(level, {name.replace("_", "."): each for name, each in features.items()})
    world = World(ControllerConfig(bootstrap_records=records)).lead()
    world.commit()
    return world


def levels(world: World) -> dict[str, int]:
    return dict(world.controller.committed_image.features.finalized)


def add(world: World, *records: MetadataRecord) -> None:
    """Another controller leads, writes these, and hands over."""
    epoch = world.raft.leader_epoch
    world.follow(2, epoch + 1)
    world.raft.append(world.now_ms, [(None, encode_record(record, 0)) for record in records])
    world.lead(epoch + 2)
    world.commit()


def controller(node_id: int, **ranges: tuple[int, int]) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=node_id,
        incarnation_id=UUID(int=node_id),
        zk_migration_ready=False,
        end_points=(),
        features=tuple(
            ControllerFeature(
                name=name.replace("_", "."), min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in ranges.items()
        ),
    )


FEATURES = [
    *LEVELS,
    {"name": ELIGIBLE_LEADER_REPLICAS_VERSION, "min_supported_version": 0, "max_supported_version": 1},
]
