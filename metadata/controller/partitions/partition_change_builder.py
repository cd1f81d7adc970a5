"""A change of one partition, with everything about it that follows from the state: who decides fills in the targets."""

from typing import Any

from metadata.controller.context import DecisionContext
from metadata.controller.partitions.partition_change import Election, PartitionChange
from metadata.controller.partitions.transitions import acceptable_leaders
from metadata.image.partition_state import PartitionState
from metadata.image.topics import TopicImage


def change_of(
    context: DecisionContext,
    topic: TopicImage,
    partition_id: int,
    state: PartitionState,
    election: Election = Election.ONLINE,
    **targets: Any,
) -> PartitionChange:
    """`targets` are fields of PartitionChange."""
    return PartitionChange(
        topic_id=topic.id,
        partition_id=partition_id,
        partition=state,
        metadata_version=context.metadata_version,
        is_acceptable=acceptable_leaders(context, state),
        default_directory=context.default_directory,
        election=election,
        min_in_sync_replicas=context.min_in_sync_replicas(topic.name),
        **targets,
    )
