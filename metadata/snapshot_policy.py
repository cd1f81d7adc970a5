"""When a snapshot is due: so many bytes of committed records after the last one, or so long (rule C16).

Sans-IO: told what is committed and what became of each attempt, it says when to begin one and why.
"""

from dataclasses import dataclass

from metadata.image.image import Provenance

MAX_BYTES_EXCEEDED = "max bytes were exceeded"
MAX_TIME_EXCEEDED = "max time was exceeded"
LAST_ONE_LOST = "the last one cannot be served any more"

FIRST_RETRY_MS = 10_000
LONGEST_RETRY_MS = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTriggers:
    """`metadata.log.max.record.bytes.between.snapshots` (at least 1) and `metadata.log.max.snapshot.interval.ms`, of
    which 0 means never."""

    max_bytes: int
    max_interval_ms: int


class SnapshotPolicy:
    """One attempt at a time. An attempt sets both counters back, as with Kafka; one that failed puts them where they
    were, and is made again after a while, which doubles from failure to failure."""

    def __init__(self, triggers: SnapshotTriggers, now_ms: int) -> None:
        self._triggers = triggers
        self._bytes = 0
        self._since_ms = now_ms
        self._newest_end_offset = 0
        self._is_writing = False
        self._bytes_before_attempt = 0
        self._since_ms_before_attempt = now_ms
        self._failures = 0
        self._not_before_ms = now_ms
        self._is_last_lost = False
        self._was_last_lost = False

    @property
    def bytes_since_last(self) -> int:
        """Of committed records, control records included."""
        return self._bytes

    def handle_commit(self, size_in_bytes: int) -> None:
        self._bytes += size_in_bytes

    def handle_loaded(self, now_ms: int, end_offset: int) -> None:
        """The state came from a snapshot that ends there: a newer one is due when as much has come since."""
        self._bytes = 0
        self._since_ms = now_ms
        self._newest_end_offset = max(self._newest_end_offset, end_offset)

    def handle_lost(self) -> None:
        """A snapshot that others may ask for turned out to be damaged: a newer one is due at once."""
        self._is_last_lost = True

    def reason_to_begin(self, now_ms: int, provenance: Provenance) -> str | None:
        """Why a snapshot of the image that stands there should be begun now; None if it should not.

        An image never holds part of a transaction. One that ends inside a batch, before a transaction that begins
        there, is passed over: a snapshot's end must be a place where a log can begin.
        """
        if self._is_writing or now_ms < self._not_before_ms:
            return None
        if not provenance.is_batch_aligned or provenance.last_contained_offset < self._newest_end_offset:
            return None
        return self._reason(now_ms)

    def _reason(self, now_ms: int) -> str | None:
        if self._is_last_lost:
            return LAST_ONE_LOST
        if self._bytes >= self._triggers.max_bytes:
            return MAX_BYTES_EXCEEDED
        interval_ms = self._triggers.max_interval_ms
        if self._bytes and interval_ms and now_ms - self._since_ms >= interval_ms:
            return MAX_TIME_EXCEEDED
        return None

    def begun(self, now_ms: int) -> None:
        assert not self._is_writing, "one snapshot at a time"
        self._is_writing = True
        self._bytes_before_attempt, self._since_ms_before_attempt = self._bytes, self._since_ms
        self._bytes, self._since_ms = 0, now_ms
        self._was_last_lost, self._is_last_lost = self._is_last_lost, False

    def succeeded(self, end_offset: int) -> None:
        self._is_writing = False
        self._failures = 0
        self._newest_end_offset = max(self._newest_end_offset, end_offset)

    def failed(self, now_ms: int) -> int:
        """Answers in how many milliseconds it may be tried again."""
        self._is_writing = False
        self._bytes += self._bytes_before_attempt
        self._since_ms = min(self._since_ms, self._since_ms_before_attempt)
        self._is_last_lost = self._is_last_lost or self._was_last_lost
        delay_ms = min(FIRST_RETRY_MS << min(self._failures, 16), LONGEST_RETRY_MS)
        self._failures += 1
        self._not_before_ms = now_ms + delay_ms
        return delay_ms
