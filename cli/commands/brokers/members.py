"""The brokers of a cluster and how far each follows: from the active controller, else from any node that answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kquorum.cli.clients.addresses import broker_addresses, controller_addresses, known_controllers
from kquorum.cli.clients.cluster_client import ClusterClient, check_error
from kquorum.cli.commands.brokers.rows import BrokerRow, Members
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import complain, tell_waiting
from kquorum.node.config.addresses import HostPort
from kquorum.wire.message_schema import ByVersion
from kquorum.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.protocol.warm_up import warm_up

if TYPE_CHECKING:
    from kquorum.cli.clients.quorum_client import QuorumStatus, ReplicaLag


# A node tells of itself at once, or it hangs.
NODES_MS = 1_000
_FIRST_VERSION_WITH_FENCED = 2  # of DescribeCluster (KIP-1073)


async def ask_members(
    listeners: Sequence[HostPort],
    config: Path | None,
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    timeout_ms: int,
    *,
    falls_back: bool,
) -> Members:
    """Over gRPC where there are `listeners`. Without them, or while no controller leads and `falls_back`, over Kafka's
    protocol. All of it together has `timeout_ms`. Raises CliError or ConfigError."""
    if not listeners:
        return await _over_kafka(config, bootstrap_server, bootstrap_controller, timeout_ms)
    from kquorum.cli.commands.brokers.members_grpc import describe_brokers, describe_nodes, what_it_says

    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    first_ms = max(timeout_ms // 2, 1) if falls_back else timeout_ms
    describing = loop.create_task(describe_nodes(listeners, min(first_ms, NODES_MS)))
    try:
        members = await describe_brokers(listeners, first_ms)
    except CliError as error:
        if not falls_back:
            raise
        members = await _instead(error, config, bootstrap_server, bootstrap_controller, deadline)
    finally:
        nodes = await describing
    rows = tuple(
        replace(row, says=what_it_says(nodes[row.broker_id])) if row.broker_id in nodes else row
        for row in members.brokers
    )
    return replace(members, brokers=rows)


async def _instead(
    refused: CliError,
    config: Path | None,
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    deadline: float,
) -> Members:
    """Asks without gRPC. If that fails too, the error gives both reasons."""
    if refused.status is ExitStatus.FAILED:
        complain(f"asking as Kafka's clients do, for over gRPC {refused}", style="yellow", label="note")
    warm_up((ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_QUORUM))
    left_ms = max(round((deadline - asyncio.get_running_loop().time()) * 1000), 1)
    try:
        return await _over_kafka(config, bootstrap_server, bootstrap_controller, left_ms)
    except CliError as error:
        status = ExitStatus.FAILED if ExitStatus.FAILED in (refused.status, error.status) else error.status
        raise CliError(f"{error}; over gRPC {refused}", status=status) from error


async def _over_kafka(
    config: Path | None, bootstrap_server: str | None, bootstrap_controller: str | None, timeout_ms: int
) -> Members:
    addresses = broker_addresses(config, bootstrap_server)
    asks_quorum = bootstrap_controller is not None or bootstrap_server is None
    controllers = controller_addresses(config, bootstrap_controller) if asks_quorum else ()
    known = known_controllers(config, bootstrap_controller) if asks_quorum else None
    async with ClusterClient(addresses, timeout_ms, tell=tell_waiting) as client:
        cluster = await describe_cluster(client)
        source, rest_ms = client.answered_by, client.remaining_ms
    if known is None:
        return _members(cluster, None)
    async with ClusterClient(controllers, rest_ms, known=known, tell=tell_waiting) as client:
        quorum = await _maybe_quorum(client)
    if quorum is None:
        complain(
            f"no controller answers as leader: this is what the broker at {source} knew last; "
            "`kquorum quorum status` says more",
            style="yellow",
            label="note",
        )
    return _members(cluster, quorum)


async def describe_cluster(client: ClusterClient) -> DescribeClusterResponse:
    """With its fenced brokers, if the broker that answers tells of them. Raises CliError."""

    def asked(version: int) -> DescribeClusterRequest:
        """An older broker tells of no fenced one."""
        return DescribeClusterRequest(include_fenced_brokers=version >= _FIRST_VERSION_WITH_FENCED)

    response = await client.ask(ByVersion(DescribeClusterRequest, asked))
    check_error(int(response.error_code), response.error_message, "the cluster cannot be described")
    return response


async def _maybe_quorum(client: ClusterClient) -> "QuorumStatus | None":
    """None while no controller leads: the brokers are shown all the same."""
    from kquorum.cli.clients.quorum_client import describe_quorum

    try:
        return await describe_quorum(client)
    except CliError:
        return None


def _members(cluster: DescribeClusterResponse, quorum: "QuorumStatus | None") -> Members:
    """How far a broker follows is known from its Fetches, and of a kquorum broker from the state that it reports."""
    replicas = (
        {} if quorum is None else {each.replica_id: each for each in (*quorum.observers, *quorum.voters)}
    )
    return Members(
        cluster_id=cluster.cluster_id,
        committed_offset=None if quorum is None else quorum.high_watermark - 1,
        brokers=tuple(
            _row(broker, replicas.get(int(broker.broker_id)))
            for broker in sorted(cluster.brokers, key=lambda broker: broker.broker_id)
        ),
    )


def _row(broker: DescribeClusterBroker, replica: "ReplicaLag | None") -> BrokerRow:
    fenced = broker.is_fenced
    state = None if replica is None else replica.state
    return BrokerRow(
        broker_id=broker.broker_id,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        fenced=fenced,
        state="fenced" if fenced else "active",
        applied_offset=None if state is None else state.offset,
        lag=None if replica is None else replica.lag,
    )
