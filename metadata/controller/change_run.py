"""A run of partition changes that were decided together: as record values, and as what they do to the state."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metadata.controller.bulk_elections import BulkDecision, Movement, concerned_rows, decide
from metadata.controller.context import DecisionContext
from metadata.controller.transitions import leader_and_isr_records
from metadata.image.change_layout import change_values
from metadata.image.metadata_version import partition_record_version
from metadata.image.partition_changes import PartitionChanges, StackedTables
from metadata.image.partitions import PartitionTable
from metadata.image.topics import TopicImage
from wire.metadata_records.topics import PartitionChangeRecord
from wire.record_frame import encode_record

Part = tuple[TopicImage, PartitionTable]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangeRun:
    """`values` are all records in their order; `changes` what can be replayed by columns of them, `others` the rest.

    No two are of the same partition, so the two may be replayed one after the other.
    """

    values: Sequence[bytes]
    changes: PartitionChanges
    others: Sequence[PartitionChangeRecord]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many concerned partitions a run is to have at most, and how many of these decided one by one, which takes
    as long as a good hundred by columns. None: no limit."""

    partitions: int | None = None
    one_by_one: int | None = None


def run_of(
    context: DecisionContext, parts: Sequence[Part], movement: Movement, limits: Limits
) -> tuple[ChangeRun, tuple[int, int] | None]:
    """What changes on these partitions; and if a limit was met, the part (its place) and partition that were last."""
    topics = [topic for topic, _ in parts]
    stack = StackedTables([table for _, table in parts])
    rows = concerned_rows(stack, movement)
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


def _assembled(
    context: DecisionContext,
    topics: Sequence[TopicImage],
    stack: StackedTables,
    decision: BulkDecision,
    movement: Movement,
) -> ChangeRun:
    version = partition_record_version(context.metadata_version)
    values = change_values(decision.changes, version)
    others: list[PartitionChangeRecord] = []
    if len(decision.others):
        placed = list(zip(decision.rows.tolist(), values, strict=True))
        for row in decision.others.tolist():
            record = _one_by_one(context, topics[stack.numbers[row]], int(stack.ids[row]), movement)
            if record is not None:
                others.append(record)
                placed.append((row, encode_record(record, version)))
        values = [value for _, value in sorted(placed, key=lambda pair: pair[0])]
    return ChangeRun(values=values, changes=decision.changes, others=others)


def _one_by_one(
    context: DecisionContext, topic: TopicImage, partition_id: int, movement: Movement
) -> PartitionChangeRecord | None:
    affected = [(topic, np.array([partition_id], dtype=np.int32))]
    broker_id = movement.broker_id
    if movement.is_leaving:
        return next(leader_and_isr_records(context, affected, broker_to_remove=broker_id), None)
    return next(leader_and_isr_records(context, affected, broker_to_add=broker_id), None)
