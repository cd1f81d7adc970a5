"""kafkajs, franz-go, Sarama and kcat list, describe, create, alter and delete, also while the quorum changes its
leader; they produce, and consume with groups and without."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kquorum.cli.processes import wait_until
from tests.interop.foreign_clients import Program, franz_go, kafkajs, kcat, sarama
from tests.interop.kafka_release import Unavailable
from tests.support.cluster import PROJECT_ROOT, Cluster

pytestmark = pytest.mark.interop

TOPICS = 12
WAIT_S = 90.0
# Far below the time-outs of these libraries.
# Two brokers cannot hold the three copies that the topic of offsets has otherwise.
ONE_COPY = {"offsets.topic.replication.factor": 1, "group.initial.rebalance.delay.ms": 100}
HANGS = "import time; print('it began', flush=True); time.sleep(600)"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("foreign"), controllers=3, brokers=2, overrides=ONE_COPY) as running:
        running.start()
        yield running


def available(find: Callable[[], Program]) -> Program:
    try:
        return find()
    except Unavailable as error:
        pytest.skip(str(error))


def bootstrap(cluster: Cluster) -> str:
    return ",".join(cluster.address(broker_id) for broker_id in cluster.broker_ids)


def run_through_a_leader_change(cluster: Cluster, program: Program) -> dict[str, Any]:
    """What it told of each step; the leader dies when half of the topics are there."""
    leader = cluster.leader_id()
    told: dict[str, Any] = {}
    topics = 0
    with program.running(bootstrap(cluster), str(TOPICS), within_s=WAIT_S) as process:
        try:
            for line in process.stdout or ():
                assert line.startswith("{"), line
                step = json.loads(line)
                told[step["step"]] = step["value"]
                topics += step["step"] == "topic"
                if step["step"] == "topic" and topics == TOPICS // 2:
                    cluster.kill(leader)
            assert process.wait() == 0, f"status {process.returncode}, at the latest after {WAIT_S} s: {told}"
        finally:
            if not cluster.is_running(leader):
                cluster.start_node(leader)
    assert topics == TOPICS
    return told


@pytest.mark.slow
def test_kafkajs_administers_and_produces(cluster: Cluster) -> None:
    told = run_through_a_leader_change(cluster, available(kafkajs))
    check_administration(cluster, told)
    assert (told["produced-none"], told["produced-gzip"]) == ([0, 0], [0, 100])
    assert told["in-group"] == 200
    consumed = read(cluster, "js", 200)
    for position, name in enumerate(("none", "gzip")):
        expected = [
            (b"key %d" % number, f"{name} {number}".encode(), [("number", b"%d" % number)])
            for number in range(100)
        ]
        assert consumed[position * 100 : position * 100 + 100] == expected


@pytest.mark.slow
def test_franz_go_administers_produces_and_consumes(cluster: Cluster) -> None:
    told = run_through_a_leader_change(cluster, available(franz_go))
    check_administration(cluster, told)
    assert [told[f"produced-{codec}"] for codec in ("none", "gzip", "snappy", "lz4", "zstd")] == [100] * 5
    assert told["consumed"] == 500
    assert told["in-group"] == 500


@pytest.mark.slow
def test_sarama_produces_and_consumes(cluster: Cluster) -> None:
    program = available(sarama)
    create_topic(cluster, "sarama")
    with program.running(bootstrap(cluster), "sarama", within_s=WAIT_S) as process:
        output, _ = process.communicate()
    assert process.returncode == 0, output
    told = {step["step"]: step["value"] for step in map(json.loads, output.splitlines())}
    assert [told[f"produced-{codec}"] for codec in ("none", "gzip", "snappy", "lz4", "zstd")] == [100] * 5
    assert told["consumed"] == 500


def check_administration(cluster: Cluster, told: dict[str, Any]) -> None:
    assert sorted(told["cluster"]) == list(cluster.broker_ids)
    assert (told["partitions"], told["retention"]) == (4, "60000")
    assert told["done"] == TOPICS


def read(cluster: Cluster, topic: str, count: int) -> list[tuple[bytes | None, bytes | None, Any]]:
    """Key, value and headers of the records of partition 0, by librdkafka."""
    consumer = Consumer({"bootstrap.servers": bootstrap(cluster), "group.id": "g"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[bytes | None, bytes | None, Any]] = []

    def has_all() -> bool:
        for message in consumer.consume(1_000, 0.5):
            if message.error() is None:
                found.append((message.key(), message.value(), message.headers()))
        return len(found) >= count

    try:
        assert wait_until(has_all, WAIT_S), len(found)
    finally:
        consumer.close()
    return found


def test_kcat_produces_and_consumes(cluster: Cluster, tmp_path: Path) -> None:
    program = available(kcat)
    lines = tmp_path / "lines"
    lines.write_text("".join(f"k{number}:value {number}\n" for number in range(50)))
    common = ("-b", bootstrap(cluster), "-t", "kcat", "-p", "0")
    create_topic(cluster, "kcat")
    with program.running(*common, "-P", "-K:", "-z", "lz4", "-l", str(lines), within_s=WAIT_S) as process:
        output, _ = process.communicate()
    assert process.returncode == 0, output
    with program.running(*common, "-C", "-e", "-q", "-f", "%k:%s\n", within_s=WAIT_S) as process:
        output, _ = process.communicate()
    assert output == lines.read_text()


def create_topic(cluster: Cluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap(cluster)})
    admin.create_topics([NewTopic(topic, 1, 2)])[topic].result(WAIT_S)
    assert wait_until(lambda: topic in admin.list_topics(timeout=WAIT_S).topics, WAIT_S)


def test_kcat_lists_and_joins_a_group(cluster: Cluster) -> None:
    program = available(kcat)

    def run(*arguments: str) -> tuple[int, str]:
        with program.running("-b", bootstrap(cluster), *arguments, within_s=WAIT_S) as process:
            output, _ = process.communicate()
        return process.returncode, output

    status, output = run("-L", "-J")
    assert status == 0
    assert {broker["id"] for broker in json.loads(output)["brokers"]} == set(cluster.broker_ids)
    create_topic(cluster, "kcat-group")
    run("-P", "-t", "kcat-group", "-l", __file__)
    options = ("-X", "auto.offset.reset=earliest", "-e", "-q")
    status, output = run("-G", "mine", "kcat-group", *options)
    assert status == 0, output
    assert Path(__file__).read_text().splitlines()[0] in output


def test_a_program_that_is_not_there_is_a_reason_to_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for find in (kafkajs, franz_go, sarama, kcat):
        with pytest.raises(Unavailable, match=r"there is no|not installed"):
            find()


def test_a_program_that_hangs_is_ended_in_time() -> None:
    hanging = Program([sys.executable, "-c", HANGS])
    with hanging.running(within_s=1.0) as process:
        assert len(list(process.stdout or ())) <= 1
        assert process.wait() == -signal.SIGKILL
    with hanging.running(within_s=600.0) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "it began\n"
    assert process.returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's death")
def test_a_program_does_not_survive_the_tests() -> None:
    dying = f"""
import os, signal, sys
from tests.interop.foreign_clients import Program
with Program([sys.executable, "-c", {HANGS!r}]).running(within_s=600.0) as process:
    process.stdout.readline()
    print(process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    died = subprocess.run(
        [sys.executable, "-c", dying], check=False, cwd=PROJECT_ROOT, stdout=subprocess.PIPE, timeout=WAIT_S
    )
    child = int(died.stdout)
    if not wait_until(lambda: not is_running(child), 10.0):
        os.kill(child, signal.SIGKILL)
        pytest.fail("it goes on alone")


def is_running(process_id: int) -> bool:
    """A process that has ended but was not reaped yet is not running."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
