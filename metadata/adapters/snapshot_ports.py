"""What a node's snapshots are kept by, and what they ask of its replica."""

from dataclasses import dataclass
from typing import Protocol

from metadata.snapshot_policy import SnapshotTriggers
from raft.inputs import Input
from raft.ports import QuorumAt
from snapshots.retention import RetentionLimits
from wire.record_batch import CompressionCodec

CLEANING_INTERVAL_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSettings:
    """The config keys of `metadata.snapshot_policy` and `snapshots.retention`; the codec is that of the log."""

    max_bytes: int
    max_interval_ms: int
    retention_bytes: int
    retention_ms: int
    codec: CompressionCodec = CompressionCodec.LZ4
    cleaning_interval_ms: int = CLEANING_INTERVAL_MS

    @property
    def triggers(self) -> SnapshotTriggers:
        return SnapshotTriggers(max_bytes=self.max_bytes, max_interval_ms=self.max_interval_ms)

    @property
    def retention(self) -> RetentionLimits:
        return RetentionLimits(max_bytes=self.retention_bytes, max_age_ms=self.retention_ms)


class Replica(Protocol):
    """`raft.adapters.driver.RaftDriver`."""

    @property
    def high_watermark(self) -> int: ...

    @property
    def applied_offset(self) -> int: ...

    def quorum_at(self, end_offset: int) -> QuorumAt: ...

    def receive(self, event: Input) -> None: ...

    def advance_log_start(self, offset: int) -> None:
        """Begin the log there, where a snapshot ends, as soon as that can be done."""
        ...


class LogWithStart(Protocol):
    """`raft.adapters.file_log.FileLog`."""

    @property
    def log_start_offset(self) -> int: ...
