"""What a partition's log refuses, each with the error code of Kafka's protocol that the client receives.

A refused append, read or truncation leaves the log as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kquorum.wire.messages.error_codes import ErrorCode

RecordErrors = tuple[tuple[int, str], ...]


class LogError(Exception):
    """A partition's log refused a request."""

    error_code: ClassVar[ErrorCode] = ErrorCode.unknown_server_error


class OffsetOutOfRange(LogError):
    """The offset lies below the log's start or above the bound that the reader may reach."""

    error_code = ErrorCode.offset_out_of_range


class CorruptRecord(LogError):
    """The checksum of a batch does not fit its bytes, or its lengths cannot be right."""

    error_code = ErrorCode.corrupt_message


class RecordsRefused(LogError):
    """Single records break a rule. `record_errors` holds (index in the batch, message) of each; it is empty where the
    batch as a whole is at fault (KIP-467)."""

    def __init__(self, message: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.record_errors: RecordErrors = tuple(record_errors)


class InvalidRecord(RecordsRefused):
    """A batch or its records break a rule of the format or of the topic."""

    error_code = ErrorCode.invalid_record


class InvalidTimestamp(RecordsRefused):
    """At least one record's timestamp is outside the topic's bounds."""

    error_code = ErrorCode.invalid_timestamp


class RecordTooLarge(LogError):
    """A batch is larger than `max.message.bytes`, or unfolds to more than the broker decompresses."""

    error_code = ErrorCode.message_too_large


class RecordListTooLarge(LogError):
    """What is appended at once is larger than a segment may be."""

    error_code = ErrorCode.record_list_too_large


class UnsupportedForMessageFormat(LogError):
    """The record format cannot hold what was asked for."""

    error_code = ErrorCode.unsupported_for_message_format


class UnsupportedCompressionType(LogError):
    """The request's version does not know the codec of the batch."""

    error_code = ErrorCode.unsupported_compression_type


class UnknownCodec(LogError):
    """The batch names a codec that does not exist. Kafka has no error code for it: UNKNOWN_SERVER_ERROR."""


class UnreadableRecords(LogError):
    """The compressed records of a batch are damaged, although its checksum is right: UNKNOWN_SERVER_ERROR, as in
    Kafka. Compressed data that end too early are an InvalidRecord."""


class OutOfOrderSequence(LogError):
    """The batch does not follow the producer's last one."""

    error_code = ErrorCode.out_of_order_sequence_number


class DuplicateSequence(LogError):
    """The batch was appended before, too long ago for its offsets to be known."""

    error_code = ErrorCode.duplicate_sequence_number


class InvalidProducerEpoch(LogError):
    """The producer's epoch is older than the one that the log knows."""

    error_code = ErrorCode.invalid_producer_epoch


class ProducerFenced(LogError):
    """A newer producer with the same transactional id took over."""

    error_code = ErrorCode.producer_fenced


class UnknownProducerId(LogError):
    """The log knows nothing of the producer."""

    error_code = ErrorCode.unknown_producer_id


class InvalidTxnState(LogError):
    """The batch does not fit the state of the producer's transaction."""

    error_code = ErrorCode.invalid_txn_state


class TransactionCoordinatorFenced(LogError):
    """A transaction marker comes from a coordinator that was replaced."""

    error_code = ErrorCode.transaction_coordinator_fenced


class InconsistentTopicId(LogError):
    """The folder belongs to another topic of the same name."""

    error_code = ErrorCode.inconsistent_topic_id


class KafkaStorageError(LogError):
    """The log directory failed; the partition is offline on this broker."""

    error_code = ErrorCode.kafka_storage_error


class NoSpaceLeft(KafkaStorageError):
    """The disk is full. The log is as it was before, and takes records again when there is space."""


class OffsetsOutOfOrder(LogError):
    """The batches that a leader sent have offsets that do not increase."""


class UnexpectedAppendOffset(LogError):
    """A follower received batches that begin below the end of its log."""

    def __init__(self, message: str, *, first_offset: int, last_offset: int) -> None:
        super().__init__(message)
        self.first_offset = first_offset
        self.last_offset = last_offset


class NotLeaderOrFollower(LogError):
    """This broker is not the replica that the request needs."""

    error_code = ErrorCode.not_leader_or_follower


class FencedLeaderEpoch(LogError):
    """The request names an older leader epoch than the partition's."""

    error_code = ErrorCode.fenced_leader_epoch


class UnknownLeaderEpoch(LogError):
    """The request names a leader epoch that this broker has not heard of yet."""

    error_code = ErrorCode.unknown_leader_epoch


class NotEnoughReplicas(LogError):
    """Fewer replicas are in sync than `min.insync.replicas`: nothing was appended."""

    error_code = ErrorCode.not_enough_replicas


class NotEnoughReplicasAfterAppend(LogError):
    """The batch was appended, and then fewer replicas were in sync than `min.insync.replicas`."""

    error_code = ErrorCode.not_enough_replicas_after_append
