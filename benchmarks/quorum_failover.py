"""A broker fails on a real quorum: how long until the new leaders of its partitions are committed.

    python -m benchmarks.quorum_failover [--topics 2000] [--partitions 100] [--brokers 10] [--session-ms 9000]
                                         [--folder DIR] [--fast] [--json]

Three controllers, each a process of `kquorum start` with its log on disk and Kafka's default times. The brokers are
made of this process: they register and send heartbeats over the Kafka protocol. The topics, three replicas a
partition, are created by CreateTopics requests of about 2,000 partitions. Then one broker is silent.

Times are those of this machine's clock. `decided` is when the leader appended the first record of it to its log, the
fence (the time in its batch), `committed` when the high watermark that DescribeQuorum answers was seen beyond the last
change of a partition. `silence` is from the last heartbeat that was
answered to `committed`: it contains the session timeout. "processor" is the processor's time of the leader, and of the
busier follower, between `decided` and `committed`: on a machine with other work that says more than the clock.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks._report import hardware, print_result
from benchmarks.big_image import anonymous_bytes
from kquorum.wire.log_batch import LogBatch, parse_batches
from kquorum.wire.metadata_records.cluster import BrokerRegistrationChangeRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.record_batch import read_batch_header
from kquorum.wire.record_frame import decode_record
from tests.jepsen.core.client import RawClient
from tests.support.api_calls import feature_values
from tests.support.cluster import CLUSTER_ID, Cluster

FIRST_BROKER, FAILING = 1000, 1000
REPLICAS = 3
REQUEST_TIMEOUT_S = 60.0
HEARTBEAT_S = 1.0
PARTITIONS_PER_REQUEST = 2_000
CAUGHT_UP = 2**62
POLL_S = 0.01
LOG_TAIL = 4_000
DEADLINE_S = 120.0
TOPIC = {"replication_factor": REPLICAS, "assignments": (), "configs": ()}
KAFKAS_TIMES = {
    "controller.quorum.election.timeout.ms": 1_000,
    "controller.quorum.fetch.timeout.ms": 2_000,
    "controller.quorum.election.backoff.max.ms": 1_000,
    "broker.heartbeat.interval.ms": 2_000,
}


class FailedError(Exception):
    """The cluster did not do what was to be measured."""


class Brokers:
    """Registered and unfenced; a thread keeps all of them alive but those in `silent`."""

    def __init__(self, address: tuple[str, int], count: int) -> None:
        self._client = RawClient(*address, REQUEST_TIMEOUT_S)
        self._epochs = {
            FIRST_BROKER + number: self._register(FIRST_BROKER + number) for number in range(count)
        }
        self.silent: set[int] = set()
        self.last_heard_s: dict[int, float] = {}
        self.longest_heartbeat_s = 0.0
        self.failure: Exception | None = None
        self._stop = threading.Event()
        self._beat()
        self._thread = threading.Thread(target=self._run, name="heartbeats", daemon=True)
        self._thread.start()

    def rest(self, seconds: float) -> None:
        """Let the heartbeats go on."""
        self._stop.wait(seconds)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(REQUEST_TIMEOUT_S)
        self._client.close()

    def _register(self, broker_id: int) -> int:
        values = {
            "broker_id": broker_id,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": UUID(int=broker_id),
            "listeners": [{"name": "PLAINTEXT", "host": "127.0.0.1", "port": 9, "security_protocol": 0}],
            "features": feature_values(),
            "rack": None,
            "is_migrating_zk_broker": False,
            "log_dirs": [UUID(int=(1 << 100) + broker_id)],
            "previous_broker_epoch": -1,
        }
        answer = self._client.request(ApiKey.BROKER_REGISTRATION, values)
        _check(answer.error_code, f"broker {broker_id} cannot register")
        return int(answer.broker_epoch)

    def _run(self) -> None:
        try:
            while not self._stop.wait(HEARTBEAT_S):
                self._beat()
        except Exception as error:  # noqa: BLE001 - the waiting caller gets it
            self.failure = error

    def _beat(self) -> None:
        for broker_id, epoch in self._epochs.items():
            if broker_id in self.silent:
                continue
            values = {
                "broker_id": broker_id,
                "broker_epoch": epoch,
                "current_metadata_offset": CAUGHT_UP,
                "want_fence": False,
                "want_shut_down": False,
                "offline_log_dirs": (),
            }
            begin = time.monotonic()
            answer = self._client.request(ApiKey.BROKER_HEARTBEAT, values)
            self.longest_heartbeat_s = max(self.longest_heartbeat_s, time.monotonic() - begin)
            _check(answer.error_code, f"broker {broker_id} is not heard")
            self.last_heard_s[broker_id] = time.time()


def _check(error_code: Any, what: str) -> None:
    if int(error_code):
        raise FailedError(f"{what}: {error_code.name}")


def create(address: tuple[str, int], topics: int, partitions: int) -> float:
    """Seconds until the last request was answered."""
    client = RawClient(*address, REQUEST_TIMEOUT_S)
    step = max(PARTITIONS_PER_REQUEST // partitions, 1)
    begin = time.monotonic()
    for first in range(0, topics, step):
        wanted = [
            {"name": f"topic-{number:05}", "num_partitions": partitions, **TOPIC}
            for number in range(first, min(first + step, topics))
        ]
        values = {"topics": wanted, "timeout": 60_000, "validate_only": False}
        answer = client.request(ApiKey.CREATE_TOPICS, values)
        for topic in answer.topics:
            _check(topic.error_code, f"{topic.name} cannot be created")
    client.close()
    return time.monotonic() - begin


@dataclass(frozen=True, slots=True)
class Seen:
    """`processor_s` is each controller's so far, the leader's first."""

    at_s: float
    high_watermark: int
    processor_s: tuple[float, ...]


def processor_seconds(process_id: int) -> float:
    """0 when the process is gone."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def high_watermark(client: RawClient) -> int:
    partition = {"partition_index": 0}
    values = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [partition]}]}
    answer = client.request(ApiKey.DESCRIBE_QUORUM, values)
    (told,) = answer.topics[0].partitions
    _check(told.error_code, "the leader does not lead any more")
    return int(told.high_watermark)


