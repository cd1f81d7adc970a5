"""Records of new partitions are written together as the codec writes them one by one."""

from random import Random
from typing import Any
from uuid import UUID

import pytest

from metadata.image.partition_writing import record_values
from wire.metadata_records.topics import PartitionRecord
from wire.record_frame import encode_record


def some_record(dice: Random, version: int) -> PartitionRecord:
    replicas = tuple(dice.sample(range(2_000_000_000), dice.choice((0, 1, 3, 3, 3, 130))))
    rare: dict[str, Any] = {}
    if dice.random() < 0.2:
        names = ["removing_replicas", "adding_replicas", "leader_recovery_state"]
        names += ["eligible_leader_replicas", "last_known_elr"] if version > 1 else []
        name = dice.choice(names)
        rare[name] = 1 if name == "leader_recovery_state" else dice.choice(((), (1, 2)))
    directories = () if not version or dice.random() < 0.1 else replicas
    return PartitionRecord(
        partition_id=dice.randrange(2**31),
        topic_id=UUID(int=dice.getrandbits(128)),
        replicas=replicas,
        isr=replicas[: dice.randint(0, len(replicas))],
        leader=dice.choice((-1, 5)),
        leader_epoch=dice.randrange(2**31),
        partition_epoch=dice.randrange(2**31),
        directories=tuple(UUID(int=dice.choice((0, 1, each))) for each in directories),
        **rare,
    )


@pytest.mark.parametrize("version", range(PartitionRecord.versions[0], PartitionRecord.versions[1] + 1))
def test_the_bytes_are_those_of_the_codec(version: int) -> None:
    dice = Random(version)
    for count in (0, 1, 40, 400):
        records = [some_record(dice, version) for _ in range(count)]
        assert record_values(records, version) == [encode_record(record, version) for record in records]
