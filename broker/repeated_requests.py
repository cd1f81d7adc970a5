"""Answers to requests that were sent to the controllers twice, and carried out the first time.

A controller that dies between commit and answer leaves the broker in doubt, so the broker sends the request again, and
the next controller truly says that the topic exists already. Kafka's brokers hand that on as a failure. Here the log
tells: the audit note of the first attempt names the client and its correlation id, and has come with the image. What
such a request has done is then a success.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from kio.schema.errors import ErrorCode

from broker.handlers.metadata import Values
from metadata.image.delta import MetadataDelta
from metadata.image.image import MetadataImage
from metadata.image.topics import TopicImage
from wire.proto.audit_pb2 import AuditNote
from wire.protocol.api_keys import ApiKey
from wire.protocol.entities import build

# The configs in effect of a topic, as CreateTopics tells them.
ConfigsOf = Callable[[MetadataImage, str], Sequence[Values]]


class RequestIdentity(NamedTuple):
    """What an audit note holds of a request."""

    principal: str
    client_id: str
    client_host: str
    api_key: int
    correlation_id: int


class Watched:
    """A request on its way. `before` is the image when it came, `after` the one that has it carried out, None until
    then; `on_carried_out` is called at that moment."""

    __slots__ = ("after", "before", "is_in_doubt", "on_carried_out")

    def __init__(self, before: MetadataImage) -> None:
        self.before = before
        self.after: MetadataImage | None = None
        self.is_in_doubt = False
        self.on_carried_out: Callable[[], object] = lambda: None

    def doubt(self) -> None:
        """An attempt had no answer, or one from a controller that may have lost its leadership over it."""
        self.is_in_doubt = True


class RepeatedRequests:
    """`observe` is to be told of every image, in order."""

    def __init__(self, image: Callable[[], MetadataImage], configs_of: ConfigsOf) -> None:
        self._image = image
        self._configs_of = configs_of
        self._watched: dict[RequestIdentity, list[Watched]] = {}

    @contextmanager
    def watch(self, identity: RequestIdentity) -> Iterator[Watched]:
        watched = Watched(self._image())
        others = self._watched.setdefault(identity, [])
        others.append(watched)
        try:
            yield watched
        finally:
            others.remove(watched)
            if not others:
                self._watched.pop(identity, None)

    def observe(self, _now_ms: int, delta: MetadataDelta, image: MetadataImage) -> None:
        if not self._watched:
            return
        for data in delta.audit_notes:
            for watched in self._watched.get(_identity_in(data), ()):
                if watched.after is None:
                    watched.after = image
                    watched.on_carried_out()

    def has_to_wait(self, api_key: ApiKey, response: Any, watched: Watched) -> bool:
        """Whether the answer may be due to an attempt before it, of which this broker's image does not tell yet."""
        if not watched.is_in_doubt or api_key not in _SECOND_ANSWERS or watched.after is not None:
            return False
        code, entries_name, _ = _SECOND_ANSWERS[api_key]
        entries = (response,) if entries_name is None else getattr(response, entries_name)
        return any(entry.error_code in code for entry in entries)

    def first_answer(self, api_key: ApiKey, request: Any, response: Any, watched: Watched) -> Any:
        """The response with what this very request has done told as done; the same one where there is nothing."""
        if not watched.is_in_doubt or watched.after is None or api_key not in _SECOND_ANSWERS:
            return response
        codes, entries_name, effect_of = _SECOND_ANSWERS[api_key]
        change = _Change(request, watched.before, watched.after, self._configs_of)

        def mended(entry: Any) -> Any:
            values = effect_of(change, entry) if entry.error_code in codes else None
            done = {"error_code": ErrorCode.none, "error_message": None}
            return entry if values is None else build(type(entry), done | values)

        if entries_name is None:
            return mended(response)
        return replace(response, **{entries_name: tuple(map(mended, getattr(response, entries_name)))})


class _Change(NamedTuple):
    request: Any
    before: MetadataImage
    after: MetadataImage
    configs_of: ConfigsOf


def _created_topic(change: _Change, entry: Any) -> Values | None:
    topic = change.after.topics.by_name.get(entry.name)
    first = None if topic is None else topic.partitions.get(0)
    if topic is None or first is None or entry.name in change.before.topics.by_name:
        return None
    return {
        "name": topic.name,
        "topic_id": topic.id,
        "num_partitions": len(topic.partitions),
        "replication_factor": len(first.replicas),
        "topic_config_error_code": 0,
        "configs": change.configs_of(change.after, topic.name),
    }


def _deleted_topic(change: _Change, entry: Any) -> Values | None:
    topic_id = getattr(entry, "topic_id", None)
    topics = change.before.topics
    topic: TopicImage | None = (
        topics.by_name.get(entry.name) if topic_id is None else topics.by_id.get(topic_id)
    )
    if topic is None or topic.id in change.after.topics.by_id:
        return None
    return {"name": topic.name, "topic_id": topic.id}


def _grown_topic(change: _Change, entry: Any) -> Values | None:
    before = change.before.topics.by_name.get(entry.name)
    after = change.after.topics.by_name.get(entry.name)
    wanted = next((asked.count for asked in change.request.topics if asked.name == entry.name), -1)
    if before is None or after is None or not len(before.partitions) < wanted == len(after.partitions):
        return None
    return {"name": entry.name}


def _unregistered_broker(change: _Change, _entry: Any) -> Values | None:
    broker_id = change.request.broker_id
    was_there = broker_id in change.before.cluster.brokers
    return {} if was_there and broker_id not in change.after.cluster.brokers else None


# The codes of what is done already, where in the response its entries are (None: it is one by itself), what to tell.
_SECOND_ANSWERS: Mapping[
    ApiKey, tuple[frozenset[ErrorCode], str | None, Callable[[_Change, Any], Values | None]]
] = {
    ApiKey.CREATE_TOPICS: (frozenset({ErrorCode.topic_already_exists}), "topics", _created_topic),
    ApiKey.DELETE_TOPICS: (
        frozenset({ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id}),
        "responses",
        _deleted_topic,
    ),
    ApiKey.CREATE_PARTITIONS: (frozenset({ErrorCode.invalid_partitions}), "results", _grown_topic),
    ApiKey.UNREGISTER_BROKER: (frozenset({ErrorCode.broker_id_not_registered}), None, _unregistered_broker),
}


def _identity_in(data: bytes) -> RequestIdentity:
    """Of a note; a note that is garbage is nobody's."""
    try:
        note = AuditNote.FromString(data)
    except DecodeError:
        return RequestIdentity("", "", "", -1, -1)
    return RequestIdentity(
        note.principal, note.client_id, note.client_address, note.api_key, note.correlation_id
    )
