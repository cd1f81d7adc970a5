"""A broker fails: how long the active controller takes to decide and encode who leads and who is in sync instead.

    python -m benchmarks.controller_failover [--topics 10000] [--partitions 100] [--brokers 10] [--plain 20000]
                                             [--profile] [--fast] [--json]

One process, no network, no disk: a whole controller over an image of a million partitions, each with three replicas on
ten brokers, so the broker leads 100,000 partitions and is in sync with 200,000 more. Its session ends; then the
controller has its turns, as a driver gives them to it, until the broker is fenced and off them all. `--topics 330` is
about as much as one decision may hold (10,000 records), and one turn. Each turn's records are decided,
replayed, encoded and put into a batch with its checksum. The figures are the processor time of all turns, and the
longest turn: for so long the leader answers no request. Garbage is collected as in a node: what is loaded is frozen
first, and the state as it grows (`node.state_freeze`).

"one by one" is the same work by the code for single partitions (PartitionChange, replay and codec of one record),
over some of the partitions of the same image, in the same run. "followers" is what a standby takes to read and replay
these batches.
"""

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from random import Random
from typing import Any
from uuid import UUID

import numpy as np

from benchmarks._report import hardware, print_result
from benchmarks.big_image import anonymous_bytes
from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.controller import Controller
from kquorum.metadata.controller.partitions.broker_movement import Movement
from kquorum.metadata.controller.partitions.change_batch import movement_records
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.forwarding import tells_error
from kquorum.metadata.image.cluster import BrokerRegistration, ClusterImage
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.features import FeaturesDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.metadata_version import ELIGIBLE_LEADER_REPLICAS_VERSION
from kquorum.metadata.image.partitions import NUMBER_COLUMNS, table_of_cells
from kquorum.metadata.image.topics import TopicImage, TopicsImage
from kquorum.metadata.loader import MetadataLoader
from kquorum.node.state_freeze import StateFreeze, freeze_what_is_loaded
from kquorum.raft.batches import Accumulator
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.message_schema import Response
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.bodies import read_request
from kquorum.wire.record_frame import encode_record
from tests.support.kio.classes import request_class
from tests.support.kio.codec import encode
from tests.support.kio.entities import build

REPLICAS = 3
NODE_ID = 3000
START_MS = 1_700_000_000_000
FIRST_OFFSET = 5_000_000
FAILING = 0
LEVEL = 25


class BenchmarkRaft:
    """Leads alone; a turn's proposals become a batch."""

    def __init__(self) -> None:
        self.node_id = self.leader_id = NODE_ID
        self.leader_epoch, self.kraft_version = 1, 0
        self.accumulator = Accumulator(8 * 1024 * 1024, CompressionCodec.NONE)
        self.accumulator.begin(1, FIRST_OFFSET)

    @property
    def log_end_offset(self) -> int:
        return self.accumulator.next_offset

    def propose(self, now_ms: int, leader_epoch: int, values: Sequence[bytes]) -> int:
        assert leader_epoch == self.leader_epoch
        return self.accumulator.add(values, now_ms)


