"""Kafka's own programs that produce, consume, move and delete records, against brokers of kquorum."""

import json
import re
import time
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

TOPICS = "org.apache.kafka.tools.TopicCommand"
RECORDS = 20_000

Tool = Callable[..., str]


@pytest.fixture(scope="module")
def cluster(kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("record-tools"), controllers=1, brokers=3) as running:
        running.start()
        yield running


@pytest.fixture
def servers(cluster: Cluster) -> str:
    return ",".join(cluster.address(broker_id) for broker_id in cluster.broker_ids)


@pytest.fixture
def tool(kafka: Kafka, servers: str) -> Tool:
    return lambda name, *arguments: kafka.run(name, "--bootstrap-server", servers, *arguments)


def create(tool: Tool, topic: str, *arguments: str) -> None:
    tool(TOPICS, "--create", "--topic", topic, "--replication-factor", "3", *arguments)
    assert wait_until(lambda: topic in tool(TOPICS, "--list"), WAIT_S, 0.5)


def offsets(tool: Tool, topic: str, time: int) -> dict[int, int]:
    """By partition: -1 latest, -2 earliest, -3 of the largest timestamp, else a timestamp in ms."""
    said = tool("org.apache.kafka.tools.GetOffsetShell", "--topic", topic, "--time", str(time))
    return {int(line.split(":")[1]): int(line.split(":")[2]) for line in said.split()}


def produce(servers: str, topic: str, values: list[bytes], partition: int = 0, **options: object) -> None:
    producer = Producer({"bootstrap.servers": servers, "acks": "all", **options})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=partition, timestamp=1_000 + number)
    assert producer.flush(WAIT_S) == 0


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_performance_test_of_producers(kafka: Kafka, tool: Tool, servers: str, codec: str) -> None:
    topic = f"perf-{codec}"
    create(tool, topic, "--partitions", "3")
    said = kafka.run(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(RECORDS), "--record-size", "200", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={servers}", "acks=all", f"compression.type={codec}"),
        timeout_s=120,
    )
    assert f"{RECORDS} records sent" in said, said
    assert sum(offsets(tool, topic, -1).values()) == RECORDS


def test_the_verifiable_producer(tool: Tool) -> None:
    create(tool, "verified")
    said = tool(
        "org.apache.kafka.tools.VerifiableProducer",
        *("--topic", "verified", "--max-messages", "1000", "--acks", "-1", "--throughput", "-1"),
    )
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    sent = [int(each["value"]) for each in events if each["name"] == "producer_send_success"]
    assert sorted(sent) == list(range(1000))
    assert [each["acked"] for each in events if each["name"] == "tool_data"] == [1000]


