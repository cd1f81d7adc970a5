"""Metadata (api key 3): brokers, and topics with the leader and replicas of each partition.

These are the rules, applied to one topic and one partition at a time. `broker.metadata_cache.responses` answers
clients: it takes the brokers and what is rare from here, and encodes other topics by columns. Tests compare the two.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kquorum.broker.client_access import ALL_TOPIC_OPERATIONS, UNLIMITED, ClientAccess
from kquorum.broker.metadata_cache.cache import (
    alive_brokers,
    leader_view,
    offline_replicas,
    reachable_replicas,
)
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.topics import TopicImage
from kquorum.metadata.topic_names import is_internal_topic, is_legal_topic_name
from kquorum.wire.messages.describe_cluster import DescribeClusterRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kquorum.wire.uuids import ZERO_UUID

OPERATIONS_NOT_ASKED = -(2**31)

# Versions where the meaning of a value changed.
FIRST_VERSION_WITH_NULL_FOR_ALL = 1
FIRST_VERSION_WITH_LISTENER_ERRORS = 6
# Versions 10 and 11 have a field for the topic's id, but no client may use it (KAFKA-12701).
FIRST_VERSION_WITH_TOPICS_BY_ID = 12


_ERRORS_WITH_OPERATIONS = (ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception)

# So many named topics are some ten milliseconds of work.
SLICE_READ: Final = 10_000
# The name and the id of an entry; None for the zero UUID, which is slower to hash and to compare.
_Asked = tuple[str | None, UUID | None]
_Answerer = Callable[[str | None, UUID | None], Sequence[TopicImage | MetadataResponseTopic]]


@dataclass(frozen=True, slots=True)
class RequestView:
    """One request's way of looking at the image. `operations` are those of every topic; `wants_operations` where they
    differ from topic to topic."""

    image: MetadataImage
    listener_name: str
    version: int
    operations: int
    wants_operations: bool = False
    access: ClientAccess = UNLIMITED
    creates_topics: bool = True


def request_view(
    request: MetadataRequest,
    version: int,
    image: MetadataImage,
    listener_name: str,
    access: ClientAccess,
    *,
    creates_topics: bool,
) -> RequestView:
    """`creates_topics`: whether this broker has missing topics created for clients that agree to it."""
    wants_operations = request.include_topic_authorized_operations
    all_alike = wants_operations and access.is_unlimited
    return RequestView(
        image,
        listener_name,
        version,
        operations=ALL_TOPIC_OPERATIONS if all_alike else OPERATIONS_NOT_ASKED,
        wants_operations=wants_operations and not all_alike,
        access=access,
        creates_topics=creates_topics,
    )


def asked_cluster_operations(request: MetadataRequest | DescribeClusterRequest, access: ClientAccess) -> int:
    if not request.include_cluster_authorized_operations:
        return OPERATIONS_NOT_ASKED
    return access.cluster_operations()


def cluster_response(
    image: MetadataImage, cluster_id: str, listener_name: str, controller_id: int, cluster_operations: int
) -> MetadataResponse:
    """All of the response but its topics."""
    return MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(node_id=broker.id, host=broker.host, port=broker.port, rack=broker.rack)
            for broker in alive_brokers(image, listener_name)
        ),
        cluster_id=cluster_id,
        controller_id=controller_id,
        cluster_authorized_operations=cluster_operations,
    )


def asks_for_all(request: MetadataRequest, version: int) -> bool:
    return request.topics is None or (not request.topics and version < FIRST_VERSION_WITH_NULL_FOR_ALL)


class AskedTopics:
    """The topics to tell of, with the error in place of one that is not there; and the names of unknown topics that the
    client agreed to see created."""

    def __init__(self) -> None:
        self.topics: list[TopicImage | MetadataResponseTopic] = []
        self.to_create: list[str] = []

    def find(self, view: RequestView, request: MetadataRequest, slice_topics: int) -> Iterator[None]:
        """Ends a slice where it yields. A topic that is asked for twice is answered once: Kafka's broker makes a set of
        them."""
        if request.topics is None or asks_for_all(request, view.version):
            by_name = view.image.topics.by_name
            self.topics += [by_name[name] for name in view.access.describable(view.image.topics)]
            return
        asked: dict[_Asked, None] = {}
        for first in range(0, len(request.topics), SLICE_READ):
            named = request.topics[first : first + SLICE_READ]
            asked |= dict.fromkeys(
                (topic.name, topic.topic_id if topic.topic_id.int else None) for topic in named
            )
            if first:
                yield
        answer = self._answerer(view, request, asked)
        for place, (name, topic_id) in enumerate(asked, 1):
            self.topics += answer(name, topic_id)
            if place % slice_topics == 0:
                yield

    def _answerer(self, view: RequestView, request: MetadataRequest, asked: Iterable[_Asked]) -> _Answerer:
        """Where any id is asked for, names are not (as in Kafka)."""
        if view.version < FIRST_VERSION_WITH_TOPICS_BY_ID:
            if any(name is None or topic_id is not None for name, topic_id in asked):
                return lambda name, topic_id: (_refused_request(name, topic_id),)
        elif any(topic_id is not None for _, topic_id in asked):
            seen: set[UUID] = set()
            return lambda _, topic_id: _topic_by_id(view, topic_id, seen)
        # A client of a version without the field agrees: that is the field's default.
        asks_creation = view.creates_topics and request.allow_auto_topic_creation
        report_missing = self.to_create.append if asks_creation else None
        return lambda name, _: (_topic_by_name(view, name, report_missing),)


def _refused_request(name: str | None, topic_id: UUID | None) -> MetadataResponseTopic:
    """One bad entry fails them all, as where Kafka's broker answers with an exception of the whole request."""
    return MetadataResponseTopic(
        error_code=ErrorCode.invalid_request, name=name or "", topic_id=topic_id or ZERO_UUID
    )


