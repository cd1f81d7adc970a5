"""Disks that run full, for real: small file systems in memory, mounted by the test (which needs root), and filled."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kquorum.cli.processes import wait_until
from tests.integration.damaged_files import (
    BUSY,
    WAIT_S,
    answers,
    await_growth,
    check_quiet,
    is_level,
    lag_of,
    logs_agree,
    metadata_folder,
)
from tests.support.cluster import Cluster, await_output
from tests.support.small_disks import fill, small_disk

DISK_BYTES = 8 * 1024 * 1024
RESERVED_BYTES = 1024 * 1024
FULL = "this node is read-only now"
SPACE = "takes records again"


@pytest.fixture
def small_disks(tmp_path: Path) -> Iterator[list[Path]]:
    """Folders of nodes 1 to 3, each on a file system of its own."""
    with ExitStack() as mounted:
        yield [
            mounted.enter_context(small_disk(tmp_path / f"node-{node_id}", DISK_BYTES))
            for node_id in (1, 2, 3)
        ]


def cluster_on_small_disks(folder: Path, controllers: int = 3) -> Cluster:
    return Cluster(
        folder,
        controllers=controllers,
        brokers=0,
        overrides={**BUSY, "kquorum.reserved.space.bytes": RESERVED_BYTES},
    )


@pytest.mark.slow
def test_a_leader_whose_disk_is_full_hands_over_and_comes_back_by_itself(
    tmp_path: Path, small_disks: list[Path]
) -> None:
    with cluster_on_small_disks(tmp_path) as cluster:
        cluster.start()
        await_growth(cluster)
        full = cluster.leader_id()
        filler = fill(small_disks[full - 1])
        await_output(cluster, full, FULL, WAIT_S)
        assert wait_until(lambda: cluster.leader_id() != full, WAIT_S), cluster.tails()
        leader, epoch = cluster.leader_id(), cluster.quorum().leader_epoch
        # The others go on; the full one answers, stays behind, and disturbs no other node.
        await_growth(cluster, 200)
        assert answers(cluster, full)
        assert (lag_of(cluster, full) or 0) >= 200
        assert (cluster.leader_id(), cluster.quorum().leader_epoch) == (leader, epoch)
        check_quiet(cluster, full)
        filler.unlink()
        await_output(cluster, full, SPACE, WAIT_S)
        assert wait_until(lambda: is_level(cluster, full), WAIT_S), cluster.tails()
        own, others = metadata_folder(cluster, full), metadata_folder(cluster, leader)
        assert wait_until(lambda: logs_agree(own, others, 2_000), WAIT_S)
        check_quiet(cluster, full)


@pytest.mark.slow
def test_a_full_voter_still_votes(tmp_path: Path, small_disks: list[Path]) -> None:
    """With one voter dead, its vote is what elects the third."""
    with cluster_on_small_disks(tmp_path) as cluster:
        cluster.start()
        await_growth(cluster)
        first = cluster.leader_id()
        full = next(node_id for node_id in cluster.controller_ids if node_id != first)
        third = next(node_id for node_id in cluster.controller_ids if node_id not in (first, full))
        fill(small_disks[full - 1])
        await_output(cluster, full, FULL, WAIT_S)
        cluster.kill(first)
        assert wait_until(lambda: "leader in epoch" in cluster.output(third), WAIT_S), cluster.tails()
        check_quiet(cluster, full)
        assert "leader in epoch" not in cluster.output(full).partition(FULL)[2]


@pytest.mark.slow
def test_a_sole_voter_is_read_only_until_there_is_space(tmp_path: Path, small_disks: list[Path]) -> None:
    with cluster_on_small_disks(tmp_path, controllers=1) as cluster:
        cluster.start()
        await_growth(cluster)
        filler = fill(small_disks[0])
        await_output(cluster, 1, FULL, WAIT_S)
        assert answers(cluster, 1)
        check_quiet(cluster, 1)
        filler.unlink()
        await_output(cluster, 1, SPACE, WAIT_S)
        assert cluster.leader_id() == 1
        await_growth(cluster)


@pytest.mark.slow
def test_a_node_starts_on_a_full_disk(tmp_path: Path, small_disks: list[Path]) -> None:
    """Its reserve is gone already, so that it must do without from the first moment on."""
    with cluster_on_small_disks(tmp_path) as cluster:
        cluster.start()
        await_growth(cluster)
        full = next(node_id for node_id in cluster.controller_ids if node_id != cluster.leader_id())
        fill(small_disks[full - 1])
        await_output(cluster, full, FULL, WAIT_S)
        filler = fill(small_disks[full - 1])
        cluster.restart(full)
        await_output(cluster, full, FULL, WAIT_S)
        check_quiet(cluster, full)
        filler.unlink()
        await_output(cluster, full, SPACE, WAIT_S)
        assert wait_until(lambda: is_level(cluster, full), WAIT_S), cluster.tails()
