"""Disks of brokers that run full or fail under load: leaders move, and every acknowledged record is still there."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kquorum.cli.processes import wait_until
from tests.integration.damaged_files import check_quiet
from tests.jepsen.disk.build import Shim, ShimUnavailable
from tests.jepsen.disk.faulty_disk import FaultyDisk
from tests.support.cluster import Cluster, await_output
from tests.support.record_load import RecordLoad, RecordReader, differing_logs, violations
from tests.support.small_disks import fill, small_disk

TOPIC, PARTITIONS = "written", 3
WAIT_S = 60.0
FIRST, SECOND, THIRD = 101, 102, 103
DISK_BYTES = 64 * 1024 * 1024
FULL = "its partitions take no records until there is"
SPACE = "its partitions take records"
OVERRIDES = {
    "min.insync.replicas": 1,
    "log.segment.bytes": 1_048_576,
    "replica.fetch.backoff.ms": 100,
    "kquorum.reserved.space.bytes": 1024 * 1024,
    "auto.leader.rebalance.enable": False,
}


class Loaded:
    """A cluster with a topic on it, and what it says about the topic."""

    def __init__(self, cluster: Cluster, *, replicas: int = 3, partitions: int = PARTITIONS) -> None:
        self.cluster = cluster
        self.servers = ",".join(map(cluster.address, cluster.broker_ids))
        self._admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        self._admin.create_topics([NewTopic(TOPIC, partitions, replicas)])[TOPIC].result(WAIT_S)
        self.partitions = partitions

    def _seen(self) -> list[tuple[int, list[int]]]:
        found = self._admin.list_topics(TOPIC, timeout=WAIT_S).topics[TOPIC].partitions
        return [(each.leader, sorted(each.isrs)) for each in found.values()]

    def leaders(self) -> set[int]:
        return {leader for leader, _ in self._seen()}

    def await_leaders(self, check: Callable[[set[int]], bool]) -> None:
        assert wait_until(lambda: check(self.leaders()), WAIT_S, 0.1), (
            f"{self._seen()}\n{self.cluster.tails()}"
        )

    def await_in_sync(self, members: list[int]) -> None:
        assert wait_until(lambda: all(isr == members for _, isr in self._seen()), WAIT_S, 0.2), (
            f"{self._seen()}\n{self.cluster.tails()}"
        )

    def check(self, load: RecordLoad) -> None:
        """All that was acknowledged is read, once and in order."""
        reader = RecordReader(self.servers, TOPIC, self.partitions)
        reader.read_on()
        assert violations(load.acknowledged, reader.found) == []
        assert load.errors == []


@pytest.fixture
def disk_of_first(tmp_path: Path) -> Iterator[Path]:
    """The folder of the first broker, on a small file system of its own."""
    with small_disk(tmp_path / f"node-{FIRST}", DISK_BYTES) as folder:
        yield folder


def full_brokers_leave(cluster: Cluster, load: RecordLoad, topic: Loaded, disk: Path) -> Path:
    filler = fill(disk)
    await_output(cluster, FIRST, FULL, WAIT_S)
    topic.await_leaders(lambda leaders: FIRST not in leaders and -1 not in leaders)
    topic.await_in_sync([SECOND, THIRD])
    load.await_more(cluster.tails, 200, WAIT_S)
    return filler


@pytest.mark.slow
def test_a_broker_whose_disk_is_full_leaves_its_partitions_to_others_and_comes_back_by_itself(
    tmp_path: Path, disk_of_first: Path
) -> None:
    with Cluster(tmp_path, controllers=1, brokers=3, overrides=OVERRIDES) as cluster:
        cluster.start()
        topic = Loaded(cluster)
        with RecordLoad(topic.servers, TOPIC, PARTITIONS) as load:
            load.await_more(cluster.tails, timeout_s=WAIT_S)
            filler = full_brokers_leave(cluster, load, topic, disk_of_first)
            filler.unlink()
            await_output(cluster, FIRST, SPACE, WAIT_S)
            topic.await_in_sync([FIRST, SECOND, THIRD])
            # It is as good as the others: it leads, when it has to.
            cluster.kill_together((SECOND, THIRD))
            topic = topic_seen_by_first(topic)
            topic.await_leaders(lambda leaders: leaders == {FIRST})
            load.await_more(cluster.tails, 100, WAIT_S)
            cluster.start_nodes((SECOND, THIRD))
            topic.await_in_sync([FIRST, SECOND, THIRD])
        topic.check(load)
        check_quiet(cluster, FIRST)
        cluster.terminate_together(cluster.broker_ids)
        folders = [cluster.data_folder(each) for each in cluster.broker_ids]
        assert differing_logs(TOPIC, PARTITIONS, folders) == []


def topic_seen_by_first(topic: Loaded) -> Loaded:
    topic._admin = AdminClient({"bootstrap.servers": topic.cluster.address(FIRST), "log_level": 0})
    return topic


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["in order", "by a kill"])
def test_a_broker_is_started_again_on_its_full_disk(tmp_path: Path, disk_of_first: Path, ends: str) -> None:
    with Cluster(tmp_path, controllers=1, brokers=3, overrides=OVERRIDES) as cluster:
        cluster.start()
        topic = Loaded(cluster)
        with RecordLoad(topic.servers, TOPIC, PARTITIONS) as load:
            load.await_more(cluster.tails, timeout_s=WAIT_S)
            filler = full_brokers_leave(cluster, load, topic, disk_of_first)
            if ends == "in order":
                assert cluster.terminate(FIRST) == 0
                cluster.start_node(FIRST)
            else:
                cluster.restart(FIRST)
            load.await_more(cluster.tails, 100, WAIT_S)
            filler.unlink()
            topic.await_in_sync([FIRST, SECOND, THIRD])
        topic.check(load)
        check_quiet(cluster, FIRST)


@pytest.mark.slow
def test_the_only_replica_is_read_only_until_there_is_space(tmp_path: Path, disk_of_first: Path) -> None:
    with Cluster(tmp_path, controllers=1, brokers=1, overrides=OVERRIDES) as cluster:
        cluster.start()
        topic = Loaded(cluster, replicas=1)
        with RecordLoad(topic.servers, TOPIC, PARTITIONS) as load:
            load.await_more(cluster.tails, timeout_s=WAIT_S)
        filler = fill(disk_of_first)
        # One record may find room where another one does not.
        refused = wait_until(lambda: not _is_taken(topic.servers), WAIT_S)
        assert refused, cluster.tails()
        assert topic.leaders() == {FIRST}
        topic.check(load)
        filler.unlink()
        assert wait_until(lambda: _is_taken(topic.servers), WAIT_S), cluster.tails()
        check_quiet(cluster, FIRST)


def _is_taken(servers: str) -> bool:
    """Whether a record is written."""
    told: list[bool] = []

    def heard(error: object, _message: Message) -> None:
        told.append(error is None)

    producer = Producer({"bootstrap.servers": servers, "message.timeout.ms": 1_000, "log_level": 0})
    try:
        producer.produce(TOPIC, b"x" * 100_000, partition=0, on_delivery=heard)
    except KafkaException:
        return False
    producer.flush(WAIT_S)
    return told == [True]


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return Shim.build(tmp_path_factory.getbasetemp() / "shim")
    except ShimUnavailable as error:
        pytest.skip(str(error))


class FailingDirectory:
    """A log directory of the first broker, beside its metadata and perhaps another one, on a disk that fails on
    command."""

    def __init__(self, folder: Path, shim: Path, *, others: int) -> None:
        data = folder / "data-of-first"
        metadata = folder / "metadata-of-first"
        more = [folder / f"more-{number}" for number in range(others)]
        for each in (data, metadata, *more):
            each.mkdir()
        self.disk = FaultyDisk(shim, data, folder / "disk-of-first")
        self.environment = self.disk.environment()
        self.overrides = {
            "log.dirs": ",".join(map(str, (data, *more))),
            "metadata.log.dir": str(metadata),
            "log.dir.failure.timeout.ms": 10_000,
        }


@pytest.mark.slow
def test_a_disk_that_fails_takes_its_partitions_elsewhere(tmp_path: Path, shim: Path) -> None:
    failing = FailingDirectory(tmp_path, shim, others=1)
    with Cluster(
        tmp_path,
        controllers=1,
        brokers=3,
        overrides=OVERRIDES,
        node_overrides={FIRST: failing.overrides},
        environments={FIRST: failing.environment},
    ) as cluster:
        cluster.start()
        topic = Loaded(cluster, partitions=6)
        with RecordLoad(topic.servers, TOPIC, 6) as load:
            load.await_more(cluster.tails, timeout_s=WAIT_S)
            failing.disk.fail_writes()
            await_output(cluster, FIRST, "is offline until the broker is restarted", WAIT_S)
            assert wait_until(lambda: _is_in_sync_in_half(topic), WAIT_S, 0.2), cluster.tails()
            load.await_more(cluster.tails, 100, WAIT_S)
            check_quiet(cluster, FIRST)
            failing.disk.heal()
            cluster.restart(FIRST)
            topic.await_in_sync([FIRST, SECOND, THIRD])
        topic.check(load)


def _is_in_sync_in_half(topic: Loaded) -> bool:
    """The partitions of the directory that is left have the broker, the others go on without it."""
    with_it = [FIRST in isr for _, isr in topic._seen()]
    return with_it.count(True) == 3 and all(leader >= 0 for leader, _ in topic._seen())


@pytest.mark.slow
def test_a_broker_ends_when_its_last_disk_fails(tmp_path: Path, shim: Path) -> None:
    failing = FailingDirectory(tmp_path, shim, others=0)
    with Cluster(
        tmp_path,
        controllers=1,
        brokers=3,
        overrides=OVERRIDES,
        node_overrides={FIRST: failing.overrides},
        environments={FIRST: failing.environment},
    ) as cluster:
        cluster.start()
        topic = Loaded(cluster)
        with RecordLoad(topic.servers, TOPIC, PARTITIONS) as load:
            load.await_more(cluster.tails, timeout_s=WAIT_S)
            failing.disk.fail_writes()
            assert wait_until(lambda: not cluster.is_running(FIRST), WAIT_S), cluster.tails()
            assert "all log directories have failed" in cluster.output(FIRST)
            assert "Traceback" not in cluster.output(FIRST)
            topic.await_leaders(lambda leaders: FIRST not in leaders and -1 not in leaders)
            load.await_more(cluster.tails, 100, WAIT_S)
            failing.disk.heal()
            cluster.start_node(FIRST)
            topic.await_in_sync([FIRST, SECOND, THIRD])
        topic.check(load)