def test_the_verifiable_consumer_reads_what_the_verifiable_producer_wrote(tool: Tool) -> None:
    create(tool, "both")
    producing = ("--topic", "both", "--max-messages", "500", "--acks", "-1", "--throughput", "-1")
    tool("org.apache.kafka.tools.VerifiableProducer", *producing)
    said = tool(
        "org.apache.kafka.tools.VerifiableConsumer",
        *("--topic", "both", "--group-id", "verifier", "--max-messages", "500", "--verbose"),
        *("--reset-policy", "earliest", "--group-protocol", "classic"),
    )
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    read = [int(each["value"]) for each in events if each["name"] == "record_data"]
    assert read == list(range(500))
    committed = [each for each in events if each["name"] == "offsets_committed"]
    assert committed[-1]["offsets"] == [{"topic": "both", "partition": 0, "offset": 500}]
    assert all(each["success"] for each in committed)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_the_performance_test_of_consumers(kafka: Kafka, tool: Tool, servers: str, codec: str) -> None:
    topic = f"consumed-{codec}"
    create(tool, topic, "--partitions", "3")
    for partition in range(3):
        produce(servers, topic, [bytes(200)] * (RECORDS // 3), partition, **{"compression.type": codec})
    said = kafka.run(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--bootstrap-server", servers, "--topic", topic, "--num-records", str(RECORDS // 3 * 3)),
        *("--timeout", "60000", "--hide-header"),
        timeout_s=120,
    )
    # start, end, MB, MB a second, records, ...
    assert int(said.strip().splitlines()[-1].split(", ")[4]) == RECORDS // 3 * 3, said


def test_the_console_consumer_reads_a_partition(tool: Tool, servers: str) -> None:
    create(tool, "console")
    produce(servers, "console", [b"first", b"second", b"third"])
    said = tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--topic", "console", "--partition", "0", "--offset", "1", "--max-messages", "2"),
        *("--formatter-property", "print.offset=true", "--formatter-property", "print.timestamp=true"),
    )
    assert said.splitlines() == ["CreateTime:1001\tOffset:1\tsecond", "CreateTime:1002\tOffset:2\tthird"]


def test_the_latency_from_end_to_end(kafka: Kafka, tool: Tool, servers: str) -> None:
    """Its consumer seeks to the end of each partition, and reads each record that its producer sends."""
    create(tool, "latency")
    said = kafka.run(
        "org.apache.kafka.tools.EndToEndLatency",
        *("--bootstrap-server", servers, "--topic", "latency", "--num-records", "200"),
        *("--producer-acks", "all", "--record-size", "100"),
        timeout_s=120,
    )
    assert re.search(r"Percentiles: 50th = \d+, 99th = \d+", said), said
    assert offsets(tool, "latency", -1) == {0: 200}


def test_offsets_by_time(tool: Tool, servers: str) -> None:
    create(tool, "timed")
    produce(servers, "timed", [b"%d" % number for number in range(50)])
    assert [offsets(tool, "timed", time) for time in (-1, -2, -3, 1_020)] == [
        {0: 50},
        {0: 0},
        {0: 49},
        {0: 20},
    ]


def test_deleted_records(tool: Tool, servers: str, tmp_path: Path) -> None:
    create(tool, "shortened")
    produce(servers, "shortened", [b"%d" % number for number in range(50)])
    plan = tmp_path / "delete.json"
    plan.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": "shortened", "partition": 0, "offset": 30}]})
    )
    said = tool("org.apache.kafka.tools.DeleteRecordsCommand", "--offset-json-file", str(plan))
    assert "low_watermark: 30" in said
    assert offsets(tool, "shortened", -2) == {0: 30}


def test_log_dirs_have_sizes(tool: Tool, servers: str, cluster: Cluster) -> None:
    create(tool, "sized")
    produce(servers, "sized", [b"x" * 1_000 for _ in range(100)])
    said = tool("org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list", "sized")
    described = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    partitions = [
        (broker["broker"], partition)
        for broker in described["brokers"]
        for folder in broker["logDirs"]
        for partition in folder["partitions"]
    ]
    assert sorted(broker for broker, _ in partitions) == list(cluster.broker_ids)
    assert all(100_000 < partition["size"] < 110_000 for _, partition in partitions), partitions


def test_a_reassignment_moves_records(tool: Tool, servers: str, cluster: Cluster, tmp_path: Path) -> None:
    first, second, third = cluster.broker_ids
    tool(TOPICS, "--create", "--topic", "moved", "--replica-assignment", f"{first}:{second}")
    assert wait_until(lambda: "moved" in tool(TOPICS, "--list"), WAIT_S, 0.5)
    produce(servers, "moved", [b"x" * 1_000 for _ in range(2_000)])
    plan = tmp_path / "plan.json"
    wanted = {"topic": "moved", "partition": 0, "replicas": [third, second]}
    plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    reassign = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    tool(reassign, "--reassignment-json-file", str(plan), "--execute")

    def is_done() -> bool:
        said = tool(reassign, "--reassignment-json-file", str(plan), "--verify")
        return "Reassignment of partition moved-0 is completed" in said

    assert wait_until(is_done, WAIT_S, 0.5), cluster.tails()
    assert offsets(tool, "moved", -1) == {0: 2_000}
    assert re.search(rf"Leader: {third}\s", tool(TOPICS, "--describe", "--topic", "moved"))
    folders = [cluster.data_folder(broker_id) for broker_id in cluster.broker_ids]
    # The log of the replica that left is deleted; those of the others agree.
    assert wait_until(lambda: not list(folders[0].rglob("moved-0/*.log")), WAIT_S)
    logs = [
        b"".join(path.read_bytes() for path in sorted(each.rglob("moved-0/*.log"))) for each in folders[1:]
    ]
    assert len(logs[0]) > 2_000_000
    assert logs[0] == logs[1]


