"""Segment and snapshot bytes to rows. Pure, and shared by `log dump` and the Spark executors.

Nothing in a log can stop the reading of the rest: a record of an unknown type or version becomes a row with its raw
bytes, a batch whose records cannot be read becomes a damage row, and so do a torn tail and bytes that are no batch,
behind which the next sound batch is searched for.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kquorum.spark_replay.decode.rows import UNKNOWN_TYPE, BatchRow, DamageRow, RecordRow
from kquorum.spark_replay.decode.sources import FileKind, LogFile
from kquorum.wire.control_records import SnapshotHeaderRecord, decode_control_record_lenient
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_scan import Damage, ScannedBatch, scan_batches
from kquorum.wire.metadata_records.registry import BY_API_KEY
from kquorum.wire.record_batch import BatchHeader, Record, read_records
from kquorum.wire.record_frame import decode_record_lenient
from kquorum.wire.record_json import may_hold_secrets, record_to_json, type_name
from kquorum.wire.uuids import uuid_to_text

# Which topic, partition or broker a record is about: the key columns that filters and tables go by.

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
_LAST_BROKER_ID = 2**31 - 1
_BROKER_DIGITS = 10


class Entity(NamedTuple):
    topic_id: str | None = None
    topic_name: str | None = None
    partition_id: int | None = None
    broker_id: int | None = None


NOTHING = Entity()


def entity_of(record: object) -> Entity:
    """The entity named by the record itself; a topic's id is not resolved to its name here."""
    reader = _READERS.get(type(record).__name__)
    return NOTHING if reader is None else reader(record)


def _topic(record: Any) -> Entity:
    return Entity(topic_id=uuid_to_text(record.topic_id), topic_name=record.name)


def _topic_id(record: Any) -> Entity:
    return Entity(topic_id=uuid_to_text(record.topic_id))


def _partition(record: Any) -> Entity:
    return Entity(topic_id=uuid_to_text(record.topic_id), partition_id=record.partition_id)


def _broker(record: Any) -> Entity:
    # A snapshot's ProducerIdsRecord names no broker: -1.
    return Entity(broker_id=record.broker_id) if record.broker_id >= 0 else NOTHING


def _fencing(record: Any) -> Entity:
    return Entity(broker_id=record.id)


def _resource(record: Any) -> Entity:
    return of_resource(record.resource_type, record.resource_name)


def of_resource(resource_type: int, name: str) -> Entity:
    """The topic or the broker that a config is of."""
    if resource_type == TOPIC_RESOURCE:
        return Entity(topic_name=name)
    if resource_type == BROKER_RESOURCE and len(name) <= _BROKER_DIGITS and name.isascii() and name.isdigit():
        broker_id = int(name)
        return Entity(broker_id=broker_id) if broker_id <= _LAST_BROKER_ID else NOTHING
    return NOTHING


def _cleared_topic(record: Any) -> Entity:
    return Entity(topic_name=record.topic_name or None)


_READERS: dict[str, Callable[[Any], Entity]] = {
    "TopicRecord": _topic,
    "RemoveTopicRecord": _topic_id,
    "PartitionRecord": _partition,
    "PartitionChangeRecord": _partition,
    "RegisterBrokerRecord": _broker,
    "UnregisterBrokerRecord": _broker,
    "BrokerRegistrationChangeRecord": _broker,
    "ProducerIdsRecord": _broker,
    "FenceBrokerRecord": _fencing,
    "UnfenceBrokerRecord": _fencing,
    "ConfigRecord": _resource,
    "ClearElrRecord": _cleared_topic,
}

_PARTITION = "v_topic_id, None, v_partition_id, None"
_BROKER = "None, None, None, (v_broker_id if v_broker_id >= 0 else None)"
# The same as expressions, for `wire.record_text`: of records that are read without an object for each.
ENTITY_EXPRESSIONS: Final[Mapping[str, str]] = {
    "TopicRecord": "v_topic_id, v_name, None, None",
    "RemoveTopicRecord": "v_topic_id, None, None, None",
    "PartitionRecord": _PARTITION,
    "PartitionChangeRecord": _PARTITION,
    "RegisterBrokerRecord": _BROKER,
    "UnregisterBrokerRecord": _BROKER,
    "BrokerRegistrationChangeRecord": _BROKER,
    "ProducerIdsRecord": _BROKER,
    "FenceBrokerRecord": "None, None, None, v_id",
    "UnfenceBrokerRecord": "None, None, None, v_id",
    "ConfigRecord": "*of_resource(v_resource_type, v_resource_name)",
    "ClearElrRecord": "None, (v_topic_name or None), None, None",
}
ENTITY_NAMES: Final[Mapping[str, object]] = {"of_resource": of_resource}

