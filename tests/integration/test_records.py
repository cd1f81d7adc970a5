"""Brokers keep records: what was acknowledged with acks=all survives the leader, a crash of all and an orderly stop.

The commands produce and consume show it."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.clients.partition_client import PartitionClient, Producer
from kquorum.cli.main import run
from kquorum.cli.processes import wait_until
from kquorum.node.config.addresses import HostPort
from kquorum.node.config.materialise import LOOPBACK
from kquorum.wire.record_parsing import Record
from tests.support.cluster import Cluster

TOPIC = "orders"
BROKERS = (101, 102, 103)
WAIT_S = 40.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("records")
    overrides = {
        "min.insync.replicas": 2,
        "replica.fetch.backoff.ms": 100,
        "log.cleaner.backoff.ms": 500,
    }
    with Cluster(folder, controllers=1, brokers=3, overrides=overrides) as running:
        running.start()
        yield running


def kquorum(cluster: Cluster, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    status = run([*arguments, "--config", str(cluster.config_path)])
    printed = capsys.readouterr()
    assert status == 0, f"{arguments}: {printed.out}{printed.err}\n{cluster.tails()}"
    return printed.out


def create(cluster: Cluster, capsys: pytest.CaptureFixture[str], topic: str, partitions: int) -> None:
    kquorum(cluster, capsys, "topics", "create", topic, "-p", str(partitions), "-r", "3")


def produce(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], folder: Path, topic: str, lines: list[str]
) -> None:
    path = folder / "lines"
    path.write_text("".join(f"{line}\n" for line in lines))
    kquorum(cluster, capsys, "produce", topic, "--file", str(path), "--key-separator", ":")


def consumed(cluster: Cluster, capsys: pytest.CaptureFixture[str], topic: str) -> list[dict[str, object]]:
    told = kquorum(cluster, capsys, "consume", topic, "--until-end", "--json")
    return [json.loads(line) for line in told.splitlines()]


def now_ms() -> int:
    """Older records than `retention.ms` would go with the first look of the retention, 30 s after the start."""
    return time.time_ns() // 1_000_000


def client(cluster: Cluster) -> PartitionClient:
    addresses = [HostPort(LOOPBACK, cluster.ports[each]) for each in BROKERS]
    return PartitionClient(addresses, round(WAIT_S * 1000))


def leaders(cluster: Cluster, topic: str) -> dict[int, int]:
    async def ask() -> dict[int, int]:
        async with client(cluster) as asking:
            return (await asking.topic(topic)).leaders

    return asyncio.run(ask())


def in_sync(cluster: Cluster, capsys: pytest.CaptureFixture[str], topic: str) -> list[int]:
    """How many replicas of each partition are in sync."""
    [told] = json.loads(kquorum(cluster, capsys, "topics", "describe", topic, "--json"))
    return [len(each["isr"]) for each in told["partitions"]]


def test_what_is_produced_is_consumed(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    create(cluster, capsys, "lines", 3)
    produce(cluster, capsys, tmp_path, "lines", [f"key {n % 7}:value {n}" for n in range(500)])
    found = consumed(cluster, capsys, "lines")
    assert sorted(str(each["value"]) for each in found) == sorted(f"value {n}" for n in range(500))
    of_key: dict[object, list[str]] = {}
    for each in found:
        of_key.setdefault(each["key"], []).append(str(each["value"]))
    assert of_key == {f"key {k}": [f"value {n}" for n in range(k, 500, 7)] for k in range(7)}
    last = kquorum(cluster, capsys, "consume", "lines", "-e", "-o", "-1", "--offsets", "--keys").splitlines()
    assert len(last) == 3
    assert all(line.count("\t") == 2 for line in last)


def test_a_compacted_topic_keeps_the_newest_record_of_each_key(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """On each replica for itself."""
    configs = ("cleanup.policy=compact", "segment.bytes=1048576", "min.cleanable.dirty.ratio=0.01")
    options = [part for each in configs for part in ("--topic-config", each)]
    kquorum(cluster, capsys, "topics", "create", "states", "-p", "1", "-r", "3", *options)
    filler = "x" * 2_000
    for first in range(0, 1_600, 400):
        numbers = range(first, first + 400)
        produce(cluster, capsys, tmp_path, "states", [f"key {n % 10}:{n} {filler}" for n in numbers])

    def size_of_logs() -> int:
        size = 0
        for each in BROKERS:
            for path in cluster.data_folder(each).rglob("states-0/*.log"):
                with suppress(FileNotFoundError):  # the cleaner has just replaced it
                    size += path.stat().st_size
        return size

    # Three segments of 800 KB were closed on each broker; what is left of them is ten records. The fourth is written.
    assert wait_until(lambda: size_of_logs() < 3 * 850_000, WAIT_S), cluster.tails()
    found = consumed(cluster, capsys, "states")
    assert len(found) == 10 + 400
    newest = {each["key"]: int(str(each["value"]).split()[0]) for each in found}
    assert newest == {f"key {k}": 1_590 + k for k in range(10)}
    offsets = [each["offset"] for each in found]
    assert offsets == sorted(offsets, key=lambda offset: int(str(offset)))
    assert offsets[-1] == 1_599


def test_a_description_shows_the_logs_of_the_replicas(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    create(cluster, capsys, "described", 2)
    produce(cluster, capsys, tmp_path, "described", [f"{n}:{n}" for n in range(100)])

    def partitions() -> list[dict[str, Any]]:
        told = json.loads(kquorum(cluster, capsys, "topics", "describe", "described", "--json"))
        found: list[dict[str, Any]] = told[0]["partitions"]
        return found

    def all_logs_are_told() -> bool:
        return all(
            len(each["logs"]) == 3 and all(log["lag"] == 0 for log in each["logs"]) for each in partitions()
        )

    assert wait_until(all_logs_are_told, WAIT_S), partitions()
    told = partitions()
    assert sum(each["logs"][0]["log_end_offset"] for each in told) == 100
    for each in told:
        assert [log["broker_id"] for log in each["logs"]] == each["replicas"]
        for log in each["logs"]:
            folder = cluster.data_folder(log["broker_id"]) / f"described-{each['partition_id']}"
            assert log["size_bytes"] == sum(path.stat().st_size for path in folder.glob("*.log"))
            assert log["log_start_offset"] == 0
    shown = kquorum(cluster, capsys, "topics", "describe", "described")
    assert "next" in shown
    assert shown.count("0 0 0") == 2

    # A broker that is away leaves a question mark; the others are described.
    away = told[0]["replicas"][-1]
    cluster.kill(away)
    try:
        shown = kquorum(cluster, capsys, "topics", "describe", "described")
        assert "?" in shown
        assert wait_until(lambda: away not in leaders(cluster, "described").values(), WAIT_S)
        for each in partitions():
            assert sorted(log["broker_id"] for log in each["logs"]) == sorted(set(BROKERS) - {away})
    finally:
        cluster.start_node(away)
    assert wait_until(lambda: in_sync(cluster, capsys, "described") == [3, 3], WAIT_S), cluster.tails()


def test_a_killed_leader_loses_nothing_that_was_acknowledged(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The producer goes on over the death, by sequence numbers, so nothing is there twice either."""
    create(cluster, capsys, TOPIC, 1)
    acknowledged: dict[int, bytes] = {}

    async def work() -> int:
        async with client(cluster) as asking:
            place = await asking.topic(TOPIC)
            producer = Producer(*await asking.new_producer_id())
            first_leader = place.leaders[0]
            for number in range(300):
                if number == 100:
                    cluster.kill(first_leader)
                value = b"value %d" % number
                offset = await asking.produce(
                    place, 0, [Record(0, now_ms(), None, value)], acks=-1, producer=producer
                )
                acknowledged[offset] = value
            return first_leader

    dead = asyncio.run(work())
    assert len(acknowledged) == 300
    assert leaders(cluster, TOPIC)[0] not in (dead, -1)
    found = consumed(cluster, capsys, TOPIC)
    assert {each["offset"]: str(each["value"]).encode() for each in found} == acknowledged
    assert [str(each["value"]) for each in found] == [f"value {n}" for n in range(300)]

    # The dead one comes back with what it has, fetches the rest, and is in sync again.
    cluster.start_node(dead)
    assert wait_until(lambda: in_sync(cluster, capsys, TOPIC) == [3], WAIT_S), cluster.tails()
    logs = [(cluster.data_folder(each) / f"{TOPIC}-0" / f"{0:020}.log").read_bytes() for each in BROKERS]
    assert logs[0] == logs[1] == logs[2]