def test_a_throttled_reassignment_takes_its_time_and_leaves_no_throttle(
    tool: Tool, servers: str, cluster: Cluster, tmp_path: Path
) -> None:
    """With no other traffic the records go as fast as the throttle lets them: the first fetch may bring a MiB more."""
    first, second, third = cluster.broker_ids
    size, rate = 12_000_000, 1_500_000
    tool(TOPICS, "--create", "--topic", "slowly", "--replica-assignment", f"{first}:{second}")
    assert wait_until(lambda: "slowly" in tool(TOPICS, "--list"), WAIT_S, 0.5)
    produce(servers, "slowly", [b"x" * 10_000 for _ in range(size // 10_000)])
    plan = tmp_path / "plan.json"
    wanted = {"topic": "slowly", "partition": 0, "replicas": [third, second]}
    plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    reassign = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    configs = "kafka.admin.ConfigCommand"

    def throttles() -> str:
        return tool(configs, "--describe", "--entity-type", "brokers", "--entity-name", str(third)) + tool(
            configs, "--describe", "--entity-type", "topics", "--entity-name", "slowly"
        )

    began_s = time.monotonic()
    tool(reassign, "--reassignment-json-file", str(plan), "--execute", "--throttle", str(rate))
    told = throttles()
    assert f"follower.replication.throttled.rate={rate}" in told
    assert f"follower.replication.throttled.replicas=0:{third}" in told
    assert "leader.replication.throttled.replicas=0:" in told

    def is_there() -> bool:
        folders = cluster.data_folder(third).rglob("slowly-0/*.log")
        return sum(path.stat().st_size for path in folders) >= size

    assert wait_until(is_there, WAIT_S * 3, 0.1), cluster.tails()
    took_s = time.monotonic() - began_s
    assert (size - 2_000_000) / rate * 0.8 <= took_s, took_s

    def is_done() -> bool:
        said = tool(reassign, "--reassignment-json-file", str(plan), "--verify")
        return "Reassignment of partition slowly-0 is completed" in said

    assert wait_until(is_done, WAIT_S, 0.5), cluster.tails()
    assert "throttled" not in throttles()


def test_kafka_reads_the_folders(kafka: Kafka, tool: Tool, servers: str, cluster: Cluster) -> None:
    """Batches with their records, and the indexes, of brokers that run."""
    configs = ("segment.bytes=1048576", "index.interval.bytes=4096", "retention.ms=-1")
    create(tool, "dumped", *(word for config in configs for word in ("--config", config)))
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        values = [b"%d" % number * 200 for number in range(2_000)]
        produce(servers, "dumped", values, **{"compression.type": codec, "enable.idempotence": True})
    cluster.terminate_together(cluster.broker_ids)
    try:
        folder = next(cluster.data_folder(cluster.broker_ids[0]).rglob("dumped-0"))
        names = sorted(path.name for path in folder.glob("*.log"))
        assert len(names) > 1
        counts = checked = 0
        for name in names:
            dump = ("org.apache.kafka.tools.DumpLogSegments", "--files")
            said = kafka.run(*dump, str(folder / name), "--deep-iteration")
            assert "isvalid: false" not in said
            counts += len(re.findall(r"^\| offset: ", said, re.MULTILINE))
            for suffix in (".index", ".timeindex"):
                index = (folder / name).with_suffix(suffix)
                said = kafka.run(*dump, str(index), "--index-sanity-check")
                # A segment of one large batch has no entry.
                assert "passed sanity check" in said or "is empty" in said, said
                checked += "passed sanity check" in said
                said = kafka.run(*dump, str(index), "--verify-index-only")
                assert "mismatch" not in said.lower(), said
        assert counts == 10_000
        assert checked >= len(names)
        snapshots = sorted(folder.glob("*.snapshot"))
        said = kafka.run(*dump, str(snapshots[-1]))
        assert len(re.findall(r"producerId: \d+", said)) == 5, said
    finally:
        cluster.start_nodes(cluster.broker_ids)
