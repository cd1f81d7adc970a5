"""WriteTxnMarkers (api key 27): a coordinator, or an administrator, ends transactions in the logs of their partitions.

Each marker is appended with acks=all; one answer tells the outcome of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kquorum.broker.apis.api import Answer, Authorized, Deferred
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.data_plane import DataPlane
from kquorum.broker.fetch.waits import Wait
from kquorum.broker.groups.coordinator import GroupCoordinator
from kquorum.broker.log.errors import LogError
from kquorum.broker.log.partition_log import AppendOrigin
from kquorum.broker.replica.partition import ACKS_ALL, Partition, TopicPartition, Wake
from kquorum.metadata.authorizer.codes import Operation
from kquorum.wire.data_batch import write_transaction_marker
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.transaction_markers import TransactionMarker

Reply = Callable[[Answer], None]
# In the place of a client's connection.
_THIS_BROKER: Final = -1


@dataclass(slots=True)
class _Outcome:
    """Of one marker in one partition. `waits_at`: the offset that the partition's high watermark has to reach."""

    key: TopicPartition
    error: ErrorCode = ErrorCode.none
    waits_at: tuple[Partition, int] | None = None

    def decide(self) -> bool:
        if self.waits_at is None:
            return True
        partition, required_offset = self.waits_at
        error = partition.acknowledgement(required_offset)
        if error is None:
            return False
        self.error, self.waits_at = error, None
        return True


def handle_write_txn_markers(
    context: RequestContext, request: WriteTxnMarkersRequest, services: BrokerServices, reply: Reply
) -> None:
    access = services.access(context)
    may_write = access.allows_on_cluster(Operation.ALTER, is_asked=False)
    may_write = may_write or access.allows_on_cluster(Operation.CLUSTER_ACTION)
    if not may_write:
        reply(_response(request, [_refused(marker) for marker in request.markers]))
        return

    def begun(wait: MarkersWait) -> None:
        wait.forget = context.when_gone(lambda: services.data.waits.abandon(wait))

    write_markers(
        services.data,
        services.groups,
        request,
        timeout_ms=services.configs().number("request.timeout.ms"),
        owner=context.connection_id,
        park=context.park,
        begun=begun,
        done=lambda _now_ms, response: reply(response),
        end=lambda: reply(None),
    )


# ALTER on the cluster, or CLUSTER_ACTION on it.
API: Final = Deferred(ApiKey.WRITE_TXN_MARKERS, Authorized.IN_HANDLER, handle=handle_write_txn_markers)


class MarkersWait(Wait):
    """Until the in-sync replicas have every marker. What was appended stays appended, whatever the answer."""

    operation = "WriteTxnMarkers"

    def __init__(
        self,
        undecided: Iterable[_Outcome],
        answer: Callable[[], None],
        end: Callable[[], None],
        deadline_ms: int,
    ) -> None:
        self._undecided: dict[TopicPartition, list[_Outcome]] = {}
        for outcome in undecided:
            self._undecided.setdefault(outcome.key, []).append(outcome)
        super().__init__(tuple(self._undecided), Wake.HIGH_WATERMARK | Wake.ROLE, deadline_ms)
        self._answer = answer
        self._end = end
        self.forget: Callable[[], None] = lambda: None

    def look(self, now_ms: int, woken: Mapping[TopicPartition, Wake]) -> bool:  # noqa: ARG002 - the port's
        for key in woken:
            left = [outcome for outcome in self._undecided.pop(key, ()) if not outcome.decide()]
            if left:
                self._undecided[key] = left
        if self._undecided:
            return False
        self.forget()
        self._answer()
        return True

    def expire(self, now_ms: int) -> None:  # noqa: ARG002 - the port's
        for outcomes in self._undecided.values():
            for outcome in outcomes:
                if not outcome.decide():
                    outcome.error, outcome.waits_at = ErrorCode.request_timed_out, None
        self.forget()
        self._answer()

    def give_up(self) -> None:
        self.forget()
        self._end()


