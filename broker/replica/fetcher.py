"""Fetches the partitions that one broker leads and this broker follows (KIP-101, KIP-227, KIP-279, KIP-320, KIP-595).

Sans-IO: an adapter asks for the request that is due, sends it on a connection of its own, and passes in the answer or
the failure; one request is under way at a time. Answers go straight into the logs: appends, truncation, watermarks.

A Fetch tells the leader the epoch of the last record that the follower has. Where the logs differ the leader answers
with the end of the largest epoch that both may share, and the follower cuts its log there. Leaders that cannot do this
(Fetch below version 12) are asked first, with OffsetForLeaderEpoch, where each log ends.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from uuid import UUID

from kquorum.broker.log.errors import CorruptRecord, LogError, NoSpaceLeft, RecordsRefused
from kquorum.broker.log.partition_log import EpochEnd
from kquorum.broker.replica.fetch_session import FetchSession, Key, SessionPartition, SessionRequest
from kquorum.broker.replica.partition import NO_EPOCH, Partition, TopicPartition
from kquorum.wire.message_schema import ByVersion, Response
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from kquorum.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kquorum.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kquorum.wire.uuids import ZERO_UUID

log = logging.getLogger("broker.replica")

FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
FORGOTTEN_NAMES: Final = 100
"""So many names of topics that are not fetched any more are kept."""
LATEST: Final = -1
EARLIEST: Final = -2

_TRANSIENT: Final = frozenset(
    {
        ErrorCode.unknown_leader_epoch,
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.inconsistent_topic_id,
    }
)


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """Kafka's configs: replica.fetch.*"""

    broker_id: int
    wait_max_ms: int = 500
    min_bytes: int = 1
    max_response_bytes: int = 10 * 1024 * 1024
    max_partition_bytes: int = 1024 * 1024
    backoff_ms: int = 1_000
    cuts_by_fetch: bool = True
    """Whether leaders answer a Fetch with the diverging epoch (version 12 and later)."""


class ReplicationQuota(Protocol):
    """A throttle of replication (KIP-73)."""

    def is_throttled(self, topic_partition: TopicPartition) -> bool: ...
    def is_exceeded(self, now_ms: int) -> bool: ...
    def record(self, now_ms: int, size_bytes: int) -> None: ...


class _Step(enum.Enum):
    FETCHING = enum.auto()
    TRUNCATING = enum.auto()
    """The leader has to say where the epochs end, before anything is fetched."""
    ASKS_LATEST = enum.auto()
    """The fetch offset is out of the leader's range."""
    ASKS_EARLIEST = enum.auto()


class _Followed:
    """A partition that is fetched here, under one leader epoch."""

    __slots__ = (
        "asked_step",
        "delayed_until_ms",
        "has_begun",
        "is_without_space",
        "lag",
        "last_fetched_epoch",
        "leader_epoch",
        "offset",
        "partition",
        "step",
    )

    def __init__(self, partition: Partition, leader_epoch: int) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.offset = partition.log.log_end_offset
        self.last_fetched_epoch = NO_EPOCH
        self.lag: int | None = None
        """Records behind the leader's high watermark; None before the first answer."""
        self.delayed_until_ms: int | None = None
        self.has_begun = False
        self.is_without_space = False
        """Whether the last records were not taken because the disk was full."""
        self.step = _Step.FETCHING
        self.asked_step: _Step | None = None
        """What the request under way asks for this partition, other than records."""

    @property
    def is_ready(self) -> bool:
        return self.step is _Step.FETCHING and self.delayed_until_ms is None

    @property
    def is_in_sync(self) -> bool:
        return self.lag is not None and self.lag <= 0

    def begin(self, *, cuts_by_fetch: bool) -> None:
        """Raises LogError; NoSpaceLeft: it may be called again."""
        latest_epoch = self.partition.log.latest_epoch
        if latest_epoch is None:
            # Without epochs nothing is known of a tail but that it may differ above the high watermark.
            self.partition.truncate_to(self.partition.log.high_watermark)
            self.offset = self.partition.log.log_end_offset
        else:
            self.last_fetched_epoch = latest_epoch
            if not cuts_by_fetch:
                self.step = _Step.TRUNCATING
        self.has_begun = True


