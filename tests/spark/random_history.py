"""A long random life of a few topics: elections, reassignments, ELR changes, transactions that end well or not."""

from pathlib import Path
from random import Random
from uuid import UUID

from tests.support.sample_logs import DIRECTORY, LogBuilder, partition
from wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)
from wire.metadata_records.topics import (
    ClearElrRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from wire.schema import MetadataRecord

BROKERS = (1, 2, 3, 4, 5)
PARTITIONS = 3


class RandomLife:
    """Makes records that a controller could have written; which topics exist is all it has to remember."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._topics: list[tuple[str, UUID]] = []
        self._made = 0

    def records(self) -> list[MetadataRecord]:
        """The records of one operation."""
        if len(self._topics) < 2 or self._random.random() < 0.05:
            return self._topic_made()
        kind = self._random.random()
        if kind < 0.04:
            _, topic_id = self._topics.pop(self._random.randrange(len(self._topics)))
            return [RemoveTopicRecord(topic_id=topic_id)]
        if kind < 0.10:
            return [
                ClearElrRecord(topic_name=self._random.choice(["", self._random.choice(self._topics)[0]]))
            ]
        if kind < 0.30:
            return [NoOpRecord()]
        return [self._change() for _ in range(self._random.randint(1, 4))]

    def transaction(self) -> list[MetadataRecord]:
        """Changes between a begin and an end; half of them end with an abort and never count."""
        ends_well = self._random.random() < 0.5
        end = EndTransactionRecord() if ends_well else AbortTransactionRecord(reason="test")
        return [BeginTransactionRecord(name="test"), self._change(), self._change(), end]

    def in_transaction(self) -> bool:
        return len(self._topics) > 1 and self._random.random() < 0.15

    def _topic_made(self) -> list[MetadataRecord]:
        self._made += 1
        topic_id, name = UUID(int=10_000 + self._made), f"topic-{self._made}"
        self._topics.append((name, topic_id))
        replicas = [tuple(self._random.sample(BROKERS, 3)) for _ in range(PARTITIONS)]
        return [
            TopicRecord(name=name, topic_id=topic_id),
            *(partition(topic_id, number, chosen[0], chosen) for number, chosen in enumerate(replicas)),
        ]

    def _change(self) -> PartitionChangeRecord:
        values = {
            "leader": self._random.choice([-1, *BROKERS]),
            "isr": self._brokers(),
            "replicas": self._brokers(),
            "adding_replicas": self._brokers(),
            "removing_replicas": self._brokers(),
            "leader_recovery_state": self._random.choice([0, 1]),
            "directories": tuple(UUID(int=DIRECTORY.int + self._random.randrange(3)) for _ in range(3)),
            "eligible_leader_replicas": self._brokers(),
            "last_known_elr": self._brokers(),
        }
        chosen = self._random.sample(sorted(values), self._random.randint(1, 4))
        _, topic_id = self._random.choice(self._topics)
        number = self._random.randrange(PARTITIONS)
        return PartitionChangeRecord(
            partition_id=number,
            topic_id=topic_id,
            **{name: values[name] for name in chosen},  # type: ignore[arg-type]
        )

    def _brokers(self) -> tuple[int, ...]:
        return tuple(self._random.sample(BROKERS, self._random.randint(0, 3)))


def write_random_history(folder: Path, *, seed: int, operations: int) -> Path:
    """A metadata folder with `operations` operations in segments of about a third of them."""
    life, log, start = RandomLife(seed), LogBuilder(), 0
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True)
    for number in range(operations):
        records = life.transaction() if life.in_transaction() else life.records()
        log.records(1_000 * (number + 1), *records)
        if number % (operations // 3) == operations // 3 - 1 or number == operations - 1:
            (log_folder / f"{start:020d}.log").write_bytes(log.data)
            start = log.next_offset
            log.data.clear()
    return folder
