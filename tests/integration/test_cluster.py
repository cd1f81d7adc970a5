"""A quorum of real processes keeps what it committed while nodes die and come back; two Kafka clients look on."""

from collections.abc import Iterator
from typing import Any

import pytest

from kquorum.broker.adapters.clean_shutdown import previous_broker_epoch
from kquorum.broker.identity import NO_EPOCH
from kquorum.cli.processes import wait_until
from tests.support.cluster import Cluster

kafka = pytest.importorskip("kafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin")

pytestmark = pytest.mark.interop

OPERATION_TIMEOUT_S = 30.0


class KafkaPython:
    """kafka-python's admin client at one broker."""

    def __init__(self, address: str) -> None:
        self._admin = kafka.KafkaAdminClient(bootstrap_servers=[address], request_timeout_ms=30_000)

    def create(self, name: str, partitions: int = 1, replicas: int = 2) -> None:
        self._admin.create_topics([kafka.admin.NewTopic(name, partitions, replicas)])

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name])

    def topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def close(self) -> None:
        self._admin.close()


class Confluent:
    """librdkafka's admin client at one broker."""

    def __init__(self, address: str) -> None:
        self._admin = confluent_admin.AdminClient({"bootstrap.servers": address, "log_level": 0})

    def create(self, name: str, partitions: int = 1, replicas: int = 2) -> None:
        futures = self._admin.create_topics(
            [confluent_admin.NewTopic(name, partitions, replicas)], request_timeout=OPERATION_TIMEOUT_S
        )
        futures[name].result(OPERATION_TIMEOUT_S)
        # As with Kafka, the controller answers when it is committed, and this broker hears of it a moment later.
        assert wait_until(lambda: len(self.partitions(name)) == partitions, OPERATION_TIMEOUT_S)

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=OPERATION_TIMEOUT_S).topics)

    def partition(self, topic: str, index: int = 0) -> Any:
        return self._admin.list_topics(topic, timeout=OPERATION_TIMEOUT_S).topics[topic].partitions[index]

    def partitions(self, topic: str) -> list[Any]:
        found = self._admin.list_topics(topic, timeout=OPERATION_TIMEOUT_S).topics[topic].partitions
        return [found[index] for index in sorted(found)]

    def broker_ids(self) -> set[int]:
        return set(self._admin.list_topics(timeout=OPERATION_TIMEOUT_S).brokers)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as running:
        running.start()
        yield running


def shows(cluster: Cluster, broker_id: int, names: set[str], timeout_s: float = 40.0) -> bool:
    client = Confluent(cluster.address(broker_id))
    return wait_until(lambda: names <= client.topics(), timeout_s)


def test_what_one_broker_creates_the_other_lists_with_both_clients(cluster: Cluster) -> None:
    first, second = cluster.broker_ids
    python, confluent = KafkaPython(cluster.address(first)), Confluent(cluster.address(second))
    python.create("from-kafka-python", partitions=3)
    confluent.create("from-confluent")
    both = {"from-kafka-python", "from-confluent"}
    assert wait_until(lambda: both <= confluent.topics(), 40), cluster.tails()
    assert wait_until(lambda: both <= python.topics(), 40), cluster.tails()
    assert confluent.broker_ids() == {first, second}
    python.delete("from-confluent")
    assert wait_until(lambda: "from-confluent" not in confluent.topics(), 40), cluster.tails()
    python.close()


def test_a_killed_leader_is_replaced_and_loses_nothing_that_was_committed(cluster: Cluster) -> None:
    first, second = cluster.broker_ids
    client = Confluent(cluster.address(first))
    before = {f"before-{number}" for number in range(5)}
    for name in sorted(before):
        client.create(name)
    old = cluster.quorum()
    cluster.kill(old.leader_id)
    client.create("after-the-death")
    new = cluster.quorum()
    assert new.leader_id != old.leader_id
    assert new.leader_epoch > old.leader_epoch
    assert shows(cluster, second, before | {"after-the-death"}), cluster.tails()
    cluster.start_node(old.leader_id)
    assert wait_until(lambda: _lag(cluster, old.leader_id) == 0, 20), cluster.tails()


