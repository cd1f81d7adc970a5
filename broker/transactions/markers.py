"""The markers that end transactions, on their way to the leaders of the partitions (WriteTxnMarkers, rules T6.3 to
T6.9).

A job has one marker for each partition of one transaction. It is sent until each leader has written it, however long
that takes, or until this broker coordinates the transaction no longer.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.replica.partition import TopicPartition
from kquorum.broker.transactions.peers import NOWHERE, RETRY_BACKOFF_MS
from kquorum.broker.transactions.transaction import EPOCH_BUMP, HIGHEST_EPOCH
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

log = logging.getLogger("broker.transactions")

# A request holds the leader's loop up for as long as it appends.
MOST_MARKERS: Final = 500

_AGAIN: Final = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.not_leader_or_follower,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_enough_replicas_after_append,
        ErrorCode.request_timed_out,
        ErrorCode.kafka_storage_error,
    }
)
_NEEDLESS: Final = frozenset({ErrorCode.unsupported_for_message_format, ErrorCode.unsupported_version})
# Another coordinator ended the transaction, or ends it.
_STALE: Final = frozenset({ErrorCode.invalid_producer_epoch, ErrorCode.transaction_coordinator_fenced})


@dataclass(eq=False, slots=True, kw_only=True)
class MarkerJob:
    """`left` are the partitions whose leader has not written the marker; `done` is called when none is left."""

    shard: int
    transactional_id: str
    producer: ProducerEpoch
    is_commit: bool
    coordinator_epoch: int
    version: int
    left: set[TopicPartition]
    done: Callable[[int, MarkerJob], None]
    is_over: bool = field(default=False, init=False)

    def marker(self, partitions: Iterable[TopicPartition]) -> WritableTxnMarker:
        topics: dict[str, list[int]] = {}
        for each in partitions:
            topics.setdefault(each.topic, []).append(each.partition)
        # The highest epoch cannot be raised: the leader takes a marker with the epoch that it knows (KAFKA-20090).
        is_raised = self.producer.epoch < HIGHEST_EPOCH
        return WritableTxnMarker(
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            transaction_result=self.is_commit,
            topics=tuple(
                [
                    WritableTxnMarkerTopic(name=topic, partition_indexes=tuple(indexes))
                    for topic, indexes in topics.items()
                ]
            ),
            coordinator_epoch=self.coordinator_epoch,
            transaction_version=self.version if is_raised or self.version < EPOCH_BUMP else 0,
        )


_Part = tuple[MarkerJob, tuple[TopicPartition, ...]]


class MarkerQueue:
    """Implements `PeerQueue`. `leader_of` tells a partition's leader, NOWHERE, or None for one that was deleted."""

    def __init__(self, leader_of: Callable[[TopicPartition], int | None]) -> None:
        self._leader_of = leader_of
        self._jobs: set[MarkerJob] = set()
        self._waiting: dict[int, dict[MarkerJob, list[TopicPartition]]] = {}
        self._in_flight: dict[int, list[_Part]] = {}
        self._later: list[tuple[int, int, MarkerJob, tuple[TopicPartition, ...]]] = []
        self._count = 0

    def __len__(self) -> int:
        """The transactions whose markers are not all written."""
        return len(self._jobs)

    @property
    def without_leader(self) -> int:
        """The partitions that wait for a leader, or for another attempt."""
        return sum(len(partitions) for _, _, job, partitions in self._later if not job.is_over)

    def add(self, now_ms: int, job: MarkerJob) -> None:
        self._jobs.add(job)
        self._place(now_ms, job, tuple(job.left))

    def forget(self, shard: int) -> None:
        """This broker coordinates the transactions of the shard no longer, or is about to load them again."""
        for job in [each for each in self._jobs if each.shard == shard]:
            self._end(job)
        for waiting in self._waiting.values():
            for job in [each for each in waiting if each.is_over]:
                del waiting[job]
        self._later = [entry for entry in self._later if not entry[2].is_over]
        heapq.heapify(self._later)

    def _end(self, job: MarkerJob) -> None:
        job.is_over = True
        self._jobs.discard(job)

    def _place(self, now_ms: int, job: MarkerJob, partitions: Iterable[TopicPartition]) -> None:
        homeless = []
        for each in partitions:
            leader = self._leader_of(each)
            if leader is None:
                # Deleted: no one reads the transaction there.
                job.left.discard(each)
            elif leader == NOWHERE:
                homeless.append(each)
            else:
                self._waiting.setdefault(leader, {}).setdefault(job, []).append(each)
        if homeless:
            self._place_later(now_ms, job, homeless)
        self._maybe_finish(now_ms, job)

    def _place_later(self, now_ms: int, job: MarkerJob, partitions: Collection[TopicPartition]) -> None:
        self._count += 1
        heapq.heappush(self._later, (now_ms + RETRY_BACKOFF_MS, self._count, job, tuple(partitions)))

    def _maybe_finish(self, now_ms: int, job: MarkerJob) -> None:
        if not job.left and not job.is_over:
            self._end(job)
            job.done(now_ms, job)

    # PeerQueue

    def destinations(self, now_ms: int) -> Collection[int]:
        while self._later and self._later[0][0] <= now_ms:
            _, _, job, partitions = heapq.heappop(self._later)
            if not job.is_over:
                self._place(now_ms, job, partitions)
        return [broker for broker, jobs in self._waiting.items() if jobs and broker not in self._in_flight]

    def next_request(self, now_ms: int, broker_id: int) -> WriteTxnMarkersRequest | None:  # noqa: ARG002
        """Each producer is in a request once, so that each entry of the answer has one job."""
        waiting = self._waiting.get(broker_id)
        if not waiting or broker_id in self._in_flight:
            return None
        parts: list[_Part] = []
        producers: set[int] = set()
        count = 0
        for job, partitions in list(waiting.items()):
            if count >= MOST_MARKERS:
                break
            if job.producer.producer_id in producers:
                continue
            taken, rest = partitions[: MOST_MARKERS - count], partitions[MOST_MARKERS - count :]
            producers.add(job.producer.producer_id)
            parts.append((job, tuple(taken)))
            count += len(taken)
            if rest:
                waiting[job] = rest
            else:
                del waiting[job]
        self._in_flight[broker_id] = parts
        return WriteTxnMarkersRequest(markers=tuple([job.marker(partitions) for job, partitions in parts]))

    def handle_reply(self, now_ms: int, broker_id: int, response: WriteTxnMarkersResponse) -> None:
        """A partition that the answer leaves out is sent again."""
        answers = {
            (each.producer_id, topic.name, partition.partition_index): partition.error_code
            for each in response.markers
            for topic in each.topics
            for partition in topic.partitions
        }
        for job, partitions in self._in_flight.pop(broker_id, ()):
            if not job.is_over:
                told = {each: answers.get((job.producer.producer_id, *each)) for each in partitions}
                self._take_answers(now_ms, job, told)

    def _take_answers(
        self, now_ms: int, job: MarkerJob, told: Mapping[TopicPartition, ErrorCode | None]
    ) -> None:
        again = []
        for each, error in told.items():
            if error is ErrorCode.none or error in _NEEDLESS:
                job.left.discard(each)
                continue
            if error in _STALE:
                log.info(
                    "%s: %s-%d refused the marker of producer %d, epoch %d: another coordinator ends the transaction",
                    job.transactional_id,
                    *each,
                    *job.producer,
                )
                self._end(job)
                self._drop(job)
                return
            if error is not None and error not in _AGAIN:
                log.error(
                    "%s: %s-%d refused the marker with %s; it is sent again",
                    job.transactional_id,
                    *each,
                    error.name,
                )
            again.append(each)
        if again:
            self._place_later(now_ms, job, again)
        self._maybe_finish(now_ms, job)

    def _drop(self, job: MarkerJob) -> None:
        for waiting in self._waiting.values():
            waiting.pop(job, None)

    def handle_failure(self, now_ms: int, broker_id: int, *, is_unknown_there: bool) -> None:  # noqa: ARG002
        """Its leaders may be elsewhere by then."""
        for job, partitions in self._in_flight.pop(broker_id, ()):
            if not job.is_over:
                self._place_later(now_ms, job, partitions)
        for job, waiting in self._waiting.pop(broker_id, {}).items():
            self._place_later(now_ms, job, waiting)

    def next_deadline_ms(self) -> int | None:
        return self._later[0][0] if self._later else None
