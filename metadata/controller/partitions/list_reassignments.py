"""ListPartitionReassignments (KIP-455): which partitions move, as of the last commit. Standbys answer it too."""

from collections.abc import Iterable

from kio.schema.errors import ErrorCode

from metadata.controller.requests import ControllerRequest, Values
from metadata.image.image import MetadataImage
from metadata.image.partition_state import PartitionState
from metadata.image.topics import TopicImage


def list_partition_reassignments(image: MetadataImage, request: ControllerRequest) -> Values:
    """`image` is the committed one. Unknown topics and partitions are left out, as those are that do not move."""
    if request.body.topics is None:
        moving = (_topic(topic, sorted(topic.partitions.rare_lists)) for topic in image.topics.by_id.values())
    else:
        moving = (
            _topic(image.topics.by_name[asked.name], asked.partition_indexes)
            for asked in request.body.topics
            if asked.name in image.topics.by_name
        )
    return {
        "throttle_time": 0,
        "error_code": ErrorCode.none,
        "error_message": None,
        "topics": [topic for topic in moving if topic["partitions"]],
    }


def _topic(topic: TopicImage, partition_ids: Iterable[int]) -> Values:
    partitions = (
        _partition(partition_id, topic.partitions.get(partition_id)) for partition_id in partition_ids
    )
    return {"name": topic.name, "partitions": [each for each in partitions if each is not None]}


def _partition(partition_id: int, state: PartitionState | None) -> Values | None:
    if state is None or not (state.adding_replicas or state.removing_replicas):
        return None
    return {
        "partition_index": partition_id,
        "replicas": state.replicas,
        "adding_replicas": state.adding_replicas,
        "removing_replicas": state.removing_replicas,
    }
