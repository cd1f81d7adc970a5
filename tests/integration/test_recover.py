"""A quorum of real processes loses its majority for good, is recovered at new addresses, and goes on."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.commands.features.metadata_versions import DEFAULT
from kquorum.cli.commands.format.beginning import begin_with_all
from kquorum.cli.commands.format.formatting import format_nodes
from kquorum.cli.failures import ExitStatus
from kquorum.cli.main import run
from kquorum.node.config.load import load_config
from kquorum.node.config.materialise import free_ports
from kquorum.node.formatting import new_uuid
from tests.integration.dynamic_cluster import DynamicCluster
from tests.support.cluster import CLUSTER_ID


def topics(cluster: DynamicCluster) -> dict[str, str]:
    """Their ids, read linearizably."""
    found = cluster.kquorum("topics", "list", "--consistency", "linearizable", "--timeout-ms", "60000")
    return {topic["name"]: topic["topic_id"] for topic in found}


def begin(cluster: DynamicCluster, *, is_dynamic: bool) -> None:
    if not is_dynamic:
        cluster._overrides.pop("controller.quorum.bootstrap.servers")
        cluster.write_config()
        cluster.start()
        return
    config = load_config(cluster.config_path)
    beginning = begin_with_all(config.controllers, new_uuid)
    nodes = config.nodes
    format_nodes(
        nodes, cluster_id=CLUSTER_ID, metadata_version=DEFAULT, ignore_formatted=False, beginning=beginning
    )
    cluster.start_nodes(cluster.node_ids)


def move(cluster: DynamicCluster) -> None:
    """All nodes have other addresses from now on, and find each other by the bootstrap servers."""
    ports = free_ports(len(cluster.node_ids))
    cluster.ports.update(zip(cluster.node_ids, ports, strict=True))
    servers = ",".join(cluster.address(node_id) for node_id in cluster.controller_ids)
    cluster._overrides["controller.quorum.bootstrap.servers"] = servers
    cluster.write_config()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_a_quorum_goes_on_from_one_of_three(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with DynamicCluster(tmp_path / "cluster", capsys) as cluster:
        begin(cluster, is_dynamic=kind == "dynamic")
        cluster.kquorum("topics", "create", "kept", "--partitions", "3", "--replication-factor", "1")
        before = topics(cluster)
        cluster.kill_all()
        for node_id in (2, 3):
            shutil.move(cluster.data_folder(node_id), tmp_path / f"old-{node_id}")
        best, broker = (str(cluster.data_folder(node_id)) for node_id in (1, 101))
        plan: Any = cluster_plan(capsys, best, broker)
        assert (plan["has_majority"], len(plan["lost_voters"])) == (False, 2)
        assert run(["recover", "run", best, str(tmp_path / "old-2"), "-c", str(cluster.config_path)]) == 4

        move(cluster)
        arguments = ["recover", "run", best, broker, "-c", str(cluster.config_path), "--i-accept-the-loss"]
        assert run(arguments) == 0, capsys.readouterr().err
        cluster.start_nodes([1, 101])
        assert topics(cluster) == before
        cluster.kquorum("topics", "create", "new", "--partitions", "1", "--replication-factor", "1")

        # A voter of the old quorum comes back with its folder.
        shutil.move(tmp_path / "old-2", cluster.data_folder(2))
        assert cluster.start_and_wait_for_end(2) == ExitStatus.FOLDER_REFUSED
        assert "was recovered without it" in cluster.output(2)
        assert cluster.start_and_wait_for_end(2) == ExitStatus.FOLDER_REFUSED
        shutil.rmtree(cluster.data_folder(2))

        cluster.format_as("--no-initial-controllers", node_ids=[2])
        cluster.start_node(2)
        cluster.kquorum("quorum", "add-voter", "2", "--wait", "--timeout-ms", "60000")
        assert set(cluster.voters()) == {1, 2}
        assert set(topics(cluster)) == {"kept", "new"}


def cluster_plan(capsys: pytest.CaptureFixture[str], *folders: str) -> Any:
    capsys.readouterr()
    assert run(["recover", "plan", *folders, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_a_quorum_begins_again_from_a_backup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All controllers are lost. The broker's log is ahead of the backup, and is emptied."""
    with DynamicCluster(tmp_path / "cluster", capsys) as cluster:
        begin(cluster, is_dynamic=False)
        cluster.kquorum("topics", "create", "kept", "--partitions", "3", "--replication-factor", "1")
        before = topics(cluster)
        backup = cluster.kquorum("backup", str(tmp_path / "backups"))
        cluster.kquorum("topics", "create", "later", "--partitions", "1", "--replication-factor", "1")
        cluster.kill_all()
        shutil.move(cluster.data_folder(2), tmp_path / "old-2")
        for node_id in (1, 3):
            shutil.rmtree(cluster.data_folder(node_id))
        move(cluster)
        arguments = ["restore", backup["folder"], "--node", "1", "-c", str(cluster.config_path)]
        assert run(arguments) == ExitStatus.USAGE
        assert run([*arguments, "--i-accept-the-loss"]) == 0, capsys.readouterr().err
        shutil.rmtree(cluster.data_folder(101) / "__cluster_metadata-0")
        cluster.start_nodes([1, 101])
        assert topics(cluster) == before

        shutil.move(tmp_path / "old-2", cluster.data_folder(2))
        assert cluster.start_and_wait_for_end(2) == ExitStatus.FOLDER_REFUSED
        assert "was recovered without it" in cluster.output(2)
