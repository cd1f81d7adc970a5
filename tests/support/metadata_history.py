"""Which topics there were at which offset, as the log tells; and whether an answer to a client is one of these states.

A state is all that Metadata answers say of topics but for which replicas are offline (that depends on brokers too):
names, ids, and of each partition its leader, the leader's epoch, replicas and ISR.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from kquorum.metadata.image.topics import TopicsImage
from kquorum.metadata.loader import MetadataLoader
from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.wire.log_batch import LogBatch, parse_batches

PartitionFacts = tuple[int, int, int, tuple[int, ...], tuple[int, ...]]
State = frozenset[tuple[str, UUID, tuple[PartitionFacts, ...]]]
AFTER_ALL = 2**62


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client was told between two moments (monotonic nanoseconds). `topics` stands for the state: the same bytes
    say the same. `shown_offset` is how far operators were shown, before it was asked, that the broker is."""

    broker_id: int
    sent_ns: int
    received_ns: int
    topics: bytes
    shown_offset: int


class MetadataHistory:
    """Of a log from its very beginning."""

    def __init__(self, batches: Iterable[LogBatch]) -> None:
        loader = MetadataLoader()
        topics = loader.image.topics
        begins: list[tuple[int, State]] = [(-1, state_of_image(topics))]
        for batch in batches:
            if not batch.is_control:
                loader.handle_commit([batch])
            if loader.image.topics is not topics:
                topics = loader.image.topics
                begins.append((loader.last_applied_offset, state_of_image(topics)))
        self._spans: dict[State, list[tuple[int, int]]] = {}
        ends = [first - 1 for first, _ in begins[1:]] + [AFTER_ALL]
        for (first, state), last in zip(begins, ends, strict=True):
            self._spans.setdefault(state, []).append((first, last))

    @classmethod
    def of_folder(cls, folder: Path) -> "MetadataHistory":
        """A node's data folder, which may be in use: what is not yet whole at the end of the log is left out."""
        paths = sorted((folder / FOLDER_NAME).glob("*.log"))
        assert paths, f"no log in {folder}"
        return cls(batch for path in paths for batch in parse_batches(path.read_bytes()))

    def fault(self, state: State, low: int, high: int) -> str | None:
        """Why `state` is not that of any offset from `low` to `high`; None where it is."""
        spans = self._spans.get(state)
        if spans is None:
            return f"the topics {_names(state)} were never together like this"
        if any(first <= high and low <= last for first, last in spans):
            return None
        return f"the topics of the offsets {spans} were told, and those from {low} to {high} were expected"


def state_of_image(topics: TopicsImage) -> State:
    return frozenset(
        (
            topic.name,
            topic.id,
            tuple(
                (number, each.leader, each.leader_epoch, tuple(each.replicas), tuple(each.isr))
                for number, each in sorted(topic.partitions.items())
            ),
        )
        for topic in topics.by_id.values()
    )


def state_of_response(response: Any) -> State:
    """Of a MetadataResponse of a version that has topic ids."""
    return frozenset(
        (
            str(topic.name),
            topic.topic_id,
            tuple(
                sorted(
                    (
                        int(each.partition_index),
                        int(each.leader_id),
                        int(each.leader_epoch),
                        tuple(map(int, each.replica_nodes)),
                        tuple(map(int, each.isr_nodes)),
                    )
                    for each in topic.partitions
                )
            ),
        )
        for topic in response.topics
    )


def _names(state: State) -> list[str]:
    return sorted(name for name, _, _ in state)
