"""What a member of the cluster is told of it: the state first, then what takes the place of parts of it."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

from metadata.changes import Change, ChangeKind, PartitionTransition, TopicIdentity
from metadata.grpc.inspect.messages import PARTITIONS_PER_CHUNK, broker_message, partition_message
from metadata.image.cluster import BrokerRegistration
from metadata.image.image import MetadataImage
from metadata.image.partition_state import PartitionState
from metadata.image.topics import TopicImage
from wire.proto import broker_pb2 as pb
from wire.proto.inspect_pb2 import Partition
from wire.uuids import uuid_to_text

# To look through so many takes a few milliseconds.
PARTITIONS_PER_TURN: Final = 10_000

Entry = TypeVar("Entry")
Concerns = Callable[[PartitionState], bool]


def concerns_member(broker_id: int, *, all_topics: bool) -> Concerns:
    return lambda state: all_topics or broker_id in state.replicas


def state_messages(image: MetadataImage, concerns: Concerns) -> Iterator[pb.WatchResponse | None]:
    """The image as a member sees it, in messages of a bounded size, of which the last is complete.

    None now and then, while much is looked through: others may have their turn.
    """
    brokers = (broker_message(broker) for _, broker in sorted(image.cluster.brokers.items()))
    message = pb.WatchResponse(is_state=True, brokers=brokers)
    for number, (topic, partition_id, state) in enumerate(_partitions_of(image), 1):
        if number % PARTITIONS_PER_TURN == 0:
            yield None
        if not concerns(state):
            continue
        if len(message.partitions) == PARTITIONS_PER_CHUNK:
            yield message
            message = pb.WatchResponse(is_state=True)
        message.partitions.append(partition_message(topic.name, uuid_to_text(topic.id), partition_id, state))
    message.offset, message.is_complete = image.provenance.last_contained_offset, True
    yield message


def _partitions_of(image: MetadataImage) -> Iterator[tuple[TopicImage, int, PartitionState]]:
    for topic in image.topics.by_id.values():
        for partition_id, state in topic.partitions.items():
            yield topic, partition_id, state


class PictureChange:
    """Changes one after the other; of what changed twice only the outcome is told.

    Of partitions that do not concern the member nothing is told, except that one does no longer.
    """

    def __init__(self, concerns: Concerns) -> None:
        self._concerns = concerns
        self._brokers: dict[int, BrokerRegistration | None] = {}
        self._partitions: dict[str, dict[int, Partition | pb.RemovedPartition]] = {}
        self._removed_topics: list[pb.RemovedTopic] = []
        # Of changes that were taken, more or less.
        self.size = 0

    def take(self, change: Change) -> None:
        self.size += 1
        match change.subject:
            case BrokerRegistration() as broker:
                is_gone = change.kind is ChangeKind.BROKER_REMOVED
                self._brokers[broker.id] = None if is_gone else broker
            case TopicIdentity() as topic if change.kind is ChangeKind.TOPIC_DELETED:
                topic_id = uuid_to_text(topic.id)
                self._partitions.pop(topic_id, None)
                self._removed_topics.append(pb.RemovedTopic(topic=topic.name, topic_id=topic_id))
            case PartitionTransition() as transition:
                self._take_partition(transition)

    def messages(self, offset: int | None) -> Iterator[pb.WatchResponse]:
        """All that was taken, in messages of a bounded size. The last is complete up to and including `offset`; None:
        there is more to come."""
        message = pb.WatchResponse(
            brokers=[broker_message(broker) for broker in self._brokers.values() if broker is not None],
            removed_brokers=[broker_id for broker_id, broker in self._brokers.items() if broker is None],
            removed_topics=self._removed_topics,
        )
        entries = (entry for topic in self._partitions.values() for entry in topic.values())
        for count, chunk in enumerate(_chunks(entries)):
            if count:
                yield message
                message = pb.WatchResponse()
            message.partitions.extend(each for each in chunk if isinstance(each, Partition))
            message.removed_partitions.extend(each for each in chunk if not isinstance(each, Partition))
        if offset is not None:
            message.offset, message.is_complete = offset, True
        yield message

    def _take_partition(self, transition: PartitionTransition) -> None:
        place, before = transition.partition, transition.before
        name, topic_id, partition_id = place.topic.name, uuid_to_text(place.topic.id), place.partition_id
        told = self._partitions.setdefault(topic_id, {})
        if self._concerns(transition.after):
            told[partition_id] = partition_message(name, topic_id, partition_id, transition.after)
        elif before is not None and self._concerns(before):
            told[partition_id] = pb.RemovedPartition(topic=name, topic_id=topic_id, partition_id=partition_id)


def _chunks(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    remaining = iter(entries)
    while chunk := list(islice(remaining, PARTITIONS_PER_CHUNK)):
        yield chunk
