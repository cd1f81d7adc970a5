"""Adds partitions to a transaction, and waits for the end of the one before: a producer of transaction.version 2 goes
on as soon as the end is decided, and its next records arrive while the markers are still written.

Kafka's coordinator answers CONCURRENT_TRANSACTIONS at once, and the leader of the partition, or the client, asks again
after a pause. Here the commit of the end wakes the addition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from kquorum.broker.coordinators.timers import Timers
from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.replica.partition import TopicPartition
from kquorum.broker.transactions.shard import TransactionShard
from kquorum.wire.messages.error_codes import ErrorCode


class Shards(Protocol):
    """`broker.transactions.coordinator.TransactionCoordinator`."""

    timers: Timers
    now_ms: Callable[[], int]

    def shard_of(self, transactional_id: str) -> TransactionShard | ErrorCode: ...


class Addition:
    """`done` gets the outcome, once. `waits` is called with True when the addition begins to wait for the end of
    another transaction, and with False when it goes on."""

    def __init__(
        self,
        shards: Shards,
        transactional_id: str,
        producer: ProducerEpoch,
        partitions: Collection[TopicPartition],
        *,
        version: int,
        until_ms: int,
        done: Callable[[ErrorCode], None],
        waits: Callable[[bool], None] = lambda _is_waiting: None,
    ) -> None:
        """`version` is the transaction.version by which the client goes; after `until_ms` there is no more waiting."""
        self._shards = shards
        self._transactional_id = transactional_id
        self._producer = producer
        self._partitions = partitions
        self._version = version
        self._until_ms = until_ms
        self._done = done
        self._waits = waits
        self._awaited: TransactionShard | None = None

    def begin(self) -> None:
        now_ms = self._shards.now_ms()
        shard = self._shards.shard_of(self._transactional_id)
        if isinstance(shard, ErrorCode):
            self._done(shard)
            return

        def added(error: ErrorCode) -> None:
            if error is ErrorCode.concurrent_transactions and now_ms < self._until_ms:
                self._wait(shard)
            else:
                self._done(error)

        shard.add_partitions(
            now_ms,
            self._transactional_id,
            self._producer,
            self._partitions,
            version=self._version,
            done=added,
        )

    def _wait(self, shard: TransactionShard) -> None:
        self._waits(True)
        self._shards.timers.set(self, self._until_ms, lambda _now_ms: self.give_up())
        self._awaited = shard
        shard.when_at_rest(self._transactional_id, self._go_on)

    def _go_on(self) -> None:
        if self._end_wait():
            self.begin()

    def give_up(self) -> None:
        """If the addition waits, it is answered: the client, or the leader of the partition, asks again."""
        if self._end_wait():
            self._done(ErrorCode.concurrent_transactions)

    def _end_wait(self) -> bool:
        """Whether the addition waited."""
        shard, self._awaited = self._awaited, None
        if shard is None:
            return False
        self._shards.timers.cancel(self)
        shard.stop_waiting(self._transactional_id, self._go_on)
        self._waits(False)
        return True


class Additions:
    """Those of one request, which has one answer: `done` gets the outcome of each transactional id. The answer does not
    wait for the end of a transaction while another addition is decided: other producers wait for the answer as well."""

    def __init__(self, done: Callable[[Mapping[str, ErrorCode]], None]) -> None:
        self._done = done
        self._left: dict[str, Addition] = {}
        self._outcomes: dict[str, ErrorCode] = {}
        self._waiting = 0
        self._is_waited_for = False

    def add(
        self,
        shards: Shards,
        transactional_id: str,
        producer: ProducerEpoch,
        partitions: Collection[TopicPartition],
        *,
        version: int,
        until_ms: int,
    ) -> None:
        """Each id once. It begins at once."""
        addition = self._left[transactional_id] = Addition(
            shards,
            transactional_id,
            producer,
            partitions,
            version=version,
            until_ms=until_ms,
            done=lambda error: self._decide(transactional_id, error),
            waits=self._note_wait,
        )
        addition.begin()

    def all_added(self, *, has_others: bool) -> None:
        """From now on the answer may go out. `has_others`: another part of the request is decided."""
        self._is_waited_for = True
        self._maybe_finish(is_any_decided=has_others or bool(self._outcomes) or not self._left)

    def _note_wait(self, is_waiting: bool) -> None:
        self._waiting += 1 if is_waiting else -1

    def _decide(self, transactional_id: str, error: ErrorCode) -> None:
        self._outcomes[transactional_id] = error
        del self._left[transactional_id]
        self._maybe_finish(is_any_decided=True)

    def _maybe_finish(self, *, is_any_decided: bool) -> None:
        if not self._is_waited_for or not is_any_decided or self._waiting < len(self._left):
            return
        self._is_waited_for = False
        for each in tuple(self._left.values()):
            each.give_up()
        self._done(self._outcomes)