Buffer = bytes | memoryview
SHORT_VALUE_BYTES = 8
# Kafka's index has offsets relative to the segment's in 32 bits, with a sign: it rolls a segment that outgrows them.
MAX_OFFSETS_IN_FILE = 2**31
WITHHELD = "raw bytes withheld: a record of this type may hold secrets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What every row of a file says about it. `end_offset` (exclusive) is of a snapshot."""

    file: str
    kind: FileKind
    segment_base_offset: int | None = None
    end_offset: int | None = None

    @property
    def first_offset(self) -> int | None:
        return self.segment_base_offset if self.kind is FileKind.LOG else 0


def origin_of(file: LogFile) -> Origin:
    return Origin(
        file=file.name, kind=file.kind, segment_base_offset=file.base_offset, end_offset=file.end_offset
    )


def scan(
    buffer: Buffer, origin: Origin, start: int = 0, end: int | None = None
) -> Iterator[ScannedBatch | DamageRow]:
    """The batches which begin in [start, end), checksums checked, and what is damaged between them.

    A segment's first batch must have the offset in the file's name, a snapshot's the offset 0. That the batch at `end`
    does not continue those before it is reported here, because a reader that begins at `end` cannot see it.
    """
    expected = None if start else origin.first_offset
    at_end: Damage | None = None
    for item in scan_batches(buffer, start, base_offset=expected, resync=possible_base_offsets(origin)):
        # Damage at `end` is kept back: whether this reader reports it depends on the batch that follows it there.
        if end is not None and item.position >= end:
            if isinstance(item, Damage) and item.position == end:
                at_end = item
                continue
            if at_end is not None and item.position == end and _is_reported_before(item):
                yield _damage_row(at_end, origin)
            return
        yield _damage_row(item, origin) if isinstance(item, Damage) else item


def possible_base_offsets(origin: Origin) -> range:
    """Those that a batch of the file can have: the same for every split, whatever was read before."""
    first = origin.first_offset or 0
    return range(first, first + MAX_OFFSETS_IN_FILE)


def _is_reported_before(item: ScannedBatch | Damage) -> bool:
    """A sound batch whose offset could be one: only those before it say that it is not the next."""
    return isinstance(item, ScannedBatch) and item.header.base_offset >= 0


def snapshot_timestamp_ms(buffer: Buffer) -> int | None:
    """The time at which a snapshot's records take effect, from the header in its first batch; None without a header."""
    first = next((item for item in scan_batches(buffer) if isinstance(item, ScannedBatch)), None)
    if first is None or not first.header.is_control:
        return None
    try:
        records = read_records(first.data, 0, first.header)
    except DecodeError:
        return None
    # Read without RecordDecoder: a split in the middle of a snapshot needs this one value of the first batch.
    headers = [control_content(record).entity for record in records]
    times = [each.last_contained_log_timestamp for each in headers if isinstance(each, SnapshotHeaderRecord)]
    return times[-1] if times else None


def batch_row(batch: ScannedBatch, origin: Origin) -> BatchRow:
    header = batch.header
    return BatchRow(
        file=origin.file,
        segment_base_offset=origin.segment_base_offset,
        position=batch.position,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        leader_epoch=header.partition_leader_epoch,
        timestamp_ms=header.max_timestamp_ms,
        record_count=header.record_count,
        size_in_bytes=header.size_in_bytes,
        is_control=header.is_control,
        codec=_codec_name(header),
        crc=header.crc,
    )


def _codec_name(header: BatchHeader) -> str:
    try:
        return header.codec.name.lower()
    except DecodeError:
        return "unknown"


class Content(NamedTuple):
    """A record's value taken apart as far as possible; `entity` is None and `problem` set where it was not.

    `may_hold_secrets` is of the value's bytes: of a version unknown to us we cannot say where the secrets are.
    """

    record_type: str
    api_key: int | None
    version: int | None
    entity: object | None
    value: bytes
    problem: str | None
    may_hold_secrets: bool = False