def watch(
    address: tuple[str, int], brokers: Brokers, folder: Path, start_offset: int, process_ids: Sequence[int]
) -> tuple[list[Seen], "Failover"]:
    """Until the fence is committed; it is looked for in the leader's log while nothing moves."""
    client = RawClient(*address, REQUEST_TIMEOUT_S)
    seen: list[Seen] = []
    deadline_s = time.monotonic() + DEADLINE_S
    last_move_s = time.monotonic()
    while time.monotonic() < deadline_s:
        if brokers.failure is not None:
            raise brokers.failure
        watermark = high_watermark(client)
        moment = Seen(time.time(), watermark, tuple(map(processor_seconds, process_ids)))
        if seen and moment.high_watermark > seen[-1].high_watermark + 1:
            last_move_s = time.monotonic()
        seen.append(moment)
        if moment.high_watermark > start_offset + 100 and time.monotonic() - last_move_s > 2:
            found = failover_in(folder, start_offset)
            if found is not None and found.last_offset < moment.high_watermark:
                client.close()
                return seen, found
            last_move_s = time.monotonic()
        brokers.rest(POLL_S)
    raise FailedError("the broker was not fenced in time")


@dataclass(frozen=True, slots=True)
class Failover:
    """As the log tells it."""

    decided_at_s: float
    last_decided_at_s: float
    last_offset: int
    changes: int
    leader_changes: int


def failover_in(folder: Path, start_offset: int) -> Failover | None:
    """Once the log is at rest: the fence comes first, and the changes of partitions behind it."""
    changes = leader_changes = last_offset = 0
    decided_at_s = last_decided_at_s = 0.0
    for batch in batches_in(folder, start_offset):
        timestamp_s = read_batch_header(batch.data).max_timestamp_ms / 1000
        for raw in batch.records:
            record = decode_record(raw.value or b"")
            is_fence = isinstance(record, BrokerRegistrationChangeRecord) and record.broker_id == FAILING
            if isinstance(record, PartitionChangeRecord):
                changes += 1
                leader_changes += record.leader != -2
            elif not is_fence:
                continue
            decided_at_s = decided_at_s or timestamp_s
            last_decided_at_s, last_offset = timestamp_s, raw.offset
    if not changes:
        return None
    return Failover(decided_at_s, last_decided_at_s, last_offset, changes, leader_changes)


