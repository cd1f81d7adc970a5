"""Clients that write and copy all the time while a test exchanges nodes; afterwards, what was acknowledged is compared
with what is there."""

import threading
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from kquorum.cli.processes import wait_until

TOPIC, COPY = "orders", "copied-orders"
PARTITIONS = 3
WAIT_S = 90.0
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

    @property
    def count(self) -> int:
        return self.copied

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


def check_copies(servers: str, writer: Writer, copier: Copier) -> None:
    """All that was acknowledged is there, once and in order, and so are the copies of what was copied."""
    assert writer.errors == []
    assert all_of(servers, TOPIC) == writer.acknowledged
    copies = all_of(servers, COPY)
    assert sum(map(len, copies)) == copier.copied
    for copy, original in zip(copies, writer.acknowledged, strict=True):
        assert copy == original[: len(copy)]