class RecordDecoder:
    """Turns the batches of one file, in order, into record rows.

    Its only state between batches is the time at which a snapshot's records take effect, read from the header.
    `wants(record_type)` false skips a record before the costly half of the work.
    """

    def __init__(
        self,
        origin: Origin,
        *,
        show_secrets: bool = False,
        wants: Callable[[str], bool] | None = None,
    ) -> None:
        self._origin = origin
        self._show_secrets = show_secrets
        self._wants = wants
        self._snapshot_timestamp_ms: int | None = None

    def rows(self, batch: ScannedBatch) -> Iterator[RecordRow | DamageRow]:
        """The batch's records; one damage row instead if they cannot be taken apart."""
        try:
            records = read_records(batch.data, 0, batch.header)
        except DecodeError as error:
            yield undecodable_row(batch, self._origin, error)
            return
        for record in records:
            content = control_content(record) if batch.header.is_control else _data_content(record)
            # Before `_wants` can skip it: the rows that follow need its time.
            if isinstance(content.entity, SnapshotHeaderRecord):
                self._snapshot_timestamp_ms = content.entity.last_contained_log_timestamp
            if self._wants is None or self._wants(content.record_type):
                yield self._row(batch, record, content)

    def _row(self, batch: ScannedBatch, record: Record, content: Content) -> RecordRow:
        header, known = batch.header, content.entity
        topic_id, topic_name, partition_id, broker_id = NOTHING if known is None else entity_of(known)
        state_offset, state_timestamp_ms = self._counts_as_of(record)
        raw, problem = (
            (None, None) if known is not None else raw_and_problem(content, show_secrets=self._show_secrets)
        )
        return RecordRow(
            file=self._origin.file,
            segment_base_offset=self._origin.segment_base_offset,
            position=batch.position,
            offset=record.offset,
            batch_base_offset=header.base_offset,
            leader_epoch=header.partition_leader_epoch,
            timestamp_ms=record.timestamp_ms,
            state_offset=state_offset,
            state_timestamp_ms=state_timestamp_ms,
            is_control=header.is_control,
            record_type=content.record_type,
            api_key=content.api_key,
            version=content.version,
            payload=None if known is None else record_to_json(known, show_secrets=self._show_secrets),
            topic_id=topic_id,
            topic_name=topic_name,
            partition_id=partition_id,
            broker_id=broker_id,
            raw=raw,
            problem=problem,
        )

    def _counts_as_of(self, record: Record) -> tuple[int | None, int | None]:
        match self._origin.kind:
            case FileKind.LOG:
                return record.offset, record.timestamp_ms
            # A snapshot's offsets only number its records. Its state is that of the log below its end offset, so all
            # its rows count as of the last record before that.
            case FileKind.SNAPSHOT:
                assert self._origin.end_offset is not None
                return self._origin.end_offset - 1, self._snapshot_timestamp_ms
        return None, None


def raw_and_problem(content: Content, *, show_secrets: bool) -> tuple[bytes | None, str | None]:
    """These columns of a value that could not be read."""
    if content.may_hold_secrets and not show_secrets:
        return None, f"{content.problem}; {WITHHELD}"
    return content.value, content.problem


def undecodable_row(batch: ScannedBatch, origin: Origin, error: DecodeError) -> DamageRow:
    return DamageRow(
        file=origin.file,
        segment_base_offset=origin.segment_base_offset,
        position=batch.position,
        offset=batch.header.base_offset,
        kind="undecodable",
        reason=f"the checksum is right but the records cannot be read: {error}",
    )


def _damage_row(damage: Damage, origin: Origin) -> DamageRow:
    return DamageRow(
        file=origin.file,
        segment_base_offset=origin.segment_base_offset,
        position=damage.position,
        offset=damage.offset,
        kind=damage.kind,
        reason=damage.reason,
    )


def _data_content(record: Record) -> Content:
    value = record.value or b""
    return _content_of_short(value) if len(value) <= SHORT_VALUE_BYTES else content_of_value(value)


@lru_cache(maxsize=1024)
def _content_of_short(value: bytes) -> Content:
    """Nine records of ten in an idle cluster's log are NoOps, and all of them the same four bytes."""
    return content_of_value(value)


def content_of_value(value: bytes) -> Content:
    """The value of a data record."""
    decoded = decode_record_lenient(value)
    known_class = BY_API_KEY.get(decoded.api_key)
    return Content(
        record_type=UNKNOWN_TYPE if known_class is None else known_class.__name__,
        api_key=_known(decoded.api_key),
        version=_known(decoded.version),
        entity=decoded.record,
        value=decoded.value,
        problem=decoded.problem,
        may_hold_secrets=may_hold_secrets(decoded.api_key),
    )


def control_content(record: Record) -> Content:
    """The key and the value of a control record."""
    decoded = decode_control_record_lenient(record.key, record.value)
    return Content(
        record_type=UNKNOWN_TYPE if decoded.record is None else type_name(decoded.record),
        api_key=_known(decoded.control_type),
        version=None if decoded.record is None else decoded.record.version,
        entity=decoded.record,
        value=decoded.value or b"",
        problem=decoded.problem,
    )


def _known(number: int) -> int | None:
    return None if number < 0 else number
