"""One partition of a coordinator's topic that this broker leads: how it is loaded, written, timed and given up.

Sans-IO: `now_ms` is an argument, and the shard reads and writes the log through the partition. What the records mean is
said by `broker.groups.shard` and `broker.transactions.shard`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import ClassVar

from kquorum.broker.coordinators.coordinator_log import CoordinatorLog
from kquorum.broker.coordinators.loading import LogLoad, ShardState
from kquorum.broker.coordinators.timers import Earliest, Timers
from kquorum.broker.log.errors import LogError
from kquorum.broker.replica.partition import Partition
from kquorum.wire.errors import DecodeError
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.record_batch import BatchHeader


class CoordinatorShard(ABC):
    SERVES: ClassVar[str]
    """What the broker refuses where the partition cannot be loaded, for the operator."""
    REQUIRED_ACKS: ClassVar[int]

    def __init__(
        self, partition: Partition, logger: logging.Logger, earliest: Earliest | None = None
    ) -> None:
        """`earliest` is shared by the shards of a coordinator."""
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state = ShardState.LOADING
        self.timers = Timers(earliest)
        self.log = CoordinatorLog(
            partition, self.timers, required_acks=self.REQUIRED_ACKS, on_high_watermark=self.commit_to
        )
        self._load = LogLoad(partition)
        self._logger = logger

    @property
    def refusal(self) -> ErrorCode:
        return self.state.refusal

    # Loading

    @property
    @abstractmethod
    def load_buffer_bytes(self) -> int: ...

    @property
    def has_to_read(self) -> bool:
        """Whether the shard has not read its log to the end yet."""
        return self.state is ShardState.LOADING

    @property
    def has_work(self) -> bool:
        """Whether there is something that takes long: to load, for one."""
        return self.has_to_read

    def work_some(self, now_ms: int) -> None:
        """A part of what takes long."""
        self.load_some(now_ms)

    def load_some(self, now_ms: int) -> None:
        """Read and replay the next part of the log, up to its end: what the former leader wrote, committed or not."""
        if not self.has_to_read:
            return
        before = self._load.next_offset
        try:
            for data, position, header in self._load.next_batches(self.load_buffer_bytes):
                self.replay_batch(data, position, header)
        except (DecodeError, LogError, ValueError) as error:
            self.state = ShardState.FAILED
            self._logger.error(
                "%s-%d cannot be loaded from offset %d on, so this broker refuses its %s: %s",
                *self.partition.topic_partition,
                self._load.next_offset,
                self.SERVES,
                error,
            )
            return
        if self._load.next_offset > before:
            # So that what waits for its commit does not pile up (KAFKA-19716).
            self.commit_to(self.partition.log.high_watermark)
            return
        self.log.start_at(before)
        self.loaded(now_ms)

    @abstractmethod
    def replay_batch(self, data: bytes, position: int, header: BatchHeader) -> None:
        """Raises DecodeError, and ValueError for what contradicts the records before."""
        ...

    @abstractmethod
    def loaded(self, now_ms: int) -> None:
        """All of the log is read."""
        ...

    def commit_to(self, high_watermark: int) -> None:  # noqa: B027 - nothing to do for a shard with one state
        """Records below the high watermark are committed: for shards that keep two states."""

    # Time and replicas

    def advance(self, now_ms: int) -> None:
        """The high watermark may have moved."""
        if self.state is ShardState.ACTIVE:
            self.log.advance(now_ms)

    def expire(self, now_ms: int) -> None:
        self.timers.fire(now_ms)

    def next_deadline_ms(self) -> int | None:
        return self.timers.next_deadline_ms()

    def close(self) -> None:
        """This broker leads the partition no longer. The log is not asked for anything: it may be gone."""
        self.state = ShardState.CLOSED
        self.given_up()
        self.timers.clear()
        self.log.fail_all(ErrorCode.not_coordinator)

    @abstractmethod
    def given_up(self) -> None:
        """Before the timers end and the answers that wait are errors."""
        ...
