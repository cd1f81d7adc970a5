"""Asks the controller for the ISRs that the leaders of this broker propose (AlterPartition, KIP-497).

Sans-IO: a runner asks for the request that is due and passes in its outcome. One request is under way at a time, with
all changes that wait; each partition has one change in it at most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol
from uuid import UUID

from kquorum.broker.replica.isr import IsrAnswer, IsrChange, RefusedChange
from kquorum.metadata.image.partition_state import RECOVERED
from kquorum.metadata.isr_changes import changes_of_isr
from kquorum.wire.message_schema import ByVersion
from kquorum.wire.messages.alter_partition import (
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    ResponsePartitionData,
)
from kquorum.wire.messages.error_codes import ErrorCode

RETRY_BACKOFF_MS: Final = 50

_Key = tuple[UUID, int]


class LeaderOf(Protocol):
    """The leader's side of a change: `broker.replica.partition.Partition`."""

    def isr_change_made(self, now_ms: int, change: IsrChange, answer: IsrAnswer) -> bool: ...
    def isr_change_refused(self, change: IsrChange, error: ErrorCode) -> RefusedChange | None: ...


class AlterPartitions:
    def __init__(self, broker_id: int, leader_of: Callable[[IsrChange], LeaderOf | None]) -> None:
        """`leader_of` finds the partition of a change; None where this broker has it no longer."""
        self._broker_id = broker_id
        self._leader_of = leader_of
        self._waiting: dict[_Key, IsrChange] = {}
        self._in_flight: tuple[_Key, ...] = ()
        self._due_ms = 0

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    def submit(self, change: IsrChange) -> bool:
        """Queue a change. One partition can have one: of an earlier leader epoch, say, whose answer is still out. The
        new change is rolled back then, and the next fetch of the follower proposes it again."""
        key = (change.topic_id, change.partition)
        if key in self._waiting:
            leader = self._leader_of(change)
            if leader is not None:
                leader.isr_change_refused(change, ErrorCode.operation_not_attempted)
            return False
        self._waiting[key] = change
        return True

    def next_deadline_ms(self) -> int | None:
        return self._due_ms if self._waiting and not self._in_flight else None

    def maybe_next_request(self, now_ms: int, broker_epoch: int) -> ByVersion[AlterPartitionResponse] | None:
        """All changes that wait, which then count as under way; None when nothing is due."""
        if self._in_flight or not self._waiting or now_ms < self._due_ms or broker_epoch < 0:
            return None
        self._in_flight = tuple(self._waiting)
        topics: dict[UUID, list[RequestPartitionData]] = {}
        for change in self._waiting.values():
            topics.setdefault(change.topic_id, []).append(_asked(change))
        return changes_of_isr(self._broker_id, broker_epoch, topics)

    def handle_reply(self, now_ms: int, response: AlterPartitionResponse) -> None:
        """A request that failed as a whole is sent again after a pause, with the broker epoch of that time. A partition
        that the answer leaves out stays queued."""
        if response.error_code is not ErrorCode.none:
            self.handle_failure(now_ms)
            return
        asked, self._in_flight = self._in_flight, ()
        answers = {
            (topic.topic_id, partition.partition_index): partition
            for topic in response.topics
            for partition in topic.partitions
        }
        done = [(self._waiting.pop(key), answers[key]) for key in asked if key in answers]
        # One that has to be sent again, or that was left out, would otherwise be sent in a tight loop.
        self._due_ms = now_ms + (RETRY_BACKOFF_MS if len(done) < len(asked) else 0)
        for change, answer in done:
            self._settle(now_ms, change, answer)

    def handle_failure(self, now_ms: int) -> None:
        self._in_flight = ()
        self._due_ms = now_ms + RETRY_BACKOFF_MS

    def _settle(self, now_ms: int, change: IsrChange, answer: ResponsePartitionData) -> None:
        leader = self._leader_of(change)
        if leader is None:
            return
        if answer.error_code is ErrorCode.none:
            made = IsrAnswer(answer.leader_epoch, answer.partition_epoch, frozenset(answer.isr))
            leader.isr_change_made(now_ms, change, made)
        elif leader.isr_change_refused(change, answer.error_code) is RefusedChange.SEND_AGAIN:
            self._due_ms = now_ms + RETRY_BACKOFF_MS


def _asked(change: IsrChange) -> RequestPartitionData:
    return RequestPartitionData(
        partition_index=change.partition,
        leader_epoch=change.leader_epoch,
        new_isr_with_epochs=tuple(
            BrokerState(broker_id=member.broker_id, broker_epoch=member.broker_epoch)
            for member in change.members
        ),
        leader_recovery_state=RECOVERED,
        partition_epoch=change.partition_epoch,
    )
