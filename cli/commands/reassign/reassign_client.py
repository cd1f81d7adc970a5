"""Reassignments as a client of a broker sees and changes them (KIP-455)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest, check_change, check_error
from kquorum.cli.commands.reassign.balance import Place
from kquorum.cli.commands.topics.topic_client import PartitionView, describe_topics
from kquorum.cli.failures import CliError
from kquorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

# The controller decides about so many in one turn, and writes them in one batch.
_AT_ONCE: Final = 1000
_DOUBT: Final = "partitions may move all the same: look with `kquorum reassign status`"


@dataclass(frozen=True, slots=True)
class Ongoing:
    """A partition under reassignment; `replicas` are the old and the new ones together."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


async def find_ongoing(client: ClusterClient) -> dict[Place, Ongoing]:
    """All of them, by topic and partition. Raises CliError for a refusal."""
    request = ListPartitionReassignmentsRequest(topics=None, timeout_ms=client.remaining_ms)
    answer = await client.ask(request)
    check_error(int(answer.error_code), answer.error_message, "the reassignments cannot be listed")
    found = {
        (topic.name, each.partition_index): Ongoing(
            each.replicas, each.adding_replicas, each.removing_replicas
        )
        for topic in answer.topics
        for each in topic.partitions
    }
    return dict(sorted(found.items()))


async def find_partitions(client: ClusterClient, topics: Sequence[str] | None) -> dict[Place, PartitionView]:
    """Of these topics, or of all. Raises CliError for a topic that is not there."""
    return {
        (topic.name, each.partition_id): each
        for topic in await describe_topics(client, topics)
        for each in topic.partitions
    }


async def reassign(client: ClusterClient, targets: Mapping[Place, Sequence[int] | None]) -> dict[Place, str]:
    """Begin to move partitions to these replicas, or end a move (None); the refusals, in words. Raises CliError where a
    request as a whole is refused."""
    refused: dict[Place, str] = {}
    places = list(targets)
    for start in range(0, len(places), _AT_ONCE):
        by_topic: dict[str, list[ReassignablePartition]] = {}
        for place in places[start : start + _AT_ONCE]:
            replicas = targets[place]
            by_topic.setdefault(place[0], []).append(
                ReassignablePartition(
                    partition_index=place[1], replicas=None if replicas is None else tuple(replicas)
                )
            )
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=client.remaining_ms,
            topics=tuple(
                ReassignableTopic(name=name, partitions=tuple(each)) for name, each in by_topic.items()
            ),
        )
        refused |= await _send(client, request)
    return refused


async def _send(client: ClusterClient, request: AlterPartitionReassignmentsRequest) -> dict[Place, str]:
    answer = await client.ask(PendingRequest(request=request, doubt=_DOUBT))
    check_change(int(answer.error_code), answer.error_message, "the partitions do not move", _DOUBT)
    return {
        (
            topic.name,
            each.partition_index,
        ): f"{each.error_message or 'refused'} ({each.error_code.name.upper()})"
        for topic in answer.responses
        for each in topic.partitions
        if each.error_code is not ErrorCode.none
    }


def check_none_ongoing(ongoing: Mapping[Place, Ongoing], remedy: str) -> None:
    """Raises CliError if something moves."""
    if ongoing:
        names = [f"{topic}-{partition}" for topic, partition in list(ongoing)[:5]]
        more = f" and {len(ongoing) - 5:,} more" if len(ongoing) > 5 else ""
        raise CliError(
            f"partitions are being moved: {', '.join(names)}{more}; wait for them "
            f"(`kquorum reassign status --watch`) or {remedy}"
        )
