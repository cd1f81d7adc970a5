"""Nodes of both roles (process.roles=broker,controller): one process, one log, one image, both kinds of listeners."""

from pathlib import Path

import pytest

from kquorum.broker.adapters.clean_shutdown import previous_broker_epoch
from kquorum.cli.failures import ExitStatus
from kquorum.cli.processes import wait_until
from tests.integration.combined_cluster import CombinedCluster


def test_one_node_is_a_cluster_and_comes_back_with_what_it_had(tmp_path: Path) -> None:
    with CombinedCluster(tmp_path, nodes=1) as cluster:
        cluster.start()
        cluster.create(1, "alone", partitions=3, replicas=1)
        assert wait_until(lambda: [topic.name for topic in cluster.topics(1)] == ["alone"], 40)
        assert {part.leader for part in cluster.topics(1)[0].partitions} == {1}
        seen = cluster.brokers(1)
        assert list(seen) == [1]
        assert seen[1].port == cluster.client_ports[1], "clients are not sent to the controller's listener"
        assert cluster.terminate(1) == ExitStatus.OK
        assert previous_broker_epoch([cluster.data_folder(1)]) >= 0, "it was let go by its own controller"
        cluster.start_node(1)
        assert wait_until(lambda: [topic.name for topic in cluster.topics(1)] == ["alone"], 40)
        assert wait_until(lambda: {part.leader for part in cluster.topics(1)[0].partitions} == {1}, 40)
        assert "Traceback" not in cluster.log_text(1)


@pytest.mark.slow
def test_three_nodes_lose_the_leader_by_a_kill_and_another_by_an_orderly_stop(tmp_path: Path) -> None:
    with CombinedCluster(tmp_path, nodes=3) as cluster:
        cluster.start()
        cluster.create(1, "before", partitions=6, replicas=3)
        old = cluster.leader_id()
        cluster.kill(old)
        survivor, other = (node_id for node_id in cluster.node_ids if node_id != old)
        cluster.create(survivor, "after", partitions=6, replicas=2)
        assert wait_until(lambda: {topic.name for topic in cluster.topics(other)} == {"before", "after"}, 40)
        assert wait_until(lambda: old not in cluster.brokers(other), 40), cluster.tails()
        leaders = {part.leader for topic in cluster.topics(other) for part in topic.partitions}
        assert leaders <= {survivor, other}, "the dead broker leads nothing any more"
        cluster.start_node(old)
        assert wait_until(lambda: set(cluster.brokers(old)) == set(cluster.node_ids), 20), cluster.tails()

        def are_in_sync() -> bool:
            """The broker that came back first fetches what it lacks."""
            found = [part for topic in cluster.topics(old) for part in topic.partitions]
            return all(set(part.isr) == set(part.replicas) for part in found)

        assert wait_until(are_in_sync, 40), cluster.tails()
        leading = cluster.leader_id()
        assert cluster.terminate(leading) == ExitStatus.OK
        staying = next(node_id for node_id in cluster.node_ids if node_id != leading)
        assert leading not in cluster.brokers(staying), "it was fenced before its process ended"
        assert all(leading not in part.isr for topic in cluster.topics(staying) for part in topic.partitions)
        assert not any("Traceback" in cluster.log_text(node_id) for node_id in cluster.node_ids)
