"""Partitions created per second by the active controller alone: no network, no disk.

    python -m benchmarks.controller_creation [--topics 1000] [--partitions 100] [--a-request 50] [--profile] [--fast]
                                             [--json]

CreateTopics requests of `a-request` topics, three replicas a partition, on ten brokers, are
decided (validated, placed), replayed, encoded and put into batches with their checksums, and committed at once, which
answers the request. A long request is decided in parts, in as many turns; the benchmark prints the longest
turn, in which the leader answers no other request. `--topics 20 --partitions 9900 --a-request 1` makes the largest
topics that a request may make.
"replay and encode alone" is what the same records take without any decision: the floor of the plain path. `a_standby`
is what reading and replaying the batches takes on a follower.
"""

import argparse
import cProfile
import gc
import pstats
import time
from collections.abc import Callable, Sequence
from random import Random

from benchmarks._report import hardware, print_result
from benchmarks.big_image import anonymous_bytes
from benchmarks.controller_failover import LEVEL, NODE_ID, START_MS, BenchmarkRaft, image_of
from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.controller import Controller
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.metadata_version import record_version
from kquorum.metadata.image.partitions import warm_columns
from kquorum.metadata.loader import MetadataLoader
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.create_topics import CreateTopicsResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.bodies import read_request
from kquorum.wire.record_frame import decode_record, encode_record
from tests.support.kio.classes import request_class
from tests.support.kio.codec import encode
from tests.support.kio.entities import build

BROKERS = 10
VERSION = 7
TOPIC = {"replication_factor": 3, "assignments": (), "configs": ()}


class Creator:
    def __init__(self, image: MetadataImage) -> None:
        self.raft = BenchmarkRaft()
        config = ControllerConfig(metadata_max_idle_interval_ms=0)
        self.controller = Controller(config, self.raft, Random(1), "benchmark", image=image)  # type: ignore[arg-type]
        self.controller.handle_leader_change(START_MS, NODE_ID, 1)
        self.batches: list[LogBatch] = []
        self.longest_turn_seconds = 0.0
        self.commit()
        warm_columns()
        gc.collect()
        gc.freeze()  # as a node does when it has started

    def commit(self) -> None:
        batches = self.raft.accumulator.drain()
        self.batches += batches
        if batches:
            self.controller.handle_commit(START_MS, batches)

    def _turn(self, work: Callable[[], None]) -> None:
        """The batches that it makes are committed in a turn of their own."""
        begin = time.process_time()
        work()
        batches = self.raft.accumulator.drain()
        middle = time.process_time()
        self.batches += batches
        if batches:
            self.controller.handle_commit(START_MS, batches)
        turns = (middle - begin, time.process_time() - middle)
        self.longest_turn_seconds = max(self.longest_turn_seconds, *turns)

    def create(self, names: list[str], partitions: int) -> None:
        topics = [{"name": name, "num_partitions": partitions, **TOPIC} for name in names]
        values = {"topics": topics, "timeout": 60_000, "validate_only": False}
        written = encode(build(request_class(ApiKey.CREATE_TOPICS, VERSION), values))
        body, _ = read_request(ApiKey.CREATE_TOPICS, VERSION, written, 0, len(written))
        request = ControllerRequest(
            api_key=ApiKey.CREATE_TOPICS,
            api_version=VERSION,
            body=body,
            principal="User:benchmark",
        )
        answers: list[Response] = []
        self._turn(lambda: self.controller.handle_request(START_MS, request, answers.append))
        while not answers:
            self._turn(lambda: self.controller.handle_time(START_MS))
        (answer,) = answers
        assert isinstance(answer, CreateTopicsResponse)
        assert all(topic.error_code is ErrorCode.none for topic in answer.topics)


def replay_and_encode(image: MetadataImage, batches: list[LogBatch]) -> float:
    records = [[decode_record(raw.value or b"") for raw in batch.records] for batch in batches]
    begin = time.process_time()
    for of_batch in records:
        delta = MetadataDelta(image)
        for offset, record in enumerate(of_batch):
            delta.replay(record, offset)
            encode_record(record, record_version(record, LEVEL))
        image = delta.apply(Provenance())
    return time.process_time() - begin


def run(arguments: argparse.Namespace) -> dict[str, list[dict[str, object]]]:
    image = image_of(0, 1, BROKERS)
    before = anonymous_bytes()
    creator = Creator(image)
    made = len(creator.batches)
    names = [f"topic-{number:06}" for number in range(arguments.topics)]
    profiler = cProfile.Profile()
    if arguments.profile:
        profiler.enable()
    longest = 0.0
    start = time.process_time()
    for first in range(0, len(names), arguments.a_request):
        begin = time.process_time()
        creator.create(names[first : first + arguments.a_request], arguments.partitions)
        longest = max(longest, time.process_time() - begin)
    seconds = time.process_time() - start
    profiler.disable()
    if arguments.profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(30)
    memory = anonymous_bytes() - before
    count = arguments.topics * arguments.partitions
    batches = creator.batches[made:]
    plain = replay_and_encode(image, batches)
    loader = MetadataLoader(image)
    begin = time.process_time()
    for batch in batches:
        loader.handle_commit([batch])
    standby = time.process_time() - begin
    assert loader.image.topics == creator.controller.image.topics
    return {
        "creation": [
            {
                "partitions": count,
                "partitions_per_second": count / seconds,
                "us_each": seconds / count * 1e6,
                "longest_request_ms": longest * 1e3,
                "longest_turn_ms": creator.longest_turn_seconds * 1e3,
                "replay_and_encode_alone_us": plain / count * 1e6,
                "standby_us": standby / count * 1e6,
                "memory_mb": memory / 1e6,
            }
        ]
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--topics", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--a-request", type=int, default=50, help="topics in each request")
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    parser.add_argument("--fast", action="store_true", help="a hundred topics")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.fast:
        arguments.topics = 100
    machine = hardware()
    settings = {name: getattr(arguments, name) for name in ("topics", "partitions", "a_request")}
    print_result("controller_creation", machine, settings, run(arguments), as_json=arguments.json)


if __name__ == "__main__":
    main()
