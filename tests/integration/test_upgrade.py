"""A rolling upgrade from the last released version to this one and back, while clients write.

The released version is the program of the last tag `vX.Y.Z`, or of the commit in KQUORUM_UPGRADE_FROM, in a worktree of
its own. `kquorum may upgrade` is asked before each node.
"""

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from kquorum.cli.main import run
from kquorum.cli.processes import wait_until
from tests.support.cluster import PROJECT_ROOT, Cluster

TOPIC, COPY = "orders", "copied-orders"
PARTITIONS = 3
WAIT_S = 90.0
RECORDS_BETWEEN = 50

pytestmark = pytest.mark.slow


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(PROJECT_ROOT), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def released(tmp_path: Path) -> Iterator[Path]:
    """A checkout of the released version."""
    tree = tmp_path / "released"
    try:
        commit = os.environ.get("KQUORUM_UPGRADE_FROM") or git(
            "describe", "--tags", "--abbrev=0", "--match=v*"
        )
        git("worktree", "add", "--detach", str(tree), commit)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"there is no released version to upgrade from: {getattr(error, 'stderr', error)}")
    yield tree
    git("worktree", "remove", "--force", str(tree))


# Brokers that restart refuse connections, which librdkafka would print.
QUIET = {"log_level": 0}


class Writer:
    """An idempotent producer of numbers, acks=all, until it is left; `acknowledged` has the numbers of each partition
    in the order in which they were acknowledged."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer(
            {
                **QUIET,
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 60_000,
            }
        )
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self.acknowledged: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.errors: list[str] = []

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(WAIT_S) == 0

    def wait_for_more(self, count: int) -> None:
        wanted = self.count + count
        assert wait_until(lambda: self.count >= wanted, WAIT_S), self.errors

    def _write(self) -> None:
        number = 0
        while not self._is_over.wait(0.002):
            self._producer.produce(TOPIC, str(number), partition=number % PARTITIONS, on_delivery=self._note)
            self._producer.poll(0)
            number += 1

    def _note(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
            return
        value, partition = message.value(), message.partition()
        assert value is not None
        assert partition is not None
        self.acknowledged[partition].append(int(value))


def all_of(servers: str, topic: str) -> list[list[int]]:
    """The committed numbers of each partition."""
    consumer = Consumer(
        {
            **QUIET,
            "bootstrap.servers": servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    found: list[list[int]] = [[] for _ in range(PARTITIONS)]
    unread = set(range(PARTITIONS))
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])

    def is_complete() -> bool:
        for message in consumer.consume(500, 0.5):
            value, partition, error = message.value(), message.partition(), message.error()
            assert partition is not None
            if error is None:
                assert value is not None
                found[partition].append(int(value))
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard(partition)
        return not unread

    assert wait_until(is_complete, WAIT_S), (
        f"{unread} were not read to the end: {[len(each) for each in found]}"
    )
    consumer.close()
    return found


class Copier(Writer):
    """Copies the topic exactly once: offsets and copies in one transaction each."""

    def __init__(self, servers: str) -> None:
        super().__init__(servers)
        self._producer = Producer(
            {
                **QUIET,
                "bootstrap.servers": servers,
                "transactional.id": "copier",
                "transaction.timeout.ms": 30_000,
            }
        )
        self._consumer = Consumer(
            {
                **QUIET,
                "bootstrap.servers": servers,
                "group.id": "copiers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self.copied = 0

    def _write(self) -> None:
        self._producer.init_transactions(WAIT_S)
        self._consumer.subscribe([TOPIC])
        while not self._is_over.is_set():
            batch = [each for each in self._consumer.consume(50, 0.2) if each.error() is None]
            if batch:
                self._copy(batch)
        self._consumer.close()

    def _copy(self, batch: list[Message]) -> None:
        self._producer.begin_transaction()
        for message in batch:
            value, partition = message.value(), message.partition()
            assert partition is not None
            self._producer.produce(COPY, value, partition=partition)
        self._producer.send_offsets_to_transaction(
            self._consumer.position(self._consumer.assignment()),
            self._consumer.consumer_group_metadata(),
            WAIT_S,
        )
        self._producer.commit_transaction(WAIT_S)
        self.copied += len(batch)


def roll(cluster: Cluster, tree: Path, writer: Writer) -> None:
    """Each node in turn goes on with the program in `tree`: followers, the leader, brokers."""
    leader = cluster.leader_id()
    order = [*(each for each in cluster.controller_ids if each != leader), leader, *cluster.broker_ids]
    for node_id in order:
        asked = [
            "may",
            "upgrade",
            str(node_id),
            "--wait",
            "--timeout-ms",
            "90000",
            "-c",
            str(cluster.config_path),
        ]
        assert run(asked) == 0, cluster.tails()
        assert cluster.terminate(node_id) == 0
        cluster.run_from(tree, node_id)
        cluster.start_node(node_id)
        writer.wait_for_more(RECORDS_BETWEEN)


def test_a_rolling_upgrade_and_the_way_back_lose_nothing(tmp_path: Path, released: Path) -> None:
    with Cluster(
        tmp_path / "cluster", brokers=3, overrides={"min.insync.replicas": 2}, with_grpc=True
    ) as cluster:
        cluster.run_from(released, *cluster.node_ids)
        cluster.start()
        for topic in (TOPIC, COPY):
            create = ["topics", "create", topic, "-p", str(PARTITIONS), "-r", "3"]
            assert run([*create, "-c", str(cluster.config_path)]) == 0
        servers = ",".join(cluster.address(each) for each in cluster.broker_ids)
        with Writer(servers) as writer:
            with Copier(servers) as copier:
                writer.wait_for_more(RECORDS_BETWEEN)
                roll(cluster, PROJECT_ROOT, writer)
                roll(cluster, released, writer)
                assert wait_until(lambda: copier.copied > 0, WAIT_S)
            copied = copier.copied
        assert writer.errors == []
        assert all_of(servers, TOPIC) == writer.acknowledged
        copies = all_of(servers, COPY)
        assert sum(map(len, copies)) == copied
        for copy, original in zip(copies, writer.acknowledged, strict=True):
            assert copy == original[: len(copy)]
