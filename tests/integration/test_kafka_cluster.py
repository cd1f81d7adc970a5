"""The cluster that `kquorum.testing` gives to tests: ready at once, and harmed on request."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from kquorum.cli.main import run
from kquorum.cli.processes import wait_until
from kquorum.testing.cluster import ClusterFailed, KafkaCluster

pytest_plugins = ("pytester",)
WAIT_S = 40.0
# A broker that is killed leads until its session has ended.
QUICK_SESSIONS = {"broker.session.timeout.ms": 1_500, "broker.heartbeat.interval.ms": 300}


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(brokers=3, configs=QUICK_SESSIONS) as running:
        yield running


def append(cluster: KafkaCluster, topic: str, values: list[str]) -> None:
    """With acks=all. Raises KafkaException for the first that was not acknowledged."""
    failures: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value, callback=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(WAIT_S) == 0
    if failures:
        raise KafkaException(failures[0])


def read(cluster: KafkaCluster, topic: str, count: int) -> list[str]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": f"readers of {topic}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    found: list[str] = []

    def is_complete() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(message.value().decode())
        return len(found) >= count

    assert wait_until(is_complete, WAIT_S), found
    consumer.close()
    return found


def described(cluster: KafkaCluster, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    status = run([*arguments, "--config", str(cluster.config_path)])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    return printed.out


def test_a_killed_broker_loses_nothing_and_comes_back(cluster: KafkaCluster) -> None:
    append(cluster, "killed", [f"{number}" for number in range(50)])
    cluster.kill(3)
    append(cluster, "killed", [f"{number}" for number in range(50, 100)])
    assert read(cluster, "killed", 100) == [f"{number}" for number in range(100)]
    with pytest.raises(ClusterFailed, match="node 3 does not run"):
        cluster.pause(3)
    cluster.start_node(3)
    known = AdminClient({"bootstrap.servers": cluster.address(3)}).list_topics(timeout=WAIT_S).brokers
    assert sorted(known) == [1, 2, 3]


def test_commands_of_kquorum_reach_it(cluster: KafkaCluster, capsys: pytest.CaptureFixture[str]) -> None:
    append(cluster, "asked", ["one"])
    assert "asked" in described(cluster, capsys, "topics", "list")


def test_a_broker_that_is_cut_off_is_fenced_until_the_link_is_mended(
    cluster: KafkaCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.cut(2)

    def is_fenced() -> bool:
        return "fenced" in described(cluster, capsys, "brokers")

    assert wait_until(is_fenced, WAIT_S)
    cluster.mend()
    assert wait_until(lambda: not is_fenced(), WAIT_S)


def test_a_paused_broker_goes_on(cluster: KafkaCluster) -> None:
    cluster.pause(1)
    cluster.resume(1)
    append(cluster, "paused", ["one"])
    assert read(cluster, "paused", 1) == ["one"]


def test_a_slow_disk_delays_the_quorum_of_one_controller(
    cluster: KafkaCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    [controller] = cluster.controllers
    cluster.slow_disk(controller, 300)
    began_s = time.monotonic()
    described(cluster, capsys, "topics", "create", "slow")
    # A commit has at least one flush.
    assert time.monotonic() - began_s >= 0.3
    cluster.slow_disk(controller, 0)


def test_a_config_that_is_wrong_is_said() -> None:
    with (
        pytest.raises(ClusterFailed, match=r"num\.partitions"),
        KafkaCluster(configs={"num.partitions": "many"}),
    ):
        pass
    with pytest.raises(ValueError, match="brokers is 0"):
        KafkaCluster(brokers=0)


def test_nothing_is_left_when_the_test_run_is_killed() -> None:
    script = (
        "import sys; from kquorum.testing.cluster import KafkaCluster\n"
        "with KafkaCluster() as cluster: print(cluster.data_folder(1), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert users_of(folder)
        process.kill()
    assert wait_until(lambda: not users_of(folder), WAIT_S), users_of(folder)


def users_of(folder: Path) -> list[str]:
    """Processes that hold a file in it."""
    found = []
    for descriptors in Path("/proc").glob("[0-9]*/fd"):
        with suppress(OSError):
            if any(str(each.readlink()).startswith(str(folder)) for each in descriptors.iterdir()):
                found.append(descriptors.parent.name)
    return found


def test_an_ephemeral_cluster_for_the_shell() -> None:
    command = [sys.executable, "-P", "-m", "kquorum.cli.entry", "up", "--ephemeral"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        servers = process.stdout.readline().strip()
        producer = Producer({"bootstrap.servers": servers})
        producer.produce("greetings", "hello")
        assert producer.flush(WAIT_S) == 0
        config = process.stderr.readline().partition("KQUORUM_CONFIG=")[2].split(" ")[0]
        assert Path(config).is_file()
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
    assert not Path(config).parent.exists()


def test_the_fixtures_of_the_plugin(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from confluent_kafka.admin import AdminClient

        def test_brokers(kafka_cluster, kafka_bootstrap_servers, new_kafka_cluster):
            known = AdminClient({"bootstrap.servers": kafka_bootstrap_servers}).list_topics(timeout=20).brokers
            assert sorted(known) == list(kafka_cluster.brokers) == [1, 2]
            other = new_kafka_cluster()
            assert other.bootstrap_servers != kafka_bootstrap_servers
        """
    )
    pytester.makeini("[pytest]\nkafka_brokers = 2\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
