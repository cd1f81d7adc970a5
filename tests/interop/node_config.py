"""One node's `.properties`, which Kafka's programs and ours both take."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.cluster import FAST_TIMES

LOOPBACK = "127.0.0.1"


class NodeConfig:
    """A controller (or broker) in a folder of its own; `path` is its config, `data` its log.dirs."""

    def __init__(
        self,
        folder: Path,
        node_id: int,
        port: int,
        *,
        role: str = "controller",
        quorum: Mapping[str, str],
        settings: Mapping[str, object] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.node_id = node_id
        self.address = f"{LOOPBACK}:{port}"
        self.path = folder / f"node-{node_id}.properties"
        self.data = folder / f"data-{node_id}"
        self.metadata = self.data / "__cluster_metadata-0"
        listener = "CONTROLLER" if role == "controller" else "PLAINTEXT"
        values = {
            "node.id": node_id,
            "process.roles": role,
            "listeners": f"{listener}://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self.data,
            **quorum,
            **FAST_TIMES,
            **(settings or {}),
        }
        self.path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))

    def segments(self) -> list[Path]:
        return sorted(self.metadata.glob("*.log"))

    def checkpoints(self) -> list[Path]:
        return sorted(self.metadata.glob("*.checkpoint"))


def static_voters(ports: Mapping[int, int]) -> dict[str, str]:
    voters = ",".join(f"{node_id}@{LOOPBACK}:{port}" for node_id, port in ports.items())
    return {"controller.quorum.voters": voters}


def bootstrap_servers(*ports: int) -> dict[str, str]:
    return {"controller.quorum.bootstrap.servers": ",".join(f"{LOOPBACK}:{port}" for port in ports)}
