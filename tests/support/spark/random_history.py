"""A long random life of a cluster: elections, reassignments, brokers that come and go, transactions that abort."""

from pathlib import Path
from random import Random
from uuid import UUID

from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.control_records import (
    ControlRecord,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    Voter,
    VoterEndpoint,
    VotersRecord,
    encode_control_record,
)
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
)
from kquorum.wire.metadata_records.topics import (
    ClearElrRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kquorum.wire.record_batch import CompressionCodec
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.sample_logs import DIRECTORY, LogBuilder, broker, partition
from tests.support.spark.random_cluster import RandomBrokers, RandomNotes, RandomSettings

BROKERS = (1, 2, 3, 4, 5)
PARTITIONS = 3


class RandomLog(LogBuilder):
    """A log with control records of any kind in it."""

    def control(self, timestamp_ms: int, *records: ControlRecord) -> None:
        self._add(
            timestamp_ms,
            [encode_control_record(record) for record in records],
            control=True,
            codec=CompressionCodec.NONE,
        )


class RandomLife:
    """Makes records that a controller could have written; which topics exist is nearly all it has to remember."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._topics: list[tuple[str, UUID]] = []
        self._partitions: dict[UUID, int] = {}
        self._made = 0
        self._brokers = RandomBrokers(self._random, BROKERS)
        self._settings = RandomSettings(self._random)
        self._notes = RandomNotes(self._random)

    def adopt(self, name: str, topic_id: UUID) -> None:
        """Go on with a topic and brokers that a snapshot tells of."""
        self._topics.append((name, topic_id))
        self._partitions[topic_id] = PARTITIONS
        self._brokers.registered = set(BROKERS)

    def batches(self) -> list[list[MetadataRecord]]:
        """The records of one operation, by batches."""
        if len(self._topics) < 2 or self._random.random() < 0.04:
            return [self._topic_made()]
        if len(self._brokers.registered) < 3 or self._random.random() < 0.04:
            return [[self._brokers.arrival(), *self._few_changes()]]
        kind = self._random.random()
        if kind < 0.04:
            _, topic_id = self._topics.pop(self._random.randrange(len(self._topics)))
            return [[RemoveTopicRecord(topic_id=topic_id)]]
        if kind < 0.08:
            named = self._random.choice(["", self._random.choice(self._topics)[0]])
            return [[ClearElrRecord(topic_name=named)]]
        if kind < 0.12:
            added = self._partitions_added()
            return [[record] for record in added] if self._random.random() < 0.5 else [added]
        if kind < 0.30:
            return self._departure()
        if kind < 0.40:
            broker_id, record = self._brokers.recovery()
            return [[record, *(self._election(broker_id) for _ in range(4))]]
        if kind < 0.42:
            return [[self._brokers.cordon()]]
        if kind < 0.60:
            settings = [self._settings.record(self._names()) for _ in range(self._random.randint(1, 4))]
            return [[self._notes.note(len(settings)), *settings]]
        if kind < 0.70:
            return [[NoOpRecord()]]
        return [self._few_changes()]

    def transaction(self) -> list[list[MetadataRecord]]:
        """Changes between a begin and an end; half of them end with an abort and never count."""
        last_note = self._notes.last
        inside = [self._change(), self._settings.record(self._names())]
        noted: list[MetadataRecord] = [self._notes.note(len(inside)), *inside]
        begin = BeginTransactionRecord(name="test")
        if self._random.random() < 0.5:
            return [[begin, *noted, EndTransactionRecord()]]
        self._notes.last = last_note
        return [[begin, *noted], [AbortTransactionRecord(reason="test")]]

    def in_transaction(self) -> bool:
        return len(self._topics) > 1 and self._random.random() < 0.15

    def election(self, epoch: int) -> list[ControlRecord]:
        """A new controller, and now and then another set of voters."""
        voters = sorted(self._random.sample([1, 2, 3, 4], 3))
        named = [LeaderChangeVoter(voter_id=voter) for voter in (voters if epoch % 3 else [1, 2, 3])]
        elected = LeaderChangeMessage(
            leader_id=named[0].voter_id, voters=tuple(named), granting_voters=tuple(named[:2])
        )
        if epoch < 8 or self._random.random() < 0.5:
            return [elected]
        version = KRaftVersionRecord(k_raft_version=self._random.randrange(2))
        return [elected, version, voter_set(voters, port=self._random.randrange(2))]

    def _names(self) -> list[str]:
        return [name for name, _ in self._topics]

    def _few_changes(self) -> list[MetadataRecord]:
        if not self._topics:
            return []
        return [self._change() for _ in range(self._random.randint(1, 4))]

    def _departure(self) -> list[list[MetadataRecord]]:
        """Others lead; now and then the broker's own record does not fit the batch."""
        broker_id, record = self._brokers.departure()
        others = [each for each in (-1, *BROKERS) if each != broker_id]
        moved: list[MetadataRecord] = [self._election(self._random.choice(others)) for _ in range(6)]
        if self._random.random() < 0.3:
            return [moved, [record]]
        return [[record, *moved]] if self._random.random() < 0.5 else [[*moved, record]]

    def _election(self, leader: int) -> PartitionChangeRecord:
        _, topic_id = self._random.choice(self._topics)
        isr = self._brokers_chosen() if leader < 0 else tuple({leader, *self._brokers_chosen()})
        number = self._random.randrange(self._partitions[topic_id])
        return PartitionChangeRecord(partition_id=number, topic_id=topic_id, leader=leader, isr=isr)

    def _partitions_added(self) -> list[MetadataRecord]:
        _, topic_id = self._random.choice(self._topics)
        first = self._partitions[topic_id]
        self._partitions[topic_id] += self._random.randint(1, 2)
        numbers = list(range(first, self._partitions[topic_id]))
        self._random.shuffle(numbers)
        return [partition(topic_id, number, 1, (1, 2, 3)[: number % 3 + 1]) for number in numbers]

    def _topic_made(self) -> list[MetadataRecord]:
        self._made += 1
        topic_id, name = UUID(int=10_000 + self._made), f"topic-{self._made}"
        if self._random.random() < 0.3 and self._made > 4:
            name = f"topic-{self._random.randint(1, 4)}"  # a name that was used before
            name = name if name not in self._names() else f"topic-{self._made}"
        self._topics.append((name, topic_id))
        self._partitions[topic_id] = PARTITIONS
        replicas = [tuple(self._random.sample(BROKERS, 3)) for _ in range(PARTITIONS)]
        configs = [ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value="7")]
        return [
            TopicRecord(name=name, topic_id=topic_id),
            *self._random.choice([[], configs]),
            *(partition(topic_id, number, chosen[0], chosen) for number, chosen in enumerate(replicas)),
        ]

    def _change(self) -> PartitionChangeRecord:
        values = {
            "leader": self._random.choice([-1, *BROKERS]),
            "isr": self._brokers_chosen(),
            "replicas": self._brokers_chosen(),
            "adding_replicas": self._brokers_chosen(),
            "removing_replicas": self._brokers_chosen(),
            "leader_recovery_state": self._random.choice([0, 1]),
            "directories": tuple(UUID(int=DIRECTORY.int + self._random.randrange(3)) for _ in range(3)),
            "eligible_leader_replicas": self._brokers_chosen(),
            "last_known_elr": self._brokers_chosen(),
        }
        chosen = self._random.sample(sorted(values), self._random.randint(1, 4))
        _, topic_id = self._random.choice(self._topics)
        number = self._random.randrange(self._partitions[topic_id])
        return PartitionChangeRecord(
            partition_id=number,
            topic_id=topic_id,
            **{name: values[name] for name in chosen},  # type: ignore[arg-type]
        )

    def _brokers_chosen(self) -> tuple[int, ...]:
        return tuple(self._random.sample(BROKERS, self._random.randint(0, 3)))


