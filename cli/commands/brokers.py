"""`kquorum brokers`: the members of the cluster, fenced ones included."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cli.commands.options import AsJson, BootstrapController, BootstrapServer, MaybeConfigPath, TimeoutMs

if TYPE_CHECKING:
    from cli.cluster_client import ClusterClient
    from cli.quorum_status import QuorumStatus

_BROKERS = 1  # DescribeCluster's endpoint type (KIP-919)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """One broker; `lag` is how far it is behind the metadata log, None where the quorum did not tell."""

    broker_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool
    lag: int | None


def brokers(
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    bootstrap_controller: BootstrapController = None,
    timeout_ms: TimeoutMs = 5000,
    as_json: AsJson = False,
) -> None:
    """The registered brokers: address, rack, fenced or not, and how far they follow the metadata log.

    A broker tells; the lag comes from the controllers where the config or --bootstrap-controller names them.
    """
    from cli.cluster_addresses import broker_addresses, controller_addresses, known_controllers
    from cli.cluster_client import ClusterClient, run_asking
    from cli.output import complain, print_json, print_table, tell_waiting

    addresses = broker_addresses(config, bootstrap_server)
    asks_quorum = bootstrap_controller is not None or bootstrap_server is None
    controllers = controller_addresses(config, bootstrap_controller) if asks_quorum else ()

    known = known_controllers(config, bootstrap_controller) if asks_quorum else None

    async def ask() -> tuple[str, tuple[BrokerRow, ...]]:
        async with ClusterClient(addresses, timeout_ms, tell=tell_waiting) as client:
            cluster = await _describe_cluster(client)
            source, rest_ms = client.answered_by, client.remaining_ms
        if known is None:
            return cluster.cluster_id, _rows(cluster, None)
        async with ClusterClient(controllers, rest_ms, known=known, tell=tell_waiting) as client:
            quorum = await _maybe_quorum(client)
        if quorum is None:
            complain(
                f"no controller answers as leader: this is what the broker at {source} knew last; "
                "`kquorum quorum status` says more",
                style="yellow",
                label="note",
            )
        return cluster.cluster_id, _rows(cluster, quorum)

    cluster_id, rows = run_asking(ask())
    if as_json:
        print_json({"cluster_id": cluster_id, "brokers": [asdict(row) for row in rows]})
    else:
        cells = [(row.broker_id, f"{row.host}:{row.port}", row.rack, _state(row), row.lag) for row in rows]
        print_table(f"cluster {cluster_id}", ("#broker", "address", "rack", "state", "#lag"), cells)


async def _describe_cluster(client: "ClusterClient") -> Any:
    from cli.cluster_client import check_error
    from wire.protocol.apis import ApiKey

    response = await client.ask(
        ApiKey.DESCRIBE_CLUSTER,
        {
            "include_cluster_authorized_operations": False,
            "endpoint_type": _BROKERS,
            "include_fenced_brokers": True,
        },
    )
    check_error(int(response.error_code), response.error_message, "the cluster cannot be described")
    return response


async def _maybe_quorum(client: "ClusterClient") -> "QuorumStatus | None":
    """The brokers are worth showing even while nobody leads."""
    from cli.errors import CliError
    from cli.quorum_status import describe_quorum

    try:
        return await describe_quorum(client)
    except CliError:
        return None


def _rows(cluster: Any, quorum: "QuorumStatus | None") -> tuple[BrokerRow, ...]:
    lags = (
        {} if quorum is None else {item.replica_id: item.lag for item in (*quorum.observers, *quorum.voters)}
    )
    return tuple(
        BrokerRow(
            broker_id=int(broker.broker_id),
            host=broker.host,
            port=int(broker.port),
            rack=broker.rack,
            fenced=bool(getattr(broker, "is_fenced", False)),
            lag=lags.get(int(broker.broker_id)),
        )
        for broker in sorted(cluster.brokers, key=lambda broker: int(broker.broker_id))
    )


def _state(row: BrokerRow) -> Any:
    from rich.text import Text

    return Text("fenced", style="yellow") if row.fenced else Text("active", style="green")
