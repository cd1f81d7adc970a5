"""A random life of a cluster in which each record is one that Kafka's controller could have written where it stands."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from kquorum.wire.metadata_records.cluster import BrokerRegistrationChangeRecord, UnregisterBrokerRecord
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, RemoveTopicRecord, TopicRecord
from kquorum.wire.schema import MetadataRecord
from tests.support.sample_logs import broker, partition
from tests.support.spark.planted import Notes, Step

BROKERS = (1, 2, 3, 4)


@dataclass
class LawfulLife:
    """`partitions` are replicas, ISR and leader by topic and number; `epochs` of registered brokers."""

    random: Random
    partitions: dict[tuple[UUID, int], tuple[tuple[int, ...], tuple[int, ...], int]] = field(
        default_factory=dict
    )
    names: dict[UUID, str] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    made: int = 0

    def steps(self, count: int) -> list[Step]:
        found = [Step("first", epoch=1), Step("brokers", tuple(self._register(each) for each in BROKERS))]
        epoch = 1
        for number in range(count):
            if self.random.random() < 0.05:
                epoch += 1
                found.append(Step(f"elected {epoch}", epoch=epoch))
            found += [Step(f"{number}.{index}", records) for index, records in enumerate(self._operation())]
        return found

    def _operation(self) -> list[tuple[MetadataRecord, ...]]:
        kinds: list[Callable[[], list[tuple[MetadataRecord, ...]]]] = [
            self._topic,
            self._move,
            self._move,
            self._remove,
            self._broker,
            self._aborted,
            lambda: [(NoOpRecord(),)],
        ]
        return self.random.choice(kinds)()

    def _topic(self) -> list[tuple[MetadataRecord, ...]]:
        self.made += 1
        topic_id = UUID(int=20_000 + self.made)
        gone = [name for name in ("one", "two") if name not in self.names.values()]
        self.names[topic_id] = self.random.choice([*gone, f"topic-{self.made}"])
        records: list[MetadataRecord] = [TopicRecord(name=self.names[topic_id], topic_id=topic_id)]
        for number in range(self.random.randint(1, 3)):
            replicas = tuple(self.random.sample(sorted(self.epochs), min(3, len(self.epochs))))
            self.partitions[topic_id, number] = (replicas, replicas, replicas[0])
            records.append(partition(topic_id, number, replicas[0], replicas))
        records.insert(1, self._config(topic_id))
        if self.random.random() < 0.3:
            return [(BeginTransactionRecord(name="t"), *records), (EndTransactionRecord(),)]
        return [(self.notes.note(len(records)), *records)]

    def _move(self) -> list[tuple[MetadataRecord, ...]]:
        """Another ISR and its leader, or no leader."""
        records: list[MetadataRecord] = []
        for (topic_id, number), (replicas, _, _) in list(self.partitions.items())[
            : self.random.randint(1, 3)
        ]:
            isr = tuple(self.random.sample(replicas, self.random.randint(1, len(replicas))))
            leader = self.random.choice([*isr, -1])
            self.partitions[topic_id, number] = (replicas, isr, leader)
            records.append(
                PartitionChangeRecord(partition_id=number, topic_id=topic_id, isr=isr, leader=leader)
            )
        return [tuple(records)] if records else []

    def _remove(self) -> list[tuple[MetadataRecord, ...]]:
        if len(self.names) < 3:
            return []
        topic_id = self.random.choice(sorted(self.names))
        del self.names[topic_id]
        self.partitions = {key: value for key, value in self.partitions.items() if key[0] != topic_id}
        return [(self.notes.note(1), RemoveTopicRecord(topic_id=topic_id))]

    def _broker(self) -> list[tuple[MetadataRecord, ...]]:
        broker_id = self.random.choice(BROKERS)
        if broker_id not in self.epochs or self.random.random() < 0.3:
            return [(self._register(broker_id),)]
        epoch = self.epochs[broker_id]
        if self.random.random() < 0.2 and len(self.epochs) > 3:
            del self.epochs[broker_id]
            return [(UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch),)]
        fenced = self.random.choice([-1, 1])
        return [(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=fenced),)]

    def _aborted(self) -> list[tuple[MetadataRecord, ...]]:
        """What is between counts for nothing: neither the note, nor the topic, which may be made again under its id."""
        last = self.notes.last
        lost = TopicRecord(name="lost", topic_id=UUID(int=1))
        note = self.notes.note(1)
        self.notes.last = last
        return [(BeginTransactionRecord(name="t"), note, lost), (AbortTransactionRecord(reason="test"),)]

    def _register(self, broker_id: int) -> MetadataRecord:
        self.made += 1
        self.epochs[broker_id] = self.made
        return broker(broker_id, self.made)

    def _config(self, topic_id: UUID) -> MetadataRecord:
        return ConfigRecord(
            resource_type=2, resource_name=self.names[topic_id], name="retention.ms", value=str(self.made)
        )
