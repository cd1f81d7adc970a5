"""The log of a cluster that was busy for weeks, made up: what a real one holds, in about its proportions.

Twice a second the controller writes a NoOp. Between these brokers restart (partitions lose a replica, get other
leaders, and get both back) or crash, replicas fall behind and catch up, topics come and go, configs change, and now and
then another controller takes over. Some operations have an audit note before them. About six records in ten are NoOps,
in an idle cluster nine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from kquorum.wire.audit_note import AUDIT_NOTE_TAG, NO_NOTE_HASH, note_hash
from kquorum.wire.control_records import LeaderChangeMessage, LeaderChangeVoter, encode_control_record
from kquorum.wire.metadata_records.cluster import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import FeatureLevelRecord, NoOpRecord, ProducerIdsRecord
from kquorum.wire.metadata_records.topics import (
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kquorum.wire.proto.audit_pb2 import AuditNote
from kquorum.wire.record_batch import write_batch
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord

START_MS = 1_700_000_000_000
NO_OP_MS = 500
BROKERS, CONTROLLERS, REPLICAS = tuple(range(1, 10)), (3001, 3002, 3003), 3
PARTITIONS_A_TOPIC = 16
RECORDS_A_BATCH = 500
# NoOps are 60 % of the records: three for every two others.
NO_OPS_TO_OTHERS = 1.5
_NO_OP = encode_record(NoOpRecord())
_DIRECTORIES = {broker: UUID(int=5000 + broker) for broker in BROKERS}
_CREATE_TOPICS, _DELETE_TOPICS, _ALTER_CONFIGS = 19, 20, 44

Value = tuple[bytes | None, bytes]


@dataclass(slots=True)
class Partition:
    topic_id: UUID
    partition_id: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int

    def change(self, *, isr: tuple[int, ...] | None = None, leader: int | None = None) -> bytes:
        """The record of a change, which is made."""
        new_leader = -2 if leader is None or leader == self.leader else leader
        self.isr = self.isr if isr is None else isr
        self.leader = self.leader if leader is None else leader
        return encode_record(
            PartitionChangeRecord(
                partition_id=self.partition_id, topic_id=self.topic_id, isr=isr, leader=new_leader
            )
        )


@dataclass(slots=True)
class Topic:
    name: str
    topic_id: UUID
    partitions: list[Partition] = field(default_factory=list)


class ClusterHistory:
    """`batches()` without end: of each the base offset and the bytes."""

    def __init__(self, seed: int, partitions: int) -> None:
        self._random = Random(seed)
        self._topics: list[Topic] = []
        self._wanted_topics = max(1, partitions // PARTITIONS_A_TOPIC)
        self._made_topics = 0
        self._live = list(BROKERS)
        self._broker_epochs: dict[int, int] = {}
        self._note_hash = NO_NOTE_HASH
        self._offset, self._epoch, self._ms = 0, 0, START_MS
        self._no_op_count = 0

    def batches(self) -> Iterator[tuple[int, bytes]]:
        yield from self._new_controller()
        yield self._batch([FeatureLevelRecord(name="metadata.version", feature_level=25)])
        for broker in BROKERS:
            yield self._batch([self._registration(broker)])
            yield self._batch([self._changed(broker, fenced=-1)])
        for _ in range(self._wanted_topics):
            yield self._batch_of(self._new_topic())
        others = (
            *((self._restart, 1), (self._crash, 1), (self._lag, 400), (self._change_config, 20)),
            *((self._replace_topic, 4), (self._producer_ids, 10), (self._new_controller, 1)),
        )
        events, weights = zip(*others, strict=True)
        while True:
            (event,) = self._random.choices(events, weights)
            yield from event()
            wanted = int((self._offset - self._no_op_count) * NO_OPS_TO_OTHERS)
            yield from self._no_ops(max(1, wanted - self._no_op_count))

    def _no_ops(self, count: int) -> Iterator[tuple[int, bytes]]:
        self._no_op_count += count
        value: list[Value] = [(None, _NO_OP)]
        for _ in range(count):
            self._ms += NO_OP_MS
            yield self._batch_of(value)

    def _batch(self, records: Sequence[MetadataRecord]) -> tuple[int, bytes]:
        return self._batch_of([(None, encode_record(record)) for record in records])

    def _batch_of(self, values: Sequence[Value], *, control: bool = False) -> tuple[int, bytes]:
        offset = self._offset
        self._offset += len(values)
        return offset, write_batch(
            base_offset=offset,
            leader_epoch=self._epoch,
            timestamp_ms=self._ms,
            records=values,
            control=control,
        )

    def _batches_of(self, values: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
        for start in range(0, len(values), RECORDS_A_BATCH):
            self._ms += 3
            yield self._batch_of([(None, value) for value in values[start : start + RECORDS_A_BATCH]])

    def _new_controller(self) -> Iterator[tuple[int, bytes]]:
        self._epoch += 1
        leader = self._random.choice(CONTROLLERS)
        voters = tuple(LeaderChangeVoter(voter_id=voter) for voter in CONTROLLERS)
        message = LeaderChangeMessage(leader_id=leader, voters=voters, granting_voters=voters[:2])
        yield self._batch_of([encode_control_record(message)], control=True)

    def _registration(self, broker: int) -> RegisterBrokerRecord:
        endpoint = BrokerEndpoint(name="PLAINTEXT", host=f"broker-{broker}", port=9092, security_protocol=0)
        self._broker_epochs[broker] = self._offset
        return RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=UUID(int=self._random.getrandbits(128)),
            broker_epoch=self._offset,
            end_points=(endpoint,),
            rack=f"rack-{broker % 3}",
            log_dirs=(_DIRECTORIES[broker],),
        )

    def _changed(
        self, broker: int, *, fenced: int = 0, in_controlled_shutdown: int = 0
    ) -> BrokerRegistrationChangeRecord:
        return BrokerRegistrationChangeRecord(
            broker_id=broker,
            broker_epoch=self._broker_epochs[broker],
            fenced=fenced,
            in_controlled_shutdown=in_controlled_shutdown,
        )

    def _new_topic(self) -> list[Value]:
        self._made_topics += 1
        number = self._made_topics
        topic = Topic(f"team-{number % 40}.events-{number}", UUID(int=self._random.getrandbits(128)))
        records: list[MetadataRecord] = [TopicRecord(name=topic.name, topic_id=topic.topic_id)]
        records.append(
            ConfigRecord(resource_type=2, resource_name=topic.name, name="retention.ms", value="604800000")
        )
        for partition_id in range(PARTITIONS_A_TOPIC):
            replicas = tuple(self._random.sample(BROKERS, REPLICAS))
            isr = tuple(replica for replica in replicas if replica in self._live)
            topic.partitions.append(Partition(topic.topic_id, partition_id, replicas, isr, isr[0]))
            records.append(
                PartitionRecord(
                    partition_id=partition_id,
                    topic_id=topic.topic_id,
                    replicas=replicas,
                    isr=isr,
                    leader=isr[0],
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=tuple(_DIRECTORIES[replica] for replica in replicas),
                )
            )
        self._topics.append(topic)
        return self._noted(records, _CREATE_TOPICS)

    def _noted(self, records: list[MetadataRecord], api_key: int) -> list[Value]:
        """With a note before them, one time in four."""
        values: list[Value] = [(None, encode_record(record)) for record in records]
        if self._random.random() < 0.75:
            return values
        note = AuditNote(
            principal=f"User:team-{self._random.randrange(40)}",
            client_id="admin",
            client_address="10.0.0.7",
            api_key=api_key,
            correlation_id=self._offset % 10_000,
            reason="requested",
            previous_note_hash=self._note_hash,
            covered_records=len(values),
        ).SerializeToString(deterministic=True)
        self._note_hash = note_hash(note)
        no_op = encode_record(NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, note),)))
        return [(None, no_op), *values]

    def _replace_topic(self) -> Iterator[tuple[int, bytes]]:
        topic = self._topics.pop(self._random.randrange(len(self._topics)))
        yield self._batch_of(self._noted([RemoveTopicRecord(topic_id=topic.topic_id)], _DELETE_TOPICS))
        yield self._batch_of(self._new_topic())

    def _change_config(self) -> Iterator[tuple[int, bytes]]:
        topic = self._random.choice(self._topics)
        value = str(self._random.randrange(1, 15) * 86_400_000)
        record = ConfigRecord(resource_type=2, resource_name=topic.name, name="retention.ms", value=value)
        yield self._batch_of(self._noted([record], _ALTER_CONFIGS))

    def _producer_ids(self) -> Iterator[tuple[int, bytes]]:
        broker = self._random.choice(BROKERS)
        yield self._batch([ProducerIdsRecord(broker_id=broker, next_producer_id=1000 * self._offset)])

    def _lag(self) -> Iterator[tuple[int, bytes]]:
        """A replica of one to four partitions falls behind, and catches up some seconds later."""
        chosen = [
            self._random.choice(self._random.choice(self._topics).partitions)
            for _ in range(self._random.choice((1, 1, 2, 4)))
        ]
        behind = [each for each in chosen if len(each.isr) > 1]
        shrunk = [each.change(isr=tuple(r for r in each.isr if r == each.leader)) for each in behind]
        if shrunk:
            yield from self._batches_of(shrunk)
            yield from self._no_ops(self._random.randrange(1, 4))
            yield from self._batches_of([each.change(isr=self._alive_of(each)) for each in behind])

    def _alive_of(self, partition: Partition) -> tuple[int, ...]:
        return tuple(replica for replica in partition.replicas if replica in self._live)

    def _restart(self) -> Iterator[tuple[int, bytes]]:
        broker = self._random.choice(self._live)
        yield self._batch([self._changed(broker, in_controlled_shutdown=1)])
        self._live.remove(broker)
        yield from self._batches_of(self._departure(broker))
        yield self._batch([self._changed(broker, fenced=1)])
        yield from self._return(broker)

    def _crash(self) -> Iterator[tuple[int, bytes]]:
        broker = self._random.choice(self._live)
        self._live.remove(broker)
        fence = encode_record(self._changed(broker, fenced=1))
        yield from self._batches_of([*self._departure(broker), fence])
        yield from self._return(broker)

    def _partitions(self) -> Iterator[Partition]:
        return (partition for topic in self._topics for partition in topic.partitions)

    def _departure(self, broker: int) -> list[bytes]:
        values = []
        for partition in self._partitions():
            if broker in partition.isr and len(partition.isr) > 1:
                isr = tuple(replica for replica in partition.isr if replica != broker)
                leader = isr[0] if partition.leader == broker else None
                values.append(partition.change(isr=isr, leader=leader))
        return values

    def _return(self, broker: int) -> Iterator[tuple[int, bytes]]:
        yield from self._no_ops(self._random.randrange(20, 200))
        yield self._batch([self._registration(broker)])
        self._live.append(broker)
        yield self._batch([self._changed(broker, fenced=-1)])
        catching_up = [
            each for each in self._partitions() if broker in each.replicas and broker not in each.isr
        ]
        while catching_up:
            count = self._random.randrange(1, 40)
            now, catching_up = catching_up[:count], catching_up[count:]
            yield from self._batches_of([each.change(isr=self._alive_of(each)) for each in now])
        yield from self._no_ops(self._random.randrange(20, 600))
        preferred = [each for each in self._partitions() if each.leader != each.replicas[0]]
        back = [each.change(leader=each.replicas[0]) for each in preferred if each.replicas[0] in each.isr]
        yield from self._batches_of(back)
