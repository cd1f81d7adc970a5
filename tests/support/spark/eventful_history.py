"""Two eventful days of a cluster of six brokers, written down as a controller would have done it (`eventful_days`)."""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from uuid import UUID

from kquorum.wire.audit_note import AUDIT_NOTE_TAG, note_hash
from kquorum.wire.metadata_records.cluster import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.topics import (
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kquorum.wire.proto.audit_pb2 import AuditNote
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.schema import MetadataRecord
from tests.support.sample_logs import DIRECTORY, LogBuilder

START_MS = 1_773_100_800_000  # 2026-03-10 00:00 UTC
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
IDLE_MS = 30 * SECOND
BROKERS = (11, 12, 13, 14, 15, 16)
RACKS = "aabbcc"
TOPICS = {"orders": 12, "payments": 12, "clicks": 24, "inventory": 6, "audit-trail": 6, "shipments": 12}
TOPICS |= {"sessions": 24, "metrics": 48, "notifications": 6, "refunds": 6}
Replicas = tuple[int, ...]


@dataclass
class Partition:
    topic: str
    number: int
    replicas: Replicas
    isr: Replicas
    leader: int


@dataclass
class EventfulCluster:
    """The cluster as its controller sees it; every method writes the records of one decision at `now_ms`."""

    log: LogBuilder = field(default_factory=LogBuilder)
    random: Random = field(default_factory=lambda: Random(7))
    now_ms: int = START_MS
    serving: set[int] = field(default_factory=set)
    partitions: list[Partition] = field(default_factory=list)
    ids: dict[str, UUID] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    last_note: bytes = b""

    def write(self, *records: MetadataRecord) -> None:
        if records:
            self.log.records(self.now_ms, *records)

    def elect(self, controller: int) -> None:
        self.log.leader(self.now_ms, controller, controller, controller % 3 + 1, epoch=self.log.epoch + 1)

    def asked(
        self, principal: str, api: ApiKey, reason: str, *records: MetadataRecord, why: str = ""
    ) -> None:
        """Records with the note of who asked for them."""
        note = AuditNote(
            principal=principal,
            client_id="kafka-admin",
            client_address=f"10.0.4.{len(principal)}",
            api_key=api,
            correlation_id=self.log.next_offset % 1000,
            reason=reason,
            operator_reason=why,
            covered_records=len(records),
            previous_note_hash=self.last_note,
        ).SerializeToString(deterministic=True)
        self.last_note = note_hash(note)
        self.write(NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, note),)), *records)

    def register(self, broker: int) -> None:
        self.epochs[broker] = self.log.next_offset
        self.write(
            RegisterBrokerRecord(
                broker_id=broker,
                incarnation_id=UUID(int=self.log.next_offset + 1),
                broker_epoch=self.epochs[broker],
                end_points=(
                    BrokerEndpoint(name="PLAIN", host=f"kafka-{broker}", port=9092, security_protocol=0),
                ),
                rack=RACKS[BROKERS.index(broker)],
                log_dirs=(DIRECTORY,),
            )
        )

    def create(self, name: str, partitions: int, principal: str) -> None:
        self.ids[name] = UUID(int=0x5000_0000 + len(self.ids))
        made = []
        for number in range(partitions):
            first = self.random.randrange(len(BROKERS))
            replicas = tuple(BROKERS[(first + step) % len(BROKERS)] for step in (0, 2, 4))
            made.append(Partition(name, number, replicas, replicas, replicas[0]))
        self.partitions += made
        records = [
            PartitionRecord(
                partition_id=each.number,
                topic_id=self.ids[name],
                replicas=each.replicas,
                isr=each.isr,
                leader=each.leader,
                leader_epoch=0,
                partition_epoch=0,
                directories=(DIRECTORY,) * 3,
            )
            for each in made
        ]
        topic = TopicRecord(name=name, topic_id=self.ids[name])
        reason = f"create topic {name} with {partitions} partitions"
        self.asked(principal, ApiKey.CREATE_TOPICS, reason, topic, *records)

    def configure(self, topic: str, key: str, value: str, principal: str, why: str = "") -> None:
        record = ConfigRecord(resource_type=2, resource_name=topic, name=key, value=value)
        reason = f"set {key}={value} of topic {topic}"
        self.asked(principal, ApiKey.INCREMENTAL_ALTER_CONFIGS, reason, record, why=why)

    def changed(self, broker: int, **values: int) -> MetadataRecord:
        return BrokerRegistrationChangeRecord(
            broker_id=broker,
            broker_epoch=self.epochs[broker],
            **values,  # type: ignore[arg-type]
        )

    def moved(self, each: Partition, **values: object) -> MetadataRecord:
        for name, value in values.items():
            if hasattr(each, name):
                setattr(each, name, value)
        return PartitionChangeRecord(
            partition_id=each.number,
            topic_id=self.ids[each.topic],
            **values,  # type: ignore[arg-type]
        )

    def stops(self, broker: int) -> None:
        """Fenced, as its heartbeats stayed away."""
        self.serving.discard(broker)
        self.write(*self._left_by(broker), self.changed(broker, fenced=1))

    def shuts_down(self, broker: int) -> None:
        self.serving.discard(broker)
        self.write(self.changed(broker, in_controlled_shutdown=1), *self._left_by(broker))

    def serves(self, broker: int) -> None:
        """Unfenced; what waits for it has a leader again."""
        self.serving.add(broker)
        waiting = [each for each in self.partitions if each.leader < 0 and broker in each.isr]
        self.write(self.changed(broker, fenced=-1), *(self.moved(each, leader=broker) for each in waiting))

    def in_sync(self) -> None:
        """Every broker that serves has caught up with everything that it is to hold."""
        records = []
        for each in self.partitions:
            isr = tuple(broker for broker in each.replicas if broker in each.isr or broker in self.serving)
            if each.leader >= 0 and isr != each.isr:
                records.append(self.moved(each, isr=isr))
        self.write(*records)

    def prefers(self) -> None:
        """Leadership back to the first replicas."""
        back = [
            each
            for each in self.partitions
            if each.leader >= 0 and each.leader != each.replicas[0] and each.replicas[0] in each.isr
        ]
        self.write(*(self.moved(each, leader=each.replicas[0]) for each in back))

    def reassigns(self, topic: str, targets: Replicas, principal: str, why: str) -> list[Partition]:
        chosen = [each for each in self.partitions if each.topic == topic]
        records = []
        for each in chosen:
            gone = tuple(broker for broker in each.replicas if broker not in targets)
            new = tuple(broker for broker in targets if broker not in each.replicas)
            both = tuple(dict.fromkeys((*targets, *each.replicas)))
            records.append(self.moved(each, replicas=both, removing_replicas=gone, adding_replicas=new))
        reason = f"reassign {len(chosen)} partitions of {topic}"
        self.asked(principal, ApiKey.ALTER_PARTITION_REASSIGNMENTS, reason, *records, why=why)
        return chosen

    def reassigned(self, each: Partition, targets: Replicas) -> None:
        """The last step: the new replicas are in sync, the old ones go."""
        values = {"replicas": targets, "isr": targets, "removing_replicas": (), "adding_replicas": ()}
        self.write(self.moved(each, leader=targets[0], **values))

    def unclean(self, topic: str, broker: int) -> None:
        lost = [
            each
            for each in self.partitions
            if each.topic == topic and each.leader < 0 and broker in each.replicas
        ]
        self.write(
            *(self.moved(each, leader=broker, isr=(broker,), leader_recovery_state=1) for each in lost)
        )

    def removes(self, topic: str, principal: str) -> None:
        self.partitions = [each for each in self.partitions if each.topic != topic]
        record = RemoveTopicRecord(topic_id=self.ids[topic])
        self.asked(principal, ApiKey.DELETE_TOPICS, f"delete topic {topic}", record)

    def _left_by(self, broker: int) -> Iterator[MetadataRecord]:
        """Others in sync lead; the last one in sync stays in the ISR, and there is no leader."""
        for each in self.partitions:
            if broker not in each.isr:
                continue
            rest = tuple(other for other in each.isr if other != broker)
            heirs = [other for other in rest if other in self.serving]
            if each.leader != broker:
                if rest:
                    yield self.moved(each, isr=rest)
            elif heirs:
                yield self.moved(each, isr=rest, leader=heirs[0])
            else:
                yield self.moved(each, isr=rest or each.isr, leader=-1)


Step = Callable[[EventfulCluster], object]


def write_log(folder: Path, plan: list[tuple[int, Step]], quiet: list[tuple[int, int]], end_ms: int) -> Path:
    """Runs the plan (milliseconds since the start, what to do), with idle records between but in `quiet` times."""
    cluster = EventfulCluster()
    steps = [(START_MS + at_ms, number, step) for number, (at_ms, step) in enumerate(plan)]
    heapq.heapify(steps)
    next_idle = START_MS + IDLE_MS
    while steps or next_idle <= START_MS + end_ms:
        if steps and steps[0][0] <= next_idle:
            cluster.now_ms, _, step = heapq.heappop(steps)
            step(cluster)
            continue
        cluster.now_ms, next_idle = next_idle, next_idle + IDLE_MS
        if not any(START_MS + start <= cluster.now_ms < START_MS + end for start, end in quiet):
            cluster.write(NoOpRecord())
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True)
    (log_folder / "00000000000000000000.log").write_bytes(cluster.log.data)
    (folder / "meta.properties").write_text("version=1\nnode.id=2\ncluster.id=Zm9yLXRoZS1leGFtcGxl\n")
    return folder
