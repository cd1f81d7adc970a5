"""Moves of replicas between the log directories of a broker (KIP-113)."""

from collections.abc import Mapping, Sequence
from typing import Final

from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest
from kquorum.cli.clients.live_brokers import ask_each
from kquorum.cli.failures import CliError
from kquorum.node.config.addresses import HostPort
from kquorum.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kquorum.wire.messages.error_codes import ErrorCode

_DOUBT: Final = "moves may have begun all the same: look with `kquorum log-dirs list`"
Place = tuple[str, int]
# Broker -> partition -> the directory it is to be in.
Moves = Mapping[int, Mapping[Place, str]]


async def move_replicas(
    addresses: Mapping[int, HostPort],
    moves: Moves,
    timeout_ms: int,
    reason: str | None = None,
    *,
    may_come: bool = False,
) -> list[str]:
    """The refusals, in words. A broker remembers the directory for a replica that it does not have yet; that is no
    refusal where replicas `may_come`."""
    expected = {ErrorCode.none} | ({ErrorCode.replica_not_available} if may_come else set())

    async def ask(broker_id: int, client: ClusterClient) -> list[str]:
        request = AlterReplicaLogDirsRequest(dirs=_directories(moves[broker_id]))
        answer = await client.ask(PendingRequest(request=request, doubt=_DOUBT))
        return [
            f"{topic.topic_name}-{each.partition_index} on broker {broker_id}: {each.error_code.name.upper()}"
            for topic in answer.results
            for each in topic.partitions
            if each.error_code not in expected
        ]

    answers = await ask_each({each: addresses[each] for each in moves}, timeout_ms, ask, reason)
    refused: list[str] = []
    for broker_id, answer in answers.items():
        refused += [f"broker {broker_id}: {answer}"] if isinstance(answer, CliError) else answer
    return refused


def _directories(moves: Mapping[Place, str]) -> tuple[AlterReplicaLogDir, ...]:
    by_path: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), path in moves.items():
        by_path.setdefault(path, {}).setdefault(topic, []).append(partition)
    return tuple(
        AlterReplicaLogDir(
            path=path,
            topics=tuple(
                AlterReplicaLogDirTopic(name=name, partitions=tuple(ids)) for name, ids in topics.items()
            ),
        )
        for path, topics in by_path.items()
    )


def parse_place(text: str) -> Place:
    """`orders-3`. Raises ValueError."""
    topic, separator, number = text.rpartition("-")
    if not (topic and separator and number.isascii() and number.isdigit()):
        raise ValueError(f"{text!r} is no partition: write TOPIC-NUMBER, as orders-3")
    return topic, int(number)


def check_paths(places: Sequence[Place], broker_id: int, path: str, known: Mapping[str, set[Place]]) -> None:
    """`known`: the directories of the broker, and the partitions in each. Raises CliError."""
    if path not in known:
        raise CliError(
            f"broker {broker_id} has no log directory {path}; it has {', '.join(sorted(known)) or 'none'}"
        )
    held = set[Place]().union(*known.values())
    if absent := [f"{topic}-{partition}" for topic, partition in places if (topic, partition) not in held]:
        raise CliError(
            f"broker {broker_id} has no replica of {', '.join(absent)}: "
            "`kquorum reassign` moves replicas to other brokers"
        )
