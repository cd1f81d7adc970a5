"""Throttles of replication (KIP-73): rates of brokers, and the replicas of topics for which they count.

They are configs, which stay when a move has ended: what sets them must also remove them, or ordinary replication is
slow ever after.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kquorum.cli.clients.cluster_client import ClusterClient
from kquorum.cli.clients.live_brokers import ask_each, live_brokers
from kquorum.cli.commands.configs.config_client import (
    DELETE,
    SET,
    SOURCES,
    Operation,
    Resource,
    alter_configs,
    broker_resource,
    topic_resource,
)
from kquorum.cli.commands.reassign.balance import Place
from kquorum.cli.failures import CliError
from kquorum.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kquorum.wire.messages.error_codes import ErrorCode

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
_RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
_REPLICAS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
_AT_ONCE: Final = 500
# A string of a record has 32,767 bytes.
_LONGEST_VALUE: Final = 32_000
# Set for this very topic or broker.
_OWN: Final = frozenset({"topic", "broker"})


@dataclass(frozen=True, slots=True)
class Throttles:
    """Which keys are set: by broker with their rates, and by topic."""

    rates: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    topics: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def are_set(self) -> bool:
        return bool(self.rates or self.topics)

    @property
    def words(self) -> str:
        """`1,000,000 bytes/s on brokers 11 12; replicas of topics orders`."""
        by_rate: dict[str, list[int]] = {}
        for broker_id, values in self.rates.items():
            for rate in dict.fromkeys(values.values()):
                by_rate.setdefault(rate, []).append(broker_id)
        parts = [
            f"{int(rate) if rate.isdigit() else rate:,} bytes/s on {_brokers(ids)}"
            if rate.isdigit()
            else rate
            for rate, ids in by_rate.items()
        ]
        if self.topics:
            names = sorted(self.topics)
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            parts.append(f"for replicas of {', '.join(names[:3])}{more}")
        return "; ".join(parts)


def _brokers(ids: Sequence[int]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {' '.join(map(str, sorted(ids)))}"


async def find_throttles(client: ClusterClient, topics: Sequence[str]) -> Throttles:
    """Of the live brokers, and of these topics. Raises CliError for a refusal."""
    of_topics: dict[str, list[str]] = {}
    for start in range(0, len(topics), _AT_ONCE):
        resources = [topic_resource(name) for name in topics[start : start + _AT_ONCE]]
        for resource, found in (await _set_keys(client, resources, _REPLICAS)).items():
            of_topics[resource.name] = list(found)
    addresses = {broker_id: each.address for broker_id, each in (await live_brokers(client)).items()}

    async def ask(broker_id: int, broker: ClusterClient) -> Mapping[str, str]:
        resource = broker_resource(broker_id)
        return (await _set_keys(broker, [resource], _RATES)).get(resource, {})

    answers = await ask_each(addresses, client.remaining_ms, ask)
    for answer in answers.values():
        if isinstance(answer, CliError):
            raise answer
    rates = {each: found for each, found in answers.items() if found and not isinstance(found, CliError)}
    return Throttles(rates, of_topics)


async def _set_keys(
    client: ClusterClient, resources: Sequence[Resource], keys: Sequence[str]
) -> dict[Resource, dict[str, str]]:
    """Of each resource that has some of its own; one that is gone has none."""
    asked = tuple(
        DescribeConfigsResource(
            resource_type=each.type, resource_name=each.name, configuration_keys=tuple(keys)
        )
        for each in resources
    )
    answer = await client.ask(DescribeConfigsRequest(resources=asked))
    found: dict[Resource, dict[str, str]] = {}
    for resource, result in zip(resources, answer.results, strict=True):
        if result.error_code is ErrorCode.unknown_topic_or_partition:
            continue
        if result.error_code is not ErrorCode.none:
            name = result.error_code.name.upper()
            raise CliError(
                f"throttles of {resource.words} cannot be looked up: {result.error_message} ({name})"
            )
        values = {
            each.name: each.value
            for each in result.configs
            if each.value and SOURCES.get(each.config_source) in _OWN
        }
        if values:
            found[resource] = values
    return found


async def set_throttles(
    client: ClusterClient, rate: int, moves: Mapping[Place, tuple[Sequence[int], Sequence[int]]]
) -> None:
    """`rate` bytes/s for all brokers that take part: the replicas of before may send, and the new ones fetch, no
    faster. `moves` has both, of all moves of a topic: the lists of replicas of its topics are replaced. Raises CliError
    for a refusal."""
    brokers: set[int] = set()
    sources: dict[str, list[str]] = {}
    arrivals: dict[str, list[str]] = {}
    for (topic, partition), (before, after) in moves.items():
        new = [each for each in after if each not in before]
        if new:
            brokers.update(before, new)
            sources.setdefault(topic, []).extend(f"{partition}:{each}" for each in before)
            arrivals.setdefault(topic, []).extend(f"{partition}:{each}" for each in new)
    for topic, entries in sources.items():
        operations = [
            Operation(SET, LEADER_REPLICAS, _listed(entries)),
            Operation(SET, FOLLOWER_REPLICAS, _listed(arrivals[topic])),
        ]
        await alter_configs(client, topic_resource(topic), operations, validate_only=False)
    for broker_id in sorted(brokers):
        operations = [Operation(SET, key, str(rate)) for key in _RATES]
        await alter_configs(client, broker_resource(broker_id), operations, validate_only=False)


def _listed(replicas: Sequence[str]) -> str:
    """All replicas of the topic (`*`) where the list would be too long for a config."""
    text = ",".join(replicas)
    return text if len(text) <= _LONGEST_VALUE else "*"


async def remove_throttles(client: ClusterClient, throttles: Throttles) -> None:
    """Raises CliError for a refusal."""
    for broker_id, values in throttles.rates.items():
        operations = [Operation(DELETE, key) for key in values]
        await alter_configs(client, broker_resource(broker_id), operations, validate_only=False)
    for topic, keys in throttles.topics.items():
        operations = [Operation(DELETE, key) for key in keys]
        await alter_configs(client, topic_resource(topic), operations, validate_only=False)
