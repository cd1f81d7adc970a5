"""Changes of many partitions in slices, when a broker fails, comes, leaves or gives up a directory.

A broker that fails may be in hundreds of thousands of ISRs. Deciding all of that in one turn would keep the leader's
loop from answering fetches for longer than its followers wait, and the next leader would inherit the work, so it would
never be finished. So what is more than one decision may hold (`change_batch.whole_run`) is done in slices, and other
work has its turn between two of them. The broker's own change is written before them: a leader of Kafka's that learns
of a smaller ISR waits for the removed replica as long as its broker counts as unfenced, and does not look again.

The sizes of a slice bound a turn to some tens of milliseconds, on the machine that ran the benchmark
(benchmarks/controller_failover.py shows the longest turn): a change takes some microseconds decided by columns, and
some fifty microseconds decided alone.

A registration is replaced or deleted, and a directory given up, only when no partition counts on it any more. Up to
10,000 records all of it is one decision, as in Kafka. Where there are more, the broker is fenced, then its partitions
change in slices; meanwhile it may neither join an ISR nor lead, and the request is handled after the last slice.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from uuid import UUID

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions.broker_movement import Movement
from kquorum.metadata.controller.partitions.change_batch import (
    Limits,
    Part,
    PartitionChangeBatch,
    run_of,
    whole_run,
)
from kquorum.metadata.image.cluster import BrokerRegistration

PARTITIONS_PER_SLICE = 4096
ONE_BY_ONE_PER_SLICE = 400
# Partitions that are searched, most of them without a replica on the broker; and topics.
LOOKED_AT_PER_SLICE = 32768
TOPICS_PER_SLICE = 2048


class PartitionWalk:
    """Walks all partitions of the existing topics, a slice at a time. Partitions are read when their slice comes, so
    changes since the start are taken into account."""

    def __init__(self, context: DecisionContext) -> None:
        # How many partitions the next slice searches at most.
        self._search_size = LOOKED_AT_PER_SLICE
        # The topics that are left, each with the partition id from which on it is still to be searched.
        self._topics_left: deque[tuple[UUID, int]] = deque(
            (topic_id, 0) for topic_id in context.image.topics.by_id
        )

    @property
    def is_done(self) -> bool:
        return not self._topics_left

    def next_run(self, context: DecisionContext, movement: Movement) -> PartitionChangeBatch:
        """The changes of the next slice; there may be none in it."""
        most = min(PARTITIONS_PER_SLICE, context.config.max_records_per_batch)
        limits = Limits(partitions=most, one_by_one=ONE_BY_ONE_PER_SLICE)
        looked_at = self._next_parts(context)
        run, cut = run_of(context, looked_at.parts, movement, limits)
        # The next slice searches about as many partitions as this one could decide, so that it will hardly be cut.
        seen = sum(len(table) for _, table in looked_at.parts[: None if cut is None else cut[0]])
        self._search_size = (
            min(2 * self._search_size, LOOKED_AT_PER_SLICE) if cut is None else max(seen, most)
        )
        if cut is None:
            self._go_on(looked_at.topic_count, looked_at.rest)
        else:
            part, partition_id = cut
            topic_id = looked_at.parts[part][0].id
            self._go_on(looked_at.topic_of_part[part] + 1, (topic_id, partition_id + 1))
        return run

    def _next_parts(self, context: DecisionContext) -> "_LookedAt":
        looked_at = _LookedAt()
        room = self._search_size
        for topic_id, first_id in islice(self._topics_left, TOPICS_PER_SLICE):
            if room <= 0:
                break
            topic = context.image.topics.by_id.get(topic_id)
            if topic is not None:
                table = topic.partitions
                start = int(table.ids.searchsorted(first_id)) if first_id else 0
                stop = min(len(table), start + room)
                room -= stop - start
                looked_at.parts.append((topic, table.part(start, stop)))
                looked_at.topic_of_part.append(looked_at.topic_count)
                looked_at.rest = (topic_id, int(table.ids[stop])) if stop < len(table) else None
            looked_at.topic_count += 1
        return looked_at

    def _go_on(self, topic_count: int, rest: tuple[UUID, int] | None) -> None:
        """Drop the first `topic_count` topics; put `rest` back, the partition from which the last of them goes on."""
        for _ in range(topic_count):
            self._topics_left.popleft()
        if rest is not None:
            self._topics_left.appendleft(rest)


class BatchedPartitionUpdate:
    """A broker leaves its ISRs and leaderships (`is_leaving`), or becomes leader of partitions that have none."""

    def __init__(self, context: DecisionContext, broker: BrokerRegistration, movement: Movement) -> None:
        self.broker_id = broker.id
        self.broker_epoch = broker.epoch
        self.is_leaving = movement.is_leaving
        self._movement = movement
        self._walk = PartitionWalk(context)

    @property
    def is_done(self) -> bool:
        return self._walk.is_done

    def is_still_due(self, context: DecisionContext) -> bool:
        """Whether the broker is still in the state that started the update: leaving or fenced, or else active. A broker
        that was fenced during its controlled shutdown and is unfenced again keeps `in_controlled_shutdown` until it
        registers again, as with Kafka's controller, but counts as active."""
        broker = context.image.cluster.brokers.get(self.broker_id)
        if broker is None or broker.epoch != self.broker_epoch:
            return False
        is_leaving = broker.fenced or context.liveness.shutdown_offset(broker.id) is not None
        return is_leaving == self.is_leaving

    def next_run(self, context: DecisionContext) -> PartitionChangeBatch:
        """The changes of the next slice; there may be none in it."""
        return self._walk.next_run(context, self._movement)


@dataclass(slots=True)
class _LookedAt:
    """What one slice searches: `parts` of the first `topic_count` of the topics that are left. A deleted topic has no
    part, so `topic_of_part` has the index of each part's topic. `rest` is where the last topic goes on."""

    parts: list[Part] = field(default_factory=list)
    topic_of_part: list[int] = field(default_factory=list)
    topic_count: int = 0
    rest: tuple[UUID, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Which partitions a broker leaves. `is_for_good`: it loses its eligibility as well, because it crashed or was
    unregistered. `failed_directories`: only the partitions there, and it may rejoin them."""

    broker_id: int
    is_for_good: bool = False
    failed_directories: frozenset[UUID] = frozenset()

    def whole_run(self, context: DecisionContext) -> PartitionChangeBatch | None:
        """All changes, for one decision; None if they are too many for one."""
        return whole_run(context, self.movement(context))

    def movement(self, context: DecisionContext) -> Movement:
        return Movement(
            broker_id=self.broker_id,
            is_leaving=True,
            is_for_good=self.is_for_good,
            failed_directories=self.failed_directories,
            is_last_kept=not context.is_elr_enabled,
        )


class BrokerRemoval:
    """Takes a broker off its partitions, a slice at a time, before the request that asked for it is handled: an
    unregistration, a new registration after a crash, or failed directories."""

    def __init__(self, context: DecisionContext, departure: Departure) -> None:
        self.broker_id = departure.broker_id
        self._departure = departure
        self._walk = PartitionWalk(context)
        if not departure.failed_directories:
            context.liveness.begin_removal(departure.broker_id)

    @property
    def is_done(self) -> bool:
        return self._walk.is_done

    def next_run(self, context: DecisionContext) -> PartitionChangeBatch:
        """The changes of the next partitions; there may be none."""
        return self._walk.next_run(context, self._departure.movement(context))
