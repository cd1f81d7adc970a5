"""DeleteRecords (api key 21): a leader moves the start of its log, and answers when all live replicas have followed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kquorum.broker.apis.api import Answer, Authorized, Deferred
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.fetch.waits import Wait
from kquorum.broker.internal_topics import INTERNAL_TOPICS
from kquorum.broker.log.errors import LogError
from kquorum.broker.replica.partition import Partition, TopicPartition, Wake
from kquorum.metadata.authorizer.codes import Operation
from kquorum.metadata.configs.table import TOPIC_CONFIGS
from kquorum.metadata.image.configs import TOPIC, ConfigResource
from kquorum.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

_UNKNOWN: Final = -1
_CLEANUP_POLICY: Final = "cleanup.policy"

Reply = Callable[[Answer], None]


@dataclass(slots=True)
class _Outcome:
    """`waits_at`: the partition and the offset that its low watermark has to reach."""

    error: ErrorCode = ErrorCode.none
    low_watermark: int = _UNKNOWN
    waits_at: tuple[Partition, int] | None = None

    def decide(self) -> bool:
        if self.waits_at is None:
            return True
        partition, offset = self.waits_at
        if not partition.is_leader:
            self.error, self.low_watermark, self.waits_at = ErrorCode.not_leader_or_follower, _UNKNOWN, None
            return True
        low = partition.low_watermark
        if low < offset:
            return False
        self.low_watermark, self.waits_at = low, None
        return True


Outcomes = Mapping[TopicPartition, _Outcome]


def handle_delete_records(
    context: RequestContext, request: DeleteRecordsRequest, services: BrokerServices, reply: Reply
) -> None:
    outcomes: dict[TopicPartition, _Outcome] = {}
    services.data.slices.run(
        _deleted(context, request, services, outcomes),
        lambda: _answer(context, request, services, outcomes, reply),
        lambda: reply(None),
    )


def _answer(
    context: RequestContext,
    request: DeleteRecordsRequest,
    services: BrokerServices,
    outcomes: Outcomes,
    reply: Reply,
) -> None:
    """The logs here begin where they are to begin."""

    def answer() -> None:
        reply(_response(outcomes))

    undecided = {each: outcome for each, outcome in outcomes.items() if not outcome.decide()}
    if not undecided:
        answer()
        return
    deadline_ms = services.data.now_ms() + max(request.timeout_ms, 0)
    wait = _DeletionWait(undecided, answer, lambda: reply(None), deadline_ms)
    wait.forget = context.when_gone(lambda: services.data.waits.abandon(wait))
    services.data.wait(wait, context.connection_id, context.park)


# DELETE on each topic.
API: Final = Deferred(ApiKey.DELETE_RECORDS, Authorized.IN_HANDLER, handle=handle_delete_records)


class _DeletionWait(Wait):
    """Until the followers' logs begin where the leader's does. A replica whose broker is gone holds nothing up."""

    operation = "DeleteRecords"

    def __init__(
        self, outcomes: Outcomes, answer: Callable[[], None], end: Callable[[], None], deadline_ms: int
    ) -> None:
        super().__init__(tuple(outcomes), Wake.LOG_START | Wake.ROLE, deadline_ms)
        self._undecided = dict(outcomes)
        self._answer = answer
        self._end = end
        self.forget: Callable[[], None] = lambda: None

    def look(self, now_ms: int, woken: Mapping[TopicPartition, Wake]) -> bool:  # noqa: ARG002 - the port's
        for each in woken:
            if each in self._undecided and self._undecided[each].decide():
                del self._undecided[each]
        if self._undecided:
            return False
        self.forget()
        self._answer()
        return True

    def expire(self, now_ms: int) -> None:  # noqa: ARG002 - the port's
        for outcome in self._undecided.values():
            if not outcome.decide():
                outcome.error, outcome.waits_at = ErrorCode.request_timed_out, None
        self.forget()
        self._answer()

    def give_up(self) -> None:
        self.forget()
        self._end()


def _deleted(
    context: RequestContext,
    request: DeleteRecordsRequest,
    services: BrokerServices,
    outcomes: dict[TopicPartition, _Outcome],
) -> Iterator[None]:
    """Fills `outcomes`, a partition at each step."""
    access = services.access(context)
    services.data.settle_soon()
    for topic in request.topics:
        refusal = ErrorCode.none
        if not access.allows_on_topic(Operation.DELETE, topic.name):
            refusal = ErrorCode.topic_authorization_failed
        elif topic.name in INTERNAL_TOPICS:
            refusal = ErrorCode.invalid_topic_exception
        elif topic.name in services.cache.image.topics.by_name and _is_compacted_alone(services, topic.name):
            refusal = ErrorCode.policy_violation
        for asked in topic.partitions:
            key = TopicPartition(topic.name, asked.partition_index)
            is_refused = refusal is not ErrorCode.none
            outcomes[key] = _Outcome(refusal) if is_refused else _delete(services, key, asked.offset)
            yield
            services.data.settle_soon()


def _is_compacted_alone(services: BrokerServices, topic: str) -> bool:
    """Records of such a topic go by compaction only."""
    own: Mapping[str, str] = services.cache.image.configs.resources.get(ConfigResource(TOPIC, topic), {})
    policy = own.get(_CLEANUP_POLICY)
    if policy is None:
        policy, _ = services.configs().for_topic(_CLEANUP_POLICY, TOPIC_CONFIGS[_CLEANUP_POLICY].default)
    return (policy or "").strip() == "compact"


def _delete(services: BrokerServices, key: TopicPartition, offset: int) -> _Outcome:
    try:
        partition = services.data.find(services.cache.image, *key)
        target = partition.delete_records(offset)
    except LogError as error:
        return _Outcome(type(error).error_code)
    return _Outcome(low_watermark=partition.low_watermark, waits_at=(partition, target))


def _response(outcomes: Outcomes) -> DeleteRecordsResponse:
    by_topic: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for key, outcome in outcomes.items():
        by_topic.setdefault(key.topic, []).append(
            DeleteRecordsPartitionResult(
                partition_index=key.partition,
                low_watermark=outcome.low_watermark,
                error_code=outcome.error,
            )
        )
    return DeleteRecordsResponse(
        topics=tuple(
            [
                DeleteRecordsTopicResult(name=name, partitions=tuple(partitions))
                for name, partitions in by_topic.items()
            ]
        )
    )
