"""Voters come, go, lose their disks and lead, in quorums of real processes, while topics are being made."""

import json
from pathlib import Path

import pytest

from kquorum.cli.processes import wait_until
from kquorum.raft.adapters.file_log import FOLDER_NAME
from tests.integration.dynamic_cluster import DynamicCluster, load_on

WAIT_S = 30.0


@pytest.mark.slow
def test_a_quorum_grows_from_one_and_gets_a_new_disk_under_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with DynamicCluster(tmp_path, capsys) as cluster:
        cluster.start_standalone()
        assert set(cluster.voters()) == {1}
        with load_on(cluster) as load:
            for node_id in (2, 3):
                added = cluster.kquorum("quorum", "add-voter", str(node_id), "--wait")
                assert [voter["replica_id"] for voter in added["after"]["voters"]][-1] == node_id
            old_disk = cluster.voters()[2].directory_id
            cluster.lose_disk(2)
            cluster.start_node(2)
            told = cluster.kquorum("quorum", "add-voter", "2", status=1)
            assert "remove-voter 2" in told
            cluster.kquorum("quorum", "remove-voter", "2", "--wait")
            cluster.kquorum("quorum", "add-voter", "2", "--wait")
            assert cluster.voters()[2].directory_id not in (old_disk, None)
            at_least = len(load.made) + 3
            assert wait_until(lambda: len(load.made) >= at_least, WAIT_S), load.refused
        assert load.refused == []
        # Everything that was acknowledged is there at once, without waiting for a voter to catch up.
        listed = cluster.kquorum("topics", "list", "--consistency", "linearizable")
        assert {topic["name"] for topic in listed} >= set(load.made)

        cluster.kill(1)
        assert cluster.leader_id() in (2, 3)
        # A node shows a LeaderChange, and with it how long there was no leader, once that is committed. A linearizable
        # read waits for this.
        cluster.kquorum("topics", "list", "--consistency", "linearizable")
        history = cluster.kquorum("quorum", "history")["elections"]
        assert history[0]["cause"] == "first start"
        # Of the two voters that are left, the first to ask may have the shorter log: then the second election is won.
        assert history[-1]["cause"] in ("fetch timeout", "no winner before")
        assert history[-1]["winner"] == cluster.leader_id()
        assert history[-1]["leaderless_ms"] > 0
        offline = cluster.kquorum(
            "quorum", "history", *(str(cluster.data_folder(node_id)) for node_id in (1, 2, 3))
        )
        # The dead node's own notes are in its folder alone.
        assert offline["elections"][0]["stood"] == [1]
        assert [item["winner"] for item in offline["elections"]] == [item["winner"] for item in history]
        assert offline["elections"][-1] == history[-1]


def test_a_leader_hands_over_in_milliseconds_and_can_be_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The broker knows node 1 alone by its config, and goes on when that is gone."""
    with DynamicCluster(tmp_path, capsys, bootstrap=[1]) as cluster:
        cluster.start_standalone()
        for node_id in (2, 3):
            cluster.kquorum("quorum", "add-voter", str(node_id), "--wait")
        told = cluster.kquorum("quorum", "transfer-leadership", "1")["nothing_to_do"]
        assert "node 1 leads epoch" in told
        planned = cluster.kquorum("quorum", "transfer-leadership", "3", "--dry-run")
        assert (planned["done"], planned["preflight_passed"]) == (False, True)
        assert cluster.leader_id() == 1
        moved = cluster.kquorum("quorum", "transfer-leadership", "3", "--wait")
        assert moved["after"]["leader_id"] == 3

        removed = cluster.kquorum("quorum", "remove-voter", "3")
        assert {voter["replica_id"] for voter in removed["after"]["voters"]} == {1, 2}
        cluster.kquorum("quorum", "add-voter", "3", "--wait")
        cluster.kquorum("quorum", "remove-voter", "1", "--wait")
        cluster.terminate(1)
        assert set(cluster.voters()) == {2, 3}
        for target in (2, 3):
            if cluster.leader_id() != target:
                cluster.kquorum(
                    "quorum",
                    "transfer-leadership",
                    str(target),
                    "--wait",
                    "--bootstrap-server",
                    cluster.address(101),
                )
            with load_on(cluster) as load:
                assert wait_until(lambda load=load: len(load.made) >= 2, WAIT_S), load.refused

        history = cluster.kquorum("quorum", "history")["elections"]
        causes = [election["cause"] for election in history]
        assert "transfer" in causes
        assert "removed voter" in causes
        quick = [item["leaderless_ms"] for item in history if item["cause"] in ("transfer", "removed voter")]
        # Half an election timeout: without the hand-over, a fetch timeout (1.2 s) would have to pass first.
        assert max(quick) < 300, json.dumps(history, indent=1)


@pytest.mark.slow
def test_a_static_quorum_becomes_dynamic_while_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with DynamicCluster(tmp_path, capsys, brokers=0) as cluster:
        cluster._overrides["controller.quorum.voters"] = ",".join(
            f"{node_id}@{cluster.address(node_id)}" for node_id in (1, 2, 3)
        )
        cluster.write_config()
        assert "static" in cluster.kquorum("format", "--standalone", "--node", "1", status=2)
        cluster.start()
        assert {voter.directory_id for voter in cluster.voters().values()} == {None}
        assert "quorum upgrade" in cluster.kquorum("quorum", "remove-voter", "3", status=1)
        assert cluster.kquorum("quorum", "upgrade", "--dry-run", "--wait")["done"] is False
        cluster.kquorum("quorum", "upgrade")
        directories = {node_id: voter.directory_id for node_id, voter in cluster.voters().items()}
        assert None not in directories.values()
        assert cluster.kquorum("quorum", "upgrade")["nothing_to_do"] == "kraft.version is 1"

        follower = next(node_id for node_id in (1, 2, 3) if node_id != cluster.leader_id())
        cluster.terminate(follower)
        cluster.kquorum("quorum", "remove-voter", str(follower), "--wait")
        cluster.start_node(follower)
        cluster.kquorum("quorum", "add-voter", str(follower), "--wait")
        assert {node_id: voter.directory_id for node_id, voter in cluster.voters().items()} == directories
        state = json.loads(
            (cluster.data_folder(cluster.leader_id()) / FOLDER_NAME / "quorum-state").read_text()
        )
        assert state["data_version"] in (0, 1)


@pytest.mark.slow
def test_controllers_join_by_themselves_but_not_again_once_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {"controller.quorum.auto.join.enable": "true", "metadata.max.idle.interval.ms": 100}
    with DynamicCluster(tmp_path, capsys, brokers=0, overrides=keys) as cluster:
        cluster.start_standalone()
        assert wait_until(lambda: set(cluster.voters()) == {1, 2, 3}, WAIT_S)
        cluster.kquorum("quorum", "remove-voter", "3", "--wait")
        cluster.restart(3)
        assert wait_until(lambda: 3 in [item.replica_id for item in cluster.quorum().observers], WAIT_S)
        before = cluster.quorum().high_watermark
        # A NoOp every 0.1 s: two periods (1.2 s) in which it would ask to join, were it to.
        assert wait_until(lambda: cluster.quorum().high_watermark > before + 25, WAIT_S)
        assert set(cluster.voters()) == {1, 2}

        cluster.lose_disk(3)
        cluster.start_node(3)
        assert wait_until(lambda: set(cluster.voters()) == {1, 2, 3}, WAIT_S)
