"""Decisions on their way into the log: noted, replayed, then proposed.

An atomic change that no batch holds is written as a metadata transaction (KIP-868): Begin, the records over as many
batches as they need, End. All of it is proposed in one turn of the controller, so no other decision gets in between,
and it is one state of the timeline, so no reader sees a part of it.

An administrative change is preceded by an audit note, the value of a tagged field of a NoOpRecord, which Kafka's
readers skip. Each note holds the hash of the one before it, so a note that is removed or changed leaves a trace.
"""

from collections.abc import Sequence

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.partitions.change_batch import PartitionChangeBatch
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.controller.timeline import (
    Entry,
    Proposed,
    RecordRun,
    Timeline,
    plain_records,
    record_count,
)
from kquorum.metadata.forwarding import tells_error
from kquorum.metadata.image.metadata_version import NO_OP_RECORD, TRANSACTIONS, record_version
from kquorum.raft.batches import BATCH_HEADER_BYTES, RECORD_OVERHEAD_BYTES
from kquorum.raft.errors import RecordBatchTooLargeError
from kquorum.raft.ports import RaftPort
from kquorum.wire.audit_note import AUDIT_NOTE_TAG
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.features import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
)
from kquorum.wire.proto.audit_pb2 import AuditNote
from kquorum.wire.protocol.apis import api_name
from kquorum.wire.record_frame import decode_record, encode_record
from kquorum.wire.schema import MetadataRecord


def audit_record(
    request: ControllerRequest,
    *,
    reason: str,
    previous_note_hash: bytes,
    covered_records: int,
    is_whole: bool = False,
) -> NoOpRecord:
    """The record to put before the `covered_records` that carry the request out, all of it if `is_whole`."""
    note = AuditNote(
        principal=request.principal,
        client_id=request.client_id or "",
        client_address=request.client_host,
        api_key=int(request.api_key),
        correlation_id=request.correlation_id,
        reason=reason,
        previous_note_hash=previous_note_hash,
        covered_records=covered_records,
        operator_reason=request.operator_reason or "",
        forwarding_id=request.forwarding_id,
        is_whole=is_whole,
    )
    value = note.SerializeToString(deterministic=True)
    return NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, value),))


