"""Kafka's own tools move replicas between log directories, and show how far they are."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kquorum.cli.processes import wait_until
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import KafkaRelease
from tests.interop.site import WAIT_S
from tests.support.cluster import Cluster

pytestmark = [pytest.mark.interop, pytest.mark.slow]

Tool = Callable[..., str]
FIRST, SECOND = 101, 102
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log-dir-tools")


@pytest.fixture(scope="module")
def cluster(kafka_release: KafkaRelease, folder: Path) -> Iterator[Cluster]:
    overrides = {
        each: {"log.dirs": f"{folder / f'{each}-a'},{folder / f'{each}-b'}"} for each in (FIRST, SECOND)
    }
    with Cluster(folder, controllers=1, brokers=2, node_overrides=overrides) as running:
        running.start()
        yield running


@pytest.fixture
def servers(cluster: Cluster) -> str:
    return ",".join(cluster.address(broker_id) for broker_id in cluster.broker_ids)


@pytest.fixture
def tool(kafka: Kafka, servers: str) -> Tool:
    return lambda name, *arguments: kafka.run(name, "--bootstrap-server", servers, *arguments)


def places(tool: Tool, topic: str) -> dict[int, list[tuple[str, bool]]]:
    """By broker: the directories that hold the partition, and whether as a copy."""
    said = tool("org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list", topic)
    described = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    return {
        broker["broker"]: [
            (Path(each["logDir"]).name, partition["isFuture"])
            for each in broker["logDirs"]
            for partition in each["partitions"]
        ]
        for broker in described["brokers"]
    }


def test_kafkas_tool_moves_replicas_between_directories_and_to_a_directory_of_another_broker(
    tool: Tool, servers: str, cluster: Cluster, folder: Path, tmp_path: Path
) -> None:
    tool(
        "org.apache.kafka.tools.TopicCommand",
        "--create",
        "--topic",
        "moved",
        "--replica-assignment",
        str(FIRST),
    )
    assert wait_until(lambda: len(places(tool, "moved")[FIRST]) == 1, WAIT_S, 0.5)
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    for number in range(2_000):
        producer.produce("moved", b"%d " % number + b"x" * 1_000, partition=0)
    assert producer.flush(WAIT_S) == 0
    [(before, _)] = places(tool, "moved")[FIRST]
    [wanted] = {f"{FIRST}-a", f"{FIRST}-b"} - {before}
    on_second = folder / f"{SECOND}-b"
    plan = tmp_path / "plan.json"
    partition = {
        "topic": "moved",
        "partition": 0,
        "replicas": [FIRST, SECOND],
        "log_dirs": [str(folder / wanted), str(on_second)],
    }
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    tool(
        REASSIGN,
        *("--reassignment-json-file", str(plan), "--execute"),
        *("--throttle", "50000000", "--replica-alter-log-dirs-throttle", "1000000"),
    )

    def is_done() -> bool:
        said = tool(REASSIGN, "--reassignment-json-file", str(plan), "--verify")
        return (
            "Reassignment of partition moved-0 is completed" in said
            and f"Reassignment of replica moved-0-{FIRST} completed successfully" in said
            and f"Reassignment of replica moved-0-{SECOND} completed successfully" in said
        )

    assert wait_until(is_done, WAIT_S * 2, 0.5), cluster.tails()
    assert places(tool, "moved") == {FIRST: [(wanted, False)], SECOND: [(on_second.name, False)]}
    logs = [
        b"".join(path.read_bytes() for path in sorted((where / "moved-0").glob("*.log")))
        for where in (folder / wanted, on_second)
    ]
    assert len(logs[0]) > 2_000_000
    assert logs[0] == logs[1]
    described = tool(
        "kafka.admin.ConfigCommand", "--describe", "--entity-type", "brokers", "--entity-name", str(FIRST)
    )
    assert "io.max.bytes.per.second" not in described, "--verify takes the throttles off"
