"""Fetch sessions (KIP-227): a reader of many partitions names in each request only what changed, and the broker answers
only about partitions that have news.

Sans-IO: entropy and time are arguments. A session is bound to the principal that began it: nothing but its id names it,
and an id may be guessed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from kquorum.broker.replica.isr import FetchClock, FollowerProgress
from kquorum.broker.replica.partition import TopicPartition, Wake
from kquorum.raft.ports import RandomSource
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import FetchRequest
from kquorum.wire.uuids import ZERO_UUID

NO_SESSION: Final = 0
_INITIAL_EPOCH: Final = 0
_FINAL_EPOCH: Final = -1
_INT_MAX: Final = 2**31 - 1
# A session that was used since is not evicted.
EVICTABLE_AFTER_MS: Final = 120_000
# Of all sessions together: some 300 bytes each. Kafka has no bound.
MOST_PARTITIONS: Final = 500_000
# Of one: as many as a Fetch may name (`node.network_limits`). Each Fetch of the session goes through all of them, and
# may tell of all, whatever it names itself.
MOST_OF_A_SESSION: Final = 20_000
# Retention moves the start of a log without an event: a reader hears of it after that time.
ALL_DUE_EVERY_MS: Final = 10_000
_FIRST_VERSION_WITH_SESSIONS: Final = 7
_FIRST_VERSION_WITH_IDS: Final = 13

NameOf = Callable[[UUID], str | None]


class FetchKey(NamedTuple):
    """Of a partition: by id where the reader gives one, else by name."""

    topic: UUID | str
    partition: int


@dataclass(slots=True, eq=False)
class FetchedPartition:
    """What a reader wants of one partition. `topic` is None as long as no topic with this id is known here.

    The last two fields are what the last answer said: -1 before any, and after an error.
    """

    topic_id: UUID
    topic: str | None
    partition: int
    offset: int
    max_bytes: int
    current_leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int
    told_high_watermark: int = -1
    told_log_start_offset: int = -1

    @property
    def key(self) -> FetchKey:
        # A reader that names topics by id may send no id, which is no topic's.
        if self.topic_id != ZERO_UUID or self.topic is None:
            return FetchKey(self.topic_id, self.partition)
        return FetchKey(self.topic, self.partition)

    def take_over(self, request: FetchedPartition) -> None:
        self.offset = request.offset
        self.max_bytes = request.max_bytes
        if self.current_leader_epoch != request.current_leader_epoch:
            # A follower passes over the answer to a question of another epoch, and with it over what that told. Kafka
            # does not say it again, and the follower's high watermark stays behind until the next one.
            self.told_high_watermark = self.told_log_start_offset = -1
        self.current_leader_epoch = request.current_leader_epoch
        self.last_fetched_epoch = request.last_fetched_epoch
        self.log_start_offset = request.log_start_offset


@dataclass(slots=True, kw_only=True)
class FetchNews:
    """What a session has to know of one partition's answer."""

    partition: FetchedPartition
    error: ErrorCode
    high_watermark: int
    log_start_offset: int
    has_records: bool
    has_to_be_told: bool
    """A diverging epoch or a preferred replica."""
    rests: bool = False
    """The reader has all there is."""
    progress: FollowerProgress | None = None


@dataclass(slots=True, eq=False)
class _Session:
    id: int
    principal: str
    is_privileged: bool
    """A follower's: consumers' sessions go before it."""
    uses_ids: bool
    created_ms: int
    used_ms: int
    epoch: int = 1
    """That of the next request."""
    partitions: dict[FetchKey, FetchedPartition] = field(default_factory=dict)
    due: dict[FetchKey, int] = field(default_factory=dict)
    """The partitions that have to be looked at, in the order in which they get their share of an answer, with the
    number of the event that made them so. The others rest: their reader has all there is, and knows it."""
    resting: dict[FetchKey, FollowerProgress] = field(default_factory=dict)
    """Of a follower."""
    waits: dict[SessionWait, None] = field(default_factory=dict)
    clock: FetchClock = field(default_factory=lambda: FetchClock(0))
    view: tuple[object, ...] = ()
    """The parts of the image on which answers depend, when all partitions were made due the last time."""
    all_due_ms: int = 0

    def make_due(self, key: FetchKey, event: int) -> None:
        self.due[key] = event
        progress = self.resting.pop(key, None)
        if progress is not None:
            progress.end_rest()

    def maybe_make_all_due(self, now_ms: int, event: int, view: tuple[object, ...]) -> None:
        """With other metadata, and now and then."""
        is_same = len(view) == len(self.view) and all(map(operator.is_, view, self.view))
        if is_same and now_ms - self.all_due_ms < ALL_DUE_EVERY_MS:
            return
        self.view, self.all_due_ms = view, now_ms
        for key in self.partitions:
            if key not in self.due:
                self.make_due(key, event)

    def let_rest(self, news: FetchNews, read_at: int) -> None:
        """Unless something happened since it was read."""
        key = news.partition.key
        if key in self.partitions and self.due.get(key, read_at) <= read_at:
            self.due.pop(key, None)
            if news.progress is not None:
                self.resting[key] = news.progress
                news.progress.rest(self.clock)


