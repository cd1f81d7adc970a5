"""An idempotent producer that writes records while brokers die, and what must be true of the records afterwards."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from kquorum.cli.processes import wait_until

WAIT_S = 240.0
_AT_ONCE = 30
# A consumer names a group, which it does not use; and it hears when a broker dies.
_OF_NO_PARTITION = (
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
)
_READ_AT_ONCE = 5_000


def value_of(number: int) -> bytes:
    """Each record differs from all others, and their lengths vary."""
    return b"%d " % number + b"x" * (number % 500)


def number_of(value: bytes) -> int:
    """-1 for a value that `value_of` does not make."""
    number = int(value.partition(b" ")[0])
    return number if value == value_of(number) else -1


class RecordLoad:
    """One idempotent producer (librdkafka's, acks=all) writes numbered records to all partitions in turn until it is
    left. `acknowledged` is, by partition, the number of each record by its offset."""

    def __init__(self, servers: str, topic: str, partitions: int, options: Mapping[str, object] = {}) -> None:
        self._topic = topic
        self._partitions = partitions
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "compression.type": "lz4",
                "delivery.timeout.ms": 300_000,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
                **options,
            }
        )
        self.acknowledged: list[dict[int, int]] = [{} for _ in range(partitions)]
        self.errors: list[str] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def total(self) -> int:
        return sum(map(len, self.acknowledged))

    def await_more(self, tails: Callable[[], str], records: int = 50, timeout_s: float = WAIT_S) -> None:
        """Until so many more records of each partition were acknowledged."""
        wanted = [len(each) + records for each in self.acknowledged]

        def has_more() -> bool:
            return all(len(each) >= count for each, count in zip(self.acknowledged, wanted, strict=True))

        if not wait_until(has_more, timeout_s, 0.05):
            raise AssertionError(
                f"no records were acknowledged in {timeout_s} s: {self.errors[-3:]}\n{tails()}"
            )

    def _write(self) -> None:
        number = 0
        while not self._is_over.is_set():
            for _ in range(_AT_ONCE):
                try:
                    self._producer.produce(
                        self._topic,
                        value_of(number),
                        partition=number % self._partitions,
                        on_delivery=self._heard,
                    )
                except BufferError:  # its queue is full: no leader takes them at the moment
                    break
                number += 1
            self._producer.poll(0.01)
        if left := self._producer.flush(WAIT_S):
            self.errors.append(f"{left} records were not answered")

    def _heard(self, error: KafkaError | None, message: Message) -> None:
        partition, offset, value = message.partition(), message.offset(), message.value()
        if error is not None:
            self.errors.append(str(error))
        elif partition is not None and offset is not None and value is not None:
            self.acknowledged[partition][offset] = number_of(value)


@dataclass(slots=True)
class RecordReader:
    """Reads each partition from where it was up to the high watermark of the moment, whenever it is asked to."""

    servers: str
    topic: str
    partitions: int
    found: list[dict[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.found = [{} for _ in range(self.partitions)]

    def read_on(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "reader",
                "enable.auto.commit": False,
                "check.crcs": True,
                "auto.offset.reset": "error",
                "log_level": 0,
            }
        )
        partitions = range(self.partitions)
        try:
            ends = [
                consumer.get_watermark_offsets(TopicPartition(self.topic, each), WAIT_S)[1]
                for each in partitions
            ]
            positions = [max(found, default=-1) + 1 for found in self.found]
            consumer.assign([TopicPartition(self.topic, each, positions[each]) for each in partitions])

            def has_all() -> bool:
                for message in consumer.consume(_READ_AT_ONCE, 0.5):
                    self._take(message, positions)
                return all(positions[each] >= ends[each] for each in partitions)

            assert wait_until(has_all, WAIT_S), f"read up to {positions}, and the high watermarks are {ends}"
        finally:
            consumer.close()

    def _take(self, message: Message, positions: list[int]) -> None:
        error, partition, offset, value = (
            message.error(),
            message.partition(),
            message.offset(),
            message.value(),
        )
        if error is not None:
            if error.code() not in _OF_NO_PARTITION:
                raise AssertionError(f"the consumer says: {error}")
            return
        assert partition is not None
        assert offset is not None
        assert value is not None
        self.found[partition][offset] = number_of(value)
        positions[partition] = offset + 1


def violations(acknowledged: Sequence[Mapping[int, int]], found: Sequence[Mapping[int, int]]) -> list[str]:
    """Of what was acknowledged and what was read: records lost, moved, spoiled, doubled, or out of their order."""
    told = []
    for partition, (expected, read) in enumerate(zip(acknowledged, found, strict=True)):
        lost = [offset for offset in expected if offset not in read]
        if lost:
            told.append(
                f"partition {partition}: {len(lost)} acknowledged records are lost, the first at {lost[0]}"
            )
        other = [offset for offset, number in expected.items() if read.get(offset, number) != number]
        if other:
            told.append(
                f"partition {partition}: {len(other)} offsets have another record, the first {other[0]}"
            )
        numbers = [number for _, number in sorted(read.items())]
        if -1 in numbers:
            told.append(f"partition {partition}: {numbers.count(-1)} records were spoiled")
        if len(set(numbers)) != len(numbers):
            told.append(f"partition {partition}: {len(numbers) - len(set(numbers))} records are there twice")
        elif numbers != sorted(numbers):
            told.append(f"partition {partition}: records are out of their order")
    return told


def differing_logs(topic: str, partitions: int, folders: Sequence[Path]) -> list[str]:
    """Partitions whose `.log` files are not the same bytes in all folders."""
    told = []
    for index in range(partitions):
        logs = [
            b"".join(path.read_bytes() for path in sorted((folder / f"{topic}-{index}").glob("*.log")))
            for folder in folders
        ]
        if not logs[0] or any(log != logs[0] for log in logs):
            told.append(f"{topic}-{index} differs: {[len(log) for log in logs]} bytes")
    return told