def batches_in(folder: Path, start_offset: int) -> Iterator[LogBatch]:
    for path in sorted((folder / "__cluster_metadata-0").glob("*.log")):
        for batch in parse_batches(path.read_bytes()):
            if batch.last_offset >= start_offset and not batch.is_control:
                yield batch


def run(arguments: argparse.Namespace, folder: Path) -> dict[str, list[dict[str, object]]]:
    overrides = {**KAFKAS_TIMES, "broker.session.timeout.ms": arguments.session_ms}
    with Cluster(folder / "cluster", brokers=0, overrides=overrides) as cluster:
        cluster.start()
        try:
            return measured(arguments, cluster)
        except Exception:
            for node_id in cluster.controller_ids:
                sys.stderr.write(f"node {node_id}:\n{cluster.log_text(node_id)[-LOG_TAIL:]}\n")
            raise


def measured(arguments: argparse.Namespace, cluster: Cluster) -> dict[str, list[dict[str, object]]]:
    leader = cluster.leader_id()
    address = ("127.0.0.1", cluster.ports[leader])
    brokers = Brokers(address, arguments.brokers)
    process_ids = [each.pid or 0 for each in cluster._processes.values()]
    at_start = [anonymous_bytes(process_id) for process_id in process_ids]
    created_s = create(address, arguments.topics, arguments.partitions)
    brokers.rest(2 * HEARTBEAT_S)
    client = RawClient(*address, REQUEST_TIMEOUT_S)
    start_offset = high_watermark(client)
    client.close()
    grown = [anonymous_bytes(pid) - before for pid, before in zip(process_ids, at_start, strict=True)]
    brokers.longest_heartbeat_s = 0.0
    brokers.silent.add(FAILING)
    followers = [node_id for node_id in cluster.controller_ids if node_id != leader]
    process_ids = [cluster._processes[node_id].pid or 0 for node_id in (leader, *followers)]
    seen, failover = watch(address, brokers, cluster.data_folder(leader), start_offset, process_ids)
    brokers.close()
    committed = next(each for each in seen if each.high_watermark > failover.last_offset)
    begun = max((each for each in seen if each.at_s <= failover.decided_at_s), key=lambda each: each.at_s)
    busy_s = [after - before for before, after in zip(begun.processor_s, committed.processor_s, strict=True)]
    memory = [anonymous_bytes(process_id) for process_id in process_ids]
    assert cluster.leader_id() == leader, "the leader stayed"
    count = arguments.topics * arguments.partitions
    return {
        "creation by requests": [
            {
                "partitions": count,
                "seconds": created_s,
                "partitions_per_second": count / created_s,
                "above_start_mb": max(grown) / 1e6,
                "mb_after_failover": max(memory) / 1e6,
            }
        ],
        "failover": [
            {
                "leaders_changed": failover.leader_changes,
                "partitions_changed": failover.changes,
                "decided_to_committed_s": committed.at_s - failover.decided_at_s,
                "leaders_processor_s": busy_s[0],
                "followers_processor_s": max(busy_s[1:]),
                "silence_s": committed.at_s - brokers.last_heard_s[FAILING],
                "longest_heartbeat_ms": brokers.longest_heartbeat_s * 1e3,
            }
        ],
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--topics", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--session-ms", type=int, default=9_000)
    parser.add_argument("--folder", type=Path, help="on the disk to be measured; else a temporary one")
    parser.add_argument("--fast", action="store_true", help="20 topics, sessions of 3 s")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.fast:
        arguments.topics, arguments.session_ms = 20, 3_000
    machine = hardware()
    settings = {name: getattr(arguments, name) for name in ("topics", "partitions", "brokers", "session_ms")}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        tables = run(arguments, Path(folder))
    print_result("quorum_failover", machine, settings, tables, as_json=arguments.json)


if __name__ == "__main__":
    main()
