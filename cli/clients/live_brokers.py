"""The brokers that serve clients, as one of them tells, and requests that each broker answers for itself."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from kquorum.cli.clients.cluster_client import ClusterClient
from kquorum.cli.failures import CliError
from kquorum.node.config.addresses import HostPort, reachable
from kquorum.wire.messages.metadata import MetadataRequest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """Where a broker listens, and its rack."""

    address: HostPort
    rack: str | None


async def live_brokers(client: ClusterClient) -> dict[int, LiveBroker]:
    """By id; a fenced broker is not among them."""
    brokers = (await client.ask(MetadataRequest(topics=(), allow_auto_topic_creation=False))).brokers
    return {
        each.node_id: LiveBroker(reachable(each.host, each.port), each.rack)
        for each in sorted(brokers, key=lambda broker: broker.node_id)
    }


async def broker_address(client: ClusterClient, node_id: int) -> HostPort:
    """Where a broker is that answers only for itself. Raises CliError when it is not among the live ones."""
    brokers = await live_brokers(client)
    if node_id not in brokers:
        raise not_there(node_id, brokers)
    return brokers[node_id].address


def not_there(node_id: int, live: Iterable[int]) -> CliError:
    there = ", ".join(map(str, sorted(live))) or "none"
    return CliError(f"broker {node_id} is not there or fenced; live brokers: {there} (`kquorum brokers`)")


async def ask_each(
    addresses: dict[int, HostPort],
    timeout_ms: int,
    ask: Callable[[int, ClusterClient], Awaitable[T]],
    reason: str | None = None,
) -> dict[int, T | CliError]:
    """What each broker answers to `ask`, all at once: the failure of one does not hide the answers of the others."""

    async def one(broker_id: int) -> T | CliError:
        async with ClusterClient((addresses[broker_id],), timeout_ms, reason=reason) as client:
            try:
                return await ask(broker_id, client)
            except CliError as error:
                return error

    answers = await asyncio.gather(*map(one, addresses))
    return dict(zip(addresses, answers, strict=True))
