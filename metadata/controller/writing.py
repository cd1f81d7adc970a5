"""Decisions on their way into the log: replayed first, then proposed.

An atomic change that no batch holds is written as a metadata transaction (KIP-868): Begin, the records over as many
batches as they need, End. All of it is proposed in one turn of the controller, so nothing that was decided otherwise
gets in between, and it is one state of the timeline, so nobody sees a part of it.
"""

from collections.abc import Sequence

from kio.schema.errors import ErrorCode

from metadata.controller.audit import audit_record
from metadata.controller.change_run import ChangeRun
from metadata.controller.config import ControllerConfig
from metadata.controller.requests import ApiError, ControllerRequest, Values
from metadata.controller.results import ControllerResult
from metadata.controller.timeline import Proposed, Timeline
from metadata.forwarding import tells_error
from metadata.image.metadata_version import NO_OP_RECORD, TRANSACTIONS, record_version
from raft.accumulator import BATCH_HEADER_BYTES, RECORD_OVERHEAD_BYTES
from raft.errors import RecordBatchTooLargeError
from raft.ports import RaftPort
from wire.metadata_records.features import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from wire.protocol.apis import api_name
from wire.record_frame import decode_record, encode_record
from wire.schema import MetadataRecord

Records = tuple[MetadataRecord, ...]


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
        limit = self._config.max_records_per_batch
        if not result.is_atomic:
            for start in range(0, len(result.records), limit):
                self._write_apart(
                    now_ms, leader_epoch, result.records[start : start + limit], result, request
                )
            return
        if len(result.records) > limit:
            reason = (
                f"The request makes {len(result.records)} records, and one operation may make {limit}. "
                "Ask for less at a time."
            )
            raise ApiError(ErrorCode.policy_violation, reason)
        records = self._with_note(result.records, result, request)
        if records and not self._fits_one_batch(now_ms, leader_epoch, records):
            self._write_transaction(now_ms, leader_epoch, records, api_name(request.api_key))

    def write_own(self, now_ms: int, leader_epoch: int, records: Sequence[MetadataRecord]) -> None:
        """Records that nobody asked for; where they do not fit one batch, each part stands for itself."""
        limit = self._config.max_records_per_batch
        for start in range(0, len(records), limit):
            self._write_apart(now_ms, leader_epoch, tuple(records[start : start + limit]))

    def write_run(self, now_ms: int, leader_epoch: int, run: ChangeRun) -> None:
        """The same of changes that were decided by columns, which fit one batch unless it was configured to be tiny."""
        proposed = self._timeline.decide_run(run, self._raft.log_end_offset)
        try:
            self._propose(now_ms, leader_epoch, proposed, [run.values])
        except RecordBatchTooLargeError:
            self.write_own(now_ms, leader_epoch, [decode_record(value) for value in run.values])

    def _write_apart(
        self,
        now_ms: int,
        leader_epoch: int,
        records: Records,
        result: ControllerResult | None = None,
        request: ControllerRequest | None = None,
    ) -> None:
        """In one batch, or else each half."""
        noted = records if result is None or request is None else self._with_note(records, result, request)
        if self._fits_one_batch(now_ms, leader_epoch, noted):
            return
        if len(records) == 1:
            raise _too_large(records[0], self._config.max_batch_bytes)
        middle = len(records) // 2
        self._write_apart(now_ms, leader_epoch, records[:middle], result, request)
        self._write_apart(now_ms, leader_epoch, records[middle:], result, request)

    def _with_note(self, records: Records, result: ControllerResult, request: ControllerRequest) -> Records:
        """An administrative change is preceded by its audit note, where Kafka's readers know NoOpRecords."""
        is_noted = result.audit_reason is not None and self._timeline.image.metadata_version >= NO_OP_RECORD
        if not records or not is_noted:
            return records
        note = audit_record(
            request,
            reason=result.audit_reason or "",
            previous_note_hash=self._timeline.derived.last_note_hash,
            covered_records=len(records),
            is_whole=len(records) == len(result.records) and _is_carried_out(request, result.response),
        )
        return (note, *records)

    def _fits_one_batch(self, now_ms: int, leader_epoch: int, records: Records) -> bool:
        """Proposes them if they do; otherwise nothing has happened."""
        proposed, values = self._decide(records)
        try:
            self._propose(now_ms, leader_epoch, proposed, [values])
        except RecordBatchTooLargeError:
            return False
        return True

    def _write_transaction(self, now_ms: int, leader_epoch: int, records: Records, name: str) -> None:
        level = self._timeline.image.metadata_version
        if level < TRANSACTIONS:
            reason = (
                f"The request's records need more than the {self._config.max_batch_bytes} bytes of one batch, and "
                f"metadata.version {level} knows no transactions ({TRANSACTIONS} does). Ask for less at a time."
            )
            raise ApiError(ErrorCode.policy_violation, reason)
        proposed, values = self._decide((BeginTransactionRecord(name=name), *records, EndTransactionRecord()))
        groups: list[list[bytes]] = [[]]
        room = self._config.max_batch_bytes - BATCH_HEADER_BYTES
        left = room
        for value, record in zip(values, (None, *records, None), strict=True):
            size = len(value) + RECORD_OVERHEAD_BYTES
            if size > room:
                raise _too_large(record, self._config.max_batch_bytes)
            if size > left:
                groups.append([])
                left = room
            groups[-1].append(value)
            left -= size
        self._propose(now_ms, leader_epoch, proposed, groups)

    def _decide(self, records: Records) -> tuple[Proposed, list[bytes]]:
        """Replayed before it is proposed: what cannot be replayed must never get into the log."""
        level = self._timeline.image.metadata_version
        if not any(isinstance(record, FeatureLevelRecord) for record in records):
            values = [encode_record(record, record_version(record, level)) for record in records]
            return self._timeline.decide(records, self._raft.log_end_offset, values), values
        proposed = self._timeline.decide(records, self._raft.log_end_offset)
        level = max(level, proposed.image.metadata_version)
        return proposed, [encode_record(record, record_version(record, level)) for record in records]

    def _propose(
        self, now_ms: int, leader_epoch: int, proposed: Proposed, groups: Sequence[Sequence[bytes]]
    ) -> None:
        """Each group in one batch. Raises RecordBatchTooLargeError for the first only, with nothing proposed."""
        last_offset = proposed.base_offset - 1
        for group in groups:
            last_offset = self._raft.propose(now_ms, leader_epoch, group)
        assert last_offset == proposed.end_offset, (
            f"records stand at {last_offset}, not {proposed.end_offset}"
        )
        self._timeline.propose(proposed)


def _is_carried_out(request: ControllerRequest, response: Values) -> bool:
    """Whether a broker that lost the answer may tell its client of success: nobody else wants to know."""
    return bool(request.forwarding_id) and not request.is_part and not tells_error(response)


def _too_large(record: MetadataRecord | None, max_batch_bytes: int) -> ApiError:
    reason = f"A {type(record).__name__} alone needs more than the {max_batch_bytes} bytes of one batch."
    return ApiError(ErrorCode.policy_violation, reason)
