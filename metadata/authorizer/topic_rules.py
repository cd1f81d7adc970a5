"""CreateTopics, DeleteTopics, CreatePartitions: topic by topic (Kafka's ControllerApis).

A topic that is named twice goes on whatever it is: that it is named twice is all that the answer says of it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar
from uuid import UUID

from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.codes import FAILED, Operation, ResourceType
from kquorum.metadata.authorizer.verdict import Verdict
from kquorum.metadata.controller.refusals import topic_refusal
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.topic_names import METADATA_TOPIC_NAME
from kquorum.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kquorum.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kquorum.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kquorum.wire.uuids import ZERO_UUID

_FAILED = FAILED[ResourceType.TOPIC]
_REFUSED = ApiError(_FAILED, "Authorization failed.")


def judge_create_topics(access: Access, request: ControllerRequest) -> Verdict:
    """CREATE on the cluster or on the topic. With DESCRIBE_CONFIGS on it, the response has the configs in effect."""
    body: CreateTopicsRequest = request.body
    may_create_all = access.allows_on_cluster(Operation.CREATE, is_asked=False)

    def may_create(name: str) -> bool:
        # The prohibited topic is refused further on, with a reason of its own.
        return may_create_all or name == METADATA_TOPIC_NAME or access.allows_on_topic(Operation.CREATE, name)

    allowed, refused = _parted(body.topics, may_create)
    hidden = {
        topic.name
        for topic in allowed
        if not access.allows_on_topic(Operation.DESCRIBE_CONFIGS, topic.name, is_asked=False)
    }

    def complete(response: CreateTopicsResponse) -> CreateTopicsResponse:
        shown = [_without_configs(each) if each.name in hidden else each for each in response.topics]
        return replace(response, topics=(*shown, *[topic_refusal(name, _REFUSED) for name in refused]))

    return Verdict(replace(body, topics=allowed), complete)


def _without_configs(topic: CreatableTopicResult) -> CreatableTopicResult:
    if topic.error_code:
        return topic
    return replace(
        topic,
        topic_config_error_code=int(_FAILED),
        num_partitions=-1,
        replication_factor=-1,
        configs=(),
    )


def judge_create_partitions(access: Access, request: ControllerRequest) -> Verdict:
    body: CreatePartitionsRequest = request.body
    allowed, refused = _parted(body.topics, lambda name: access.allows_on_topic(Operation.ALTER, name))

    def complete(response: CreatePartitionsResponse) -> CreatePartitionsResponse:
        entries = [CreatePartitionsTopicResult(name=name, error_code=_FAILED) for name in refused]
        return replace(response, results=(*response.results, *entries))

    return Verdict(replace(body, topics=allowed), complete)


def judge_delete_topics(access: Access, request: ControllerRequest) -> Verdict:
    """DELETE on the topic, or on the cluster, which allows it for every topic. A topic that does not exist is passed
    on: a client that may describe it learns that it is missing. A client that asks by id learns the name only if it
    may describe the topic."""
    body: DeleteTopicsRequest = request.body
    if access.allows_on_cluster(Operation.DELETE, is_asked=False):
        return Verdict(body)
    # Only names below version 6, and none from then on.
    names, refused = _parted_names(body.topic_names, lambda name: _may_delete(access, name))
    entries = [_deletion(name, ZERO_UUID) for name in refused]
    mentions = Counter([(topic.name, topic.topic_id) for topic in body.topics])
    kept: list[DeleteTopicState] = []
    for topic in body.topics:
        refusal = _deletion_refusal(access, topic) if mentions[topic.name, topic.topic_id] == 1 else None
        if refusal is None:
            kept.append(topic)
        else:
            entries.append(refusal)

    def complete(response: DeleteTopicsResponse) -> DeleteTopicsResponse:
        return replace(response, responses=(*response.responses, *entries))

    return Verdict(replace(body, topic_names=tuple(names), topics=tuple(kept)), complete)


def _deletion_refusal(access: Access, topic: DeleteTopicState) -> DeletableTopicResult | None:
    has_id = topic.topic_id != ZERO_UUID
    if (topic.name is None) != has_id:
        return None  # neither or both: refused further on, whatever topic it may be
    if topic.name is not None:
        return None if _may_delete(access, topic.name) else _deletion(topic.name, ZERO_UUID)
    known = access.topics.by_id.get(topic.topic_id)
    if known is None or access.allows_on_topic(Operation.DELETE, known.name):
        return None
    is_visible = access.allows_on_topic(Operation.DESCRIBE, known.name, is_asked=False)
    return _deletion(known.name if is_visible else None, topic.topic_id)


def _may_delete(access: Access, name: str) -> bool:
    if name in access.topics.by_name:
        return access.allows_on_topic(Operation.DELETE, name)
    return access.allows_on_topic(Operation.DESCRIBE, name)


def _deletion(name: str | None, topic_id: UUID) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=_FAILED)


class _Named(Protocol):
    name: str


Topic = TypeVar("Topic", bound=_Named)


def _parted(topics: Sequence[Topic], may: Callable[[str], bool]) -> tuple[tuple[Topic, ...], list[str]]:
    """The topics that go on, and the names of those that are refused."""
    names, refused = _parted_names([topic.name for topic in topics], may)
    going_on = set(names)
    return tuple([topic for topic in topics if topic.name in going_on]), refused


def _parted_names(names: Iterable[str], may: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    mentions = Counter(names)
    going_on = {name for name, count in mentions.items() if count > 1 or may(name)}
    return [name for name in names if name in going_on], [name for name in mentions if name not in going_on]
