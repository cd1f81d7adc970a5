"""Ids for idempotent producers: this broker takes them from blocks that the controller allots (AllocateProducerIds).

Sans-IO: a runner sends the request that is due and passes in the answer. The next block is asked for when a tenth of
the current one is left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kquorum.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode

RETRY_BACKOFF_MS: Final = 50
_ASK_WHEN_LEFT: Final = 0.1


class ProducerIds:
    """`poke` tells the runner that a request has become due."""

    def __init__(self, broker_id: int, poke: Callable[[], None] = lambda: None) -> None:
        self._broker_id = broker_id
        self.poke = poke
        self._next = 0
        self._end = 0
        self._ask_at = 0
        self._following: tuple[int, int] | None = None
        self._is_wanted = False
        self._is_under_way = False
        self._not_before_ms = 0
        self._waiting: dict[int, Callable[[], None]] = {}
        self._waits = 0

    def take(self) -> int | None:
        """An id that no producer had; None while the controller is asked for more."""
        if not self.has_one():
            return None
        self._next += 1
        return self._next - 1

    def has_one(self) -> bool:
        """Whether `take` gives an id; if not, the controller is asked for more."""
        if self._next == self._end and self._following is not None:
            start, length = self._following
            self._following = None
            self._next, self._end = start, start + length
            self._ask_at = self._end - int(length * _ASK_WHEN_LEFT)
        if self._next >= self._ask_at and self._following is None and not self._is_wanted:
            self._is_wanted = True
            self.poke()
        return self._next < self._end

    def when_there(self, call: Callable[[], None]) -> Callable[[], None]:
        """`call` when the controller has allotted a block. What is returned withdraws it: nothing waits for longer than
        its request does, however long the controllers are away."""
        self._waits += 1
        number = self._waits
        self._waiting[number] = call

        def withdraw() -> None:
            self._waiting.pop(number, None)

        return withdraw

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    # The side of the runner

    def next_deadline_ms(self) -> int | None:
        return self._not_before_ms if self._is_wanted and not self._is_under_way else None

    def maybe_next_request(self, now_ms: int, broker_epoch: int) -> AllocateProducerIdsRequest | None:
        if not self._is_wanted or self._is_under_way or broker_epoch < 0 or now_ms < self._not_before_ms:
            return None
        self._is_under_way = True
        return AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=broker_epoch)

    def handle_reply(self, now_ms: int, response: AllocateProducerIdsResponse) -> None:
        self._is_under_way = False
        if response.error_code is not ErrorCode.none or response.producer_id_len <= 0:
            self._not_before_ms = now_ms + RETRY_BACKOFF_MS
            return
        self._is_wanted = False
        self._following = (response.producer_id_start, response.producer_id_len)
        waiting, self._waiting = self._waiting, {}
        for call in waiting.values():
            call()

    def handle_failure(self, now_ms: int) -> None:
        self._is_under_way = False
        self._not_before_ms = now_ms + RETRY_BACKOFF_MS
