"""Disks that lost or changed what a node had acknowledged: the node says so, and gets it back from the others."""

import json
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import pytest

from kquorum.cli.failures import ExitStatus
from kquorum.cli.processes import wait_until
from kquorum.raft.adapters.quorum_state_file import FILE_NAME as QUORUM_STATE
from tests.integration.damaged_files import (
    BUSY,
    WAIT_S,
    await_growth,
    flip_byte,
    flip_middle_of_log,
    followers,
    is_level,
    log_bytes,
    logs_agree,
    metadata_folder,
)
from tests.integration.dynamic_cluster import DynamicCluster
from tests.support.cluster import Cluster, Overrides, await_output

REPAIRED = "the log is repaired"
TRUSTED = "caught up with what was lost: this node votes again"


def busy_cluster(folder: Path, *, brokers: int = 0, overrides: Overrides = MappingProxyType({})) -> Cluster:
    return Cluster(folder, brokers=brokers, overrides={**BUSY, **overrides})


def check_repaired(cluster: Cluster, node_id: int, lost: int) -> None:
    """It said what was wrong and that it no longer is, and its log is the others' again."""
    await_output(cluster, node_id, REPAIRED, WAIT_S)
    assert "is corrupt at byte" in cluster.output(node_id)
    leader = metadata_folder(cluster, cluster.leader_id())
    assert wait_until(lambda: logs_agree(metadata_folder(cluster, node_id), leader, lost), WAIT_S)
    assert wait_until(lambda: is_level(cluster, node_id), WAIT_S), cluster.tails()


def test_a_follower_repairs_a_flipped_byte_and_votes_again(tmp_path: Path) -> None:
    with busy_cluster(tmp_path) as cluster:
        cluster.start()
        await_growth(cluster)
        hurt, other = followers(cluster)
        cluster.kill(hurt)
        folder = metadata_folder(cluster, hurt)
        segment = flip_middle_of_log(folder)
        lost = len(log_bytes(folder))
        cluster.start_node(hurt)
        assert str(segment) in cluster.output(hurt)
        check_repaired(cluster, hurt, lost)
        assert list(folder.glob("*.log.damaged")), "what was damaged is kept"
        # Of three voters one is dead: without the vote of the repaired one no leader can be elected.
        cluster.kill(cluster.leader_id())
        assert wait_until(lambda: cluster.leader_id() in (hurt, other), WAIT_S)
        await_growth(cluster, 10)


@pytest.mark.slow
def test_a_repair_is_over_once_for_all(tmp_path: Path) -> None:
    with busy_cluster(tmp_path) as cluster:
        cluster.start()
        await_growth(cluster)
        hurt, _ = followers(cluster)
        cluster.kill(hurt)
        flip_middle_of_log(metadata_folder(cluster, hurt))
        cluster.start_node(hurt)
        await_output(cluster, hurt, REPAIRED, WAIT_S)
        cluster.restart(hurt)
        assert wait_until(lambda: is_level(cluster, hurt), WAIT_S), cluster.tails()
        assert "is corrupt" not in cluster.output(hurt)


@pytest.mark.slow
def test_a_leader_whose_log_is_damaged_follows_and_repairs(tmp_path: Path) -> None:
    with busy_cluster(tmp_path) as cluster:
        cluster.start()
        await_growth(cluster)
        hurt = cluster.leader_id()
        cluster.kill(hurt)
        folder = metadata_folder(cluster, hurt)
        flip_middle_of_log(folder)
        lost = len(log_bytes(folder))
        cluster.start_node(hurt)
        check_repaired(cluster, hurt, lost)
        assert cluster.leader_id() != hurt


@pytest.mark.slow
def test_a_broker_repairs_its_log(tmp_path: Path) -> None:
    with busy_cluster(tmp_path, brokers=1) as cluster:
        cluster.start()
        await_growth(cluster)
        (hurt,) = cluster.broker_ids
        cluster.kill(hurt)
        folder = metadata_folder(cluster, hurt)
        flip_middle_of_log(folder)
        lost = len(log_bytes(folder))
        cluster.start_node(hurt)
        check_repaired(cluster, hurt, lost)


def test_a_sole_voter_with_a_damaged_log_refuses_and_changes_nothing(tmp_path: Path) -> None:
    with Cluster(tmp_path, controllers=1, brokers=0, overrides=BUSY) as cluster:
        cluster.start()
        await_growth(cluster)
        cluster.kill(1)
        folder = metadata_folder(cluster, 1)
        flip_middle_of_log(folder)
        before = log_bytes(folder)
        assert cluster.start_and_wait_for_end(1) == ExitStatus.DAMAGED_INPUT
        assert "is corrupt at byte" in cluster.output(1)
        assert "Traceback" not in cluster.output(1)
        assert log_bytes(folder) == before


# The election state


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _flip(path: Path) -> None:
    flip_byte(path, 1)


def _unknown_version(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"data_version": 7}))


def _old_copy(path: Path) -> None:
    path.write_text(
        json.dumps(json.loads(path.read_text()) | {"leaderEpoch": 0, "leaderId": -1, "votedId": -1})
    )


Damage = Callable[[Path], None]


