"""Moves of replicas between the log directories of this broker (KIP-113, KIP-858).

A replica that moves gets a second log in the other directory, the future log. It is copied from the log piece by piece;
when it has all, the controller is asked to assign the replica to the other directory; and when the controller has, and
the disk has as much of it as of the log, it takes the log's place. Until then the log serves, and nothing is lost by an
end at any point: a move back, a crash, a disk that fails.

Sans-IO: `step` copies one piece, and says what else is due. An adapter calls it again and again, with room for others
in between.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from uuid import UUID

from kquorum.broker.log.errors import CorruptRecord, KafkaStorageError, LogError
from kquorum.broker.log.partition_log import Isolation, PartitionLog
from kquorum.broker.replica.partition import Partition, TopicPartition
from kquorum.metadata.image.directories import is_reserved
from kquorum.wire.data_batch import data_headers

log = logging.getLogger("broker.replica")

SLICE_BYTES: Final = 262_144
# How often it is looked whether a move that waits may go on: for the controller, the disk, or its quota.
POLL_MS: Final = 100
PREFERENCES_KEPT: Final = 10_000


class MovingLogs(Protocol):
    """The logs in this broker's log directories, with those that are being copied."""

    def future(self, topic_partition: TopicPartition) -> PartitionLog | None: ...

    def has_log(self, topic_partition: TopicPartition) -> bool:
        """Whether there is the log itself, beside its copy."""
        ...

    def open_future(
        self, topic_partition: TopicPartition, topic_id: UUID, directory_id: UUID
    ) -> PartitionLog:
        """Made where there is none. Raises KafkaStorageError."""
        ...

    def delete_future(self, topic_partition: TopicPartition) -> None:
        """Set it aside; its files go later. Raises KafkaStorageError."""
        ...

    def promote_future(self, topic_partition: TopicPartition) -> PartitionLog:
        """It takes the place of the log, which is deleted. Raises KafkaStorageError with the log as it was."""
        ...

    def flush_future(self, topic_partition: TopicPartition) -> None:
        """Begin to write it to the disk, unless that is under way."""
        ...

    def is_as_durable(self, topic_partition: TopicPartition) -> bool:
        """Whether the disk has as much of the future log as of the log. Raises KafkaStorageError."""
        ...


class MoveQuota(Protocol):
    """How much may be copied a second."""

    def is_exceeded(self, now_ms: int) -> bool: ...
    def record(self, now_ms: int, size_bytes: int) -> None: ...


class MoveState(enum.Enum):
    """Of the assignment at the controller (Kafka's ReplicaAlterLogDirsThread)."""

    COPYING = enum.auto()
    ASKED = enum.auto()
    ACCEPTED = enum.auto()


@dataclass(slots=True)
class Move:
    partition: Partition
    future: PartitionLog
    source: UUID
    """The directory that the log lies in."""
    state: MoveState = MoveState.COPYING

    @property
    def lag(self) -> int:
        """In offsets; below 0 never, for the future log is cut with the log."""
        return self.partition.log.log_end_offset - self.future.log_end_offset


