"""The rest of a cluster's random life beside its topics: brokers, configs, features, access control, audit notes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from kquorum.wire.audit_note import AUDIT_NOTE_TAG, note_hash
from kquorum.wire.metadata_records.cluster import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import FeatureLevelRecord, NoOpRecord
from kquorum.wire.metadata_records.security import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from kquorum.wire.proto.audit_pb2 import AuditNote
from kquorum.wire.schema import MetadataRecord
from tests.support.sample_logs import DIRECTORY, broker

CONFIG_KEYS = ("retention.ms", "min.insync.replicas", "ssl.key.password")
FEATURES = ("metadata.version", "group.version", "transaction.version")


@dataclass
class RandomBrokers:
    """`registered` brokers have been told of; the others a registration must come before everything else."""

    random: Random
    known: Sequence[int]
    registered: set[int] = field(default_factory=set)
    made: int = 0

    def arrival(self) -> MetadataRecord:
        missing = sorted(set(self.known) - self.registered)
        broker_id = self.random.choice(missing or sorted(self.registered))
        self.registered.add(broker_id)
        self.made += 1
        return broker(broker_id, self.made)

    def departure(self) -> tuple[int, MetadataRecord]:
        """A broker, and the record that it goes by; what it leads goes to others in the same batch."""
        broker_id = self.random.choice(sorted(self.registered))
        kind = self.random.randrange(6)
        if kind == 0:
            self.registered.remove(broker_id)
            return broker_id, UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=self.made)
        if kind == 1:
            return broker_id, FenceBrokerRecord(id=broker_id, epoch=self.made)
        changes = (
            {"fenced": 1},
            {"in_controlled_shutdown": 1},
            {"log_dirs": self._directories()},
            {"fenced": 1},
        )
        return broker_id, self._change(broker_id, **changes[kind - 2])

    def recovery(self) -> tuple[int, MetadataRecord]:
        broker_id = self.random.choice(sorted(self.registered))
        if self.random.random() < 0.3:
            return broker_id, UnfenceBrokerRecord(id=broker_id, epoch=self.made)
        return broker_id, self._change(broker_id, fenced=-1)

    def cordon(self) -> MetadataRecord:
        broker_id = self.random.choice(sorted(self.registered))
        return self._change(broker_id, cordoned_log_dirs=self._directories()[: self.random.randrange(3)])

    def _change(self, broker_id: int, **values: object) -> BrokerRegistrationChangeRecord:
        return BrokerRegistrationChangeRecord(
            broker_id=broker_id,
            broker_epoch=self.made,
            **values,  # type: ignore[arg-type]
        )

    def _directories(self) -> tuple[UUID, ...]:
        return tuple(UUID(int=DIRECTORY.int + number) for number in range(self.random.randint(1, 3)))


@dataclass
class RandomSettings:
    """Configs, features and access control entries; what is taken away need not be there."""

    random: Random

    def record(self, topics: Sequence[str]) -> MetadataRecord:
        kind = self.random.random()
        if kind < 0.6:
            return self._config(topics)
        if kind < 0.75:
            return FeatureLevelRecord(
                name=self.random.choice(FEATURES), feature_level=self.random.randrange(4)
            )
        acl_id = UUID(int=800 + self.random.randrange(6))
        if kind < 0.85:
            return RemoveAccessControlEntryRecord(id=acl_id)
        return AccessControlEntryRecord(
            id=acl_id,
            resource_type=self.random.choice([2, 3, 4, 5, 6, 7]),
            resource_name="orders",
            pattern_type=self.random.choice([3, 4]),
            principal="User:alice",
            host="*",
            operation=self.random.randint(2, 16),
            permission_type=self.random.choice([2, 3]),
        )

    def _config(self, topics: Sequence[str]) -> ConfigRecord:
        kind, name = self.random.choice(
            [(4, "1"), (4, ""), (16, "metrics"), (32, "group"), (8, "1"), (64, "new")]
        )
        if topics and self.random.random() < 0.6:
            kind, name = 2, self.random.choice(topics)
        return ConfigRecord(
            resource_type=kind,
            resource_name=name,
            name=self.random.choice(CONFIG_KEYS),
            value=self.random.choice([None, "", "1", "2", "3"]),
        )


@dataclass
class RandomNotes:
    """Audit notes in a chain, in which a link is missing now and then."""

    random: Random
    last: bytes = b""

    def note(self, covered_records: int) -> MetadataRecord:
        """What an aborted transaction holds must be followed by `forget`."""
        forwarding_id = self.random.choice([b"", bytes([7]) * 16])
        value = AuditNote(
            principal="User:alice",
            client_id=self.random.choice(["", "cli"]),
            client_address="10.0.0.7",
            api_key=self.random.choice([19, 20, 37, 44, 999]),
            correlation_id=self.random.randrange(100),
            reason="asked for",
            operator_reason=self.random.choice(["", 'why "not"']),
            covered_records=covered_records,
            forwarding_id=forwarding_id,
            is_whole=self.random.random() < 0.5,
            previous_note_hash=b"\x01" if self.last and self.random.random() < 0.1 else self.last,
        ).SerializeToString(deterministic=True)
        self.last = note_hash(value)
        return NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, value),))
