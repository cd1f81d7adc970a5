"""All nodes die at once and are started again: what they had is there, and brokers come back in one session."""

import re
from pathlib import Path

import pytest

from kquorum.cli.processes import wait_until
from tests.jepsen.core.client import RawClient, TopicsClient
from tests.jepsen.core.errors import ClientError
from tests.support.cluster import Cluster

SESSION_MS = 4_000
OVERRIDES = {
    "broker.session.timeout.ms": SESSION_MS,
    "broker.heartbeat.interval.ms": 1_000,
}
_RESTART_TIMEOUT_S = 90.0
_STARTS = "the broker is starting"


def creates(cluster: Cluster, broker_id: int, name: str) -> bool:
    client = TopicsClient(RawClient("127.0.0.1", cluster.ports[broker_id], 5.0), timeout_ms=4_000)
    try:
        client.create(name)
    except ClientError:
        return False
    finally:
        client.close()
    return True


def lists(cluster: Cluster, broker_id: int) -> set[str]:
    client = TopicsClient(RawClient("127.0.0.1", cluster.ports[broker_id], 5.0), timeout_ms=0)
    try:
        return set(client.list())
    finally:
        client.close()


def start_all(cluster: Cluster) -> None:
    """Brokers first, so that on the busiest machine they are there when the session begins, from the start of the
    controller that is elected on."""
    before = {broker_id: cluster.log_text(broker_id).count(_STARTS) for broker_id in cluster.broker_ids}
    for broker_id in cluster.broker_ids:
        cluster.launch(broker_id)
    for broker_id, count in before.items():
        started = wait_until(
            lambda broker_id=broker_id, count=count: cluster.log_text(broker_id).count(_STARTS) > count,  # type: ignore[misc]
            _RESTART_TIMEOUT_S,
        )
        assert started, cluster.tails()
    for node_id in cluster.controller_ids:
        cluster.launch(node_id)
    ready = wait_until(lambda: all(map(cluster.is_ready, cluster.node_ids)), _RESTART_TIMEOUT_S)
    assert ready, cluster.tails()


@pytest.mark.slow
def test_after_a_kill_of_all_brokers_say_what_they_wait_for_and_register_when_it_is_over(
    tmp_path: Path,
) -> None:
    with Cluster(tmp_path, overrides=OVERRIDES) as cluster:
        cluster.start()
        first, second = cluster.broker_ids
        assert wait_until(lambda: creates(cluster, first, "before"), 30)
        cluster.kill_all()
        assert not any(map(cluster.is_running, cluster.node_ids))
        start_all(cluster)
        assert wait_until(lambda: creates(cluster, second, "after"), 30)
        assert wait_until(lambda: lists(cluster, first) == {"before", "after"}, 30)
        for broker_id in cluster.broker_ids:
            output = cluster.output(broker_id)
            assert re.search(
                r"warning: waiting until \d\d:\d\d:\d\d \(\d s\) for the end of the session", output
            )
            assert "another process with this node id" not in output
            assert "the session of the previous process is over" in cluster.log_text(broker_id)


@pytest.mark.slow
def test_after_an_orderly_end_of_all_no_broker_waits_for_a_session(tmp_path: Path) -> None:
    with Cluster(tmp_path, overrides={**OVERRIDES, "broker.session.timeout.ms": 600_000}) as cluster:
        cluster.start()
        assert wait_until(lambda: creates(cluster, cluster.broker_ids[0], "before"), 30)
        for node_ids in (cluster.broker_ids, cluster.controller_ids):
            cluster.terminate_together(node_ids)
        start_all(cluster)
        assert wait_until(lambda: lists(cluster, cluster.broker_ids[1]) == {"before"}, 30)
        for broker_id in cluster.broker_ids:
            assert "waiting until" not in cluster.output(broker_id)