def voter_set(voters: list[int], *, port: int) -> VotersRecord:
    return VotersRecord(
        voters=tuple(
            Voter(
                voter_id=voter,
                voter_directory_id=UUID(int=DIRECTORY.int + voter),
                endpoints=(VoterEndpoint(name="CONTROLLER", host=f"c{voter}", port=9093 + port),),
                k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
            )
            for voter in reversed(voters)
        )
    )


def write_random_history(folder: Path, *, seed: int, operations: int) -> Path:
    """A metadata folder with `operations` operations in segments of about a third of them."""
    return _write(folder, RandomLife(seed), RandomLog(), operations, Random(seed))


def write_random_trimmed_history(folder: Path, *, seed: int, operations: int) -> Path:
    """The same for a log that begins at offset 1000, behind a snapshot with a bit of everything."""
    life, log = RandomLife(seed), RandomLog(next_offset=1000, epoch=3)
    _write_snapshot(folder, SnapshotId(1000, 3), life)
    return _write(folder, life, log, operations, Random(seed))


def write_formatted_history(folder: Path, *, seed: int, operations: int) -> Path:
    """The same for a log from offset 0 beside the snapshot that formatting leaves."""
    life = RandomLife(seed)
    _write_snapshot(folder, SnapshotId(0, 0), life)
    return _write(folder, life, RandomLog(), operations, Random(seed))


def _write_snapshot(folder: Path, snapshot_id: SnapshotId, life: RandomLife) -> None:
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True)
    writer = SnapshotWriter(
        snapshot_id,
        timestamp_ms=500,
        last_contained_log_timestamp_ms=400,
        voters=voter_set([1, 2, 3], port=0),
        kraft_version=1,
    )
    topic_id = UUID(int=9_999)
    life.adopt("older", topic_id)
    state: list[MetadataRecord] = [
        FeatureLevelRecord(name="metadata.version", feature_level=3),
        *(broker(broker_id, broker_id) for broker_id in BROKERS),
        TopicRecord(name="older", topic_id=topic_id),
        *(partition(topic_id, number, 1, (1, 2, 3)) for number in reversed(range(PARTITIONS))),
        ConfigRecord(resource_type=2, resource_name="older", name="retention.ms", value="5"),
    ]
    (log_folder / snapshot_id.file_name).write_bytes(b"".join(writer.write(map(encode_record, state))))


def _write(folder: Path, life: RandomLife, log: RandomLog, operations: int, random: Random) -> Path:
    log_folder, start = folder / "__cluster_metadata-0", log.next_offset
    log_folder.mkdir(parents=True, exist_ok=True)
    for number in range(operations):
        now_ms = 1_000 * (number + 1)
        batches = life.transaction() if life.in_transaction() else life.batches()
        for index, records in enumerate(batches):
            if index == 0 and random.random() < 0.03:
                _elect(log, life, now_ms)
            log.records(now_ms + random.choice([0, 700]) * index, *records)
            # An election may come while a transaction is open, and the next controller aborts it.
            if index == 0 and len(batches) > 1 and random.random() < 0.2:
                _elect(log, life, now_ms)
        if number % (operations // 3) == operations // 3 - 1 or number == operations - 1:
            (log_folder / f"{start:020d}.log").write_bytes(log.data)
            start = log.next_offset
            log.data.clear()
    return folder


def _elect(log: RandomLog, life: RandomLife, now_ms: int) -> None:
    log.epoch += 1
    log.control(now_ms, *life.election(log.epoch))