def _next_epoch(epoch: int) -> int:
    return _FINAL_EPOCH if epoch < 0 else 1 if epoch == _INT_MAX else epoch + 1


class SessionWait(Protocol):
    """A Fetch of a session that waits."""

    wakes_on: Wake

    def watch(self, asked: FetchedPartition) -> None: ...


class FetchContext:
    """One request as its session sees it: what is to be read, and which answers are sent."""

    def __init__(
        self,
        partitions: Sequence[FetchedPartition] = (),
        *,
        error: ErrorCode = ErrorCode.none,
        session: _Session | None = None,
        epoch: int = 0,
        begin: Callable[[int, Sequence[FetchNews]], int] | None = None,
        look: Callable[[_Session], tuple[Sequence[FetchedPartition], int]] | None = None,
    ) -> None:
        self.partitions = partitions
        self._look = look
        self._read_at = 0
        self.error = error
        self._session = session
        self._epoch = epoch
        self._begin = begin

    @property
    def is_incremental(self) -> bool:
        return self._session is not None

    @property
    def has_resting(self) -> bool:
        """Whether the session has partitions that need not be read."""
        session = self._session
        return session is not None and len(session.due) < len(session.partitions)

    def look(self) -> None:
        """Before the partitions are read: which of them have to be read now."""
        if self._session is not None and self._look is not None:
            self.partitions, self._read_at = self._look(self._session)

    def park(self, wait: SessionWait, news: Sequence[FetchNews]) -> Callable[[], None]:
        """The request waits, after it has read this; call what is returned when it waits no longer. A partition with
        news stays due: they go out with the answer."""
        session = self._session
        assert session is not None, "only a session hears of events"
        for each in news:
            if each.rests and not _has_other_watermarks(each):
                session.let_rest(each, self._read_at)
        session.waits[wait] = None
        return lambda: _end_wait(session, wait)

    def answer(self, now_ms: int, news: Sequence[FetchNews]) -> tuple[ErrorCode, int, list[bool]]:
        """The error of the whole answer, the session's id, and for each partition whether it is in the answer."""
        session = self._session
        if session is None:
            session_id = NO_SESSION if self._begin is None else self._begin(now_ms, news)
            return ErrorCode.none, session_id, [True] * len(news)
        if session.epoch != self._epoch:
            # Another request of the session came while this one waited: the client has sent it again.
            return ErrorCode.invalid_fetch_session_epoch, session.id, [False] * len(news)
        is_in_answer = [_is_news(session, each) for each in news]
        for each in news:
            if each.rests:
                session.let_rest(each, self._read_at)
        return ErrorCode.none, session.id, is_in_answer


def _end_wait(session: _Session, wait: SessionWait) -> None:
    session.waits.pop(wait, None)


def _has_other_watermarks(news: FetchNews) -> bool:
    partition = news.partition
    return (
        news.high_watermark != partition.told_high_watermark
        or news.log_start_offset != partition.told_log_start_offset
    )


def _is_news(session: _Session, news: FetchNews) -> bool:
    """Take note of what this answer says. A partition whose records are sent goes behind all others, so that all
    have their share of a full answer; not one whose high watermark moved (KAFKA-12330)."""
    partition = news.partition
    is_in_answer = news.has_records or news.has_to_be_told or news.error is not ErrorCode.none
    if news.high_watermark != partition.told_high_watermark:
        partition.told_high_watermark = news.high_watermark
        is_in_answer = True
    if news.log_start_offset != partition.told_log_start_offset:
        partition.told_log_start_offset = news.log_start_offset
        is_in_answer = True
    if news.error is not ErrorCode.none or news.has_to_be_told:
        # The next good answer is sent, whatever it says: a follower that has to cut its log leaves the watermark of
        # this one alone. Kafka does not say it again, and the follower's stays behind until the next records.
        partition.told_high_watermark = -1
    if news.has_records and partition.key in session.partitions:
        session.partitions[partition.key] = session.partitions.pop(partition.key)
        if partition.key in session.due:
            session.due[partition.key] = session.due.pop(partition.key)
    return is_in_answer


