"""The config of a cluster of one node, which takes Kafka's keys."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.cluster import CLUSTER_ID, assignments

HOST = "127.0.0.1"
NODE_ID = 1


def write_config(folder: Path, values: Mapping[str, object]) -> Path:
    """`quorum.toml` in `folder`, with the node's data in `folder/data`; `values` come on top of that."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "quorum.toml"
    needed = {
        "node.id": NODE_ID,
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder / "data"),
    }
    lines = (
        "[cluster]",
        *assignments({"cluster.id": CLUSTER_ID}),
        "[[nodes]]",
        *assignments(needed | dict(values)),
        "",
    )
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def both_roles(kafka: Mapping[str, int], *, grpc: int, metrics: int) -> dict[str, object]:
    """A broker and controller in one process with these ports: `kafka` are the listeners of Kafka's protocol."""
    return {
        "process.roles": "broker,controller",
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in kafka.items()),
        "kquorum.grpc.listener": f"{HOST}:{grpc}",
        "kquorum.metrics.listener": f"{HOST}:{metrics}",
    }
