"""A client of coordinators: each request goes to the broker that coordinates the group, or the transactional id."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from kquorum.cli.clients.cluster_client import ClusterClient
from kquorum.cli.clients.partition_client import PASSING, PartitionClient, Passing
from kquorum.cli.failures import CliError
from kquorum.node.config.addresses import HostPort
from kquorum.wire.message_schema import R, Request
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.find_coordinator import FindCoordinatorRequest
from kquorum.wire.messages.metadata import MetadataRequest

_PASSING: Final = PASSING | {
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.not_coordinator,
    ErrorCode.concurrent_transactions,
}


class CoordinatedKey(IntEnum):
    """FindCoordinator's numbers."""

    GROUP = 0
    TRANSACTIONAL_ID = 1

    @property
    def title(self) -> str:
        return "group" if self is CoordinatedKey.GROUP else "transactional id"


class CoordinatorClient(PartitionClient):
    """`timeout_ms` bounds each call. Used within `async with`."""

    key_type: CoordinatedKey

    async def at_coordinator(self, key: str, request: Request[R]) -> R:
        return await self._call(await self._connection(await self.coordinator(key)), request)

    async def coordinator(self, key: str) -> int:
        await self.look_up_brokers()
        async with ClusterClient(self._addresses, self._timeout_ms) as cluster:
            answer = await cluster.ask(
                FindCoordinatorRequest(coordinator_keys=(key,), key_type=self.key_type)
            )
        [found] = answer.coordinators
        check(found.error_code, f"{self.key_type.title} {key}")
        return found.node_id

    async def look_up_brokers(self) -> Sequence[int]:
        async with ClusterClient(self._addresses, self._timeout_ms) as cluster:
            found = await cluster.ask(MetadataRequest(topics=(), allow_auto_topic_creation=False))
        self._brokers = {broker.node_id: HostPort(broker.host, broker.port) for broker in found.brokers}
        return sorted(self._brokers)


def check(error: ErrorCode, what: str) -> None:
    """Raises Passing for what another attempt may mend, CliError for the rest."""
    if error in _PASSING:
        raise Passing(error.name)
    if error is not ErrorCode.none:
        raise CliError(f"{what}: {error.name.upper()}")