def image_of(
    topics: int, partitions: int, brokers: int, replica_count: int = REPLICAS, *, elr: bool = False
) -> MetadataImage:
    """Leaders and replicas spread evenly over the brokers, which have a directory each."""
    random_source = np.random.default_rng(1)
    directory_ids = tuple(UUID(int=(1 << 100) + number) for number in range(brokers))
    features = FeaturesDelta(MetadataImage.empty().features)
    features.replay_feature_level(FeatureLevelRecord(name="metadata.version", feature_level=LEVEL))
    if elr:
        record = FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS_VERSION, feature_level=1)
        features.replay_feature_level(record)
    made = TopicsImage()
    for number in range(topics):
        steps = np.array(
            [random_source.choice(brokers - 1, replica_count - 1, replace=False) + 1 for _ in range(4)]
        ).T
        first = (np.arange(partitions) + number) % brokers
        steps = steps[:, np.arange(partitions) // brokers % steps.shape[1]]
        replicas = np.concatenate([first[np.newaxis], (first + steps) % brokers])
        numbers = np.zeros((NUMBER_COLUMNS, partitions), dtype=np.int32)
        numbers[0], numbers[1] = np.arange(partitions), first
        cells = np.concatenate([numbers, replicas, replicas, replicas], dtype=np.int32)
        table = table_of_cells(cells, (replica_count, replica_count), directory_ids)
        topic_id = UUID(bytes=random_source.bytes(16))
        made = made.with_topic(TopicImage(name=f"topic-{number:05}", id=topic_id, partitions=table))
    cluster = ClusterImage()
    for number in range(brokers):
        broker = BrokerRegistration(
            id=number,
            epoch=number,
            incarnation_id=UUID(int=number),
            end_points=(),
            features=(),
            rack=None,
            fenced=False,
            log_dirs=(directory_ids[number],),
        )
        cluster = cluster.with_broker(broker)
    provenance = Provenance(last_contained_offset=FIRST_OFFSET - 1, last_contained_epoch=1)
    return MetadataImage(provenance=provenance, features=features.image, cluster=cluster, topics=made)


class Cluster:
    """The controller with its turns; `batches` are what it wrote."""

    def __init__(self, image: MetadataImage) -> None:
        self.raft = BenchmarkRaft()
        config = ControllerConfig(metadata_max_idle_interval_ms=0, min_insync_replicas=2)
        self.controller = Controller(config, self.raft, Random(1), "benchmark", image=image)  # type: ignore[arg-type]
        self.now_ms = START_MS
        self.batches: list[LogBatch] = []
        self.controller.handle_leader_change(self.now_ms, NODE_ID, 1)
        self.batches += self.raft.accumulator.drain()
        self.commit_seconds = self.longest_commit_seconds = 0.0
        self.state_freeze = StateFreeze()
        freeze_what_is_loaded()

    def fail(self, failing: int = FAILING) -> list[float]:
        """Only one broker's session ends. Answers the seconds of each turn."""
        active = self.controller._active
        assert active is not None
        self.now_ms += 60_000
        for broker_id in self.controller.image.cluster.brokers:
            if broker_id != failing:
                active.liveness.refresh(broker_id, self.now_ms)

        def is_over() -> bool:
            is_fenced = self.controller.image.cluster.brokers[failing].fenced
            return is_fenced and self.controller.next_deadline_ms() != 0

        return self._turns(is_over)

    def request(self, api_key: ApiKey, version: int, **values: Any) -> list[float]:
        """Answers the seconds of each turn until all that follows from it is done."""
        answers: list[Response] = []
        written = encode(build(request_class(api_key, version), values))
        body, _ = read_request(api_key, version, written, 0, len(written))
        request = ControllerRequest(
            api_key=api_key,
            api_version=version,
            body=body,
            principal="User:benchmark",
        )
        begin = time.process_time()
        self.controller.handle_request(self.now_ms, request, answers.append)
        first = time.process_time() - begin
        seconds = self._turns(lambda: bool(answers) and self.controller.next_deadline_ms() != 0)
        assert not tells_error(answers[0]), answers
        return [first, *seconds]

    def _turns(self, is_over: Callable[[], bool]) -> list[float]:
        seconds = []
        self._commit(self.raft.accumulator.drain())
        while not is_over():
            begin = time.process_time()
            self.controller.handle_time(self.now_ms)
            batches = self.raft.accumulator.drain()
            seconds.append(time.process_time() - begin)
            self._commit(batches)
        return seconds

    def _commit(self, batches: list[LogBatch]) -> None:
        self.batches += batches
        begin = time.process_time()
        if batches:
            self.controller.handle_commit(self.now_ms, batches)
            self.state_freeze.note(batches)
        seconds = time.process_time() - begin
        self.commit_seconds += seconds
        self.longest_commit_seconds = max(self.longest_commit_seconds, seconds)


def one_by_one(cluster: Cluster, count: int) -> dict[str, float]:
    """Microseconds for each partition, by step."""
    image = cluster.controller.image
    active = cluster.controller._active
    assert active is not None
    context = cluster.controller._context(cluster.now_ms, active)
    movement = Movement(broker_id=FAILING, is_leaving=True)
    affected = (
        (topic, partition_id)
        for topic in image.topics.by_id.values()
        for partition_id in topic.partitions.ids[(topic.partitions.isr == FAILING).any(axis=1)].tolist()
    )
    places = list(islice(affected, count))
    begin = time.process_time()
    records = [
        record
        for topic, partition_id in places
        for record in movement_records(context, [(topic, np.array([partition_id]))], movement)
    ]
    decide = time.process_time() - begin
    begin = time.process_time()
    for start in range(0, len(records), 500):
        delta = MetadataDelta(image)
        for offset, record in enumerate(records[start : start + 500]):
            delta.replay(record, offset)
        delta.apply(Provenance())
    replay = time.process_time() - begin
    begin = time.process_time()
    for record in records:
        encode_record(record, 1)
    encode = time.process_time() - begin
    return {
        name: seconds / len(places) * 1e6
        for name, seconds in (("decide", decide), ("replay", replay), ("encode", encode))
    }


def follow(image: MetadataImage, batches: Iterable[LogBatch]) -> tuple[float, MetadataImage]:
    loader = MetadataLoader(image)
    begin = time.process_time()
    for batch in batches:
        loader.handle_commit([batch])
    return time.process_time() - begin, loader.image


def run(arguments: argparse.Namespace) -> dict[str, list[dict[str, object]]]:
    before = anonymous_bytes()
    image = image_of(arguments.topics, arguments.partitions, arguments.brokers)
    with_image = anonymous_bytes()
    cluster = Cluster(image)
    plain = one_by_one(cluster, arguments.plain)
    led = sum(int((topic.partitions.leaders == FAILING).sum()) for topic in image.topics.by_id.values())
    profiler = cProfile.Profile()
    if arguments.profile:
        profiler.enable()
    seconds = cluster.fail()
    profiler.disable()
    records = sum(batch.last_offset - batch.base_offset + 1 for batch in cluster.batches) - 1
    after = anonymous_bytes()
    follower_seconds, followed = follow(image, cluster.batches)
    assert followed.topics == cluster.controller.image.topics
    if arguments.profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(30)
    total = sum(seconds)
    return {
        "failover": [
            {
                "partitions_led": led,
                "partitions_changed": records,
                "seconds": total,
                "us_per_change": total / records * 1e6,
                "turns": len(seconds),
                "longest_turn_ms": max(seconds) * 1e3,
                "commit_seconds": cluster.commit_seconds,
                "longest_commit_ms": cluster.longest_commit_seconds * 1e3,
                "followers_seconds": follower_seconds,
                "times_faster_than_one_by_one": sum(plain.values()) / (total / records * 1e6),
            }
        ],
        "one by one, us for each partition": [
            {**plain, "seconds_for_all": sum(plain.values()) * records / 1e6}
        ],
        "memory, MB": [
            {"image": (with_image - before) / 1e6, "more_after_failover": (after - with_image) / 1e6}
        ],
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--plain", type=int, default=20_000, help="partitions that are decided one by one")
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    parser.add_argument("--fast", action="store_true", help="a hundredth of the size")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.fast:
        arguments.topics, arguments.plain = max(arguments.topics // 100, 1), arguments.plain // 10
    machine = hardware()
    settings = {name: getattr(arguments, name) for name in ("topics", "partitions", "brokers")}
    print_result("controller_failover", machine, settings, run(arguments), as_json=arguments.json)


if __name__ == "__main__":
    main()