def _topic_by_id(
    view: RequestView, topic_id: UUID | None, seen: set[UUID]
) -> tuple[TopicImage | MetadataResponseTopic, ...]:
    """Nothing for what has no id, and for an id that another entry had with another name."""
    if topic_id is None or topic_id in seen:
        return ()
    seen.add(topic_id)
    topic = view.image.topics.by_id.get(topic_id)
    if topic is None:
        return (_error(None, topic_id, ErrorCode.unknown_topic_id),)
    if not view.access.may_describe(topic.name):
        return (_error(None, topic_id, ErrorCode.topic_authorization_failed),)
    return (topic,)


def _topic_by_name(
    view: RequestView, name: str | None, report_missing: Callable[[str], object] | None
) -> TopicImage | MetadataResponseTopic:
    """Without `report_missing` the client does not ask for missing topics to be created."""
    if name is None:
        return _error(None, ZERO_UUID, ErrorCode.invalid_request)
    if not view.access.may_describe(name):
        # Nothing in it says whether there is such a topic.
        return MetadataResponseTopic(error_code=ErrorCode.topic_authorization_failed, name=name)
    by_name = view.image.topics.by_name.get(name)
    if by_name is not None:
        return by_name
    if not is_legal_topic_name(name):
        return _error(name, ZERO_UUID, ErrorCode.invalid_topic_exception)
    if report_missing is not None:
        if not view.access.may_create(name):
            return _error(name, ZERO_UUID, ErrorCode.topic_authorization_failed)
        report_missing(name)
    return _error(name, ZERO_UUID, ErrorCode.unknown_topic_or_partition)


def _error(name: str | None, topic_id: UUID, error: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=name is not None and is_internal_topic(name),
    )


def known_topic(view: RequestView, topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal_topic(topic.name),
        partitions=tuple(_partition(view, index, state) for index, state in topic.partitions.items()),
        topic_authorized_operations=operations_on(view, topic),
    )


def operations_on(view: RequestView, topic: TopicImage | MetadataResponseTopic) -> int:
    """Of a name that no topic has, or that none may have, as of any other's (as in Kafka); of another error, none."""
    has_operations = isinstance(topic, TopicImage) or topic.error_code in _ERRORS_WITH_OPERATIONS
    if topic.name is None or not has_operations:
        return OPERATIONS_NOT_ASKED
    return view.access.topic_operations(topic.name) if view.wants_operations else view.operations


def _partition(view: RequestView, partition_index: int, state: PartitionState) -> MetadataResponsePartition:
    replicas, in_sync_replicas = state.replicas, state.isr
    if view.version == 0:
        replicas = reachable_replicas(view.image, state.replicas, view.listener_name)
        in_sync_replicas = reachable_replicas(view.image, state.isr, view.listener_name)
    leader = leader_view(view.image, state, view.listener_name)
    error = ErrorCode.none
    if not leader.is_registered:
        error = ErrorCode.leader_not_available
    elif not leader.has_listener:
        has_listener_errors = view.version >= FIRST_VERSION_WITH_LISTENER_ERRORS
        error = ErrorCode.listener_not_found if has_listener_errors else ErrorCode.leader_not_available
    elif len(replicas) < len(state.replicas) or len(in_sync_replicas) < len(state.isr):
        error = ErrorCode.replica_not_available
    return MetadataResponsePartition(
        error_code=error,
        partition_index=partition_index,
        leader_id=leader.leader_id,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=in_sync_replicas,
        offline_replicas=offline_replicas(view.image, state, view.listener_name),
    )
