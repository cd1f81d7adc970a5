"""Where a command finds the cluster: the addresses that were typed, or those of the config."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kquorum.cli.clients.security import remember_cluster
from kquorum.cli.failures import CliError, ExitStatus, usage_error
from kquorum.node.config.addresses import HostPort, parse_host_port, reachable
from kquorum.node.config.model import ClusterConfig, NodeConfig

DEFAULT_CONFIG = Path("quorum.toml")


@dataclass(frozen=True, slots=True)
class KnownControllers:
    """Which node is behind an address, as far as a config or a leader tells, and which nodes vote: those of a static
    quorum, or as the leader said; none where neither says."""

    ids: Mapping[HostPort, int] = field(default_factory=dict)
    voters: frozenset[int] = frozenset()

    def lack_a_majority(self, *, answering: Collection[HostPort], silent: Iterable[HostPort]) -> bool:
        """Whether no voter can be elected, nor commit anything, while these addresses are silent. A node may have an
        address that is not reachable from here, and answer at another one."""
        alive = self.voters - {self.ids.get(address) for address in silent}
        return max(len(alive), len(answering)) < len(self.voters) // 2 + 1 if self.voters else False

    def name_of(self, address: HostPort) -> str:
        """`node 1 (127.0.0.1:9191)`, or only the address."""
        return f"node {self.ids[address]} ({address})" if address in self.ids else str(address)


NONE_KNOWN = KnownControllers()


def known_controllers(config: Path | None, bootstrap: str | None) -> KnownControllers:
    """From the config that `controller_addresses` would ask; nothing where addresses were typed. Raises ConfigError."""
    if bootstrap:
        return NONE_KNOWN
    cluster = _config(config, "--bootstrap-controller host:port")
    ids: dict[HostPort, int] = {}
    for node in cluster.controllers:
        for listener in (*node.advertised_listeners, *node.listeners):
            ids.setdefault(reachable(listener.host, listener.port), node.node_id)
    voters = {voter.id: voter for node in cluster.nodes for voter in node.controller_quorum_voters}
    for voter in voters.values():
        ids.setdefault(reachable(voter.host, voter.port), voter.id)
    return KnownControllers(ids, frozenset(voters))


def broker_addresses(config: Path | None, bootstrap: str | None) -> tuple[HostPort, ...]:
    """Where to ask a broker: the option, or the brokers of the config. Raises CliError or ConfigError."""
    if bootstrap:
        return _parse(bootstrap, "--bootstrap-server")
    cluster = _config(config, "--bootstrap-server host:port")
    listeners = [listener for node in cluster.brokers for listener in node.broker_listeners[:1]]
    if not listeners:
        raise CliError(
            f"{cluster.path} has no broker; name one with --bootstrap-server", status=ExitStatus.USAGE
        )
    return tuple(reachable(listener.host, listener.port) for listener in listeners)


def controller_addresses(config: Path | None, bootstrap: str | None) -> tuple[HostPort, ...]:
    """Where to ask a controller: the option, or the voters of the config. Raises CliError or ConfigError."""
    if bootstrap:
        return _parse(bootstrap, "--bootstrap-controller")
    cluster = _config(config, "--bootstrap-controller host:port")
    return tuple(dict.fromkeys(reachable(*address) for address in cluster.controller_addresses))


def quorum_addresses(
    config: Path | None, bootstrap_controller: str | None, bootstrap_server: str | None
) -> tuple[HostPort, ...]:
    """Where to ask about the quorum: controllers, or brokers that pass questions on. Raises CliError or ConfigError."""
    if bootstrap_controller and bootstrap_server:
        raise CliError(
            "--bootstrap-controller and --bootstrap-server exclude each other: brokers ask controllers anyway",
            status=ExitStatus.USAGE,
        )
    if bootstrap_server:
        return _parse(bootstrap_server, "--bootstrap-server")
    return controller_addresses(config, bootstrap_controller)


def _config(path: Path | None, alternative: str) -> ClusterConfig:
    from kquorum.node.config.load import load_config

    if path is None and not DEFAULT_CONFIG.exists():
        raise CliError(
            f"where is the cluster? Give --config FILE or {alternative} (there is no {DEFAULT_CONFIG} here)",
            status=ExitStatus.USAGE,
        )
    cluster = load_config(path or DEFAULT_CONFIG)
    remember_cluster(cluster)
    return cluster


def _parse(text: str, option: str) -> tuple[HostPort, ...]:
    try:
        return tuple(reachable(*parse_host_port(part)) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise CliError(f"{option}: {error}", status=ExitStatus.USAGE) from error


def grpc_addresses(
    config: Path | None, listed: str | None, *, node_id: int | None = None, needed_by: str
) -> tuple[HostPort, ...]:
    """Those listed (`--grpc`), or those of the config, of one node if it is named. Raises CliError, saying in whose
    name (`needed_by`), when there is none."""
    if listed is not None:
        if node_id is not None:
            raise usage_error("--node chooses from a config; it does not go with --grpc")
        return _parse_listeners(listed)
    cluster = _config(config, "--grpc host:port")
    found = grpc_listeners(cluster.nodes if node_id is None else (cluster.node(node_id),))
    if not found:
        who = "no node has a" if node_id is None else f"node {node_id} has no"
        raise usage_error(f"{cluster.path}: {who} `kquorum.grpc.listener`, which {needed_by} needs")
    return found


def grpc_listeners(nodes: tuple[NodeConfig, ...]) -> tuple[HostPort, ...]:
    listeners = (node.kquorum_grpc_listener for node in nodes)
    return tuple(reachable(*listener) for listener in listeners if listener is not None)


def _parse_listeners(listed: str) -> tuple[HostPort, ...]:
    found = _parse(listed, "--grpc")
    if not found:
        raise usage_error("--grpc names no host:port")
    return found
