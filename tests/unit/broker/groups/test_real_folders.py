"""Coordinators' logs of real clusters are loaded as they are."""

from pathlib import Path

from kquorum.broker.coordinators.loading import ShardState
from kquorum.broker.groups.shard import GroupShard
from kquorum.wire.data_batch import data_headers
from tests.support.broker.group_world import GroupWorld


def loaded(log: Path) -> GroupShard:
    world = GroupWorld()
    partition = world.offsets_partition()
    groups = world.groups
    shard = GroupShard(
        partition, lambda: world.settings, world.new_id, groups.topics, world.timings, groups.counters
    )
    data = log.read_bytes()
    for position, header in data_headers(data):
        shard.replay_batch(data, position, header)
    shard.load_some(world.now_ms)
    assert shard.state is ShardState.ACTIVE
    return shard


def test_every_group_of_every_folder_is_found(real_data: Path) -> None:
    groups = offsets = members = modern = 0
    for log in sorted(real_data.glob("*/__consumer_offsets-*/*.log")):
        shard = loaded(log)
        groups += len(shard.groups)
        offsets += shard.offsets.count
        members += sum(len(group.members) for group in shard.groups.values())
        modern += len(shard.consumers)
    assert groups > 10
    assert offsets > 50
    assert modern >= 1
    assert members >= 1
