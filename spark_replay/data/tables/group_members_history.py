"""The members of consumer groups, in order: the group records of `__consumer_offsets`, of both protocols."""

from collections.abc import Iterator

from pyspark.sql.types import StructType

from kquorum.spark_replay.data.data_table import LOG_DIR, Collector, DataTable, Row
from kquorum.spark_replay.data.reading import DataBatch
from kquorum.spark_replay.data.tables.data_batches import known
from kquorum.spark_replay.data.tables.group_offsets_history import OFFSETS_TOPIC
from kquorum.spark_replay.tables.building.columns import INT, LONG, STRING, STRINGS, column
from kquorum.wire.consumer_group_records import (
    CONSUMER_TYPES,
    CurrentAssignmentValue,
    GroupEpochValue,
    MemberMetadataValue,
    TargetAssignmentValue,
    TargetEpochValue,
    decode_consumer_key,
    decode_consumer_value,
)
from kquorum.wire.data_batch import Record
from kquorum.wire.errors import DecodeError, UnsupportedVersion
from kquorum.wire.message_codec import decode
from kquorum.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kquorum.wire.offsets_records import (
    INT16,
    GroupKey,
    ModernKey,
    decode_group_value,
    decode_key,
    value_version,
)
from kquorum.wire.uuids import uuid_to_text

CLASSIC, CONSUMER = "classic", "consumer"
# Kafka's MemberState, by number (KIP-848).
_MEMBER_STATES = {0: "stable", 1: "unrevoked_partitions", 2: "unreleased_partitions", 127: "unknown"}
SCHEMA = StructType(
    [
        LOG_DIR,
        column("offsets_partition", INT, "partition of __consumer_offsets, which is the group's"),
        column("offset", LONG, "offset of the record in it; the members of a classic group share one"),
        column("timestamp_ms", LONG, "time of the record"),
        column("group_id", STRING, "the group"),
        column("protocol", STRING, "classic or consumer (KIP-848)"),
        column(
            "event",
            STRING,
            "generation (classic: one row for each member, or one without a member), epoch, subscribed, target, "
            "assigned, target_epoch (consumer), or removed: the record is a tombstone",
        ),
        column("member_id", STRING, "the member; null where the record is about the group"),
        column("instance_id", STRING, "group.instance.id of a static member"),
        column("client_id", STRING, "client id of the member"),
        column("client_host", STRING, "its address"),
        column(
            "epoch", INT, "generation of a classic group; epoch of a consumer group, member or assignment"
        ),
        column(
            "state", STRING, "stable, unrevoked_partitions or unreleased_partitions, of an assigned member"
        ),
        column(
            "assignor", STRING, "protocol that a classic group chose, or the assignor that a member asked for"
        ),
        column("subscribed_topics", STRINGS, "topic names that a member of a consumer group asked for"),
        column("subscribed_regex", STRING, "regular expression that it asked for"),
        column(
            "assignment",
            STRINGS,
            "the partitions that the member has or is to get, as name-number in a classic group, id-number in a "
            "consumer group",
        ),
    ]
)


class _Members(Collector):
    def batch(self, batch: DataBatch) -> Iterator[Row]:
        if batch.header.is_control:
            return
        for record in batch.records:
            try:
                rows = self._rows(record)
            except DecodeError:
                continue
            common = {
                "source": self.folder.source,
                "offsets_partition": self.folder.partition,
                "offset": record.offset,
                "timestamp_ms": known(record.timestamp_ms),
            }
            for row in rows:
                yield dict.fromkeys(SCHEMA.fieldNames()) | common | row

    def _rows(self, record: Record) -> list[Row]:
        """Raises DecodeError."""
        if record.key is None:
            return []
        data = bytes(record.key)
        key = decode_key(data)
        value = None if record.value is None else bytes(record.value)
        if isinstance(key, GroupKey):
            return _of_classic(key.group_id, value)
        if not isinstance(key, ModernKey) or key.type not in CONSUMER_TYPES:
            return []
        named = decode_consumer_key(key.type, data)
        about = {"group_id": key.group_id, "protocol": CONSUMER, "member_id": named.name or None}
        if value is None:
            return [about | {"event": "removed"}]
        found = _of_consumer(decode_consumer_value(key.type, value))
        return [] if found is None else [about | found]


def _of_classic(group_id: str, data: bytes | None) -> list[Row]:
    about: Row = {"group_id": group_id, "protocol": CLASSIC}
    if data is None:
        return [about | {"event": "removed"}]
    value = decode_group_value(data)
    about |= {"event": "generation", "epoch": value.generation, "assignor": value.protocol}
    if not value.members:
        return [about]
    return [
        about
        | {
            "member_id": each.member_id,
            "instance_id": each.group_instance_id,
            "client_id": each.client_id,
            "client_host": each.client_host,
            "assignment": _assigned(each.assignment),
        }
        for each in value.members
    ]


def _assigned(data: bytes) -> list[str] | None:
    """Of the assignment that a consumer's leader made; None for one of another kind of client."""
    try:
        version = min(max(value_version(data), 0), ConsumerProtocolAssignment.versions[1])
        found, _ = decode(ConsumerProtocolAssignment, version, data, INT16.size)
    except (DecodeError, UnsupportedVersion):
        return None
    return [f"{each.topic}-{number}" for each in found.assigned_partitions for number in each.partitions]


def _of_consumer(value: object) -> Row | None:
    """None for what is not about members: partitions' racks, regular expressions."""
    if isinstance(value, GroupEpochValue):
        return {"event": "epoch", "epoch": value.epoch}
    if isinstance(value, TargetEpochValue):
        return {"event": "target_epoch", "epoch": value.assignment_epoch}
    if isinstance(value, MemberMetadataValue):
        return {
            "event": "subscribed",
            "instance_id": value.instance_id,
            "client_id": value.client_id,
            "client_host": value.client_host,
            "assignor": value.server_assignor,
            "subscribed_topics": list(value.subscribed_topic_names),
            "subscribed_regex": value.subscribed_topic_regex,
        }
    if isinstance(value, TargetAssignmentValue):
        return {"event": "target", "assignment": _by_id(value.topic_partitions)}
    if isinstance(value, CurrentAssignmentValue):
        return {
            "event": "assigned",
            "epoch": value.member_epoch,
            "state": _MEMBER_STATES.get(value.state, str(value.state)),
            "assignment": _by_id(value.assigned_partitions),
        }
    return None


def _by_id(entries: tuple[object, ...]) -> list[str]:
    return [
        f"{uuid_to_text(each.topic_id)}-{number}"  # type: ignore[attr-defined]
        for each in entries
        for number in each.partitions  # type: ignore[attr-defined]
    ]


TABLE = DataTable(
    place=60,
    schema=SCHEMA,
    description="Each change of the members of a consumer group, of the classic and of the consumer protocol.",
    collector=_Members,
    of_topic=OFFSETS_TOPIC,
)