def _lag(cluster: Cluster, node_id: int) -> int | None:
    return next(voter.lag for voter in cluster.quorum().voters if voter.replica_id == node_id)


def test_a_killed_broker_loses_leadership_and_isr_and_rejoins_after_its_restart(cluster: Cluster) -> None:
    first, second = cluster.broker_ids
    client = Confluent(cluster.address(first))
    client.create("replicated", partitions=4)
    assert {p.leader for p in client.partitions("replicated")} == {first, second}
    assert all(set(p.isrs) == {first, second} for p in client.partitions("replicated"))
    cluster.kill(second)
    assert wait_until(lambda: client.broker_ids() == {first}, 20), cluster.tails()
    assert all(p.leader == first and p.isrs == [first] for p in client.partitions("replicated"))
    cluster.start_node(second)
    assert wait_until(
        lambda: all(set(p.isrs) == {first, second} for p in client.partitions("replicated")), 20
    ), cluster.tails()
    assert shows(cluster, second, {"replicated"})


def test_a_broker_that_stops_hands_its_partitions_over_first(cluster: Cluster) -> None:
    first, second = cluster.broker_ids
    client = Confluent(cluster.address(second))
    client.create("handed-over", partitions=4)
    assert cluster.terminate(first) == 0
    # No session timeout had to pass: the other broker leads all of it as soon as the process has ended.
    assert all(p.leader == second and p.isrs == [second] for p in client.partitions("handed-over"))
    assert previous_broker_epoch([cluster.data_folder(first)]) >= 0
    cluster.start_node(first)
    assert previous_broker_epoch([cluster.data_folder(first)]) == NO_EPOCH, "should it crash now"


def test_a_leader_that_stops_hands_over_and_the_quorum_goes_on(cluster: Cluster) -> None:
    old = cluster.quorum()
    assert cluster.terminate(old.leader_id) == 0
    client = Confluent(cluster.address(cluster.broker_ids[0]))
    client.create("after-the-handover")
    assert cluster.quorum().leader_id != old.leader_id
    cluster.start_node(old.leader_id)


def test_a_paused_leader_is_replaced_and_steps_down_when_it_wakes(cluster: Cluster) -> None:
    old = cluster.quorum()
    cluster.pause(old.leader_id)
    try:
        client = Confluent(cluster.address(cluster.broker_ids[1]))
        client.create("while-it-slept")
    finally:
        cluster.resume(old.leader_id)
    assert wait_until(lambda: _lag(cluster, old.leader_id) == 0, 20), cluster.tails()
    # Under load it may have been elected again meanwhile: that took two elections.
    now = cluster.quorum()
    assert now.leader_epoch > old.leader_epoch + (now.leader_id == old.leader_id)
    assert shows(cluster, cluster.broker_ids[0], {"while-it-slept"})


@pytest.mark.parametrize("count", [1])
@pytest.mark.slow
def test_all_nodes_killed_at_once_come_back_with_everything(cluster: Cluster, count: int) -> None:
    client = Confluent(cluster.address(cluster.broker_ids[0]))
    client.create(f"before-the-blackout-{count}", partitions=2)
    for node_id in cluster.node_ids:
        cluster.kill(node_id)
    cluster.start_nodes(cluster.node_ids)
    assert shows(cluster, cluster.broker_ids[1], {f"before-the-blackout-{count}"}), cluster.tails()
    Confluent(cluster.address(cluster.broker_ids[1])).create(f"after-the-blackout-{count}")


def test_no_process_has_logged_a_defect(cluster: Cluster) -> None:
    for node_id in cluster.node_ids:
        lines = [line for line in cluster.log_text(node_id).splitlines() if "Traceback" in line]
        assert not lines, f"node {node_id}:\n{cluster.log_text(node_id)[-3000:]}"
