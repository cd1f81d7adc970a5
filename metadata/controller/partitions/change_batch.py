"""A run of partition changes that were decided together: as record values, and as what they do to the state."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import numpy as np

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions.broker_movement import (
    BulkDecision,
    Movement,
    affected_partitions,
    affected_rows,
    decide,
)
from kquorum.metadata.controller.partitions.partition_change import Affected, leader_and_isr_records
from kquorum.metadata.controller.timeline import RecordRun
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.metadata_version import partition_record_version
from kquorum.metadata.image.partition_changes import PartitionChanges, StackedTables, change_values
from kquorum.metadata.image.partition_records import IDENTITY
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.partitions import PartitionTable
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.record_frame import encode_record

Part = tuple[TopicImage, PartitionTable]

# As many records as Kafka's controller puts into one batch, less those that stand beside the changes: an audit note,
# the broker's own change, the directories that it cordons.
CHANGES_AT_ONCE: Final = 9_996
_OTHER_RECORDS: Final = 4
# Limits of one decision, so that it does not hold up the leader's event loop: changes decided one by one, and
# partitions of the changed topics, whose tables are made again. Both take about as long as a full batch decided by
# columns.
ONE_BY_ONE_AT_ONCE: Final = 1_000
PARTITIONS_TOUCHED_AT_ONCE: Final = 200_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionChangeBatch(RecordRun):
    """`values` are all records in their order; `changes` what can be replayed by columns of them, `others` the rest.

    No two are of the same partition, so the two may be replayed one after the other.
    """

    values: Sequence[bytes]
    changes: PartitionChanges
    others: Sequence[PartitionChangeRecord]

    def replay(self, delta: MetadataDelta, offset: int) -> None:
        is_replayed = delta.replay_changes(self.changes)
        assert is_replayed, "the changes are of partitions of this image"
        for record in self.others:
            delta.replay(record, offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most affected partitions of a run, and the most of them decided one by one (one such takes as long as a
    hundred by columns). None: no limit."""

    partitions: int | None = None
    one_by_one: int | None = None


def run_of(
    context: DecisionContext, parts: Sequence[Part], movement: Movement, limits: Limits
) -> tuple[PartitionChangeBatch, tuple[int, int] | None]:
    """The changes of these partitions. If a limit was reached, also the last part (its place) and partition."""
    topics = [topic for topic, _ in parts]
    stack = StackedTables([table for _, table in parts])
    rows = affected_rows(stack, movement)
    is_cut = limits.partitions is not None and len(rows) > limits.partitions
    decision = decide(context, topics, stack, rows[: limits.partitions], movement)
    rows = rows[: limits.partitions]
    if limits.one_by_one is not None and len(decision.others) > limits.one_by_one:
        is_cut = True
        rows = rows[rows <= decision.others[limits.one_by_one - 1]]
        decision = decision.up_to(int(rows[-1]))
    run = _assembled(context, topics, stack, decision, movement)
    if not is_cut:
        return run, None
    last = int(rows[-1])
    return run, (int(stack.numbers[last]), int(stack.ids[last]))


def whole_run(context: DecisionContext, movement: Movement) -> PartitionChangeBatch | None:
    """All changes of a broker's movement, to be written in one decision with the broker's own change. None if they are
    more than a batch of Kafka's controller holds, or too much work for one turn."""
    most = max(min(CHANGES_AT_ONCE, context.config.max_records_per_batch - _OTHER_RECORDS), 0)
    found = affected_partitions(context.image.topics, movement, most)
    touched = sum(len(topic.partitions) for topic, _ in found)
    if sum(ids.size for _, ids in found) > most or touched > PARTITIONS_TOUCHED_AT_ONCE:
        return None
    limits = Limits(one_by_one=ONE_BY_ONE_AT_ONCE)
    run, cut = run_of(context, [(topic, topic.partitions) for topic, _ in found], movement, limits)
    return run if cut is None else None


def _assembled(
    context: DecisionContext,
    topics: Sequence[TopicImage],
    stack: StackedTables,
    decision: BulkDecision,
    movement: Movement,
) -> PartitionChangeBatch:
    version = partition_record_version(context.metadata_version)
    values = change_values(decision.changes, version)
    others: list[PartitionChangeRecord] = []
    if len(decision.others):
        placed = list(zip(decision.rows.tolist(), values, strict=True))
        single = SingleDecisions(context, movement, version)
        for row in decision.others.tolist():
            decided = single.of(topics[stack.numbers[row]], int(stack.ids[row]))
            if decided is not None:
                others.append(decided[0])
                placed.append((row, decided[1]))
        values = [value for _, value in sorted(placed, key=lambda pair: pair[0])]
    return PartitionChangeBatch(values=values, changes=decision.changes, others=others)


class SingleDecisions:
    """Decides one partition after the other. Of partitions that differ only in their epochs the first decision is
    reused: there are as many kinds as ways to place replicas, and many partitions of each."""

    def __init__(self, context: DecisionContext, movement: Movement, version: int) -> None:
        self._context = context
        self._movement = movement
        self._version = version
        self._rules: dict[UUID, tuple[bool, int | None]] = {}
        self._known: dict[Hashable, tuple[PartitionChangeRecord, bytes] | None] = {}

    def of(self, topic: TopicImage, partition_id: int) -> tuple[PartitionChangeRecord, bytes] | None:
        """The record and its value; None when nothing would change."""
        state = topic.partitions.get(partition_id)
        assert state is not None, "a row is of a partition of its table"
        kind = (_without_epochs(state), self._rules_of(topic))
        if kind not in self._known:
            self._known[kind] = decided = self._decided(topic, partition_id)
            return decided
        known = self._known[kind]
        if known is None:
            return None
        record, value = known
        identity = partition_id.to_bytes(4) + topic.id.bytes
        return (
            replace(record, topic_id=topic.id, partition_id=partition_id),
            value[: IDENTITY.start] + identity + value[IDENTITY.stop :],
        )

    def _rules_of(self, topic: TopicImage) -> tuple[bool, int | None]:
        """The topic's settings for a change."""
        rules = self._rules.get(topic.id)
        if rules is None:
            context = self._context
            rules = context.allows_unclean_election(topic.name), context.min_in_sync_replicas(topic.name)
            self._rules[topic.id] = rules
        return rules

    def _decided(self, topic: TopicImage, partition_id: int) -> tuple[PartitionChangeRecord, bytes] | None:
        affected = [(topic, np.array([partition_id], dtype=np.int32))]
        record = next(iter(movement_records(self._context, affected, self._movement)), None)
        return None if record is None else (record, encode_record(record, self._version))


def _without_epochs(state: PartitionState) -> Hashable:
    return (
        state.replicas,
        state.directories,
        state.isr,
        state.leader,
        state.leader_recovery_state,
        state.removing_replicas,
        state.adding_replicas,
        state.elr,
        state.last_known_elr,
    )


def movement_records(
    context: DecisionContext, affected: Affected, movement: Movement
) -> Iterator[PartitionChangeRecord]:
    """By the rules for single partitions."""
    broker_id, failed = movement.broker_id, movement.failed_directories
    if not movement.is_leaving:
        return leader_and_isr_records(context, affected, broker_to_add=broker_id)
    if movement.is_for_good:
        return leader_and_isr_records(context, affected, unclean_broker=broker_id)
    return leader_and_isr_records(
        context,
        affected,
        broker_to_remove=broker_id,
        is_affected=(lambda state: state.directory_of(broker_id) in failed) if failed else None,
    )