class LogMoves:
    """`assign` asks the controller for the directory of a replica; `assigned` hears when it has agreed. Without
    `has_assignments` (an old metadata.version) the controller knows no directories, and is not asked."""

    def __init__(
        self,
        logs: MovingLogs,
        quota: MoveQuota,
        assign: Callable[[UUID, int, UUID], None],
        has_assignments: Callable[[], bool],
    ) -> None:
        self._logs = logs
        self._quota = quota
        self._assign = assign
        self._has_assignments = has_assignments
        # In the order in which they were asked for.
        self._moves: dict[TopicPartition, Move] = {}
        # The same, as the controller names them: it answers about thousands at once.
        self._by_id: dict[tuple[UUID, int], Move] = {}
        self._preferred: dict[TopicPartition, UUID] = {}
        self._due_ms = 0

    # What is asked for

    @property
    def moves(self) -> Mapping[TopicPartition, Move]:
        return self._moves

    def prefer(self, topic_partition: TopicPartition, directory_id: UUID) -> None:
        """A log of this partition that is made later is made there, if the controller leaves the choice."""
        self._preferred.pop(topic_partition, None)
        self._preferred[topic_partition] = directory_id
        if len(self._preferred) > PREFERENCES_KEPT:
            del self._preferred[next(iter(self._preferred))]

    def preferred(self, topic_partition: TopicPartition) -> UUID | None:
        return self._preferred.get(topic_partition)

    def move(self, partition: Partition, directory_id: UUID) -> None:
        """Begin to move a partition's log; to where it lies ends a move of it. Raises LogError."""
        key = partition.topic_partition
        known = self._moves.get(key)
        if known is not None and known.future.directory_id == directory_id:
            return
        if known is not None:
            self._cancel(known)
        if partition.log.directory_id == directory_id:
            return
        self._begin(partition, directory_id)

    def _begin(self, partition: Partition, directory_id: UUID) -> Move:
        key = partition.topic_partition
        future = self._logs.open_future(key, partition.topic_id, directory_id)
        move = self._moves[key] = Move(partition, future, partition.log.directory_id)
        self._by_id[partition.topic_id, key.partition] = move
        partition.future = future
        try:
            self._align(move)
        except LogError:
            self._forget(move)
            raise
        log.info(
            "%s-%d: its log is copied to another directory, from offset %d on", *key, future.log_end_offset
        )
        self._due_ms = 0
        return move

    def _cancel(self, move: Move) -> None:
        """Raises KafkaStorageError where the future log cannot be set aside."""
        self._forget(move)
        self._logs.delete_future(move.partition.topic_partition)

    def _forget(self, move: Move) -> None:
        """The controller hears where the replica lies after all, if it may believe otherwise."""
        partition = move.partition
        self._remove(move)
        if move.state is not MoveState.COPYING:
            key = partition.topic_partition
            self._assign(partition.topic_id, key.partition, move.source)

    def _remove(self, move: Move) -> None:
        partition = move.partition
        del self._moves[partition.topic_partition]
        del self._by_id[partition.topic_id, partition.topic_partition.partition]
        partition.future = None

    # What happens to partitions

    def opened(self, partition: Partition, assigned: UUID) -> None:
        """The broker has a partition, with its log: a copy that a crash or a stop left goes on. `assigned` is the
        directory that the controller has for the replica."""
        key = partition.topic_partition
        self._preferred.pop(key, None)
        actual = partition.log.directory_id
        future = self._logs.future(key)
        if future is None:
            if actual != assigned and not is_reserved(assigned) and self._has_assignments():
                self._assign(partition.topic_id, key.partition, actual)
            return
        if future.topic_id != partition.topic_id:
            self._drop_future(key)
            return
        try:
            move = self._begin(partition, future.directory_id)
        except LogError as error:
            log.error("%s-%d: the move of its log does not go on: %s", *key, error)
            return
        if assigned == future.directory_id:
            move.state = MoveState.ACCEPTED

    def stopped(self, topic_partition: TopicPartition) -> None:
        """The broker has the partition no more."""
        move = self._moves.get(topic_partition)
        if move is not None:
            self._remove(move)
        if self._logs.future(topic_partition) is not None:
            self._drop_future(topic_partition)

    def went_offline(self, topic_partition: TopicPartition) -> None:
        """Its log cannot be read any more: there is nothing to copy from."""
        move = self._moves.get(topic_partition)
        if move is not None:
            self._end(move, "its log is offline")

    def directory_failed(self, directory_id: UUID) -> None:
        """Copies there are given up; the logs that they are of stay where they are."""
        for move in [each for each in self._moves.values() if each.future.directory_id == directory_id]:
            self._forget(move)

    def drop_unowned(
        self, found: Collection[TopicPartition], is_hosted: Callable[[TopicPartition], bool]
    ) -> None:
        """Copies that lie there from before, of partitions that this broker has no more."""
        for key in found:
            if key not in self._moves and not is_hosted(key):
                self._drop_future(key)

    def _drop_future(self, topic_partition: TopicPartition) -> None:
        try:
            self._logs.delete_future(topic_partition)
        except LogError as error:
            log.error("the copy of %s-%d stays until the next start: %s", *topic_partition, error)

    def _end(self, move: Move, why: object) -> None:
        """The copy stays where the log itself is gone: the next start has nothing better."""
        log.error("%s-%d: the move of its log ends: %s", *move.partition.topic_partition, why)
        self._forget(move)
        if self._logs.has_log(move.partition.topic_partition):
            self._drop_future(move.partition.topic_partition)

    def assigned(self, topic_id: UUID, index: int, directory_id: UUID) -> None:
        """The controller has assigned a replica of this broker."""
        move = self._by_id.get((topic_id, index))
        if move is not None and move.state is MoveState.ASKED and move.future.directory_id == directory_id:
            move.state = MoveState.ACCEPTED

    # Time

    def next_deadline_ms(self) -> int | None:
        return self._due_ms if self._moves else None

    def step(self, now_ms: int) -> list[Partition]:
        """Copy a piece of one log, and do what else is due; the partitions whose log is another one now."""
        swapped: list[Partition] = []
        self._due_ms = now_ms + POLL_MS
        for move in self._in_order():
            try:
                if self._has_swapped(now_ms, move):
                    swapped.append(move.partition)
            except LogError as error:
                if move.partition.topic_partition in self._moves:
                    self._end(move, error)
        return swapped

    def _in_order(self) -> Iterator[Move]:
        """All that have what their logs have; of the others one alone, by name, as in Kafka: each is done sooner."""
        has_lag = [key for key, move in self._moves.items() if move.lag > 0]
        yield from [move for move in self._moves.values() if move.lag <= 0]
        if has_lag:
            yield self._moves[min(has_lag)]

    def _has_swapped(self, now_ms: int, move: Move) -> bool:
        if move.partition.future is None:
            raise KafkaStorageError("its copy could not be cut with it")
        if move.lag > 0:
            if self._quota.is_exceeded(now_ms):
                return False
            self._copy(now_ms, move)
        self._follow_watermarks(move)
        if move.lag > 0:
            self._due_ms = now_ms
            return False
        if move.state is MoveState.COPYING:
            if self._has_assignments():
                move.state = MoveState.ASKED
                key = move.partition.topic_partition
                self._assign(move.partition.topic_id, key.partition, move.future.directory_id)
                return False
            move.state = MoveState.ACCEPTED
        if move.state is MoveState.ASKED:
            return False
        return self._swap(move)

    def _swap(self, move: Move) -> bool:
        partition = move.partition
        key = partition.topic_partition
        if not self._logs.is_as_durable(key):
            self._logs.flush_future(key)
            return False
        partition.log = self._logs.promote_future(key)
        self._remove(move)
        log.info("%s-%d: its log lies in the other directory now", *key)
        return True

    def _copy(self, now_ms: int, move: Move) -> None:
        """One piece. The log is read as it is: with records that are not committed."""
        source, future = move.partition.log, move.future
        if future.log_end_offset < source.log_start_offset:
            future.truncate_fully_and_start_at(source.log_start_offset)
        found = source.read(
            future.log_end_offset,
            max_bytes=SLICE_BYTES,
            isolation=Isolation.LOG_END,
            at_least_one_batch=True,
        )
        if not found.size_bytes:
            raise CorruptRecord(f"nothing can be read at offset {future.log_end_offset}")
        records = b"".join(found.pieces) if len(found.pieces) > 1 else found.pieces[0]
        if future.log_start_offset == future.log_end_offset:
            # Where a log begins inside a batch, its copy begins with the batch.
            base_offset = next(iter(data_headers(records)))[1].base_offset
            if base_offset < future.log_end_offset:
                future.truncate_fully_and_start_at(base_offset)
        future.append_as_follower(records, leader_epoch=move.partition.leader_epoch, now_ms=now_ms)
        self._quota.record(now_ms, found.size_bytes)

    def _follow_watermarks(self, move: Move) -> None:
        source, future = move.partition.log, move.future
        future.update_high_watermark(min(source.high_watermark, future.log_end_offset))
        if future.log_start_offset < source.log_start_offset <= future.high_watermark:
            future.advance_log_start_offset(source.log_start_offset)

    def _align(self, move: Move) -> None:
        """Cut a copy from before to what it shares with the log, which may have been cut since. Where their last epochs
        differ, the copy begins again."""
        source, future = move.partition.log, move.future
        if future.log_end_offset == future.log_start_offset:
            return
        epoch = future.latest_epoch
        end = None if epoch is None else source.end_of_epoch(epoch)
        if end is None or end.leader_epoch != epoch:
            future.truncate_fully_and_start_at(source.log_start_offset)
        elif end.end_offset < future.log_end_offset:
            future.truncate_to(end.end_offset)
