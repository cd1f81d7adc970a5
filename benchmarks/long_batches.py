"""What a follower or a broker does with a batch of very many records: in one turn of its loop, and in slices.

    python -m benchmarks.long_batches [--megabytes 8] [--fast] [--json]

A batch as long as a leader's may be is handed to a broker's state machine, which replays it, hashes the state and makes
an image. `in one turn` has no pause; `in slices` is what a node does. Full collections of Python's garbage collector,
which takes in the whole state, are left out.
"""

import argparse
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from benchmarks._report import hardware, print_result
from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.broker.state_machine import BrokerStateMachine
from kquorum.wire.log_batch import LogBatch, build_batch
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord

PARTITIONS_OF_A_TOPIC = 500
RECORDS_OF_A_BATCH = 20_000
RECORD_OVERHEAD_BYTES = 12
THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def topic_id(number: int) -> UUID:
    return UUID(int=1_000 + number)


def new_partitions(count: int) -> Iterator[MetadataRecord]:
    for place in range(count):
        number, index = divmod(place, PARTITIONS_OF_A_TOPIC)
        if not index:
            yield TopicRecord(name=f"t{number}", topic_id=topic_id(number))
        yield PartitionRecord(
            partition_id=index,
            topic_id=topic_id(number),
            replicas=(1, 2, 3),
            isr=(1, 2, 3),
            leader=1,
            directories=(topic_id(1), topic_id(2), topic_id(3)),
        )


def isr_changes(count: int) -> Iterator[MetadataRecord]:
    for place in range(count):
        number, index = divmod(place, PARTITIONS_OF_A_TOPIC)
        yield PartitionChangeRecord(topic_id=topic_id(number), partition_id=index, isr=(1, 2))


def configs(count: int) -> Iterator[MetadataRecord]:
    for place in range(count):
        yield ConfigRecord(resource_type=2, resource_name=f"t{place % 5_000}", name=f"k{place}", value="1")


def long_configs(count: int) -> Iterator[MetadataRecord]:
    """As of a request that sets two lists of 32 KB at each of many topics."""
    value = "1:1," * 8_000
    for place in range(count):
        yield ConfigRecord(
            resource_type=2,
            resource_name=f"t{place // 2}",
            name=THROTTLED[place % 2],
            value=f"{place}:1,{value}",
        )


def filled(batch_bytes: int, records: Iterator[MetadataRecord], base_offset: int) -> LogBatch:
    values, size = [], 0
    for record in records:
        value = encode_record(record)
        size += len(value) + RECORD_OVERHEAD_BYTES
        if size > batch_bytes:
            break
        values.append((None, value))
    return build_batch(base_offset, 1, 1_700_000_000_000, values)


def make_partitions(machine: BrokerStateMachine, count: int) -> int:
    """Answers the offset behind them."""
    values = [(None, encode_record(record)) for record in new_partitions(count)]
    for start in range(0, len(values), RECORDS_OF_A_BATCH):
        batch = build_batch(start, 1, 1_700_000_000_000, values[start : start + RECORDS_OF_A_BATCH])
        machine.handle_commit(0, [batch])
    return len(values)


def longest(machine: BrokerStateMachine, batch: LogBatch, *, in_slices: bool) -> tuple[int, float, float]:
    """Turns, the longest one, and all together, in milliseconds of processor time."""
    took: list[float] = []
    is_done = False
    gc.collect()
    gc.disable()
    while not is_done:
        began = time.process_time()
        if in_slices:
            is_done = machine.handle_commit_slice(0, [batch])
        else:
            machine.handle_commit(0, [batch])
            is_done = True
        took.append((time.process_time() - began) * 1_000)
    gc.enable()
    return len(took), max(took), sum(took)


def run(megabytes: float) -> list[dict[str, object]]:
    size = int(megabytes * (1 << 20))
    kinds: dict[str, Callable[[int], Iterator[MetadataRecord]]] = {
        "new partitions": new_partitions,
        "ISR changes": isr_changes,
        "configs": configs,
        "long configs": long_configs,
    }
    rows: list[dict[str, object]] = []
    for kind, records_of in kinds.items():
        for in_slices in (False, True):
            machine = BrokerStateMachine(MetadataCache())
            base = 0
            if records_of is isr_changes:
                base = make_partitions(machine, size // 30)
            batch = filled(size, records_of(size // 30), base)
            turns, longest_ms, all_ms = longest(machine, batch, in_slices=in_slices)
            rows.append(
                {
                    "records": kind,
                    "count": batch.next_offset - base,
                    "way": "in slices" if in_slices else "in one turn",
                    "turns": turns,
                    "longest_ms": longest_ms,
                    "all_ms": all_ms,
                }
            )
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=8)
    parser.add_argument("--fast", action="store_true", help="a quarter of a megabyte")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.fast:
        arguments.megabytes = 0.25
    machine = hardware()
    settings = {"megabytes": arguments.megabytes}
    print_result(
        "long_batches",
        machine,
        settings,
        {"long_batches": run(arguments.megabytes)},
        as_json=arguments.json,
    )


if __name__ == "__main__":
    main()
