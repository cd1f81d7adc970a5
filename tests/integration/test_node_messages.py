"""What real nodes print while their operator waits: no leader, then a leader; no majority; another cluster's node."""

from pathlib import Path

import pytest

from kquorum.cli.commands.features.metadata_versions import DEFAULT
from kquorum.cli.commands.format.formatting import format_nodes
from kquorum.cli.processes import wait_until
from kquorum.node.config.load import load_config
from tests.support.cluster import CLUSTER_ID, Cluster

TIMEOUT_S = 40
FOREIGN = "ZZZZZZZZZZZZZZZZZZZZZA"


def prints(cluster: Cluster, node_id: int, words: str) -> None:
    """Wait until it does."""
    found = wait_until(lambda: words in cluster.output(node_id), TIMEOUT_S)
    assert found, f"node {node_id} never printed {words!r}:\n{cluster.output(node_id)}"


@pytest.mark.slow
def test_a_node_that_waits_says_for_whom(tmp_path: Path) -> None:
    with Cluster(tmp_path, brokers=0) as cluster:
        cluster.format(node_ids=(1, 2))
        lines = cluster.config_path.read_text().splitlines()
        cluster.config_path.write_text(
            "\n".join(line for line in lines if not line.startswith('"cluster.id"'))
        )
        config = load_config(cluster.config_path)
        format_nodes([config.node(3)], cluster_id=FOREIGN, metadata_version=DEFAULT, ignore_formatted=False)
        cluster.start_nodes((1,))
        silent = [f"{node_id} ({cluster.address(node_id)}: Connection refused)" for node_id in (2, 3)]
        prints(cluster, 1, f"no answer from {', '.join(silent)}; 2 of 3 voters are needed")
        cluster.start_nodes((2, 3))
        followed = wait_until(
            lambda: any(f"follows {3 - node} in epoch" in cluster.output(node) for node in (1, 2)), TIMEOUT_S
        )
        assert followed, cluster.output(1) + cluster.output(2)
        prints(cluster, 2, "the voters are 1, 2, 3")
        prints(cluster, 3, f"refuses this node: it belongs to cluster {CLUSTER_ID}")
        prints(cluster, 3, f"this is node 3 of cluster {FOREIGN}")
        refusing = wait_until(
            lambda: any("refused raft-client-3 at 127.0.0.1" in cluster.output(node) for node in (1, 2)),
            TIMEOUT_S,
        )
        assert refusing, cluster.output(1) + cluster.output(2)
