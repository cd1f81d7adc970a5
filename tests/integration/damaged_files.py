"""Hurting the files of a stopped node, and looking at what a node has made of its own."""

import socket
import struct
from contextlib import suppress
from pathlib import Path

from kquorum.cli.failures import CliError
from kquorum.cli.processes import wait_until
from kquorum.raft.adapters.file_log import FOLDER_NAME
from tests.support.cluster import Cluster

WAIT_S = 30.0
# An idle leader writes a record so often, so that logs grow fast.
BUSY = {"metadata.max.idle.interval.ms": 20}


def metadata_folder(cluster: Cluster, node_id: int) -> Path:
    return cluster.data_folder(node_id) / FOLDER_NAME


def flip_byte(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x10
    path.write_bytes(bytes(content))


def flip_middle_of_log(folder: Path) -> Path:
    """In the middle of the first segment, where no crash could have left it so."""
    segment = min(folder.glob("*.log"))
    assert segment.stat().st_size > 2_000, "there is too little in the log"
    flip_byte(segment, segment.stat().st_size // 2)
    return segment


def log_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def logs_agree(one: Path, other: Path, at_least: int) -> bool:
    """Byte for byte, as far as the shorter one goes, and that is far enough."""
    left, right = log_bytes(one), log_bytes(other)
    common = min(len(left), len(right))
    return common >= at_least and left[:common] == right[:common]


def await_growth(cluster: Cluster, records: int = 60) -> int:
    """The high watermark once so many more records are committed."""
    target = cluster.quorum().high_watermark + records
    assert wait_until(lambda: cluster.quorum().high_watermark >= target, WAIT_S), cluster.tails()
    return target


def followers(cluster: Cluster) -> tuple[int, int]:
    leader = cluster.leader_id()
    first, second = (node_id for node_id in cluster.controller_ids if node_id != leader)
    return first, second


def lag_of(cluster: Cluster, node_id: int) -> int | None:
    """How far behind the leader it is; None while there is no leader."""
    try:
        status = cluster.quorum()
    except CliError:
        return None
    replicas = [*status.voters, *status.observers]
    return next((replica.lag for replica in replicas if replica.replica_id == node_id), None)


def is_level(cluster: Cluster, node_id: int, within: int = 60) -> bool:
    """A busy log is never quite without lag."""
    lag = lag_of(cluster, node_id)
    return lag is not None and 0 <= lag <= within


def answers(cluster: Cluster, node_id: int) -> bool:
    """Whether its listener serves: it tells anyone which APIs it has (ApiVersions v0)."""
    request = struct.pack(">ihhih", 10, 18, 0, 7, -1)
    with suppress(OSError), socket.create_connection(("127.0.0.1", cluster.ports[node_id]), 5) as connection:
        connection.settimeout(5)
        connection.sendall(request)
        return connection.recv(8)[4:8] == struct.pack(">i", 7)
    return False


def check_quiet(cluster: Cluster, node_id: int) -> None:
    """It runs, and nothing went wrong that it did not expect."""
    assert cluster.is_running(node_id), cluster.tails()
    assert "Traceback" not in cluster.output(node_id)
    assert "Logging error" not in cluster.output(node_id)
