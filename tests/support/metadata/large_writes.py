"""A controller world with small batches, where a CreateTopics request needs a metadata transaction."""

from typing import Any

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.controller import Controller
from kquorum.raft.batches import BATCH_HEADER_BYTES, RECORD_OVERHEAD_BYTES
from kquorum.raft.errors import RecordBatchTooLargeError
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.controller_world import (
    CLUSTER_ID,
    FakeRaft,
    SeededRandomSource,
    World,
    topic,
)

SMALL_BATCH = 2000


PARTITIONS = 60


class SmallBatchRaft(FakeRaft):
    """Refuses what does not fit, as the replica does."""

    def propose(self, now_ms: int, leader_epoch: int, values: Any) -> int:
        size = BATCH_HEADER_BYTES + sum(len(value) + RECORD_OVERHEAD_BYTES for value in values)
        if size > SMALL_BATCH:
            raise RecordBatchTooLargeError(f"{size} bytes")
        return super().propose(now_ms, leader_epoch, values)


def small_world(level: int = 25, **config: Any) -> World:
    """One broker, and batches of 2000 bytes."""
    settings = ControllerConfig(
        max_batch_bytes=SMALL_BATCH, bootstrap_records=bootstrap_records(level, {}), **config
    )
    world = World(settings)
    world.raft = SmallBatchRaft()
    world.controller = Controller(settings, world.raft, SeededRandomSource(), CLUSTER_ID)
    return world.lead().add_brokers(0)


def send_large(world: World, name: str = "large") -> list[dict[str, Any]]:
    return world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic(name, num_partitions=PARTITIONS)], timeout=1000)
