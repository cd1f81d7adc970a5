"""The hashes of states that a cluster recorded, against those of the replay of its log.

A node makes its state of whole batches, or up to the record before a transaction that is still open, so an offset that
a hash was recorded for may lie within a batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from metadata.log_check.findings import Check, Finding, Findings, Severity
from metadata.log_check.state_replay import StateReplay
from metadata.state_hash.image_hash import hash_of_image, state_hash_text
from wire.record_batch import Record

_REMEDY = (
    "one of the two has a damaged log, or another program: compare the folders of the nodes with "
    "`kquorum log verify` and `kquorum log state-hash`"
)


@dataclass(frozen=True, slots=True)
class RecordedHash:
    """`offset` is the last in the state; `text` are 32 hexadecimal digits, as `kquorum quorum status` shows them."""

    offset: int
    text: str


class HashComparison:
    """Each recorded hash is compared when the replay comes by its offset."""

    def __init__(self, findings: Findings, recorded: Sequence[RecordedHash]) -> None:
        self._findings = findings
        self._waiting = sorted(recorded, key=lambda each: each.offset)

    def pieces(self, records: Sequence[Record]) -> Sequence[Sequence[Record]]:
        """The records of a batch, cut behind every one that a hash was recorded for."""
        if not records or not self._waiting or self._waiting[0].offset > records[-1].offset:
            return (records,)
        cuts = {each.offset + 1 - records[0].offset for each in self._waiting}
        places = [0, *sorted(cut for cut in cuts if 0 < cut < len(records)), len(records)]
        return [records[start:end] for start, end in pairwise(places)]

    def reach(self, offset: int, replay: StateReplay | None, why_unknown: str) -> None:
        """The replay has come up to `offset`, or there is none, and why not."""
        while self._waiting and self._waiting[0].offset <= offset:
            recorded = self._waiting.pop(0)
            if replay is None:
                self._skip(recorded, why_unknown)
            elif recorded.offset < offset:
                self._skip(recorded, "the log does not hold this offset")
            elif replay.fault_count or replay.unknown_count:
                self._skip(recorded, "records before it could not be replayed")
            elif replay.transaction_start_offset is not None:
                self._skip(recorded, "it lies inside a transaction, where no node has a state")
            else:
                self._compare(recorded, replay)

    def finish(self, why: Callable[[], str]) -> None:
        """The log has ended."""
        for recorded in self._waiting:
            self._skip(recorded, why())
        self._waiting = []

    def _compare(self, recorded: RecordedHash, replay: StateReplay) -> None:
        self._findings.checked(Check.STATE_HASH)
        text = state_hash_text(hash_of_image(replay.image))
        if text == recorded.text:
            return
        reason = f"the replay has the hash {text}, but {recorded.text} was recorded"
        self._findings.add(
            Finding(
                check=Check.STATE_HASH,
                severity=Severity.VIOLATION,
                file="",
                reason=reason,
                remedy=_REMEDY,
                offset=recorded.offset,
            )
        )

    def _skip(self, recorded: RecordedHash, reason: str) -> None:
        self._findings.skip(Check.STATE_HASH, f"offset {recorded.offset}: {reason}")
