"""The partitions of a new topic: placed by us or by the client."""

from typing import Any

from kio.schema.errors import ErrorCode

from metadata.controller.context import DecisionContext
from metadata.controller.placement import StripedPlacer
from metadata.controller.requests import ApiError
from metadata.image.partition_state import PartitionState

USE_DEFAULT = -1


def automatic_partitions(context: DecisionContext, asked: Any) -> tuple[PartitionState, ...]:
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
    placer = StripedPlacer(context.image.cluster.brokers.values(), context.dice)
    return tuple(_new_partition(context, replicas) for replicas in placer.place(count, factor))


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
        if assignment.partition_index in partitions:
            raise _invalid(
                f"Found multiple manual partition assignments for partition {assignment.partition_index}"
            )
        replicas = tuple(assignment.broker_ids)
        _check_replicas(context, replicas, len(asked.assignments[0].broker_ids))
        partitions[assignment.partition_index] = _new_partition(context, replicas)
        if not partitions[assignment.partition_index].isr:
            raise _invalid(
                "All brokers specified in the manual partition assignment for partition "
                f"{assignment.partition_index} are fenced or in controlled shutdown."
            )
    if sorted(partitions) != list(range(len(partitions))):
        raise _invalid("partitions should be a consecutive 0-based integer sequence")
    return tuple(partitions[partition_id] for partition_id in range(len(partitions)))


def _check_replicas(context: DecisionContext, replicas: tuple[int, ...], expected: int) -> None:
    if not replicas:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    if len(set(replicas)) != len(replicas):
        raise _invalid(f"The manual partition assignment includes a broker more than once: {list(replicas)}.")
    for replica in sorted(replicas):
        if replica not in context.image.cluster.brokers:
            reason = f"The manual partition assignment includes broker {replica}, but no such broker is registered."
            raise _invalid(reason)
    if len(replicas) != expected:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {expected} replica(s)."
        )


def _new_partition(context: DecisionContext, replicas: tuple[int, ...]) -> PartitionState:
    """Whoever is up is in sync with a partition that is empty, and the first of them leads."""
    isr = tuple(replica for replica in replicas if context.image.cluster.is_active(replica))
    return PartitionState(
        replicas=replicas,
        directories=tuple(context.default_directory(replica) for replica in replicas),
        isr=isr,
        leader=isr[0] if isr else -1,
    )


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.invalid_replica_assignment, reason)