@pytest.mark.parametrize("ends", ["in order", "by a crash of all"])
def test_a_cluster_that_stops_has_its_records_when_it_starts_again(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path, ends: str
) -> None:
    topic = f"kept.{ends.replace(' ', '.')}"
    create(cluster, capsys, topic, 2)
    produce(cluster, capsys, tmp_path, topic, [f"{n}:{n}" for n in range(100)])
    before = consumed(cluster, capsys, topic)
    assert len(before) == 100
    if ends == "in order":
        cluster.terminate_together(BROKERS)
        marks = [
            json.loads((cluster.data_folder(each) / ".kafka_cleanshutdown").read_text()) for each in BROKERS
        ]
        assert all(mark["brokerEpoch"] > 0 for mark in marks)
    else:
        for each in BROKERS:
            cluster.kill(each)
    cluster.start_nodes(BROKERS)
    assert wait_until(lambda: all(each >= 0 for each in leaders(cluster, topic).values()), WAIT_S)

    def by_partition(found: list[dict[str, object]]) -> list[dict[str, object]]:
        return sorted(found, key=lambda each: (each["partition"], each["offset"]))

    assert by_partition(consumed(cluster, capsys, topic)) == by_partition(before)


def test_a_deleted_topic_takes_its_records_along(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    create(cluster, capsys, "gone", 1)
    produce(cluster, capsys, tmp_path, "gone", ["a:1"])
    kquorum(cluster, capsys, "topics", "delete", "gone")
    assert wait_until(lambda: not (cluster.data_folder(101) / "gone-0").exists(), WAIT_S)
    create(cluster, capsys, "gone", 1)
    produce(cluster, capsys, tmp_path, "gone", ["b:2"])
    assert [(each["offset"], each["value"]) for each in consumed(cluster, capsys, "gone")] == [(0, "2")]
