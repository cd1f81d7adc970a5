"""New partitions: placed by us or by the client."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from metadata.controller.context import DecisionContext
from metadata.controller.placement import StripedPlacer
from metadata.controller.requests import ApiError
from metadata.image.partition_state import NO_LEADER, PartitionState

USE_DEFAULT = -1


def placer_of(context: DecisionContext) -> StripedPlacer:
    """For all topics of one request, so that they are spread together."""
    brokers = (
        replace(broker, in_controlled_shutdown=True) if context.is_leaving(broker) else broker
        for broker in context.image.cluster.brokers.values()
    )
    return StripedPlacer(brokers, context.dice, context.image.topics.led_counts)


def automatic_partitions(
    context: DecisionContext, placer: StripedPlacer, asked: Any
) -> tuple[PartitionState, ...]:
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
    return tuple(new_partitions(context, placer.place(count, factor)))


def manual_partitions(context: DecisionContext, asked: Any) -> tuple[PartitionState, ...]:
    """Raises INVALID_REQUEST, INVALID_REPLICA_ASSIGNMENT."""
    if asked.replication_factor != USE_DEFAULT:
        reason = "A manual partition assignment was specified, but replication factor was not set to -1."
        raise ApiError(ErrorCode.invalid_request, reason)
    if asked.num_partitions != USE_DEFAULT:
        reason = "A manual partition assignment was specified, but numPartitions was not set to -1."
        raise ApiError(ErrorCode.invalid_request, reason)
    partitions: dict[int, PartitionState] = {}
    for assignment in asked.assignments:
        partition_id = assignment.partition_index
        if partition_id in partitions:
            raise _invalid(f"Found multiple manual partition assignments for partition {partition_id}")
        partitions[partition_id] = manual_partition(
            context, partition_id, assignment.broker_ids, len(asked.assignments[0].broker_ids)
        )
    if sorted(partitions) != list(range(len(partitions))):
        raise _invalid("partitions should be a consecutive 0-based integer sequence")
    return tuple(partitions[partition_id] for partition_id in range(len(partitions)))


def manual_partition(
    context: DecisionContext, partition_id: int, replicas: Iterable[int], replication_factor: int
) -> PartitionState:
    """Raises INVALID_REPLICA_ASSIGNMENT."""
    state = new_partition(context, check_replicas(context, replicas, replication_factor))
    if not state.isr:
        raise _invalid(
            f"All brokers specified in the manual partition assignment for partition {partition_id} are fenced or in "
            "controlled shutdown."
        )
    return state


def check_replicas(
    context: DecisionContext, replicas: Iterable[int], replication_factor: int | None = None
) -> tuple[int, ...]:
    """Raises INVALID_REPLICA_ASSIGNMENT unless they are different, registered brokers, as many as other partitions
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


def new_partition(context: DecisionContext, replicas: tuple[int, ...]) -> PartitionState:
    return next(new_partitions(context, [replicas]))


def new_partitions(context: DecisionContext, placed: Iterable[tuple[int, ...]]) -> Iterator[PartitionState]:
    """Every replica whose broker is up is in sync with a partition that is empty, and the first of them leads.

    A topic may have ten thousand partitions on a handful of brokers, so each broker is looked at once.
    """
    is_up: dict[int, bool] = {}
    directories: dict[int, UUID] = {}
    for replicas in placed:
        for replica in replicas:
            if replica not in is_up:
                broker = context.image.cluster.brokers[replica]
                is_up[replica] = broker.is_active and not context.is_leaving(broker)
                directories[replica] = context.default_directory(replica)
        isr = tuple([replica for replica in replicas if is_up[replica]])
        yield PartitionState(
            replicas=replicas,
            directories=tuple([directories[replica] for replica in replicas]),
            isr=isr,
            leader=isr[0] if isr else NO_LEADER,
        )


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.invalid_replica_assignment, reason)
