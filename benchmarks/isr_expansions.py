"""What the leader of the quorum pays for each replica that comes back into an ISR, as after a broker's restart.

    python -m benchmarks.isr_expansions [--partitions 30000] [--a-request 500] [--profile] [--fast] [--json]

AlterPartition requests as our brokers send them are read, decided, put into batches, committed and answered, in one
thread. `one_by_one` decides each partition by the rules for any change, and `together` is what the controller does: it
decides changes that only let an ISR grow by columns. `read` and `answer` are of both.
"""

import argparse
import cProfile
import pstats
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks._report import hardware, print_result
from benchmarks.controller_creation import Creator
from benchmarks.controller_failover import START_MS, image_of
from kquorum.metadata.controller.partitions import alter_partition
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.wire import message_codec
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.alter_partition import AlterPartitionResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.bodies import read_request
from tests.support.api_calls import Values
from tests.support.kio.classes import request_class
from tests.support.kio.codec import encode
from tests.support.kio.entities import build

BROKERS, PARTITIONS_OF_A_TOPIC, VERSION = 3, 500, 3
BACK = 2


def without_one(image: MetadataImage) -> MetadataImage:
    """Where broker BACK is in no ISR but those that it leads."""
    delta = MetadataDelta(image)
    for topic in image.topics.by_id.values():
        for index, state in topic.partitions.items():
            if state.leader != BACK:
                isr = tuple(member for member in state.isr if member != BACK)
                delta.replay(PartitionChangeRecord(topic_id=topic.id, partition_id=index, isr=isr), 0)
    return delta.apply(Provenance())


def requests_of(image: MetadataImage, leader: int, a_request: int) -> Iterator[bytes]:
    changes: list[tuple[object, Values]] = []
    for topic in image.topics.by_id.values():
        for index, state in topic.partitions.items():
            if state.leader == leader and BACK in state.replicas:
                members = (*state.isr, BACK)
                change = {
                    "partition_index": index,
                    "leader_epoch": state.leader_epoch,
                    "new_isr": members,
                    "new_isr_with_epochs": [{"broker_id": each, "broker_epoch": each} for each in members],
                    "leader_recovery_state": state.leader_recovery_state,
                    "partition_epoch": state.partition_epoch,
                }
                changes.append((topic.id, change))
    for first in range(0, len(changes), a_request):
        topics: dict[object, list[Values]] = {}
        for topic_id, change in changes[first : first + a_request]:
            topics.setdefault(topic_id, []).append(change)
        values = {
            "broker_id": leader,
            "broker_epoch": leader,
            "topics": [{"topic_id": each, "partitions": partitions} for each, partitions in topics.items()],
        }
        yield encode(build(request_class(ApiKey.ALTER_PARTITION, VERSION), values))


def measured(
    image: MetadataImage, requests: Sequence[bytes], profiler: cProfile.Profile | None
) -> dict[str, object]:
    creator = Creator(image)
    seconds = {"read": 0.0, "decide": 0.0, "answer": 0.0}
    longest, count = 0.0, 0
    if profiler is not None:
        profiler.enable()
    for request in requests:
        began = time.process_time()
        body, _ = read_request(ApiKey.ALTER_PARTITION, VERSION, request, 0, len(request))
        read = time.process_time()
        answers: list[Response] = []
        asked = ControllerRequest(api_key=ApiKey.ALTER_PARTITION, api_version=VERSION, body=body)
        creator.controller.handle_request(START_MS, asked, answers.append)
        while not answers:
            creator.commit()
            if not answers:
                creator.controller.handle_time(START_MS)
        decided = time.process_time()
        message_codec.encode(answers[0], VERSION)
        answered = time.process_time()
        (answer,) = answers
        assert isinstance(answer, AlterPartitionResponse)
        for topic in answer.topics:
            count += len(topic.partitions)
            assert all(each.error_code is ErrorCode.none for each in topic.partitions)
        seconds["read"] += read - began
        seconds["decide"] += decided - read
        seconds["answer"] += answered - decided
        longest = max(longest, answered - began)
    if profiler is not None:
        profiler.disable()
    return {
        "replicas": count,
        **{f"{step}_us": each / count * 1e6 for step, each in seconds.items()},
        "all_us": sum(seconds.values()) / count * 1e6,
        "longest_request_ms": longest * 1e3,
    }


def run(arguments: argparse.Namespace) -> dict[str, list[dict[str, object]]]:
    topics = max(1, arguments.partitions // PARTITIONS_OF_A_TOPIC)
    image = without_one(image_of(topics, PARTITIONS_OF_A_TOPIC, BROKERS))
    image = replace(image, provenance=Provenance())
    requests = list(requests_of(image, 0, arguments.a_request))
    profiler = cProfile.Profile() if arguments.profile else None
    worth_columns = alter_partition.WORTH_COLUMNS
    alter_partition.WORTH_COLUMNS = 1_000_000  # type: ignore[misc]
    rows = [{"way": "one_by_one", **measured(image, requests, None)}]
    alter_partition.WORTH_COLUMNS = worth_columns  # type: ignore[misc]
    rows.append({"way": "together", **measured(image, requests, profiler)})
    if profiler is not None:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(30)
    return {"isr_expansions": rows}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--partitions", type=int, default=30_000)
    parser.add_argument("--a-request", type=int, default=500, help="partitions in each request")
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    parser.add_argument("--fast", action="store_true", help="three thousand partitions")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.fast:
        arguments.partitions = 3_000
    machine = hardware()
    settings = {name: getattr(arguments, name) for name in ("partitions", "a_request")}
    print_result("isr_expansions", machine, settings, run(arguments), as_json=arguments.json)


if __name__ == "__main__":
    main()
