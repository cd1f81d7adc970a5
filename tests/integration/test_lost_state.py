"""A voter that lost what it had voted or acknowledged must not help to elect a leader without what was committed."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.processes import wait_until
from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.raft.adapters.quorum_state_file import FILE_NAME as QUORUM_STATE
from tests.support.cluster import CLUSTER_ID, Cluster

WAIT_S = 30.0


def _remove_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def _empty_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def _remove_segments(folder: Path) -> None:
    for path in folder.glob("*.log"):
        path.unlink()


def _remove_state(folder: Path) -> None:
    (folder / QUORUM_STATE).unlink()


Loss = Callable[[Path], None]


def _slow(lose: Loss) -> Any:
    """More of the same kind: for `make test-all`."""
    return pytest.param(lose, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "lose", [_slow(_remove_folder), _slow(_empty_folder), _slow(_remove_segments), _remove_state]
)
def test_a_voter_that_lost_something_says_so_and_catches_up(tmp_path: Path, lose: Loss) -> None:
    with Cluster(tmp_path, brokers=0) as cluster:
        cluster.start()
        follower = next(node_id for node_id in cluster.controller_ids if node_id != cluster.leader_id())
        # A voter that has acknowledged nothing yet has lost nothing, and reports no loss.
        assert wait_until(lambda: {voter.lag for voter in cluster.quorum().voters} == {0}, WAIT_S)
        cluster.kill(follower)
        folder = cluster.data_folder(follower) / FOLDER_NAME
        lose(folder)
        cluster.start_node(follower)
        assert f"{folder} lacks what was in it" in cluster.output(follower)
        assert wait_until(lambda: {voter.lag for voter in cluster.quorum().voters} == {0}, WAIT_S)
        assert wait_until((folder / QUORUM_STATE).exists, WAIT_S), "it votes again, and remembers it"
        assert CLUSTER_ID in (cluster.data_folder(follower) / "meta.properties").read_text()


@pytest.mark.parametrize("lose", [_slow(_remove_folder), _slow(_remove_segments)])
def test_no_node_leads_without_what_was_committed(tmp_path: Path, lose: Loss) -> None:
    """One voter is behind, another has lost its log: these two would be a majority without the newest records."""
    with Cluster(tmp_path, brokers=0) as cluster:
        cluster.start()
        leader = cluster.leader_id()
        behind, damaged = (node_id for node_id in cluster.controller_ids if node_id != leader)
        cluster.kill(behind)
        before = cluster.quorum().high_watermark
        assert wait_until(lambda: cluster.quorum().high_watermark > before, WAIT_S)
        cluster.kill(leader)
        cluster.kill(damaged)
        lose(cluster.data_folder(damaged) / FOLDER_NAME)
        cluster.start_node(damaged)
        cluster.start_node(behind)
        stood = "prospective in epoch"
        assert wait_until(lambda: cluster.log_text(behind).count(stood) >= 4, WAIT_S), cluster.tails()
        assert "leader in epoch" not in cluster.output(behind) + cluster.output(damaged)
        cluster.start_node(leader)
        assert wait_until(lambda: {voter.lag for voter in cluster.quorum().voters} == {0}, WAIT_S)
        assert cluster.quorum().high_watermark > before