@pytest.mark.parametrize(
    "damage",
    [_flip, _cut, _empty, _unknown_version, _old_copy],
)
@pytest.mark.slow
def test_a_damaged_election_state_is_kept_and_replaced_before_it_votes(
    tmp_path: Path, damage: Damage
) -> None:
    with Cluster(tmp_path, brokers=0) as cluster:
        cluster.start()
        hurt, _ = followers(cluster)
        cluster.kill(hurt)
        path = metadata_folder(cluster, hurt) / QUORUM_STATE
        damage(path)
        content = path.read_bytes()
        cluster.start_node(hurt)
        assert f"{path} is damaged" in cluster.output(hurt)
        assert path.with_name(f"{QUORUM_STATE}.damaged").read_bytes() == content
        await_output(cluster, hurt, TRUSTED, WAIT_S)
        assert wait_until(path.exists, WAIT_S), "it votes again, and remembers it"
        assert json.loads(path.read_text())["leaderEpoch"] >= 1


@pytest.mark.slow
def test_a_voter_with_a_damaged_election_state_does_not_vote(tmp_path: Path) -> None:
    """It may have voted in the newest epoch. One of the other two is down, so no leader can be elected meanwhile."""
    with Cluster(tmp_path, brokers=0) as cluster:
        cluster.start()
        leader = cluster.leader_id()
        hurt, other = followers(cluster)
        for node_id in cluster.controller_ids:
            cluster.kill(node_id)
        path = metadata_folder(cluster, hurt) / QUORUM_STATE
        _cut(path)
        cluster.launch(hurt)
        cluster.launch(other)
        stood = "prospective in epoch"
        assert wait_until(lambda: cluster.log_text(other).count(stood) >= 4, WAIT_S), cluster.tails()
        assert not path.exists()
        assert "leader in epoch" not in cluster.output(hurt) + cluster.output(other)
        cluster.launch(leader)
        await_output(cluster, hurt, TRUSTED, WAIT_S)


@pytest.mark.slow
def test_a_sole_voter_needs_no_election_state(tmp_path: Path) -> None:
    with Cluster(tmp_path, controllers=1, brokers=0) as cluster:
        cluster.start()
        cluster.kill(1)
        _cut(metadata_folder(cluster, 1) / QUORUM_STATE)
        cluster.start_node(1)
        assert cluster.leader_id() == 1


@pytest.mark.slow
def test_a_broker_replaces_a_damaged_election_state(tmp_path: Path) -> None:
    with Cluster(tmp_path, brokers=1) as cluster:
        cluster.start()
        (hurt,) = cluster.broker_ids
        cluster.kill(hurt)
        _cut(metadata_folder(cluster, hurt) / QUORUM_STATE)
        cluster.start_node(hurt)
        assert "a broker does not vote" in cluster.output(hurt)


# Snapshots


def _snapshots(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.checkpoint") if not path.name.startswith("0" * 20))


def _await_snapshots(folder: Path, count: int) -> None:
    assert wait_until(lambda: len(_snapshots(folder)) >= count, WAIT_S), sorted(folder.iterdir())


@pytest.mark.slow
def test_a_damaged_snapshot_is_done_without(tmp_path: Path) -> None:
    """An older one and the log, or the log alone, have all that was in it."""
    keys = {"metadata.log.max.record.bytes.between.snapshots": 4_000}
    with busy_cluster(tmp_path, overrides=keys) as cluster:
        cluster.start()
        hurt, _ = followers(cluster)
        folder = metadata_folder(cluster, hurt)
        _await_snapshots(folder, 2)
        cluster.kill(hurt)
        newest = _snapshots(folder)[-1]
        flip_byte(newest, newest.stat().st_size // 2)
        cluster.start_node(hurt)
        assert f"{newest} is not a whole snapshot" in cluster.output(hurt)
        assert wait_until(lambda: is_level(cluster, hurt), WAIT_S), cluster.tails()
        assert newest.with_name(f"{newest.name}.damaged").exists()


@pytest.mark.slow
def test_snapshots_that_the_log_cannot_do_without_are_fetched_again(tmp_path: Path) -> None:
    keys = {
        "metadata.log.max.record.bytes.between.snapshots": 4_000,
        "metadata.log.segment.bytes": 4_096,
        "metadata.max.retention.bytes": 8_000,
    }
    with busy_cluster(tmp_path, overrides=keys) as cluster:
        cluster.start()
        hurt, _ = followers(cluster)
        folder = metadata_folder(cluster, hurt)
        first = folder / f"{0:020}.log"
        assert wait_until(lambda: not first.exists(), 4 * WAIT_S), sorted(folder.iterdir())
        cluster.kill(hurt)
        for snapshot in _snapshots(folder):
            flip_byte(snapshot, snapshot.stat().st_size // 2)
        cluster.start_node(hurt)
        await_output(cluster, hurt, REPAIRED, WAIT_S)
        assert wait_until(lambda: is_level(cluster, hurt), WAIT_S), cluster.tails()
        _await_snapshots(folder, 1)


# A dynamic quorum: who votes stands in the log itself


@pytest.mark.slow
def test_a_voter_of_a_dynamic_quorum_repairs_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with DynamicCluster(tmp_path, capsys, brokers=0, overrides=BUSY) as cluster:
        cluster.start_standalone()
        for node_id in (2, 3):
            cluster.kquorum("quorum", "add-voter", str(node_id), "--wait")
        await_growth(cluster, 300)
        hurt = cluster.leader_id()
        cluster.kill(hurt)
        folder = metadata_folder(cluster, hurt)
        flip_middle_of_log(folder)
        lost = len(log_bytes(folder))
        cluster.start_node(hurt)
        check_repaired(cluster, hurt, lost)
        assert hurt in cluster.voters()
