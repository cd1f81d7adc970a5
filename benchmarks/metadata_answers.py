"""What a broker's answers to Metadata requests cost, and for how long one of them holds up everybody else.

    python -m benchmarks.metadata_answers [--topics 2000] [--partitions 100] [--brokers 10] [--small-topics 1000]
                                          [--version 12] [--seconds 2] [--fast] [--json]

One process, no network. "All topics" is the first answer of a broker, made from the columns of the image in slices, and
the next one, put together from what the first left; "message" is the same answer by way of an object for each
partition and the codec of messages, as handlers of rare requests make theirs. "Requests" are answers to all of a
smaller cluster's topics, one after the other for some seconds: to an image that stays, to one in which ten topics
change between two requests, and by messages. All times are the processor's.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any

from benchmarks._report import hardware, print_result
from benchmarks.controller_failover import image_of
from kquorum.broker.metadata_cache.responses import MetadataResponses
from kquorum.metadata.image.cluster import ClusterImage, Endpoint
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.message_codec import encode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.warm_up import warm_up
from tests.support.api_calls import request_of
from tests.support.plain_metadata import handle_metadata

LISTENER = "PLAINTEXT"
CLUSTER = "benchmark"
SMALL_PARTITIONS = 10
CHANGED_TOPICS = 10


def with_listeners(image: MetadataImage) -> MetadataImage:
    cluster = ClusterImage()
    for broker in image.cluster.brokers.values():
        end_point = Endpoint(LISTENER, f"broker-{broker.id}.example", 9092, 0)
        cluster = cluster.with_broker(replace(broker, end_points=(end_point,)))
    return replace(image, cluster=cluster)


def request_for_all(version: int) -> Any:
    values: dict[str, object] = {
        "topics": None if version else [],
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
        "include_cluster_authorized_operations": False,
    }
    return request_of(ApiKey.METADATA, version, values)


def by_message(request: Any, version: int, image: MetadataImage) -> bytes:
    answer = handle_metadata(request, version, image, CLUSTER, LISTENER, Random(1))
    return encode(answer.response, version)


def answer_slices(
    responses: MetadataResponses, request: Any, version: int, image: MetadataImage
) -> tuple[bytes, list[float]]:
    """The answer, and the seconds of each slice."""
    seconds = []
    begin = time.process_time()
    work = responses.begin(request, version, image, LISTENER)
    while True:
        answer = work.advance()
        seconds.append(time.process_time() - begin)
        if answer is not None:
            return answer.data, seconds
        begin = time.process_time()


def all_topics(image: MetadataImage, version: int) -> list[dict[str, object]]:
    request = request_for_all(version)
    begin = time.process_time()
    wanted = by_message(request, version, image)
    plain = time.process_time() - begin
    responses = MetadataResponses(CLUSTER, Random(1))
    rows: list[dict[str, object]] = [row_of("message", wanted, [plain], plain)]
    for name in ("first", "next"):
        data, seconds = answer_slices(responses, request, version, image)
        assert len(data) == len(wanted), "the same but for the controller, which is drawn"
        rows.append(row_of(name, data, seconds, plain))
    return rows


def row_of(name: str, data: bytes, seconds: Sequence[float], plain: float) -> dict[str, object]:
    return {
        "answer": name,
        "megabytes": len(data) / 1e6,
        "milliseconds": sum(seconds) * 1e3,
        "slices": len(seconds),
        "longest_slice_ms": max(seconds) * 1e3,
        "times_faster_than_message": plain / sum(seconds),
    }


def requests_per_second(answer: Callable[[int], object], seconds: float) -> float:
    begin = time.process_time()
    count = 0
    while (passed := time.process_time() - begin) < seconds:
        answer(count)
        count += 1
    return count / passed


def changed(image: MetadataImage, number: int) -> MetadataImage:
    """Ten other topic objects, as after changes of one partition each."""
    start = number * CHANGED_TOPICS % len(image.topics.by_id)
    topics = [replace(each) for each in islice(image.topics.by_id.values(), start, start + CHANGED_TOPICS)]
    return replace(image, topics=image.topics.with_partitions(topics))


def small_answers(image: MetadataImage, version: int, seconds: float) -> list[dict[str, object]]:
    request = request_for_all(version)
    responses = MetadataResponses(CLUSTER, Random(1))
    images = [changed(image, number) for number in range(50)]
    rates = {
        "message": requests_per_second(lambda _: by_message(request, version, image), seconds),
        "image stays": requests_per_second(
            lambda _: answer_slices(responses, request, version, image), seconds
        ),
        "ten topics change": requests_per_second(
            lambda count: answer_slices(responses, request, version, images[count % len(images)]), seconds
        ),
    }
    return [
        {"answers": name, "requests_per_second": rate, "times_faster_than_message": rate / rates["message"]}
        for name, rate in rates.items()
    ]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--topics", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--small-topics", type=int, default=1_000, help="of ten partitions each")
    parser.add_argument("--version", type=int, default=12, help="of the requests")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each kind of small requests")
    parser.add_argument("--fast", action="store_true", help="a fiftieth of the size and time")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.fast:
        arguments.topics, arguments.small_topics = arguments.topics // 50, arguments.small_topics // 50
        arguments.seconds /= 50
    machine = hardware()
    warm_up((ApiKey.METADATA,))
    large = with_listeners(image_of(arguments.topics, arguments.partitions, arguments.brokers))
    small = with_listeners(image_of(arguments.small_topics, SMALL_PARTITIONS, arguments.brokers))
    settings = {name: getattr(arguments, name) for name in ("topics", "partitions", "brokers", "version")}
    tables = {
        "all topics": all_topics(large, arguments.version),
        f"requests for all of {arguments.small_topics} topics x {SMALL_PARTITIONS}": small_answers(
            small, arguments.version, arguments.seconds
        ),
    }
    print_result("metadata_answers", machine, settings, tables, as_json=arguments.json)


if __name__ == "__main__":
    main()
