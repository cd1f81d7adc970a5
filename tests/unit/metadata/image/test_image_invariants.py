"""The invariants of images can be broken: each kind of damage is named."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.partitions import table_of
from kquorum.metadata.image.topics import TopicImage, TopicsImage
from tests.support.controller_world import World, assigned
from tests.support.image_invariants import image_violations

TOPIC_ID = UUID(int=777)


def image_with(state: PartitionState) -> MetadataImage:
    """Brokers 1 to 3 serve, 4 is fenced, 5 is not registered."""
    world = World().lead().add_brokers(1, 2, 3)
    world.register(4)
    topic = TopicImage(name="t", id=TOPIC_ID, partitions=table_of({0: state}))
    return replace(world.controller.image, topics=TopicsImage().with_topic(topic))


def state(**changes: Any) -> PartitionState:
    whole = PartitionState(replicas=(1, 2, 3), directories=(UUID(int=0),) * 3, isr=(1, 2), leader=1)
    changed = replace(whole, **changes)
    return replace(changed, directories=(UUID(int=0),) * len(changed.replicas))


def test_a_sound_image() -> None:
    world = World().lead().add_brokers(1, 2)
    world.create(assigned("a", [1, 2], [2, 1]))
    assert image_violations(world.controller.image) == []
    assert image_violations(image_with(state()), image_with(state())) == []


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"isr": (1, 2, 4)}, "an ISR beyond the replicas"),
        ({"elr": (4,)}, "eligible leaders beyond the replicas"),
        ({"elr": (2,)}, "ISR and ELR overlap"),
        ({"leader": 3}, "the leader is not in sync"),
        ({"isr": (1, 1)}, "a list names a broker twice"),
        ({"adding_replicas": (4,)}, "adding or removing beyond the replicas"),
        ({"removing_replicas": (4,)}, "adding or removing beyond the replicas"),
        (
            {"replicas": (4, 1), "isr": (4, 1), "leader": 4},
            "the leader is fenced or not registered",
        ),
        ({"replicas": (5, 1), "isr": (5, 1)}, "an unregistered broker counts as having the data"),
    ],
)
def test_a_partition_that_is_wrong(changes: dict[str, Any], what: str) -> None:
    found = image_violations(image_with(state(**changes)))
    assert any(what in each for each in found), found


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"isr": (1,), "partition_epoch": 5}, "a change without a new partition epoch"),
        ({"leader": 2, "partition_epoch": 6}, "another leader in the same epoch"),
        ({"leader_epoch": 4, "partition_epoch": 6}, "the leader epoch went back"),
        (
            {"replicas": (1, 2), "partition_epoch": 6},
            "a replica was dropped without a new leader epoch",
        ),
        (
            {"isr": (3,), "leader": 3, "leader_epoch": 6, "partition_epoch": 6},
            "an unclean leader that does not recover",
        ),
    ],
)
def test_a_step_that_is_wrong(changes: dict[str, Any], what: str) -> None:
    epochs = {"leader_epoch": 5, "partition_epoch": 5}
    before = image_with(state(**epochs))
    found = image_violations(image_with(state(**(epochs | changes))), before)
    assert any(what in each for each in found), found
