"""The log directories of brokers, as each broker tells of its own (KIP-113, KIP-827)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kquorum.cli.clients.cluster_client import ClusterClient, check_error
from kquorum.cli.clients.live_brokers import ask_each
from kquorum.cli.failures import CliError
from kquorum.node.config.addresses import HostPort
from kquorum.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kquorum.wire.messages.error_codes import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReplica:
    """One log in a directory. `lag` is in records: behind the high watermark, or of a future log, which takes the
    place of the present one when it has caught up, behind that one."""

    topic: str
    partition: int
    size_bytes: int
    lag: int
    is_future: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectory:
    """`total_bytes` and `usable_bytes` are those of the file system, None where the broker does not tell; `fault` is
    an error's name."""

    broker_id: int
    path: str
    total_bytes: int | None
    usable_bytes: int | None
    is_cordoned: bool
    fault: str | None
    replicas: tuple[StoredReplica, ...]

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.replicas)


async def find_log_dirs(
    addresses: Mapping[int, HostPort],
    partitions: Mapping[str, Collection[int]] | None,
    timeout_ms: int,
) -> tuple[list[LogDirectory], dict[int, CliError]]:
    """Of all brokers at once, with these partitions (None: all), and why a broker told nothing."""
    topics = None
    if partitions is not None:
        topics = tuple(
            DescribableLogDirTopic(topic=name, partitions=tuple(sorted(ids)))
            for name, ids in partitions.items()
        )

    async def ask(broker_id: int, client: ClusterClient) -> list[LogDirectory]:
        answer = await client.ask(DescribeLogDirsRequest(topics=topics))
        check_error(int(answer.error_code), None, f"broker {broker_id} tells no log directories")
        return [
            LogDirectory(
                broker_id=broker_id,
                path=each.log_dir,
                total_bytes=each.total_bytes if each.total_bytes >= 0 else None,
                usable_bytes=each.usable_bytes if each.usable_bytes >= 0 else None,
                is_cordoned=each.is_cordoned,
                fault=None if each.error_code is ErrorCode.none else each.error_code.name.upper(),
                replicas=tuple(
                    StoredReplica(
                        topic=topic.name,
                        partition=stored.partition_index,
                        size_bytes=stored.partition_size,
                        lag=stored.offset_lag,
                        is_future=stored.is_future_key,
                    )
                    for topic in each.topics
                    for stored in topic.partitions
                ),
            )
            for each in answer.results
        ]

    answers = await ask_each(dict(addresses), timeout_ms, ask)
    found = [each for answer in answers.values() if not isinstance(answer, CliError) for each in answer]
    silent = {broker_id: answer for broker_id, answer in answers.items() if isinstance(answer, CliError)}
    return sorted(found, key=lambda each: (each.broker_id, each.path)), silent
