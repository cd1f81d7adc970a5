"""Where the gRPC listeners of a cluster are, for the commands that need one."""

from pathlib import Path

from cli.cluster_addresses import DEFAULT_CONFIG
from cli.command_security import remember_cluster
from cli.errors import CliError
from cli.exit_status import ExitStatus
from node.config.addresses import HostPort, parse_host_port, reachable
from node.config.load import load_config
from node.config.model import NodeConfig


def grpc_addresses(
    config: Path | None, listed: str | None, *, node_id: int | None = None, needed_by: str
) -> tuple[HostPort, ...]:
    """Those listed (`--grpc`), or those of the config, of one node if it is named. Raises CliError, saying in whose
    name (`needed_by`), when there is none."""
    if listed is not None:
        if node_id is not None:
            raise _refused("--node chooses from a config; it does not go with --grpc")
        return _parse(listed)
    if config is None and not DEFAULT_CONFIG.exists():
        raise _refused(
            f"where is the cluster? Give --config FILE or --grpc host:port (there is no {DEFAULT_CONFIG} here)"
        )
    cluster = load_config(config or DEFAULT_CONFIG)
    remember_cluster(cluster)
    found = grpc_listeners(cluster.nodes if node_id is None else (cluster.node(node_id),))
    if not found:
        who = "no node has a" if node_id is None else f"node {node_id} has no"
        raise _refused(f"{cluster.path}: {who} `kquorum.grpc.listener`, which {needed_by} needs")
    return found


def grpc_listeners(nodes: tuple[NodeConfig, ...]) -> tuple[HostPort, ...]:
    listeners = (node.kquorum_grpc_listener for node in nodes)
    return tuple(reachable(*listener) for listener in listeners if listener is not None)


def _parse(listed: str) -> tuple[HostPort, ...]:
    try:
        found = tuple(reachable(*parse_host_port(part)) for part in listed.split(",") if part.strip())
    except ValueError as error:
        raise _refused(f"--grpc: {error}") from error
    if not found:
        raise _refused("--grpc names no host:port")
    return found


def _refused(message: str) -> CliError:
    return CliError(message, status=ExitStatus.USAGE)
