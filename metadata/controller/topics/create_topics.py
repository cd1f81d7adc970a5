"""CreateTopics: each topic succeeds or fails alone, and what succeeds is one atomic batch."""

from collections import Counter
from dataclasses import dataclass, replace
from uuid import UUID

from kquorum.metadata.configs.resolution import SOURCE_TOPIC
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.refusals import topic_refusal
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.controller.timeline import Entry
from kquorum.metadata.controller.topics.names import check_no_collision, check_topic_name
from kquorum.metadata.controller.topics.new_partitions import (
    Placed,
    automatic_partitions,
    manual_partitions,
    new_partitions,
    placer_of,
)
from kquorum.metadata.controller.topics.placement import StripedPlacer
from kquorum.metadata.controller.topics.topic_configs import check_new_topic_configs, effective_topic_configs
from kquorum.metadata.image.configs import TOPIC
from kquorum.metadata.image.partitions import EMPTY_PARTITIONS
from kquorum.metadata.image.topics import TopicImage, TopicsImage
from kquorum.metadata.topic_names import METADATA_TOPIC_NAME
from kquorum.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.topics import TopicRecord

# From which version on the configs in effect are answered.
_TELLS_CONFIGS = 5
_NAMES_IN_REASON = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic that passed every check."""

    topic: TopicImage
    configs: tuple[tuple[str, str], ...]
    placed: Placed

    @property
    def record_count(self) -> int:
        return 1 + len(self.configs) + len(self.placed)

    def records(self, context: DecisionContext) -> list[Entry]:
        """The topic, its configs, its partitions."""
        return [
            TopicRecord(name=self.topic.name, topic_id=self.topic.id),
            *(
                ConfigRecord(resource_type=TOPIC, resource_name=self.topic.name, name=name, value=value)
                for name, value in self.configs
            ),
            *new_partitions(context, self.topic, self.placed),
        ]

    def response(self, defaults: tuple[CreatableTopicConfigs, ...]) -> CreatableTopicResult:
        """`defaults` are the configs in effect of a topic that has none of its own."""
        return CreatableTopicResult(
            name=self.topic.name,
            topic_id=self.topic.id,
            error_message=None,
            num_partitions=len(self.placed),
            replication_factor=len(self.placed[0]),
            configs=self._effective(defaults) if self.configs else defaults,
        )

    def _effective(self, defaults: tuple[CreatableTopicConfigs, ...]) -> tuple[CreatableTopicConfigs, ...]:
        own = dict(self.configs)
        return tuple(
            [
                replace(each, value=own[each.name], config_source=SOURCE_TOPIC) if each.name in own else each
                for each in defaults
            ]
        )


def create_topics(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """Raises POLICY_VIOLATION when the whole request makes more records than one batch may hold."""
    body: CreateTopicsRequest = request.body
    mentions = Counter([topic.name for topic in body.topics])
    topics, placer, defaults = context.image.topics, placer_of(context), _defaults(context, request)
    created: list[NewTopic] = []
    responses: list[CreatableTopicResult] = []
    count = 0
    for asked in {topic.name: topic for topic in body.topics}.values():
        try:
            _check_mention(asked.name, mentions[asked.name])
            new = _new_topic(context, placer, topics, asked, context.config.max_records_per_batch - count)
            context.charge_mutations(request, len(new.placed))
        except ApiError as error:
            if error.code is ErrorCode.policy_violation:
                raise
            responses.append(topic_refusal(asked.name, error))
            continue
        # Later topics of this request may not collide with this one either.
        topics = topics.with_topic(new.topic)
        created.append(new)
        responses.append(new.response(defaults))
        count += new.record_count
    return ControllerResult(
        records=()
        if body.validate_only
        else tuple(entry for new in created for entry in new.records(context)),
        response=CreateTopicsResponse(topics=tuple(responses)),
        audit_reason=_reason(created) if created else None,
    )


def _defaults(context: DecisionContext, request: ControllerRequest) -> tuple[CreatableTopicConfigs, ...]:
    if request.api_version < _TELLS_CONFIGS:
        return ()
    return effective_topic_configs(context.image, "", context.node_id, context.config.node_configs, own={})


def _check_mention(name: str, mentions: int) -> None:
    if mentions > 1:
        raise ApiError(ErrorCode.invalid_request, "Duplicate topic name.")
    if name == METADATA_TOPIC_NAME:
        raise ApiError(ErrorCode.invalid_request, f"Creation of internal topic {name} is prohibited.")


def _new_topic(
    context: DecisionContext, placer: StripedPlacer, topics: TopicsImage, asked: CreatableTopic, room: int
) -> NewTopic:
    check_topic_name(asked.name)
    if asked.name in topics.by_name:
        raise ApiError(ErrorCode.topic_already_exists, f"Topic '{asked.name}' already exists.")
    check_no_collision(asked.name, topics)
    configs = _checked_configs(context, asked)
    _check_room(asked, room - 1 - len(configs))
    placed = (
        manual_partitions(context, asked)
        if asked.assignments
        else automatic_partitions(context, placer, asked)
    )
    topic_id: UUID = context.random_uuid()
    while topic_id in topics.by_id:
        topic_id = context.random_uuid()
    topic = TopicImage(name=asked.name, id=topic_id, partitions=EMPTY_PARTITIONS)
    return NewTopic(topic=topic, configs=configs, placed=placed)


def _check_room(asked: CreatableTopic, room: int) -> None:
    """Runs before millions of partitions are built in memory."""
    if max(asked.num_partitions, len(asked.assignments), 1) > room:
        reason = f"Topic '{asked.name}' makes the request too large: it would need more records than one batch holds."
        raise ApiError(ErrorCode.policy_violation, reason)


def _checked_configs(context: DecisionContext, asked: CreatableTopic) -> tuple[tuple[str, str], ...]:
    """Raises INVALID_CONFIG; the last of a repeated name counts."""
    without_value = [config.name for config in asked.configs if config.value is None]
    if without_value:
        reason = f"Null value not supported for topic configs: {','.join(without_value)}"
        raise ApiError(ErrorCode.invalid_config, reason)
    configs = {config.name: config.value for config in asked.configs if config.value is not None}
    if configs:
        check_new_topic_configs(context.image, configs, context.node_id, context.config.node_configs)
    return tuple(sorted(configs.items()))


def _reason(created: list[NewTopic]) -> str:
    names = [new.topic.name for new in created]
    more = f" and {len(names) - _NAMES_IN_REASON} more" if len(names) > _NAMES_IN_REASON else ""
    return f"create topics: {', '.join(names[:_NAMES_IN_REASON])}{more}"