class Fetcher:
    """One connection to one leader. Another endpoint of the same broker is another fetcher."""

    def __init__(
        self, source_id: int, settings: FetcherSettings, quota: ReplicationQuota | None = None
    ) -> None:
        self.source_id = source_id
        self.failed: dict[Key, LogError | ErrorCode] = {}
        """Partitions that are given up until their leader epoch changes, and why (KIP-461)."""
        self.received_bytes = 0
        """Records received since the start."""
        self._settings = settings
        self._quota = quota
        self._session = FetchSession()
        self._followed: dict[Key, _Followed] = {}
        self._names: dict[UUID, str] = {}
        self._throttled: Collection[Key] = frozenset()
        self._swept_ms: int | None = None
        self._changed: set[Key] = set()
        self._gone: dict[Key, None] = {}
        self._delayed: set[Key] = set()
        self._asking: set[Key] = set()
        self._is_out = False
        self._idle_until_ms: int | None = None

    # Which partitions

    def __contains__(self, key: Key) -> bool:
        return key in self._followed

    @property
    def keys(self) -> Collection[Key]:
        return self._followed.keys()

    @property
    def is_idle(self) -> bool:
        """Nothing to fetch: the connection may close."""
        return not self._followed

    @property
    def max_lag(self) -> int:
        """Of the partition that lags most, in records; those without an answer yet are not counted."""
        return max((each.lag or 0 for each in self._followed.values()), default=0)

    def lag_of(self, key: Key) -> int | None:
        followed = self._followed.get(key)
        return None if followed is None else followed.lag

    def add(self, partition: Partition, leader_epoch: int) -> None:
        """Fetch a partition under a leader epoch. Under the same epoch again, nothing changes. The log's end is read
        here: another fetcher that had the partition must have let it go before."""
        key = partition.topic_partition
        known = self._followed.get(key)
        if known is not None and known.leader_epoch == leader_epoch and known.partition is partition:
            return
        self.failed.pop(key, None)
        followed = _Followed(partition, leader_epoch)
        self._followed[key] = followed
        self._names[partition.topic_id] = key.topic
        if len(self._names) > len(self._followed) + FORGOTTEN_NAMES:
            # Topics come and go for as long as a broker lives.
            self._names = {each.partition.topic_id: name for (name, _), each in self._followed.items()}
        self._delayed.discard(key)
        if self._begin(0, key, followed):
            self._set_step(key, followed, followed.step)

    def _begin(self, now_ms: int, key: Key, followed: _Followed) -> bool:
        try:
            followed.begin(cuts_by_fetch=self._settings.cuts_by_fetch)
        except NoSpaceLeft as error:
            self._wait_for_space(now_ms, key, followed, error)
            self._idle_until_ms = None
        except LogError as error:
            self._give_up(key, error)
        return followed.has_begun

    def remove(self, key: Key) -> None:
        self.failed.pop(key, None)
        if self._followed.pop(key, None) is not None:
            self._leave_request(key)
            self._delayed.discard(key)
            self._asking.discard(key)

    # Requests

    def next_deadline_ms(self) -> int | None:
        """When `next_request` may have something, if nothing else happens before."""
        if self._is_out or not self._followed:
            return None
        if self._idle_until_ms is not None:
            return self._idle_until_ms
        return 0

    def next_request(
        self, now_ms: int, broker_epoch: int
    ) -> (
        ByVersion[FetchResponse]
        | ByVersion[ListOffsetsResponse]
        | ByVersion[OffsetForLeaderEpochResponse]
        | None
    ):
        """The request that is due, which then is under way; None where there is none before the deadline."""
        if self._is_out or not self._followed:
            return None
        self._end_delays(now_ms)
        request = self._next_question() or self._next_fetch(now_ms, broker_epoch)
        self._is_out = request is not None
        if request is None:
            # All are delayed or throttled.
            ends = [self._followed[key].delayed_until_ms or now_ms for key in self._delayed]
            self._idle_until_ms = min([now_ms + self._settings.backoff_ms, *ends])
        else:
            self._idle_until_ms = None
        return request

    def _end_delays(self, now_ms: int) -> None:
        for key in list(self._delayed):
            followed = self._followed[key]
            assert followed.delayed_until_ms is not None
            if followed.delayed_until_ms <= now_ms:
                followed.delayed_until_ms = None
                self._delayed.discard(key)
                if not (followed.has_begun or self._begin(now_ms, key, followed)):
                    continue
                self._set_step(key, followed, followed.step)

    def _next_fetch(self, now_ms: int, broker_epoch: int) -> ByVersion[FetchResponse] | None:
        self._leave_out_throttled(now_ms)
        if self._swept_ms is None or now_ms >= self._swept_ms + self._settings.backoff_ms:
            # Retention moves the start of a log without a word to its fetcher.
            self._changed.update(self._followed)
            self._swept_ms = now_ms
        candidates = self._followed if self._session.is_full else self._changed
        wanted = {
            key: _as_asked(self._followed[key], self._settings.max_partition_bytes)
            for key in candidates
            if key in self._followed and self._followed[key].is_ready and key not in self._throttled
        }
        asked = self._session.request(wanted, self._gone)
        self._changed.clear()
        self._gone.clear()
        if not self._session.partitions and not asked.forgotten:
            return None
        return self._fetch_request(asked, broker_epoch)

    def _fetch_request(self, asked: SessionRequest, broker_epoch: int) -> ByVersion[FetchResponse]:
        settings = self._settings

        def make(version: int) -> FetchRequest:
            has_state = version >= FIRST_VERSION_WITH_REPLICA_STATE
            state = ReplicaState(replica_id=settings.broker_id, replica_epoch=broker_epoch)
            return FetchRequest(
                replica_id=-1 if has_state else settings.broker_id,
                replica_state=state if has_state else ReplicaState(),
                max_wait_ms=settings.wait_max_ms,
                min_bytes=settings.min_bytes,
                max_bytes=settings.max_response_bytes,
                session_id=asked.session_id,
                session_epoch=asked.session_epoch,
                topics=_topics_of(asked.named),
                forgotten_topics_data=_forgotten_topics_of(asked.forgotten),
            )

        return ByVersion(FetchRequest, make)

    def _next_question(
        self,
    ) -> ByVersion[ListOffsetsResponse] | ByVersion[OffsetForLeaderEpochResponse] | None:
        """What has to be known of the leader's log before a partition can be fetched; one kind a request."""
        for step in (_Step.TRUNCATING, _Step.ASKS_LATEST, _Step.ASKS_EARLIEST):
            asking = {
                key: self._followed[key]
                for key in sorted(self._asking)
                if self._followed[key].step is step and self._followed[key].delayed_until_ms is None
            }
            if not asking:
                continue
            for followed in asking.values():
                followed.asked_step = step
            if step is _Step.TRUNCATING:
                return self._question_of_epochs(asking)
            return self._question_of_offsets(asking, LATEST if step is _Step.ASKS_LATEST else EARLIEST)
        return None

    def _question_of_epochs(self, asking: Mapping[Key, _Followed]) -> ByVersion[OffsetForLeaderEpochResponse]:
        topics: dict[str, list[OffsetForLeaderPartition]] = {}
        for (topic, index), followed in asking.items():
            topics.setdefault(topic, []).append(
                OffsetForLeaderPartition(
                    partition=index,
                    current_leader_epoch=followed.leader_epoch,
                    leader_epoch=followed.last_fetched_epoch,
                )
            )
        request = OffsetForLeaderEpochRequest(
            replica_id=self._settings.broker_id,
            topics=tuple(
                OffsetForLeaderTopic(topic=topic, partitions=tuple(found)) for topic, found in topics.items()
            ),
        )
        return ByVersion(OffsetForLeaderEpochRequest, lambda _version: request)

    def _question_of_offsets(
        self, asking: Mapping[Key, _Followed], timestamp: int
    ) -> ByVersion[ListOffsetsResponse]:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for (topic, index), followed in asking.items():
            topics.setdefault(topic, []).append(
                ListOffsetsPartition(
                    partition_index=index,
                    current_leader_epoch=followed.leader_epoch,
                    timestamp=timestamp,
                )
            )
        request = ListOffsetsRequest(
            replica_id=self._settings.broker_id,
            topics=tuple(
                ListOffsetsTopic(name=topic, partitions=tuple(found)) for topic, found in topics.items()
            ),
        )
        return ByVersion(ListOffsetsRequest, lambda _version: request)

    # Answers

    def handle_failure(self, now_ms: int) -> None:
        """The connection broke, or no answer came in time: all partitions pause, and the session begins again."""
        self._is_out = False
        self._session.failed()
        for key, followed in self._followed.items():
            followed.asked_step = None
            self._back_off(now_ms, key, followed)

    def handle_reply(self, now_ms: int, response: Response) -> None:
        for _ in self.handling(now_ms, response):
            pass

    def handling(self, now_ms: int, response: Response) -> Iterator[None]:
        """Handle a reply, one partition of a Fetch at each step: an answer of 10 MiB may have 150,000 batches, which
        take a third of a second. Between two steps partitions may come and go; the next request is made after the
        last."""
        if isinstance(response, FetchResponse):
            yield from self._handle_fetch(now_ms, response)
        elif isinstance(response, ListOffsetsResponse):
            for topic in response.topics:
                for found in topic.partitions:
                    self._handle_offset(now_ms, (topic.name, found.partition_index), found)
            self._ask_again(now_ms)
        else:
            assert isinstance(response, OffsetForLeaderEpochResponse), response
            for result in response.topics:
                for end in result.partitions:
                    self._handle_epoch_end(now_ms, (result.topic, end.partition), end)
            self._ask_again(now_ms)
        self._is_out = False

    def _ask_again(self, now_ms: int) -> None:
        """Partitions that an answer left out."""
        for key in self._asking:
            followed = self._followed[key]
            if followed.asked_step is not None:
                followed.asked_step = None
                self._back_off(now_ms, key, followed)

    def _handle_fetch(self, now_ms: int, response: FetchResponse) -> Iterator[None]:
        if not self._session.answered(response.error_code, response.session_id):
            # A session that the leader does not know is made again at once; nothing is wrong with the partitions.
            if response.error_code not in (
                ErrorCode.fetch_session_id_not_found,
                ErrorCode.invalid_fetch_session_epoch,
            ):
                for key, followed in self._followed.items():
                    self._back_off(now_ms, key, followed)
            return
        received = 0
        for topic in response.responses:
            name = topic.topic if topic.topic_id == ZERO_UUID else self._names.get(topic.topic_id)
            if name is None:
                continue
            for data in topic.partitions:
                key = TopicPartition(name, data.partition_index)
                if self._is_of(key, topic.topic_id):
                    received += self._handle_partition(now_ms, key, data)
                    yield
        if self._quota is not None and received:
            self._quota.record(now_ms, received)

    def _is_of(self, key: Key, topic_id: UUID) -> bool:
        """Whether the partition that is followed is of this topic: it may have been deleted and made again, and these
        are the records of its namesake."""
        followed = self._followed.get(key)
        return followed is None or topic_id in (ZERO_UUID, followed.partition.topic_id)

    def _handle_partition(self, now_ms: int, key: TopicPartition, data: PartitionData) -> int:
        """Returns how many bytes came for a throttled partition."""
        followed = self._followed.get(key)
        asked = self._session.partitions.get(key)
        if followed is None or asked is None or not followed.is_ready:
            return 0
        if asked.offset != followed.offset or asked.leader_epoch != followed.leader_epoch:
            return 0  # the answer is to a question that is no longer asked
        if data.error_code is not ErrorCode.none:
            self._handle_error(now_ms, key, followed, data.error_code)
            return 0
        size = 0 if data.records is None else len(data.records)
        self.received_bytes += size
        try:
            if data.diverging_epoch.end_offset >= 0:
                # Nothing else in this answer counts: records and watermark are those of another log (KAFKA-14704).
                end = EpochEnd(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
                self._truncate_to_end(key, followed, end)
                return 0
            self._take(now_ms, key, followed, data)
        except (CorruptRecord, RecordsRefused) as error:
            log.error("%s-%d from broker %d: %s; fetching it again", *key, self.source_id, error)
            self._back_off(now_ms, key, followed)
        except NoSpaceLeft as error:
            self._wait_for_space(now_ms, key, followed, error)
        except LogError as error:
            self._give_up(key, error)
        return size if self._quota is not None and self._quota.is_throttled(key) else 0

    def _take(self, now_ms: int, key: TopicPartition, followed: _Followed, data: PartitionData) -> None:
        partition = followed.partition
        if followed.offset != partition.log.log_end_offset:
            raise LogError(
                f"{key.topic}-{key.partition}: fetched at {followed.offset}, but the log ends at "
                f"{partition.log.log_end_offset}"
            )
        if data.records:
            appended = partition.append_as_follower(now_ms, data.records, followed.leader_epoch)
            if appended.first_offset >= 0:
                if followed.is_without_space:
                    followed.is_without_space = False
                    log.warning("%s-%d takes records again", *key)
                followed.offset = appended.last_offset + 1
                # An answer without records leaves the epoch as it was (KAFKA-15510).
                latest_epoch = partition.log.latest_epoch
                followed.last_fetched_epoch = NO_EPOCH if latest_epoch is None else latest_epoch
                # Those that got records go to the end, so that a full request serves all in turn.
                self._followed[key] = self._followed.pop(key)
        partition.follow_watermarks(data.high_watermark, data.log_start_offset)
        followed.lag = max(0, data.high_watermark - followed.offset)
        self._changed.add(key)

    def _handle_error(self, now_ms: int, key: Key, followed: _Followed, error: ErrorCode) -> None:
        if error is ErrorCode.offset_out_of_range:
            self._set_step(key, followed, _Step.ASKS_LATEST)
        elif error is ErrorCode.fenced_leader_epoch:
            # Another leader was elected. Newer metadata will say which.
            self._give_up(key, error)
        else:
            level = logging.DEBUG if error in _TRANSIENT else logging.ERROR
            log.log(level, "%s-%d from broker %d: %s", *key, self.source_id, error.name)
            self._back_off(now_ms, key, followed)

    def _handle_offset(self, now_ms: int, key: Key, found: ListOffsetsPartitionResponse) -> None:
        """The fetch offset was out of the leader's range: its log ends before this one, or begins behind its end."""
        followed = self._followed.get(key)
        if followed is None or followed.asked_step is not followed.step:
            return
        step, followed.asked_step = followed.step, None
        if found.error_code is not ErrorCode.none:
            if found.error_code is ErrorCode.fenced_leader_epoch:
                self._give_up(key, found.error_code)
            else:
                self._back_off(now_ms, key, followed)
            return
        partition = followed.partition
        try:
            if step is _Step.ASKS_LATEST:
                if found.offset >= partition.log.log_end_offset:
                    self._set_step(key, followed, _Step.ASKS_EARLIEST)
                    return
                log.warning(
                    "%s-%d: the leader's log ends at %d, this one at %d; it is cut (unclean election)",
                    *key,
                    found.offset,
                    partition.log.log_end_offset,
                )
                partition.truncate_to(found.offset)
            elif found.offset > partition.log.log_end_offset:
                log.warning(
                    "%s-%d: the leader's log begins at %d, behind the end of this one, %d; it starts again there",
                    *key,
                    found.offset,
                    partition.log.log_end_offset,
                )
                partition.truncate_fully_and_start_at(found.offset)
        except NoSpaceLeft as error:
            self._wait_for_space(now_ms, key, followed, error)
            return
        except LogError as error:
            self._give_up(key, error)
            return
        self._fetch_on(key, followed)

    def _handle_epoch_end(self, now_ms: int, key: Key, end: EpochEndOffset) -> None:
        followed = self._followed.get(key)
        if followed is None or followed.asked_step is not _Step.TRUNCATING:
            return
        followed.asked_step = None
        if followed.step is not _Step.TRUNCATING:
            return
        if end.error_code is ErrorCode.fenced_leader_epoch:
            self._give_up(key, end.error_code)
        elif end.error_code is not ErrorCode.none:
            self._back_off(now_ms, key, followed)
        else:
            try:
                self._truncate_to_end(key, followed, EpochEnd(end.leader_epoch, end.end_offset))
            except NoSpaceLeft as error:
                self._wait_for_space(now_ms, key, followed, error)
            except LogError as error:
                self._give_up(key, error)

    # Truncation

    def _truncate_to_end(self, key: Key, followed: _Followed, leaders: EpochEnd) -> None:
        """Cut the log to what it may share with the leader's, whose records of an epoch end there.

        Where this log lacks the leader's epoch, the tails may still differ: the next Fetch (or question) tells.
        """
        partition = followed.partition
        offset, is_complete = truncation_point(partition, followed.offset, leaders)
        if offset < partition.log.high_watermark:
            log.warning(
                "%s-%d: the log is cut at %d, below the high watermark %d",
                *key,
                offset,
                partition.log.high_watermark,
            )
        partition.truncate_to(offset)
        if is_complete or self._settings.cuts_by_fetch:
            self._fetch_on(key, followed)
            return
        latest_epoch = partition.log.latest_epoch
        followed.offset = partition.log.log_end_offset
        followed.last_fetched_epoch = NO_EPOCH if latest_epoch is None else latest_epoch

    def _fetch_on(self, key: Key, followed: _Followed) -> None:
        """From the end of the log, whatever it is now."""
        partition_log = followed.partition.log
        followed.offset = partition_log.log_end_offset
        latest_epoch = partition_log.latest_epoch
        followed.last_fetched_epoch = NO_EPOCH if latest_epoch is None else latest_epoch
        self._set_step(key, followed, _Step.FETCHING)

    # States of partitions

    def _set_step(self, key: Key, followed: _Followed, step: _Step) -> None:
        followed.step = step
        self._idle_until_ms = None
        if step is _Step.FETCHING:
            self._asking.discard(key)
            self._changed.add(key)
            self._gone.pop(key, None)
        else:
            self._asking.add(key)
            self._leave_request(key)

    def _leave_request(self, key: Key) -> None:
        self._changed.discard(key)
        self._gone[key] = None

    def _back_off(self, now_ms: int, key: Key, followed: _Followed) -> None:
        """One that is delayed already is not delayed longer."""
        if followed.delayed_until_ms is None:
            followed.delayed_until_ms = now_ms + self._settings.backoff_ms
            self._delayed.add(key)
            self._leave_request(key)

    def _wait_for_space(self, now_ms: int, key: Key, followed: _Followed, error: NoSpaceLeft) -> None:
        """The log is sound: it goes on where it ends, once there is space."""
        followed.offset = followed.partition.log.log_end_offset
        if not followed.is_without_space:
            followed.is_without_space = True
            log.error(
                "%s-%d from broker %d: %s; trying again until there is space", *key, self.source_id, error
            )
        self._back_off(now_ms, key, followed)

    def _give_up(self, key: Key, why: LogError | ErrorCode) -> None:
        cause = why.name if isinstance(why, ErrorCode) else why
        log.error("%s-%d is not fetched from broker %d any more: %s", *key, self.source_id, cause)
        self.remove(key)
        self.failed[key] = why

    # Throttles

    def _leave_out_throttled(self, now_ms: int) -> None:
        """A replica that is in sync is never held up: it would leave the ISR."""
        quota = self._quota
        if quota is None:
            return
        before = self._throttled
        self._throttled = frozenset()
        if quota.is_exceeded(now_ms):
            self._throttled = frozenset(
                key
                for key, followed in self._followed.items()
                if not followed.is_in_sync and quota.is_throttled(TopicPartition(*key))
            )
        for key in self._throttled:
            if key not in before:
                self._leave_request(key)
        for key in before:
            if key not in self._throttled and key in self._followed and self._followed[key].is_ready:
                self._set_step(key, self._followed[key], _Step.FETCHING)


def truncation_point(partition: Partition, fetch_offset: int, leaders: EpochEnd) -> tuple[int, bool]:
    """Where a follower cuts its log when the leader's records of `leaders.leader_epoch` end at `leaders.end_offset`,
    and whether the logs agree then."""
    end = partition.log.log_end_offset
    if leaders.end_offset < 0:
        return min(fetch_offset, end), True
    if leaders.leader_epoch < 0:
        return min(leaders.end_offset, end), True
    own = partition.log.end_of_epoch(leaders.leader_epoch)
    if own.end_offset < 0:
        return min(leaders.end_offset, end), True
    if own.leader_epoch == leaders.leader_epoch:
        return min(own.end_offset, leaders.end_offset, end), True
    return min(own.end_offset, end), False


def _as_asked(followed: _Followed, max_bytes: int) -> SessionPartition:
    return SessionPartition(
        followed.partition.topic_id,
        followed.offset,
        followed.leader_epoch,
        followed.last_fetched_epoch,
        followed.partition.log.log_start_offset,
        max_bytes,
    )


def _topics_of(named: Mapping[Key, SessionPartition]) -> tuple[FetchTopic, ...]:
    topics: dict[tuple[str, UUID], list[FetchPartition]] = {}
    for (topic, index), asked in named.items():
        topics.setdefault((topic, asked.topic_id), []).append(
            FetchPartition(
                partition=index,
                current_leader_epoch=asked.leader_epoch,
                fetch_offset=asked.offset,
                last_fetched_epoch=asked.last_fetched_epoch,
                log_start_offset=asked.log_start_offset,
                partition_max_bytes=asked.max_bytes,
            )
        )
    return tuple(
        FetchTopic(topic=topic, topic_id=topic_id, partitions=tuple(partitions))
        for (topic, topic_id), partitions in topics.items()
    )


def _forgotten_topics_of(forgotten: Mapping[Key, UUID]) -> tuple[ForgottenTopic, ...]:
    topics: dict[tuple[str, UUID], list[int]] = {}
    for (topic, index), topic_id in forgotten.items():
        topics.setdefault((topic, topic_id), []).append(index)
    return tuple(
        ForgottenTopic(topic=topic, topic_id=topic_id, partitions=tuple(indexes))
        for (topic, topic_id), indexes in topics.items()
    )
