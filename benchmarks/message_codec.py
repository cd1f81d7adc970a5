"""Microseconds per message: the typed messages of `wire.messages` beside kio's classes.

    python -m benchmarks.message_codec [--fast] [--json]

Each message is read and written. Reading goes from bytes to an object of `wire.messages`, and to an entity of kio's
class by `wire.codec`, both with the bound on elements that a listener sets. Making and encoding goes from what a
handler has to bytes: the object is made and encoded, and on the other side a dict is made, built and encoded. `encode`
is the encoding alone. One process; both sides in turn in each of the runs, and the best run counts. Ratios above 1 say
that the typed message is faster.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from benchmarks._report import hardware, print_result
from kquorum.wire import message_codec
from kquorum.wire.message_schema import Message, Response
from kquorum.wire.messages import alter_partition, create_topics, fetch, metadata, produce
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.kio import codec
from tests.support.kio.classes import request_class, response_class
from tests.support.kio.entities import build

RUNS = 9
SECONDS_PER_RUN = 0.05
BATCH = bytes(range(256)) * 64
TOPIC_ID = UUID(int=77 << 64 | 5)
MOST_ELEMENTS = 1_000_000


@dataclass(frozen=True)
class Case:
    """`make` makes the message, `values` what a handler gives to `build` today."""

    name: str
    version: int
    make: Callable[[], Message]
    values: Callable[[], dict[str, Any]]


def fetch_response(partitions: int) -> fetch.FetchResponse:
    return fetch.FetchResponse(
        session_id=7,
        responses=(
            fetch.FetchableTopicResponse(
                topic_id=TOPIC_ID,
                partitions=tuple(
                    [
                        fetch.PartitionData(
                            partition_index=number,
                            high_watermark=1000 + number,
                            last_stable_offset=1000 + number,
                            log_start_offset=0,
                            aborted_transactions=None,
                            records=BATCH,
                        )
                        for number in range(partitions)
                    ]
                ),
            ),
        ),
    )


def fetch_response_values(partitions: int) -> dict[str, Any]:
    return {
        "error_code": ErrorCode.none,
        "session_id": 7,
        "responses": [
            {
                "topic_id": TOPIC_ID,
                "partitions": [
                    {
                        "partition_index": number,
                        "error_code": ErrorCode.none,
                        "high_watermark": 1000 + number,
                        "last_stable_offset": 1000 + number,
                        "log_start_offset": 0,
                        "aborted_transactions": None,
                        "records": BATCH,
                    }
                    for number in range(partitions)
                ],
            }
        ],
    }


def fetch_request(partitions: int) -> fetch.FetchRequest:
    return fetch.FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        topics=(
            fetch.FetchTopic(
                topic_id=TOPIC_ID,
                partitions=tuple(
                    [
                        fetch.FetchPartition(
                            partition=number, fetch_offset=number, partition_max_bytes=1 << 20
                        )
                        for number in range(partitions)
                    ]
                ),
            ),
        ),
    )


def fetch_request_values(partitions: int) -> dict[str, Any]:
    return {
        "max_wait_ms": 500,
        "min_bytes": 1,
        "topics": [
            {
                "topic_id": TOPIC_ID,
                "partitions": [
                    {"partition": number, "fetch_offset": number, "partition_max_bytes": 1 << 20}
                    for number in range(partitions)
                ],
            }
        ],
        "forgotten_topics_data": (),
    }


def produce_request(partitions: int) -> produce.ProduceRequest:
    return produce.ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=(
            produce.TopicProduceData(
                name="orders",
                partition_data=tuple(
                    [
                        produce.PartitionProduceData(index=number, records=BATCH)
                        for number in range(partitions)
                    ]
                ),
            ),
        ),
    )


def produce_request_values(partitions: int) -> dict[str, Any]:
    parts = [{"index": number, "records": BATCH} for number in range(partitions)]
    return {
        "transactional_id": None,
        "acks": -1,
        "timeout_ms": 30_000,
        "topic_data": [{"name": "orders", "partition_data": parts}],
    }


def produce_response(partitions: int) -> produce.ProduceResponse:
    return produce.ProduceResponse(
        responses=(
            produce.TopicProduceResponse(
                name="orders",
                partition_responses=tuple(
                    [
                        produce.PartitionProduceResponse(
                            index=number, base_offset=1000 + number, log_start_offset=0
                        )
                        for number in range(partitions)
                    ]
                ),
            ),
        )
    )


def produce_response_values(partitions: int) -> dict[str, Any]:
    parts = [
        {
            "index": number,
            "error_code": ErrorCode.none,
            "base_offset": 1000 + number,
            "log_append_time_ms": -1,
            "log_start_offset": 0,
            "record_errors": (),
        }
        for number in range(partitions)
    ]
    return {"responses": [{"name": "orders", "partition_responses": parts}]}


def metadata_response(partitions: int) -> metadata.MetadataResponse:
    return metadata.MetadataResponse(
        brokers=tuple(
            [metadata.MetadataResponseBroker(node_id=n, host="broker", port=9092) for n in range(3)]
        ),
        cluster_id="cluster",
        controller_id=1,
        topics=(
            metadata.MetadataResponseTopic(
                name="orders",
                topic_id=TOPIC_ID,
                partitions=tuple(
                    [
                        metadata.MetadataResponsePartition(
                            partition_index=number,
                            leader_id=number % 3,
                            leader_epoch=2,
                            replica_nodes=(0, 1, 2),
                            isr_nodes=(0, 1, 2),
                        )
                        for number in range(partitions)
                    ]
                ),
            ),
        ),
    )


def metadata_response_values(partitions: int) -> dict[str, Any]:
    return {
        "brokers": [{"node_id": n, "host": "broker", "port": 9092, "rack": None} for n in range(3)],
        "cluster_id": "cluster",
        "controller_id": 1,
        "error_code": ErrorCode.none,
        "topics": [
            {
                "error_code": ErrorCode.none,
                "name": "orders",
                "topic_id": TOPIC_ID,
                "is_internal": False,
                "partitions": [
                    {
                        "error_code": ErrorCode.none,
                        "partition_index": number,
                        "leader_id": number % 3,
                        "leader_epoch": 2,
                        "replica_nodes": (0, 1, 2),
                        "isr_nodes": (0, 1, 2),
                        "offline_replicas": (),
                    }
                    for number in range(partitions)
                ],
            }
        ],
    }


def alter_partition_request(partitions: int) -> alter_partition.AlterPartitionRequest:
    return alter_partition.AlterPartitionRequest(
        broker_id=1,
        broker_epoch=9,
        topics=(
            alter_partition.RequestTopicData(
                topic_id=TOPIC_ID,
                partitions=tuple(
                    [
                        alter_partition.RequestPartitionData(
                            partition_index=number,
                            leader_epoch=2,
                            new_isr_with_epochs=tuple(
                                [alter_partition.BrokerState(broker_id=n, broker_epoch=9) for n in range(3)]
                            ),
                            leader_recovery_state=0,
                            partition_epoch=4,
                        )
                        for number in range(partitions)
                    ]
                ),
            ),
        ),
    )


def alter_partition_request_values(partitions: int) -> dict[str, Any]:
    return {
        "broker_id": 1,
        "broker_epoch": 9,
        "topics": [
            {
                "topic_id": TOPIC_ID,
                "partitions": [
                    {
                        "partition_index": number,
                        "leader_epoch": 2,
                        "new_isr_with_epochs": [{"broker_id": n, "broker_epoch": 9} for n in range(3)],
                        "leader_recovery_state": 0,
                        "partition_epoch": 4,
                    }
                    for number in range(partitions)
                ],
            }
        ],
    }


def create_topics_request(topics: int) -> create_topics.CreateTopicsRequest:
    return create_topics.CreateTopicsRequest(
        timeout_ms=30_000,
        topics=tuple(
            [
                create_topics.CreatableTopic(
                    name=f"topic-{number}",
                    num_partitions=6,
                    replication_factor=3,
                    configs=(create_topics.CreatableTopicConfig(name="retention.ms", value="1000"),),
                )
                for number in range(topics)
            ]
        ),
    )


def create_topics_request_values(topics: int) -> dict[str, Any]:
    return {
        "timeout_ms": 30_000,
        "topics": [
            {
                "name": f"topic-{number}",
                "num_partitions": 6,
                "replication_factor": 3,
                "assignments": (),
                "configs": [{"name": "retention.ms", "value": "1000"}],
            }
            for number in range(topics)
        ],
    }


CASES = (
    Case("Fetch request, 1 partition", 17, lambda: fetch_request(1), lambda: fetch_request_values(1)),
    Case("Fetch request, 50", 17, lambda: fetch_request(50), lambda: fetch_request_values(50)),
    Case("Fetch response, 1 partition", 17, lambda: fetch_response(1), lambda: fetch_response_values(1)),
    Case("Fetch response, 50", 17, lambda: fetch_response(50), lambda: fetch_response_values(50)),
    Case("Produce request, 1 partition", 12, lambda: produce_request(1), lambda: produce_request_values(1)),
    Case("Produce request, 50", 12, lambda: produce_request(50), lambda: produce_request_values(50)),
    Case(
        "Produce response, 1 partition", 12, lambda: produce_response(1), lambda: produce_response_values(1)
    ),
    Case("Produce response, 50", 12, lambda: produce_response(50), lambda: produce_response_values(50)),
    Case(
        "Metadata response, 1000", 12, lambda: metadata_response(1000), lambda: metadata_response_values(1000)
    ),
    Case(
        "AlterPartition request, 100",
        3,
        lambda: alter_partition_request(100),
        lambda: alter_partition_request_values(100),
    ),
    Case(
        "CreateTopics request, 1",
        7,
        lambda: create_topics_request(1),
        lambda: create_topics_request_values(1),
    ),
    Case(
        "CreateTopics request, 100",
        7,
        lambda: create_topics_request(100),
        lambda: create_topics_request_values(100),
    ),
)


def in_turn(*actions: Callable[[], object], runs: int) -> list[float]:
    """The seconds that each takes, the best of its runs."""
    best = [float("inf")] * len(actions)
    repeats = []
    for action in actions:
        begin = time.perf_counter()
        action()
        repeats.append(max(1, round(SECONDS_PER_RUN / max(time.perf_counter() - begin, 1e-6) / runs)))
    for _ in range(runs):
        for index, action in enumerate(actions):
            begin = time.perf_counter()
            for _ in range(repeats[index]):
                action()
            best[index] = min(best[index], (time.perf_counter() - begin) / repeats[index])
    return best


def rows(case: Case, runs: int) -> list[dict[str, object]]:
    message, version = case.make(), case.version
    cls = type(message)
    kio: Any = (response_class if isinstance(message, Response) else request_class)(
        cls.api_key,  # type: ignore[attr-defined]
        version,
    )
    entity = build(kio, case.values())
    encoded = message_codec.encode(message, version)
    assert codec.encode(entity) == encoded, f"{case.name}: the two sides write different messages"
    pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "read": (
            lambda: message_codec.decode_bounded(cls, version, encoded, 0, MOST_ELEMENTS),
            lambda: codec.decode_bounded(kio, encoded, 0, MOST_ELEMENTS),
        ),
        "encode": (lambda: message_codec.encode(message, version), lambda: codec.encode(entity)),
        "make and encode": (
            lambda: message_codec.encode(case.make(), version),
            lambda: codec.encode(build(kio, case.values())),
        ),
    }
    found: list[dict[str, object]] = []
    for what, (typed, former) in pairs.items():
        typed_s, former_s = in_turn(typed, former, runs=runs)
        found.append(
            {
                "message": case.name,
                "work": what,
                "bytes": len(encoded),
                "typed_us": round(typed_s * 1e6, 2),
                "kio_us": round(former_s * 1e6, 2),
                "ratio": round(former_s / typed_s, 2),
            }
        )
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fast", action="store_true", help="one run of each, to see that all works")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    runs = 1 if options.fast else RUNS
    machine = hardware()
    found = [row for case in CASES for row in rows(case, runs)]
    print_result("message_codec", machine, {"runs": runs}, {"messages": found}, as_json=options.json)


if __name__ == "__main__":
    main()
