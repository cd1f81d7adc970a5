"""New partitions: placed by us or by the client."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from uuid import UUID

import numpy as np

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.requests import ApiError
from kquorum.metadata.controller.timeline import Entry, RecordRun
from kquorum.metadata.controller.topics.placement import StripedPlacer
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.loading import WORTH_COLUMNS
from kquorum.metadata.image.partition_changes import compacted
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.partitions import Column, PartitionTable, table_of_new
from kquorum.metadata.image.records import partition_record, values_of_partitions
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.messages.create_topics import CreatableTopic
from kquorum.wire.messages.error_codes import ErrorCode

USE_DEFAULT = -1

# The replicas of each partition, preferred first, as many of each.
Placed = Sequence[tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionRun(RecordRun):
    """New partitions of one topic: the values of their PartitionRecords, and the rows of its table."""

    values: Sequence[bytes]
    topic_id: UUID
    partitions: PartitionTable

    def replay(self, delta: MetadataDelta, offset: int) -> None:  # noqa: ARG002 - nothing of it can fail
        delta.replay_partitions([(self.topic_id, self.partitions)])


def placer_of(context: DecisionContext) -> StripedPlacer:
    """One placer for all topics of a request, so that they are spread together."""
    brokers = (
        replace(broker, in_controlled_shutdown=True) if context.is_leaving(broker) else broker
        for broker in context.image.cluster.brokers.values()
    )
    return StripedPlacer(brokers, context.random_source, context.image.topics.led_counts)


def automatic_partitions(context: DecisionContext, placer: StripedPlacer, asked: CreatableTopic) -> Placed:
    """Raises INVALID_REPLICATION_FACTOR, INVALID_PARTITIONS."""
    factor, count = asked.replication_factor, asked.num_partitions
    if factor < USE_DEFAULT or factor == 0:
        reason = "Replication factor must be larger than 0, or -1 to use the default value."
        raise ApiError(ErrorCode.invalid_replication_factor, reason)
    if count < USE_DEFAULT or count == 0:
        reason = "Number of partitions was set to an invalid non-positive value."
        raise ApiError(ErrorCode.invalid_partitions, reason)
    factor = context.config.default_replication_factor if factor == USE_DEFAULT else factor
    count = context.config.num_partitions if count == USE_DEFAULT else count
    return placer.place(count, factor)


def manual_partitions(context: DecisionContext, asked: CreatableTopic) -> Placed:
    """Raises INVALID_REQUEST, INVALID_REPLICA_ASSIGNMENT."""
    if asked.replication_factor != USE_DEFAULT:
        reason = "A manual partition assignment was specified, but replication factor was not set to -1."
        raise ApiError(ErrorCode.invalid_request, reason)
    if asked.num_partitions != USE_DEFAULT:
        reason = "A manual partition assignment was specified, but numPartitions was not set to -1."
        raise ApiError(ErrorCode.invalid_request, reason)
    placed: dict[int, tuple[int, ...]] = {}
    for assignment in asked.assignments:
        partition_id = assignment.partition_index
        if partition_id in placed:
            raise _invalid(f"Found multiple manual partition assignments for partition {partition_id}")
        placed[partition_id] = assigned_replicas(
            context, partition_id, assignment.broker_ids, len(asked.assignments[0].broker_ids)
        )
    if sorted(placed) != list(range(len(placed))):
        raise _invalid("partitions should be a consecutive 0-based integer sequence")
    return [placed[partition_id] for partition_id in range(len(placed))]


def assigned_replicas(
    context: DecisionContext, partition_id: int, replicas: Iterable[int], replication_factor: int
) -> tuple[int, ...]:
    """Raises INVALID_REPLICA_ASSIGNMENT."""
    checked = check_replicas(context, replicas, replication_factor)
    if not any(is_up(context, replica) for replica in checked):
        raise _invalid(
            f"All brokers specified in the manual partition assignment for partition {partition_id} are fenced or in "
            "controlled shutdown."
        )
    return checked


def check_replicas(
    context: DecisionContext, replicas: Iterable[int], replication_factor: int | None = None
) -> tuple[int, ...]:
    """Raises INVALID_REPLICA_ASSIGNMENT unless they are distinct, registered brokers, as many as the other partitions
    have."""
    checked = tuple(replicas)
    if not checked:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    for previous, replica in pairwise((None, *sorted(checked))):
        if replica not in context.image.cluster.brokers:
            reason = f"The manual partition assignment includes broker {replica}, but no such broker is registered."
            raise _invalid(reason)
        if replica == previous:
            raise _invalid(f"The manual partition assignment includes the broker {replica} more than once.")
    if replication_factor is not None and len(checked) != replication_factor:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(checked)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )
    return checked


def new_partitions(
    context: DecisionContext, topic: TopicImage, placed: Placed, first_id: int = 0
) -> list[Entry]:
    """The records of new partitions of the topic, with ids from `first_id` on: many are one run.

    The replicas that are up are in sync with a partition that is empty, and the first of them leads: each has one, for
    the placer begins with one, and assignments without one were refused.
    """
    level = context.metadata_version
    if len(placed) < WORTH_COLUMNS:
        states = enumerate(_states_of(context, placed), first_id)
        return [partition_record(topic, partition_id, state, level) for partition_id, state in states]
    table = _table_of(context, placed, first_id)
    values = values_of_partitions(topic, table, level)
    return [PartitionRun(values=values, topic_id=topic.id, partitions=table)]


def is_up(context: DecisionContext, broker_id: int) -> bool:
    """Whether a new partition may have this broker, which is registered, in its ISR."""
    broker = context.image.cluster.brokers[broker_id]
    return broker.is_active and not context.is_leaving(broker)


def _states_of(context: DecisionContext, placed: Placed) -> Iterator[PartitionState]:
    brokers = dict.fromkeys(chain.from_iterable(placed))
    are_up = {broker: is_up(context, broker) for broker in brokers}
    directories = {broker: context.default_directory(broker) for broker in brokers}
    for replicas in placed:
        isr = tuple([replica for replica in replicas if are_up[replica]])
        yield PartitionState(
            replicas=replicas,
            directories=tuple([directories[replica] for replica in replicas]),
            isr=isr,
            leader=isr[0],
        )


def _table_of(context: DecisionContext, placed: Placed, first_id: int) -> PartitionTable:
    """The same by columns. A topic may have ten thousand partitions on a handful of brokers."""
    replicas = _rows_of(placed)
    brokers = np.unique(replicas)
    places = brokers.searchsorted(replicas)
    numbers: dict[UUID, int] = {}
    directories = np.array(
        [numbers.setdefault(context.default_directory(each), len(numbers)) for each in brokers.tolist()],
        dtype=np.int32,
    )
    are_up = np.array([is_up(context, each) for each in brokers.tolist()])
    isr = replicas
    if not are_up.all():
        is_in_sync = are_up[places]
        isr = compacted(replicas, is_in_sync)[:, : is_in_sync.sum(axis=1).max()]
    ids = np.arange(first_id, first_id + len(placed), dtype=np.int32)
    return table_of_new(ids, replicas, isr, directories[places], tuple(numbers))


def _rows_of(placed: Placed) -> Column:
    """In shape (partitions, replicas of each)."""
    flat = np.fromiter(chain.from_iterable(placed), dtype=np.int32, count=len(placed) * len(placed[0]))
    return flat.reshape(len(placed), len(placed[0]))


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.invalid_replica_assignment, reason)
