"""Real nodes on faulty disks: what was acknowledged is there whatever the power does, and no disk makes a node lie."""

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from kquorum.cli.processes import NodeProcess, wait_until
from tests.jepsen.core.client import RawClient, TopicsClient
from tests.jepsen.core.errors import ClientError
from tests.jepsen.disk.build import Shim, ShimUnavailable
from tests.jepsen.disk.faulty_disk import FaultyDisk
from tests.support.cluster import PROJECT_ROOT, Cluster

pytestmark = [pytest.mark.jepsen, pytest.mark.slow]
PATIENCE_S = 60.0
HOUR_MS = 3_600_000


class DiskCluster(Cluster):
    """Three controllers, each on a disk of its own, and a broker on a good one."""

    def __init__(self, folder: Path, shim: Path) -> None:
        self._environments: dict[int, dict[str, str]] = {}
        self._shim = shim
        super().__init__(folder, brokers=1)
        self.disks: dict[int, FaultyDisk] = {}

    def _process(self, node_id: int) -> NodeProcess:
        environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}
        self._environments[node_id] = environment
        output = self.folder / f"node-{node_id}.out"
        return NodeProcess(self.config_path, node_id, output, environment=environment)

    def start(self) -> None:
        self.format()
        for node_id in self.controller_ids:
            state = self.folder / f"disk-{node_id}"
            disk = FaultyDisk(self._shim, self.data_folder(node_id), state)
            self._environments[node_id].update(disk.environment())
            self.disks[node_id] = disk
        self.start_nodes(self.node_ids)

    def client(self) -> TopicsClient:
        broker = self.broker_ids[0]
        return TopicsClient(RawClient("127.0.0.1", self.ports[broker], 10.0), timeout_ms=8_000)

    def create(self, names: list[str]) -> None:
        """Until each is acknowledged."""
        for name in names:
            assert wait_until(lambda name=name: self._try_create(name), PATIENCE_S, 0.2), self.tails()  # type: ignore[misc]

    def _try_create(self, name: str) -> bool:
        client = self.client()
        try:
            client.create(name)
        except ClientError as error:
            return "exists" in str(error).lower()
        finally:
            client.close()
        return True

    def topics(self) -> set[str]:
        client = self.client()
        try:
            return set(client.list())
        except ClientError:
            return set()
        finally:
            client.close()

    def wait_for_topics(self, wanted: set[str]) -> None:
        assert wait_until(lambda: self.topics() >= wanted, PATIENCE_S, 0.2), wanted - self.topics()

    def cut_power(self, node_ids: tuple[int, ...], seed: int) -> list[dict[str, object]]:
        for node_id in node_ids:
            self.kill(node_id)
        return [self.disks[node_id].cut_power(Random(seed), tear=True) for node_id in node_ids]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DiskCluster]:
    try:
        shim = Shim.build(tmp_path / "shim")
    except ShimUnavailable as error:
        pytest.skip(str(error))
    with DiskCluster(tmp_path / "cluster", shim) as made:
        made.start()
        yield made


def names(prefix: str, count: int = 5) -> list[str]:
    return [f"{prefix}-{number}" for number in range(count)]


def test_what_was_acknowledged_survives_power_cuts_of_one_and_of_all(cluster: DiskCluster) -> None:
    expected: set[str] = set()
    for seed in range(3):
        cluster.create(names(f"one-{seed}"))
        victim = cluster.controller_ids[seed]
        cluster.cut_power((victim,), seed)
        cluster.create(names(f"without-{seed}"))
        cluster.start_node(victim)
        cluster.create(names(f"all-{seed}"))
        expected |= {*names(f"one-{seed}"), *names(f"without-{seed}"), *names(f"all-{seed}")}
        cluster.cut_power(cluster.controller_ids, seed)
        cluster.start_nodes(cluster.controller_ids)
        cluster.wait_for_topics(expected)


def test_a_failed_flush_ends_the_leader_and_loses_nothing(cluster: DiskCluster) -> None:
    cluster.create(names("before"))
    leader = cluster.leader_id()
    cluster.disks[leader].fail_fsync()
    cluster.create(names("after"))
    assert wait_until(lambda: not cluster.is_running(leader), PATIENCE_S)
    assert cluster.disks[leader].counters()["failed_fsyncs"] > 0
    cluster.disks[leader].heal()
    cluster.cut_power((leader,), 1)
    cluster.start_node(leader)
    others = tuple(each for each in cluster.controller_ids if each != leader)
    cluster.cut_power(others[:1], 2)
    wanted = {*names("before"), *names("after"), *names("last")}
    cluster.create(names("last"))
    cluster.wait_for_topics(wanted)


def test_slow_disks_only_cost_time(cluster: DiskCluster) -> None:
    for disk in cluster.disks.values():
        disk.slow_fsync(500)
    cluster.create(names("slow", 3))
    assert sum(disk.counters()["delayed_fsyncs"] > 0 for disk in cluster.disks.values()) >= 2
    for disk in cluster.disks.values():
        disk.heal()
    cluster.create(names("fast", 3))


def test_nodes_with_an_hour_between_their_clocks_agree(cluster: DiskCluster) -> None:
    """A node reads the wall clock when it starts, and counts from there."""
    for node_id, offset_ms in zip(cluster.controller_ids, (HOUR_MS, -HOUR_MS, 0), strict=True):
        cluster.disks[node_id].jump_clock(offset_ms)
        cluster.restart(node_id)
        cluster.create(names(f"after-{node_id}", 2))
    shifted = [disk.counters()["shifted_clocks"] > 0 for disk in cluster.disks.values()]
    assert shifted == [True, True, False]


def test_a_full_disk_makes_a_node_wait_until_there_is_space(cluster: DiskCluster) -> None:
    leader = cluster.leader_id()
    disk = cluster.disks[leader]
    disk.fill()
    cluster.create(names("full"))
    assert wait_until(lambda: "no space is left" in cluster.output(leader), PATIENCE_S), cluster.output(
        leader
    )
    assert disk.counters()["full_writes"] > 0
    assert cluster.is_running(leader)
    disk.heal()
    assert wait_until(lambda: "takes records again" in cluster.output(leader), PATIENCE_S)
    cluster.cut_power(cluster.controller_ids, 3)
    cluster.start_nodes(cluster.controller_ids)
    cluster.wait_for_topics(set(names("full")))
