"""One node's config, for Kafka's programs and for ours: the same but for the keys which only one of them takes."""

from collections.abc import Mapping
from pathlib import Path

from kquorum.snapshots.naming import BOOTSTRAP_SNAPSHOT_ID, snapshot_id_of
from tests.support.cluster import FAST_TIMES

LOOPBACK = "127.0.0.1"


class NodeConfig:
    """A controller (or broker) in a folder of its own, `data`; `path` is our program's config, `kafka_path` Kafka's."""

    def __init__(
        self,
        folder: Path,
        node_id: int,
        port: int,
        *,
        role: str = "controller",
        quorum: Mapping[str, str],
        settings: Mapping[str, object] | None = None,
        ours: Mapping[str, object] | None = None,
        kafkas: Mapping[str, object] | None = None,
    ) -> None:
        """`settings` are further keys for both programs, `ours` and `kafkas` for one of them."""
        folder.mkdir(parents=True, exist_ok=True)
        self.node_id = node_id
        self.address = f"{LOOPBACK}:{port}"
        self.path = folder / f"node-{node_id}.properties"
        self.kafka_path = folder / f"node-{node_id}-kafka.properties"
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
        self._values = values
        _write(self.path, values | dict(ours or {}))
        _write(self.kafka_path, values | dict(kafkas or {}))

    def change_ours(self, settings: Mapping[str, object]) -> None:
        """From the next start of our program on."""
        _write(self.path, self._values | dict(settings))

    def segments(self) -> list[Path]:
        return sorted(self.metadata.glob("*.log"))

    def checkpoints(self) -> list[Path]:
        return sorted(self.metadata.glob("*.checkpoint"))

    def snapshots(self) -> list[Path]:
        """Those of the running log, the newest last."""
        ids = {path: snapshot_id_of(path.name) for path in self.checkpoints()}
        taken = [(each.order, path) for path, each in ids.items() if each and each != BOOTSTRAP_SNAPSHOT_ID]
        return [path for _, path in sorted(taken)]

    def log_start(self) -> int:
        """Where the first segment begins; 0 while there is none."""
        return min((int(path.stem) for path in self.segments()), default=0)


def _write(path: Path, values: Mapping[str, object]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))


def static_voters(ports: Mapping[int, int]) -> dict[str, str]:
    voters = ",".join(f"{node_id}@{LOOPBACK}:{port}" for node_id, port in ports.items())
    return {"controller.quorum.voters": voters}


def bootstrap_servers(*ports: int) -> dict[str, str]:
    return {"controller.quorum.bootstrap.servers": ",".join(f"{LOOPBACK}:{port}" for port in ports)}