class FetchSessions:
    """At most `slots` sessions; with 0 none is made, and each reader names all partitions in each request."""

    def __init__(self, slots: int, random_source: RandomSource) -> None:
        self._slots = slots
        self._random = random_source
        # The one that was used longest ago comes first.
        self._sessions: dict[int, _Session] = {}
        self._cached = 0
        self.evictions = 0
        # The sessions that hear of what happens to a partition, and what they want of it.
        self._watching: dict[TopicPartition, dict[_Session, FetchedPartition]] = {}
        # How many there were; the numbers order them and the readings.
        self._events = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def cached_partitions(self) -> int:
        return self._cached

    def begin(
        self,
        now_ms: int,
        request: FetchRequest,
        version: int,
        *,
        principal: str,
        is_follower: bool,
        name_of: NameOf,
        view: tuple[object, ...] = (),
    ) -> FetchContext:
        """`view` are the parts of the image on which the answers depend: with another one, all partitions of a session
        are looked at."""
        # The last entry of a partition counts, as in Kafka; each is read once.
        asked = list({each.key: each for each in _asked(request, version, name_of)}.values())
        if version < _FIRST_VERSION_WITH_SESSIONS:
            return FetchContext(asked)
        known = self._sessions.get(request.session_id)
        if known is not None and known.principal != principal:
            known = None
        if request.session_epoch in (_INITIAL_EPOCH, _FINAL_EPOCH):
            if known is not None:
                self._remove(known)
            if request.session_epoch == _FINAL_EPOCH:
                return FetchContext(asked)
            return FetchContext(
                asked, begin=self._beginner(principal, is_follower, version >= _FIRST_VERSION_WITH_IDS)
            )
        if known is None:
            return FetchContext(error=ErrorCode.fetch_session_id_not_found)
        return self._go_on(now_ms, known, request, version, asked, name_of, view)

    def _go_on(
        self,
        now_ms: int,
        session: _Session,
        request: FetchRequest,
        version: int,
        asked: Iterable[FetchedPartition],
        name_of: NameOf,
        view: tuple[object, ...],
    ) -> FetchContext:
        if session.epoch != request.session_epoch:
            return FetchContext(error=ErrorCode.invalid_fetch_session_epoch)
        if session.uses_ids != (version >= _FIRST_VERSION_WITH_IDS):
            return FetchContext(error=ErrorCode.fetch_session_topic_id_error)
        partitions = session.partitions
        added = sum(each.key not in partitions for each in asked)
        if self._cached + added > MOST_PARTITIONS or len(partitions) + added > MOST_OF_A_SESSION:
            # Its reader begins another, and names all partitions in each request if there is no room for that.
            self._remove(session)
            return FetchContext(error=ErrorCode.fetch_session_id_not_found)
        before = len(partitions)
        for each in asked:
            key = each.key
            cached = partitions.get(key)
            if cached is None:
                partitions[key] = each
            else:
                cached.take_over(each)
            session.make_due(key, self._events)
        for topic in request.forgotten_topics_data:
            name: UUID | str = topic.topic_id if session.uses_ids else topic.topic
            for index in topic.partitions:
                key = FetchKey(name, index)
                forgotten = partitions.pop(key, None)
                if forgotten is not None:
                    session.make_due(key, self._events)
                    del session.due[key]
                    self._unwatch(session, forgotten)
        self._cached += len(partitions) - before
        if not partitions:
            self._remove(session)
            return FetchContext()
        session.maybe_make_all_due(now_ms, self._events, view)
        for key in session.due:
            each = partitions[key]
            if each.topic is None:
                each.topic = name_of(each.topic_id)
        session.clock.last_ms = now_ms
        session.used_ms = now_ms
        session.epoch = _next_epoch(session.epoch)
        self._sessions[session.id] = self._sessions.pop(session.id)
        context = FetchContext(session=session, epoch=session.epoch, look=self._look)
        context.look()
        return context

    def _look(self, session: _Session) -> tuple[Sequence[FetchedPartition], int]:
        """What is due, of which the session hears from now on; and the number of the newest event."""
        due = [session.partitions[key] for key in session.due]
        for each in due:
            if each.topic is not None:
                watching = self._watching.setdefault(TopicPartition(each.topic, each.partition), {})
                watching[session] = each
        return due, self._events

    def note(self, woken: Mapping[TopicPartition, Wake]) -> dict[Any, dict[TopicPartition, Wake]]:
        """Something happened to these partitions: they are due in their sessions. The waits of sessions that it
        concerns."""
        self._events += 1
        concerned: dict[Any, dict[TopicPartition, Wake]] = {}
        for topic_partition, why in woken.items():
            for session, asked in self._watching.get(topic_partition, {}).items():
                if not session.is_privileged and why is Wake.LOG_END:
                    # What is not committed yet concerns no consumer.
                    continue
                session.make_due(asked.key, self._events)
                for wait in session.waits:
                    if wait.wakes_on & why:
                        wait.watch(asked)
                        concerned.setdefault(wait, {})[topic_partition] = why
        return concerned

    def _unwatch(self, session: _Session, asked: FetchedPartition) -> None:
        key = TopicPartition(asked.topic or "", asked.partition)
        watching = self._watching.get(key)
        if watching is not None:
            watching.pop(session, None)
            if not watching:
                del self._watching[key]

    def _beginner(
        self, principal: str, is_follower: bool, uses_ids: bool
    ) -> Callable[[int, Sequence[FetchNews]], int]:
        def begin(now_ms: int, news: Sequence[FetchNews]) -> int:
            """The session is made when its first request is answered, from what that answer told."""
            if not self._make_room(now_ms, is_follower, len(news)):
                return NO_SESSION
            session = _Session(self._new_id(), principal, is_follower, uses_ids, now_ms, now_ms)
            session.clock.last_ms = now_ms
            for each in news:
                partition = each.partition
                is_good = each.error is ErrorCode.none and not each.has_to_be_told
                partition.told_high_watermark = each.high_watermark if is_good else -1
                partition.told_log_start_offset = each.log_start_offset
                session.partitions[partition.key] = partition
                session.due[partition.key] = self._events
            self._sessions[session.id] = session
            self._cached += len(session.partitions)
            return session.id

        return begin

    def _remove(self, session: _Session) -> None:
        del self._sessions[session.id]
        self._cached -= len(session.partitions)
        for each in session.partitions.values():
            self._unwatch(session, each)

    def _new_id(self) -> int:
        while True:
            session_id = self._random.randint(1, _INT_MAX)
            if session_id not in self._sessions:
                return session_id

    def _make_room(self, now_ms: int, is_privileged: bool, size: int) -> bool:
        """Whether there is room for a session of `size` partitions, if need be by the end of another."""
        if self._slots <= 0 or not size:
            return False
        has_room = self._cached + size <= MOST_PARTITIONS
        if len(self._sessions) < self._slots and has_room:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        victim: _Session | None = oldest
        if now_ms - oldest.used_ms <= EVICTABLE_AFTER_MS:
            evictable = [
                each
                for each in self._sessions.values()
                if now_ms - each.created_ms > EVICTABLE_AFTER_MS or (is_privileged and not each.is_privileged)
            ]
            victim = min(evictable, key=_rank, default=None)
            if victim is None or (is_privileged, size) < (victim.is_privileged, len(victim.partitions)):
                return False
        assert victim is not None, "the oldest, or the smallest that may go"
        if self._cached - len(victim.partitions) + size > MOST_PARTITIONS:
            return False
        self._remove(victim)
        self.evictions += 1
        return True


def _rank(session: _Session) -> tuple[bool, int, int]:
    return session.is_privileged, len(session.partitions), session.id


def _asked(request: FetchRequest, version: int, name_of: NameOf) -> Iterator[FetchedPartition]:
    for topic in request.topics:
        topic_id = topic.topic_id if version >= _FIRST_VERSION_WITH_IDS else ZERO_UUID
        name = name_of(topic_id) if version >= _FIRST_VERSION_WITH_IDS else topic.topic
        for each in topic.partitions:
            yield FetchedPartition(
                topic_id,
                name,
                each.partition,
                each.fetch_offset,
                each.partition_max_bytes,
                each.current_leader_epoch,
                each.last_fetched_epoch,
                each.log_start_offset,
            )