class LogWriter:
    """All methods raise raft's NotLeaderError; what was proposed before it is for the controller to give up."""

    def __init__(self, config: ControllerConfig, raft: RaftPort, timeline: Timeline) -> None:
        self._config = config
        self._raft = raft
        self._timeline = timeline

    def write(
        self, now_ms: int, leader_epoch: int, result: ControllerResult, request: ControllerRequest
    ) -> None:
        """Raises POLICY_VIOLATION, with nothing written, for an atomic change that is too large."""
        entries, count = result.records, record_count(result.records)
        # A batch of partition changes is not split by the record limit: it is one decision over many partitions.
        if any(isinstance(entry, PartitionChangeBatch) for entry in entries):
            note = self._note(count, result, request, is_whole=True)
            self.write_together(now_ms, leader_epoch, (*note, *entries), api_name(request.api_key))
            return
        limit = self._config.max_records_per_batch
        if not result.is_atomic:
            records = plain_records(entries)
            for start in range(0, count, limit):
                self._write_apart(now_ms, leader_epoch, records[start : start + limit], result, request)
            return
        if count > limit:
            reason = (
                f"The request makes {count} records, and one operation may make {limit}. "
                "Ask for less at a time."
            )
            raise ApiError(ErrorCode.policy_violation, reason)
        noted = (*self._note(count, result, request, is_whole=True), *entries)
        if noted and not self._fits_one_batch(now_ms, leader_epoch, noted):
            self._write_transaction(now_ms, leader_epoch, noted, api_name(request.api_key))

    def write_own(self, now_ms: int, leader_epoch: int, records: Sequence[MetadataRecord]) -> None:
        """Controller-initiated records; if they do not fit one batch, each batch is a change of its own."""
        limit = self._config.max_records_per_batch
        for start in range(0, len(records), limit):
            self._write_apart(now_ms, leader_epoch, records[start : start + limit])

    def write_together(
        self, now_ms: int, leader_epoch: int, entries: Sequence[Entry], name: str = "PartitionChanges"
    ) -> None:
        """A run of changes, with the records before and after it: one batch, unless that was configured to be tiny, or
        else one transaction called `name`.

        Below the level that knows transactions each part of them stands for itself.
        """
        if self._fits_one_batch(now_ms, leader_epoch, entries):
            return
        level = self._timeline.image.metadata_version
        if level < TRANSACTIONS:
            values = _encoded(entries, level)
            self.write_own(now_ms, leader_epoch, [decode_record(value) for value in values])
        else:
            self._write_transaction(now_ms, leader_epoch, entries, name)

    def _write_apart(
        self,
        now_ms: int,
        leader_epoch: int,
        records: Sequence[MetadataRecord],
        result: ControllerResult | None = None,
        request: ControllerRequest | None = None,
    ) -> None:
        """In one batch, or else recursively in two halves."""
        noted = records if result is None or request is None else self._with_note(records, result, request)
        if self._fits_one_batch(now_ms, leader_epoch, noted):
            return
        if len(records) == 1:
            raise _too_large(records[0], self._config.max_batch_bytes)
        # Encoded sizes are known only after encoding, so the records are halved until they fit. Each half gets its own
        # audit note, whose hash chain goes on from the half before it.
        middle = len(records) // 2
        self._write_apart(now_ms, leader_epoch, records[:middle], result, request)
        self._write_apart(now_ms, leader_epoch, records[middle:], result, request)

    def _with_note(
        self, records: Sequence[MetadataRecord], result: ControllerResult, request: ControllerRequest
    ) -> Sequence[MetadataRecord]:
        is_whole = len(records) == len(result.records)
        return (*self._note(len(records), result, request, is_whole=is_whole), *records)

    def _note(
        self, count: int, result: ControllerResult, request: ControllerRequest, *, is_whole: bool
    ) -> Sequence[MetadataRecord]:
        """An administrative change is preceded by its audit note, where Kafka's readers know NoOpRecords. It covers
        `count` records, which are all of the change if it `is_whole`."""
        is_noted = result.audit_reason is not None and self._timeline.image.metadata_version >= NO_OP_RECORD
        if not count or not is_noted:
            return ()
        note = audit_record(
            request,
            reason=result.audit_reason or "",
            previous_note_hash=self._timeline.derived.last_note_hash,
            covered_records=count,
            is_whole=is_whole and _is_carried_out(request, result.response),
        )
        return (note,)

    def _fits_one_batch(self, now_ms: int, leader_epoch: int, entries: Sequence[Entry]) -> bool:
        """Proposes them if they do; otherwise nothing has happened."""
        proposed, values = self._decide(entries)
        try:
            self._propose(now_ms, leader_epoch, proposed, [values])
        except RecordBatchTooLargeError:
            return False
        return True

    def _write_transaction(self, now_ms: int, leader_epoch: int, entries: Sequence[Entry], name: str) -> None:
        level = self._timeline.image.metadata_version
        if level < TRANSACTIONS:
            reason = (
                f"The request's records need more than the {self._config.max_batch_bytes} bytes of one batch, and "
                f"metadata.version {level} knows no transactions ({TRANSACTIONS} does). Ask for less at a time."
            )
            raise ApiError(ErrorCode.policy_violation, reason)
        proposed, values = self._decide((BeginTransactionRecord(name=name), *entries, EndTransactionRecord()))
        self._propose_in_batches(now_ms, leader_epoch, proposed, values)

    def _propose_in_batches(
        self, now_ms: int, leader_epoch: int, proposed: Proposed, values: Sequence[bytes]
    ) -> None:
        """Raises POLICY_VIOLATION, with nothing proposed, for a record that alone is larger than a batch."""
        groups: list[list[bytes]] = [[]]
        room = self._config.max_batch_bytes - BATCH_HEADER_BYTES
        left = room
        for value in values:
            size = len(value) + RECORD_OVERHEAD_BYTES
            # This check comes before the first propose: half a transaction in the log would stay open, and no image
            # shows what is in it.
            if size > room:
                raise _too_large(decode_record(value), self._config.max_batch_bytes)
            if size > left:
                groups.append([])
                left = room
            groups[-1].append(value)
            left -= size
        self._propose(now_ms, leader_epoch, proposed, groups)

    def _decide(self, entries: Sequence[Entry]) -> tuple[Proposed, list[bytes]]:
        """Replayed before it is proposed: a record that cannot be replayed must never reach the log."""
        # A record's version follows from metadata.version. If these records raise it, the level is known only after
        # their replay, and the records behind the FeatureLevelRecord may need the higher one.
        level = self._timeline.image.metadata_version
        if not any(isinstance(entry, FeatureLevelRecord) for entry in entries):
            values = _encoded(entries, level)
            return self._timeline.decide(entries, self._raft.log_end_offset, values), values
        proposed = self._timeline.decide(entries, self._raft.log_end_offset)
        return proposed, _encoded(entries, max(level, proposed.image.metadata_version))

    def _propose(
        self, now_ms: int, leader_epoch: int, proposed: Proposed, groups: Sequence[Sequence[bytes]]
    ) -> None:
        """Each group in one batch. Raises RecordBatchTooLargeError for the first only, with nothing proposed."""
        # The timeline takes the state only after Raft has taken all batches: if the first does not fit, nothing
        # happened.
        last_offset = proposed.base_offset - 1
        for group in groups:
            last_offset = self._raft.propose(now_ms, leader_epoch, group)
        assert last_offset == proposed.end_offset, (
            f"records stand at {last_offset}, not {proposed.end_offset}"
        )
        self._timeline.propose(proposed)


def _encoded(entries: Sequence[Entry], level: int) -> list[bytes]:
    values: list[bytes] = []
    for entry in entries:
        if isinstance(entry, RecordRun):
            values += entry.values
        else:
            values.append(encode_record(entry, record_version(entry, level)))
    return values


def _is_carried_out(request: ControllerRequest, response: Response | None) -> bool:
    """Whether a broker that lost the response may report success to its client; no other node reads this."""
    return bool(request.forwarding_id) and not request.is_part and not tells_error(response)


def _too_large(record: MetadataRecord, max_batch_bytes: int) -> ApiError:
    reason = f"A {type(record).__name__} alone needs more than the {max_batch_bytes} bytes of one batch."
    return ApiError(ErrorCode.policy_violation, reason)
