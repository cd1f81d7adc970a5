"""The cluster that a command which changes voters was pointed at."""

from dataclasses import dataclass
from pathlib import Path

from cli.cluster_addresses import DEFAULT_CONFIG, KnownControllers, known_controllers, quorum_addresses
from cli.command_security import remember_cluster
from node.config.addresses import HostPort
from node.config.load import load_config
from node.config.model import ClusterConfig


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster that a command was pointed at."""

    config: Path | None
    bootstrap_controller: str | None
    bootstrap_server: str | None
    timeout_ms: int
    reason: str | None = None

    def addresses(self) -> tuple[HostPort, ...]:
        return quorum_addresses(self.config, self.bootstrap_controller, self.bootstrap_server)

    def known(self) -> KnownControllers:
        return known_controllers(self.config, self.bootstrap_controller or self.bootstrap_server)

    def cluster(self) -> ClusterConfig | None:
        """The config, where one was named or nothing else says where the cluster is."""
        if self.config is None and (self.bootstrap_controller or self.bootstrap_server):
            return None
        cluster = load_config(self.config or DEFAULT_CONFIG)
        remember_cluster(cluster)
        return cluster

    @property
    def cluster_id(self) -> str | None:
        cluster = self.cluster()
        return None if cluster is None else cluster.cluster_id