def write_markers(
    data: DataPlane,
    groups: GroupCoordinator,
    request: WriteTxnMarkersRequest,
    *,
    timeout_ms: int,
    owner: int = _THIS_BROKER,
    park: Callable[[], None] = lambda: None,
    begun: Callable[[MarkersWait], None] = lambda _wait: None,
    done: Callable[[int, WriteTxnMarkersResponse], None],
    end: Callable[[], None],
) -> None:
    """Without asking for rights; `owner` and `park` are of the client's connection. `begun` gets the wait for the
    replicas, if there is one; `done` the time and the answer. `end` is called instead when the broker stops."""
    outcomes: list[list[_Outcome]] = []

    def answer() -> None:
        done(data.now_ms(), _response(request, outcomes))

    def wait_or_answer() -> None:
        undecided = [outcome for each in outcomes for outcome in each if not outcome.decide()]
        if not undecided:
            answer()
            return
        wait = MarkersWait(undecided, answer, end, data.now_ms() + timeout_ms)
        begun(wait)
        data.wait(wait, owner, park)

    data.slices.run(_appended(data, groups, request.markers, outcomes), wait_or_answer, end, owner)


def _refused(marker: WritableTxnMarker) -> list[_Outcome]:
    return [_Outcome(key, ErrorCode.cluster_authorization_failed) for key in _partitions(marker)]


def _partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]


def _appended(
    data: DataPlane,
    groups: GroupCoordinator,
    markers: Iterable[WritableTxnMarker],
    outcomes: list[list[_Outcome]],
) -> Iterator[None]:
    """Fills `outcomes`, a partition of a marker at each step: some bytes of the request each, and an append."""
    data.settle_soon()
    for marker in markers:
        refusal: ErrorCode | None = None
        if marker.producer_id < 0 or marker.producer_epoch < 0:
            # Kafka answers with UNKNOWN_SERVER_ERROR after an exception; nothing is appended there either.
            is_producer = marker.producer_id >= 0
            refusal = (
                ErrorCode.invalid_producer_epoch if is_producer else ErrorCode.invalid_producer_id_mapping
            )
        outcomes.append(of_marker := [])
        for key in _partitions(marker):
            of_marker.append(
                _append(data, groups, marker, key) if refusal is None else _Outcome(key, refusal)
            )
            yield
            # In the turn of the append, which may be a later one.
            data.settle_soon()


def _append(
    data: DataPlane, groups: GroupCoordinator, marker: WritableTxnMarker, key: TopicPartition
) -> _Outcome:
    partition = data.partitions.online(key)
    if partition is None:
        # Whatever the reason: the coordinator looks for the leader again.
        return _Outcome(key, ErrorCode.unknown_topic_or_partition)
    now_ms = data.now_ms()
    batch = write_transaction_marker(
        TransactionMarker(marker.transaction_result, marker.coordinator_epoch),
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        timestamp_ms=now_ms,
    )
    try:
        appended = partition.append(
            now_ms,
            batch,
            required_acks=ACKS_ALL,
            origin=AppendOrigin.COORDINATOR,
            transaction_version=marker.transaction_version,
        )
    except LogError as error:
        return _Outcome(key, type(error).error_code)
    # Offsets that the transaction committed count from now on, or are gone.
    groups.marker_written(
        now_ms,
        partition,
        marker.producer_id,
        appended.batches.last_offset,
        is_commit=marker.transaction_result,
    )
    return _Outcome(key, waits_at=(partition, appended.required_offset))


def _response(request: WriteTxnMarkersRequest, outcomes: list[list[_Outcome]]) -> WriteTxnMarkersResponse:
    results = []
    for marker, of_marker in zip(request.markers, outcomes, strict=True):
        left = iter(of_marker)
        topics = []
        for topic in marker.topics:
            partitions = [
                WritableTxnMarkerPartitionResult(partition_index=index, error_code=next(left).error)
                for index in topic.partition_indexes
            ]
            topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=tuple(partitions)))
        results.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=tuple(topics)))
    return WriteTxnMarkersResponse(markers=tuple(results))
