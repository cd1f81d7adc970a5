"""The log of a real node copied over gRPC: byte for byte what lies in its folder, also what comes meanwhile."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquorum.cli.commands.audit.live_log import LiveCopy, followed, local_copies
from kquorum.cli.main import run
from kquorum.cli.processes import wait_until
from kquorum.node.config.addresses import HostPort
from kquorum.spark_replay.decode.members import member_of
from tests.support.cluster import CLUSTER_ID, Cluster

LOG = "__cluster_metadata-0"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    often = {"metadata.log.max.record.bytes.between.snapshots": 200}
    folder = tmp_path_factory.mktemp("live")
    with Cluster(folder, controllers=1, brokers=1, with_grpc=True, overrides=often) as running:
        running.start()
        yield running


def address(cluster: Cluster) -> HostPort:
    return HostPort("127.0.0.1", cluster.grpc_ports[1])


def log_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((folder / LOG).glob("*.log")))


def snapshots(folder: Path) -> set[str]:
    return {path.name for path in (folder / LOG).glob("*.checkpoint")}


def create_topic(cluster: Cluster, name: str) -> None:
    assert run(["topics", "create", name, "-c", str(cluster.config_path), "-p", "2"]) == 0


def test_a_copy_has_the_nodes_batches_and_snapshots(cluster: Cluster, tmp_path: Path) -> None:
    create_topic(cluster, "before")
    own = cluster.data_folder(1)
    assert wait_until(lambda: snapshots(own) - {f"{0:020d}-{0:010d}.checkpoint"} != set(), 20)
    copy = asyncio.run(LiveCopy(address(cluster), tmp_path, print).catch_up())
    copied = log_bytes(copy)
    # Those behind the high watermark of that moment are not in it.
    assert len(copied) > 500
    assert log_bytes(own).startswith(copied)
    member = member_of(copy / LOG)
    assert (member.node_id, member.cluster_id) == (1, CLUSTER_ID)
    same = snapshots(copy) & snapshots(own)
    assert same - {f"{0:020d}-{0:010d}.checkpoint"}
    for name in same:
        assert (copy / LOG / name).read_bytes() == (own / LOG / name).read_bytes()


def test_a_copy_that_goes_on_has_what_is_committed_later(cluster: Cluster, tmp_path: Path) -> None:
    with followed(address(cluster), tmp_path, once=False) as live:
        create_topic(cluster, "meanwhile")
        assert wait_until(lambda: b"meanwhile" in log_bytes(live.path), 20)
        live.check()
    assert log_bytes(cluster.data_folder(1)).startswith(log_bytes(live.path))


def test_a_copy_for_a_build_is_gone_with_it(cluster: Cluster) -> None:
    with local_copies([f"grpc://{address(cluster)}", "elsewhere"]) as (copy, other):
        assert other == "elsewhere"
        assert Path(copy).name == "node-1"
        assert log_bytes(Path(copy))
    assert not Path(copy).exists()
