"""What a command must know of a quorum before it changes it: its replicas, its features, and its controllers."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cli.cluster_client import ClusterClient, check_error
from cli.errors import CliError
from cli.quorum_status import PATIENCE_MS, QuorumStatus, ReplicaLag, describe_quorum
from node.config.addresses import HostPort
from wire.protocol.apis import ApiKey

KRAFT_VERSION = "kraft.version"
METADATA_VERSION = "metadata.version"
_CONTROLLERS = 2
# How long one has to look on to see who is alive: a follower's Fetch waits at the leader for 0.5 s at most.
LOOK_ON_S = 1.5


ReplicaId = tuple[int, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumView:
    """`registered` are the controllers that registered themselves, with their listener; empty where no controller could
    be asked for them. `fetched_before` is when each replica had fetched last when the looking began."""

    status: QuorumStatus
    levels: Mapping[str, int] = field(default_factory=dict)
    registered: Mapping[int, HostPort] = field(default_factory=dict)
    now_ms: int
    fetched_before: Mapping[ReplicaId, int | None] = field(default_factory=dict)

    @property
    def kraft_version(self) -> int:
        return self.levels.get(KRAFT_VERSION, 0)

    @property
    def has_looked_on(self) -> bool:
        """Whether there was a look before this one, so that `is_alive` can tell."""
        return bool(self.fetched_before)

    def is_alive(self, replica: ReplicaLag) -> bool:
        """Whether it fetched while we looked on. How long ago it did would not do: a node that died a moment ago, and
        the disk that it had before, fetched recently too."""
        if replica.replica_id == self.status.leader_id:
            return True
        fetched_ms = replica.last_fetch_timestamp_ms
        before_ms = self.fetched_before.get(replica_id_of(replica), -1) or -1
        return fetched_ms is not None and fetched_ms > before_ms

    def observer(self, node_id: int) -> ReplicaLag | None:
        """The observer of this id that fetched last: a node whose disk was replaced may be there with the old one."""
        found = [replica for replica in self.status.observers if replica.replica_id == node_id]
        return max(found, key=lambda replica: replica.last_fetch_timestamp_ms or 0, default=None)


def replica_id_of(replica: ReplicaLag) -> ReplicaId:
    return replica.replica_id, replica.directory_id


async def look(client: ClusterClient, first: QuorumView | None = None) -> QuorumView:
    """`first` is what was seen when the looking began. Raises CliError when no leader can be reached."""
    status = await describe_quorum(client)
    versions = await client.ask(
        ApiKey.API_VERSIONS,
        {"client_software_name": "kquorum", "client_software_version": "1"},
        patience_ms=PATIENCE_MS,
    )
    levels = {
        str(feature.name): int(feature.max_version_level)
        for feature in getattr(versions, "finalized_features", ())
    }
    registered = await _registered(client, status)
    before = () if first is None else (*first.status.voters, *first.status.observers)
    return QuorumView(
        status=status,
        levels=levels,
        registered=registered,
        now_ms=time.time_ns() // 1_000_000,
        fetched_before={replica_id_of(replica): replica.last_fetch_timestamp_ms for replica in before},
    )


async def _registered(client: ClusterClient, status: QuorumStatus) -> dict[int, HostPort]:
    """As the controllers tell: those asked anyway, else the leader, where it can be reached from here."""
    leader = status.place_of(status.leader_id)
    try:
        response = await _ask_for_controllers(client)
    except CliError:
        if leader is None or leader in client.addresses:
            return {}
        try:
            async with ClusterClient([leader], client.remaining_ms) as direct:
                response = await _ask_for_controllers(direct)
        except CliError:
            return {}
    return {int(item.broker_id): HostPort(str(item.host), int(item.port)) for item in response.brokers}


async def _ask_for_controllers(client: ClusterClient) -> Any:
    body = {
        "include_cluster_authorized_operations": False,
        "endpoint_type": _CONTROLLERS,
        "include_fenced_brokers": False,
    }
    response = await client.ask(ApiKey.DESCRIBE_CLUSTER, body, patience_ms=PATIENCE_MS)
    check_error(int(response.error_code), response.error_message, "the controllers cannot be listed")
    return response
