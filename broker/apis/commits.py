"""What OffsetCommit and TxnOffsetCommit share: which partitions of a request are refused before its coordinator is
asked, and how the outcomes become the topics of an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from uuid import UUID

from kquorum.broker.groups.offsets import Place
from kquorum.broker.groups.shard import OffsetToCommit
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.error_codes import ErrorCode

PlaceInRequest = tuple[int, int]
"""The number of the topic in the request, and of the partition in the topic."""


class CommittedPartition(Protocol):
    @property
    def partition_index(self) -> int: ...
    @property
    def committed_offset(self) -> int: ...
    @property
    def committed_leader_epoch(self) -> int: ...
    @property
    def committed_metadata(self) -> str | None: ...


class CommittedTopic(Protocol):
    @property
    def partitions(self) -> Sequence[CommittedPartition]: ...


Topic = TypeVar("Topic", bound=CommittedTopic)
AnsweredTopic = TypeVar("AnsweredTopic")
AnsweredPartition = TypeVar("AnsweredPartition")


@dataclass(slots=True)
class SortedCommit:
    """`refused` is answered without the coordinator, which gets `offsets`; `asked` has the place of each of these."""

    refused: dict[PlaceInRequest, ErrorCode] = field(default_factory=dict)
    asked: list[PlaceInRequest] = field(default_factory=list)
    offsets: list[OffsetToCommit] = field(default_factory=list)

    def outcomes(self, errors: Sequence[ErrorCode]) -> dict[PlaceInRequest, ErrorCode]:
        """`errors` are those of `offsets`, in their order."""
        return self.refused | dict(zip(self.asked, errors, strict=True))


def sort_commit(
    image: MetadataImage, topics: Sequence[Topic], judge: Callable[[Topic], tuple[ErrorCode, str, UUID]]
) -> SortedCommit:
    """`judge` returns what is wrong with a topic, if anything, its name, and the id to keep with its offsets."""
    found = SortedCommit()
    for number, topic in enumerate(topics):
        error, name, topic_id = judge(topic)
        known = image.topics.by_name.get(name)
        for index, partition in enumerate(topic.partitions):
            if error is not ErrorCode.none:
                found.refused[number, index] = error
            elif known is None or known.partitions.get(partition.partition_index) is None:
                found.refused[number, index] = ErrorCode.unknown_topic_or_partition
            else:
                found.asked.append((number, index))
                found.offsets.append(
                    OffsetToCommit(
                        Place(name, partition.partition_index),
                        topic_id,
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.committed_metadata or "",
                    )
                )
    return found


def answered_topics(
    topics: Sequence[Topic],
    error_at: Callable[[PlaceInRequest], ErrorCode],
    new_partition: Callable[[int, ErrorCode], AnsweredPartition],
    new_topic: Callable[[Topic, tuple[AnsweredPartition, ...]], AnsweredTopic],
) -> tuple[AnsweredTopic, ...]:
    """The topics and partitions of a request, in its order, each partition with its error."""
    return tuple(
        [
            new_topic(
                topic,
                tuple(
                    [
                        new_partition(partition.partition_index, error_at((number, index)))
                        for index, partition in enumerate(topic.partitions)
                    ]
                ),
            )
            for number, topic in enumerate(topics)
        ]
    )
