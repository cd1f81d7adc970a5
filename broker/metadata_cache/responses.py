"""Metadata responses as bytes: each topic encoded once for as long as it stays as it is, long answers in slices.

The bytes of a topic follow from its image, from the layout of the version, and from what the asked listener shows of
the brokers. They stay cached until one of these changes; until then a client that asks for all topics again costs only
the joining of the pieces. There are few caches, and each holds only topics of one image, so memory is bounded by the
size of the last few responses of different kinds.

Sans-IO: the caller advances the work slice by slice and may serve others in between. Each work uses one image, so no
answer shows half an update; concurrent works share encoded topics through the cache.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final
from uuid import UUID

from immutables import Map

from kquorum.broker.client_access import UNLIMITED, ClientAccess
from kquorum.broker.metadata_cache.answers import (
    AskedTopics,
    RequestView,
    asked_cluster_operations,
    asks_for_all,
    cluster_response,
    known_topic,
    operations_on,
    request_view,
)
from kquorum.broker.metadata_cache.cache import controller_id_for_clients
from kquorum.broker.metadata_cache.cluster_view import ClusterView, ViewState, view_state
from kquorum.broker.metadata_cache.encoding import (
    TopicsLayout,
    can_encode,
    encode_error,
    encode_topic_in_parts,
    encode_topics,
)
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.topics import TopicImage, TopicsImage
from kquorum.raft.ports import RandomSource
from kquorum.wire.message_codec import encode
from kquorum.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from kquorum.wire.protocol.arrays import array_length
from kquorum.wire.protocol.headers import EncodedBody

# Some ten milliseconds of work: about so many partitions, a topic costing as much as so many of them by itself.
SLICE_PARTITIONS: Final = 6_000
TOPIC_COST: Final = 20
SLICE_TOPICS: Final = 10_000
SLICE_ASKED: Final = 1_000
ERROR_COST: Final = 2
SLICE_DECISIONS: Final = 1_000
SLICE_MADE_BYTES: Final = 1_048_576
# Clients of a few releases and listeners; what more there are share these.
MOST_CACHES: Final = 4
# A longer answer is put together in a slice of its own: its caller may have to wait for memory.
MOST_BYTES_AT_ONCE: Final = 65_536

_CacheKey = tuple[str, TopicsLayout, int]


class _TopicEncodingCache:
    """Encoded topics by their ids, each beside the image it was made of; `all_topics` are those of the last answer to
    all, in its order."""

    def __init__(self, view: ClusterView) -> None:
        self.view = view
        self.topics: dict[UUID, tuple[TopicImage, bytes]] = {}
        self.all_topics: tuple[TopicsImage, Sequence[bytes]] | None = None

    def find(self, topic: TopicImage) -> bytes | None:
        known = self.topics.get(topic.id)
        return known[1] if known is not None and known[0] is topic else None

    def note_all(self, topics: TopicsImage, encoded: Sequence[bytes]) -> None:
        self.all_topics = (topics, encoded)
        if len(self.topics) > len(topics.by_id):
            self.topics = {each: known for each, known in self.topics.items() if each in topics.by_id}


class MetadataResponses:
    """One for all listeners of a broker."""

    def __init__(self, cluster_id: str, random_source: RandomSource) -> None:
        self._cluster_id = cluster_id
        self._random_source = random_source
        self._caches: dict[_CacheKey, _TopicEncodingCache] = {}
        # What follows from the brokers, by listener, and the bytes around the topics.
        self._brokers: Map[int, BrokerRegistration] | None = None
        self._states: dict[str, ViewState] = {}
        self._frames: dict[tuple[object, ...], tuple[bytes, bytes]] = {}

    def begin(
        self,
        request: MetadataRequest,
        version: int,
        image: MetadataImage,
        listener_name: str,
        access: ClientAccess = UNLIMITED,
        *,
        creates_topics: bool = True,
        note_made: Callable[[int], object] = lambda _bytes: None,
    ) -> "MetadataWork":
        """`creates_topics` as for `request_view`; `note_made` is called with the number of bytes that a slice has made
        for this answer alone."""
        if self._brokers is not image.cluster.brokers:
            self._brokers = image.cluster.brokers
            self._states.clear()
            self._frames.clear()
        view = request_view(request, version, image, listener_name, access, creates_topics=creates_topics)
        return MetadataWork(view, request, self._cached(view), self._frame(view, request), note_made)

    def _cached(self, view: RequestView) -> _TopicEncodingCache:
        state = self._states.get(view.listener_name)
        if state is None:
            state = self._states[view.listener_name] = view_state(view.image.cluster, view.listener_name)
        layout = TopicsLayout.of(view.version)
        key = (view.listener_name, layout, view.operations if layout.has_operations else 0)
        cached = self._caches.pop(key, None)
        if cached is None or cached.view.state != state:
            cached = _TopicEncodingCache(ClusterView(state))
        self._caches[key] = cached
        if len(self._caches) > MOST_CACHES:
            del self._caches[next(iter(self._caches))]
        return cached

    def _frame(self, view: RequestView, request: MetadataRequest) -> tuple[bytes, bytes]:
        """What comes before the topics of the response, and what after."""
        controller_id = controller_id_for_clients(view.image, self._random_source)
        operations = asked_cluster_operations(request, view.access)
        key = (view.version, view.listener_name, controller_id, operations)
        frame = self._frames.get(key)
        if frame is None:
            response = cluster_response(
                view.image, self._cluster_id, view.listener_name, controller_id, operations
            )
            frame = self._frames[key] = _around_topics(view.version, response)
        return frame


class MetadataWork:
    """One answer in the making: `advance` until it is there. `topics_to_create` are the lawful names of unknown topics
    that the client agreed to see created."""

    def __init__(
        self,
        view: RequestView,
        request: MetadataRequest,
        cached: _TopicEncodingCache,
        frame: tuple[bytes, bytes],
        note_made: Callable[[int], object],
    ) -> None:
        self._view = view
        self._layout = TopicsLayout.of(view.version)
        self._cached = cached
        self._frame = frame
        self._is_of_all = view.access.is_unlimited and asks_for_all(request, view.version)
        self._asked = AskedTopics()
        self._pieces: list[bytes] = []
        self._note_made = note_made
        self._slices = self._make(request)

    @property
    def topics_to_create(self) -> tuple[str, ...]:
        """All of them once the response is there."""
        return tuple(self._asked.to_create)

    def advance(self) -> EncodedBody | None:
        """The response, or None after a slice of the work."""
        for _ in self._slices:
            return None
        if self._is_of_all:
            self._cached.note_all(self._view.image.topics, self._pieces)
        before, after = self._frame
        count = array_length(len(self._pieces), is_flexible=self._layout.is_flexible)
        return EncodedBody(b"".join((before, count, *self._pieces, after)))

    def _fill_in_operations(self) -> Iterator[None]:
        """Topics are encoded for all clients alike; what this one may do with each stands at its end."""
        made_bytes = 0
        tags = 1 if self._layout.is_flexible else 0
        for place, topic in enumerate(self._asked.topics):
            piece = self._pieces[place]
            operations_bytes = operations_on(self._view, topic).to_bytes(4, "big", signed=True)
            self._pieces[place] = (
                piece[: len(piece) - 4 - tags] + operations_bytes + piece[len(piece) - tags :]
            )
            made_bytes += len(piece)
            if place % SLICE_DECISIONS == SLICE_DECISIONS - 1 or made_bytes >= SLICE_MADE_BYTES:
                self._note_made(made_bytes)
                made_bytes = 0
                yield

    def _make(self, request: MetadataRequest) -> Iterator[None]:
        """Ends a slice where it yields."""
        yield from self._make_pieces(request)
        if sum(map(len, self._pieces)) > MOST_BYTES_AT_ONCE:
            yield

    def _make_pieces(self, request: MetadataRequest) -> Iterator[None]:
        """Ends a slice where it yields."""
        done = self._cached.all_topics if self._is_of_all else None
        if done is not None and done[0] is self._view.image.topics:
            self._pieces = list(done[1])
            return
        yield from self._asked.find(self._view, request, SLICE_ASKED)
        self._pieces = [b""] * len(self._asked.topics)
        yield from self._encode()

    def _encode(self) -> Iterator[None]:
        """Ends a slice where it yields."""
        together: list[tuple[int, TopicImage]] = []
        cost = 0
        for place, topic in enumerate(self._asked.topics):
            if not isinstance(topic, TopicImage):
                # What differs from topic to topic is filled in at the end.
                operations = (
                    self._view.operations if self._view.wants_operations else operations_on(self._view, topic)
                )
                self._pieces[place] = encode_error(self._layout, operations, topic)
                cost += ERROR_COST
            elif (known := self._cached.find(topic)) is not None:
                self._pieces[place] = known
            elif not can_encode(topic) or len(topic.partitions) > SLICE_PARTITIONS:
                yield from self._encode_alone(place, topic)
            else:
                together.append((place, topic))
                cost += TOPIC_COST + len(topic.partitions)
            if cost >= SLICE_PARTITIONS or place % SLICE_TOPICS == SLICE_TOPICS - 1:
                self._encode_together(together)
                together, cost = [], 0
                yield
        self._encode_together(together)
        if self._view.wants_operations and self._layout.has_operations:
            yield from self._fill_in_operations()

    def _encode_together(self, placed: Sequence[tuple[int, TopicImage]]) -> None:
        topics = [topic for _, topic in placed]
        encoded = encode_topics(self._cached.view, self._layout, self._view.operations, topics)
        for (place, topic), data in zip(placed, encoded, strict=True):
            self._put(place, topic, data)

    def _encode_alone(self, place: int, topic: TopicImage) -> Iterator[None]:
        """A topic that is long, or has longer lists than the columns are written with."""
        if not can_encode(topic):
            self._put(place, topic, _encoded_as_message(self._view.version, known_topic(self._view, topic)))
            return
        parts: list[bytes] = []
        for part in encode_topic_in_parts(
            self._cached.view, self._layout, self._view.operations, topic, SLICE_PARTITIONS
        ):
            parts.append(part)
            yield
        self._put(place, topic, b"".join(parts))

    def _put(self, place: int, topic: TopicImage, data: bytes) -> None:
        self._pieces[place] = data
        self._cached.topics[topic.id] = (topic, data)


def _around_topics(version: int, response: MetadataResponse) -> tuple[bytes, bytes]:
    """The response, which has no topics, cut in two where they come in."""
    encoded = encode(response, version)
    is_flexible = MetadataResponse.is_flexible(version)
    operations = 4 if 8 <= version <= 10 else 0
    error_code = 2 if version >= 13 else 0
    end = len(encoded) - operations - error_code - (1 if is_flexible else 0)
    return encoded[: end - len(array_length(0, is_flexible=is_flexible))], encoded[end:]


def _encoded_as_message(version: int, topic: MetadataResponseTopic) -> bytes:
    """As the only topic of a response, which is cut off around it."""
    before, after = _around_topics(version, MetadataResponse())
    count = array_length(1, is_flexible=MetadataResponse.is_flexible(version))
    encoded = encode(MetadataResponse(topics=(topic,)), version)
    return encoded[len(before) + len(count) : len(encoded) - len(after)]
