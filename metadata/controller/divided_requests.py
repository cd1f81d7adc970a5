"""Requests of many entries are decided a part at a time: others have their turns in between.

Each part is a request of its own with its own records, so what holds for a request as a whole holds for each part: the
topics of one part are created in one batch or not at all. Entries that name the same thing stay in one part, for that
it is named twice is an error. What is answered is put together in the order of the parts.

Entries and their bytes both cost time: the values of configs are read and hashed, those that the request alters and
those that the resource has already. Those of a deleted topic are hashed when the deletion is committed, so few parts of
a request are uncommitted at a time: parts that are committed together are hashed in one turn. Neither a topic nor a
resource is cut: a client relies on its configs changing together.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final

from kquorum.metadata.controller.refusals import refusal
from kquorum.metadata.controller.requests import (
    ApiError,
    ControllerRequest,
    Reply,
    throttle_time_ms,
    throttled,
)
from kquorum.metadata.controller.security.acls import filter_of
from kquorum.metadata.forwarding import has_error
from kquorum.metadata.image.configs import TOPIC, ConfigResource
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.message_schema import Response, Struct
from kquorum.wire.messages import alter_configs as legacy
from kquorum.wire.messages import incremental_alter_configs as incremental
from kquorum.wire.messages.alter_partition import RequestTopicData
from kquorum.wire.messages.alter_partition_reassignments import ReassignableTopic
from kquorum.wire.messages.create_partitions import CreatePartitionsTopic
from kquorum.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from kquorum.wire.messages.delete_topics import DeleteTopicState
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.uuids import ZERO_UUID

# What takes the active controller some twenty milliseconds, in units of about 25 microseconds.
PART_WEIGHT: Final = 600
# A request that is hardly longer than a part is not worth dividing.
UNDIVIDED_WEIGHT: Final = 2 * PART_WEIGHT
_WEIGHT_OF_TOPIC: Final = 4
_WEIGHT_OF_REASSIGNMENT: Final = 4
# The table of a topic with so many partitions is made again in about the time of a weight.
_ROWS_OF_A_WEIGHT: Final = 1_000
_ACLS_OF_A_WEIGHT: Final = 50
# Of config values: 15 to 40 nanoseconds each to check, encode, replay and hash.
_BYTES_OF_A_WEIGHT: Final = 600
# A deletion only hashes them: a nanosecond or two each.
_DELETED_BYTES_OF_A_WEIGHT: Final = 16_000
_WEIGHT_OF_DELETION: Final = 2
_DELETED_ROWS_OF_A_WEIGHT: Final = 200
_MOST_UNCOMMITTED_PARTS: Final = 2


@dataclass(frozen=True, slots=True)
class _Division:
    """Where the entries are in the request and in its answer, what makes two the same, and what one costs.

    A request has its entries in one of the fields `entries`: which one may depend on its version."""

    entries: tuple[str, ...]
    answers: str
    identity: Callable[[Any, MetadataImage], Hashable]
    weight: Callable[[Any, MetadataImage], int]
    # Whether an entry may be cut between its partitions: they stand for themselves, and one that is named again is
    # checked against what the first has changed.
    is_cut_anywhere: bool = False
    # How many records an entry may make, of which one operation may make so many; None where that bounds nothing.
    records: Callable[[Any, MetadataImage], int] | None = None

    def field_of(self, request: ControllerRequest) -> str:
        """The field that has the entries of this request."""
        return next((name for name in self.entries if getattr(request.body, name)), self.entries[0])


def _new_partitions(topic: CreatableTopic, _image: MetadataImage) -> int:
    return max(1, topic.num_partitions, len(topic.assignments))


def _weight_of_new_topic(topic: CreatableTopic, image: MetadataImage) -> int:
    return _WEIGHT_OF_TOPIC + _new_partitions(topic, image) + _weight_of_values(topic.configs)


def _added_partitions(topic: CreatePartitionsTopic, image: MetadataImage) -> int:
    known = image.topics.by_name.get(topic.name)
    return 0 if known is None else max(0, topic.count - len(known.partitions))


def _weight_of_growth(topic: CreatePartitionsTopic, image: MetadataImage) -> int:
    return _WEIGHT_OF_TOPIC + _added_partitions(topic, image)


def _weight_of_configs(
    resource: legacy.AlterConfigsResource | incremental.AlterConfigsResource, image: MetadataImage
) -> int:
    """All configs of a resource are checked and hashed with each change of one of them."""
    known = image.configs.resources.get(ConfigResource(resource.resource_type, resource.resource_name))
    of_known = 0 if known is None else sum(map(len, known.values())) // _BYTES_OF_A_WEIGHT
    return 1 + len(resource.configs) + of_known + _weight_of_values(resource.configs)


def _topic_to_delete(entry: DeleteTopicState | str, image: MetadataImage) -> TopicImage | None:
    """The topic that the entry names in one way. A request up to version 5 has only names."""
    name, topic_id = (entry, ZERO_UUID) if isinstance(entry, str) else (entry.name, entry.topic_id)
    if name is None:
        return image.topics.by_id.get(topic_id)
    return image.topics.by_name.get(name) if topic_id == ZERO_UUID else None


def _identity_of_deletion(entry: DeleteTopicState | str, image: MetadataImage) -> Hashable:
    """A topic may be named twice by its name and its id."""
    topic = _topic_to_delete(entry, image)
    if topic is not None:
        return topic.id
    return entry if isinstance(entry, str) else (entry.name, entry.topic_id)


def _weight_of_deletion(entry: DeleteTopicState | str, image: MetadataImage) -> int:
    topic = _topic_to_delete(entry, image)
    if topic is None:
        return 1
    configs = image.configs.resources.get(ConfigResource(TOPIC, topic.name))
    config_bytes = 0 if configs is None else sum(map(len, configs.values()))
    return (
        _WEIGHT_OF_DELETION
        + len(topic.partitions) // _DELETED_ROWS_OF_A_WEIGHT
        + config_bytes // _DELETED_BYTES_OF_A_WEIGHT
    )


def _weight_of_values(
    configs: Iterable[CreatableTopicConfig | legacy.AlterableConfig | incremental.AlterableConfig],
) -> int:
    return sum(len(each.name) + len(each.value or "") for each in configs) // _BYTES_OF_A_WEIGHT


def _weight_of_reassignments(topic: ReassignableTopic, _image: MetadataImage) -> int:
    return 1 + _WEIGHT_OF_REASSIGNMENT * len(topic.partitions)


def _weight_of_isr_changes(topic: RequestTopicData, image: MetadataImage) -> int:
    return _weight_of_table(topic, image) + len(topic.partitions)


def _weight_of_table(topic: RequestTopicData, image: MetadataImage) -> int:
    known = image.topics.by_id.get(topic.topic_id)
    return 1 + (0 if known is None else len(known.partitions) // _ROWS_OF_A_WEIGHT)


_OF_CONFIGS: Final = _Division(
    ("resources",),
    "responses",
    lambda resource, _image: (resource.resource_type, resource.resource_name),
    _weight_of_configs,
    records=lambda resource, _image: len(resource.configs),
)
_DIVISIONS: Mapping[ApiKey, _Division] = {
    ApiKey.CREATE_TOPICS: _Division(
        ("topics",),
        "topics",
        lambda topic, _image: topic.name,
        _weight_of_new_topic,
        records=_new_partitions,
    ),
    ApiKey.DELETE_TOPICS: _Division(
        ("topics", "topic_names"),
        "responses",
        _identity_of_deletion,
        _weight_of_deletion,
        records=lambda _entry, _image: 1,
    ),
    ApiKey.CREATE_PARTITIONS: _Division(
        ("topics",),
        "results",
        lambda topic, _image: topic.name,
        _weight_of_growth,
        records=_added_partitions,
    ),
    ApiKey.ALTER_PARTITION: _Division(
        ("topics",),
        "topics",
        lambda topic, _image: topic.topic_id,
        _weight_of_isr_changes,
        is_cut_anywhere=True,
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _Division(
        ("topics",),
        "responses",
        lambda topic, _image: topic.name,
        _weight_of_reassignments,
    ),
    ApiKey.DELETE_ACLS: _Division(
        ("filters",),
        "filter_results",
        lambda acl_filter, _image: filter_of(acl_filter),
        lambda _, image: 1 + len(image.security.acls) // _ACLS_OF_A_WEIGHT,
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _OF_CONFIGS,
    ApiKey.ALTER_CONFIGS: _OF_CONFIGS,
}


_FAULT: Final = (ErrorCode.unknown_server_error,)
_OTHER: Final = (ErrorCode.not_controller,)


class DividedRequest:
    """`take` the parts one by one, and answer each; after the last answer the client has its own."""

    def __init__(self, request: ControllerRequest, parts: Iterator[ControllerRequest], reply: Reply) -> None:
        """There is at least one part. They are made when they are taken: that takes long, too."""
        self._request = request
        self._parts = parts
        self._next = next(parts, None)
        self._taken: list[ControllerRequest] = []
        self._answers: list[Response | None] = []
        self._unanswered = 0
        self._reply = reply

    @property
    def is_taken(self) -> bool:
        return self._next is None

    @property
    def may_take(self) -> bool:
        """Whether the next part need not wait for those before it to be committed."""
        return self._unanswered < _MOST_UNCOMMITTED_PARTS

    def take(self) -> tuple[ControllerRequest, Reply]:
        """The next part, and where its answer goes."""
        part, self._next = self._next, next(self._parts, None)
        assert part is not None, "all parts were taken"
        number = len(self._answers)
        self._taken.append(part)
        self._answers.append(None)
        self._unanswered += 1
        return part, lambda response: self._answer(number, response)

    def refuse(self, error: ApiError) -> None:
        """Refuses all parts that were not taken. If one error code refuses a part as a whole, it refuses all of them
        with one response: creating hundreds of them would take long."""
        while not self.is_taken:
            part, reply = self.take()
            response = refusal(part, error)
            if hasattr(response, "error_code"):
                self._next, self._parts = None, iter(())
            reply(response)

    def _answer(self, number: int, response: Response) -> None:
        self._answers[number] = response
        self._unanswered -= 1
        if self.is_taken and not self._unanswered:
            self._reply(
                self._together(self._without_others([each for each in self._answers if each is not None]))
            )

    def _without_others(self, answers: Sequence[Response]) -> Sequence[Response]:
        """If an internal error stopped one part, the controller has resigned. The other parts must not get
        NOT_CONTROLLER: the client would send the whole request to the next controller, which would fail and resign as
        well."""
        if not any(self._is_refused(answer, _FAULT) for answer in answers):
            return answers
        error = ApiError(
            ErrorCode.unknown_server_error, "The controller failed to decide another part of the request."
        )
        return [
            refusal(part, error) if self._is_refused(answer, _OTHER) else answer
            for part, answer in zip(self._taken, answers, strict=True)
        ]

    def _is_refused(self, answer: Response, codes: Collection[ErrorCode]) -> bool:
        """Whether it is the refusal of a part, in which all entries are alike, or which one code refuses as a whole."""
        code: ErrorCode | None = getattr(answer, "error_code", None)
        if code is not None:
            return code in codes
        return has_error(self._entries(answer)[:1], codes)

    def _entries(self, answer: Response) -> tuple[Struct, ...]:
        entries: tuple[Struct, ...] = getattr(answer, _DIVISIONS[self._request.api_key].answers)
        return entries

    def _together(self, answers: Sequence[Response]) -> Response:
        """If a part is refused as a whole, without entries, the whole request is: its entries would be missing."""
        failed = (
            each for each in answers if getattr(each, "error_code", ErrorCode.none) is not ErrorCode.none
        )
        if (refused := next(failed, None)) is not None:
            return refused
        answer: Any = throttled(answers[0], max(throttle_time_ms(each) for each in answers))
        entries = tuple([entry for each in answers for entry in self._entries(each)])
        whole: Response = replace(answer, **{_DIVISIONS[self._request.api_key].answers: entries})
        return whole


def divided(
    request: ControllerRequest, image: MetadataImage, max_records: int, reply: Reply
) -> DividedRequest | None:
    """None for a request that is decided at once: most are. So is one with more than an operation may hold, which is
    refused as a whole."""
    division = _DIVISIONS.get(request.api_key)
    if division is None or not _is_heavy(request, division, image):
        return None
    field = division.field_of(request)
    entries = getattr(request.body, field)
    if division.records is not None and sum(division.records(each, image) for each in entries) > max_records:
        return None
    parts = _cut(entries, image) if division.is_cut_anywhere else _grouped(entries, division, image)
    requests = (
        replace(request, body=replace(request.body, **{field: tuple(part)}), is_part=True) for part in parts
    )
    return DividedRequest(request, requests, reply)


def may_be_divided(request: ControllerRequest, image: MetadataImage) -> bool:
    """Whether an audit note of the request may cover one part only, after which the controller may have failed."""
    division = _DIVISIONS.get(request.api_key)
    return division is not None and _is_heavy(request, division, image)


def _is_heavy(request: ControllerRequest, division: _Division, image: MetadataImage) -> bool:
    """As many entries are weighed as it takes to see that."""
    weights = (division.weight(entry, image) for entry in getattr(request.body, division.field_of(request)))
    return any(total > UNDIVIDED_WEIGHT for total in accumulate(weights))


def _cut(topics: Sequence[Any], image: MetadataImage) -> Iterator[list[Any]]:
    """So much in each part, wherever that cuts a topic in two."""
    part: list[Any] = []
    room = PART_WEIGHT
    for topic in topics:
        # However large the table is, a part has more than a few of its partitions.
        of_table = min(_weight_of_table(topic, image), PART_WEIGHT // 2)
        start, count = 0, len(topic.partitions)
        while start < count or not count:
            if part and room <= of_table:
                yield part
                part, room = [], PART_WEIGHT
            taken = topic.partitions[start : start + room - of_table]
            part.append(topic if len(taken) == count else replace(topic, partitions=taken))
            start += len(taken)
            room -= of_table + len(taken)
            if not count:
                break
    if part:
        yield part


def _grouped(entries: Sequence[Any], division: _Division, image: MetadataImage) -> Iterator[list[Any]]:
    """Equal entries go with the first of them."""
    alike: dict[Hashable, list[Any]] = {}
    for entry in entries:
        alike.setdefault(division.identity(entry, image), []).append(entry)
    part: list[Any] = []
    weight_of_part = 0
    for same in alike.values():
        part += same
        weight_of_part += sum(division.weight(entry, image) for entry in same)
        if weight_of_part >= PART_WEIGHT:
            yield part
            part, weight_of_part = [], 0
    if part:
        yield part
