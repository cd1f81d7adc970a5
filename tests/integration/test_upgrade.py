"""A rolling upgrade from the last released version to this one and back, while clients write.

The released version is the program of the last tag `vX.Y.Z`, or of the commit in KQUORUM_UPGRADE_FROM, in a worktree of
its own. `kquorum may upgrade` is asked before each node.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquorum.cli.main import run
from tests.support.cluster import PROJECT_ROOT, Cluster
from tests.support.steady_clients import COPY, PARTITIONS, TOPIC, Copier, Writer, check_copies

RECORDS_BETWEEN = 50

pytestmark = pytest.mark.slow


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(PROJECT_ROOT), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def released(tmp_path: Path) -> Iterator[Path]:
    """A checkout of the released version."""
    tree = tmp_path / "released"
    try:
        commit = os.environ.get("KQUORUM_UPGRADE_FROM") or git(
            "describe", "--tags", "--abbrev=0", "--match=v*"
        )
        git("worktree", "add", "--detach", str(tree), commit)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"there is no released version to upgrade from: {getattr(error, 'stderr', error)}")
    yield tree
    git("worktree", "remove", "--force", str(tree))


def roll(cluster: Cluster, tree: Path, writer: Writer) -> None:
    """Each node in turn goes on with the program in `tree`: followers, the leader, brokers."""
    leader = cluster.leader_id()
    order = [*(each for each in cluster.controller_ids if each != leader), leader, *cluster.broker_ids]
    for node_id in order:
        asked = [
            "may",
            "upgrade",
            str(node_id),
            "--wait",
            "--timeout-ms",
            "90000",
            "-c",
            str(cluster.config_path),
        ]
        assert run(asked) == 0, cluster.tails()
        assert cluster.terminate(node_id) == 0
        cluster.run_from(tree, node_id)
        cluster.start_node(node_id)
        writer.wait_for_more(RECORDS_BETWEEN)


def test_a_rolling_upgrade_and_the_way_back_lose_nothing(tmp_path: Path, released: Path) -> None:
    with Cluster(
        tmp_path / "cluster", brokers=3, overrides={"min.insync.replicas": 2}, with_grpc=True
    ) as cluster:
        cluster.run_from(released, *cluster.node_ids)
        cluster.start()
        for topic in (TOPIC, COPY):
            create = ["topics", "create", topic, "-p", str(PARTITIONS), "-r", "3"]
            assert run([*create, "-c", str(cluster.config_path)]) == 0
        servers = ",".join(cluster.address(each) for each in cluster.broker_ids)
        with Writer(servers) as writer, Copier(servers) as copier:
            writer.wait_for_more(RECORDS_BETWEEN)
            roll(cluster, PROJECT_ROOT, writer)
            roll(cluster, released, writer)
            copier.wait_for_more(1)
        check_copies(servers, writer, copier)
