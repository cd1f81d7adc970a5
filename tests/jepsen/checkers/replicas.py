"""Compares the metadata logs that the nodes left, without Spark: cheap enough for every run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from tests.jepsen.checkers.lease import WRITE_AT
from tests.jepsen.checkers.log_order import OBSERVE
from tests.jepsen.checkers.node_batches import Batch, NodeLog, node_logs
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, OpType
from tests.jepsen.core.members import Members

HIGH_WATERMARK = "high_watermark"
_SHOWN_MAX = 20
_ANY_EPOCH = -1


class Committed(NamedTuple):
    """All below an offset was committed, and the record before that offset in the epoch, if that is known."""

    below: int
    epoch: int
    known_by: str


class Replicas:
    """The rules, of Raft's paper (section 5.3) and its kin:

    - At one offset there is one record of an epoch: else two logs **conflict**. Where two logs differ, they differ
      from there to the end of one of them: else they have **rejoined**.
    - The shorter branch of a fork is of an older epoch, a log end that was not truncated yet: valid, and counted as
      **behind**. But not below a snapshot of that node, nor of both: what a snapshot holds was committed (**forked
    committed**). - What was committed, as a snapshot shows or a client was told (by `high_watermark` in the value of
      an operation, by a record that an observer was shown, by the place of a write), a majority of the last voters
      holds, and in its epoch where that was told: else it is **lost**.
    - A log has no hole and no broken batch, but for a torn end: else it is **damaged**. Where disks were hurt on
      purpose (`disks_were_hurt`) that leaves the rest of the rules, and is reported.
    """

    name = "replicas"

    def __init__(self, folder: Path, members: Members, *, disks_were_hurt: bool = False) -> None:
        self._folder = folder
        self._members = members
        self._disks_were_hurt = disks_were_hurt

    def check(self, history: History) -> Results:
        logs = node_logs(self._folder, self._members.all)
        pairs = [
            difference for one, other in combinations(logs, 2) if (difference := _difference(one, other))
        ]
        damaged = [f"node {log.node}: {what}" for log in logs for what in log.damaged]
        violations: dict[str, list[Results]] = {
            "conflicts": [each for each in pairs if each["kind"] == "conflict"],
            "rejoined": [each for each in pairs if each["kind"] == "rejoined"],
            "forked_committed": [each for each in pairs if each["kind"] == "committed"],
            "lost": list(self._lost(logs, history)),
        }
        is_violated = any(violations.values()) or (bool(damaged) and not self._disks_were_hurt)
        is_compared = len(logs) > 1 and all(log.batches or log.start for log in logs)
        return {
            VALID_KEY: _verdict(is_violated, is_compared),
            "batches": max((len(log.batches) for log in logs), default=0),
            "ends": {str(log.node): log.end for log in logs},
            "agreed_below": min([*(each["offset"] for each in pairs), *(log.end for log in logs)], default=0),
            "behind": [each for each in pairs if each["kind"] == "behind"][:_SHOWN_MAX],
            **{f"{name}_count": len(found) for name, found in violations.items()},
            **{name: found[:_SHOWN_MAX] for name, found in violations.items()},
            "damaged_count": len(damaged),
            "damaged": damaged[:_SHOWN_MAX],
            "torn": [f"node {log.node}: {log.torn}" for log in logs if log.torn is not None],
        }

    def _lost(self, logs: Sequence[NodeLog], history: History) -> Iterator[Results]:
        committed = max([*_snapshots(logs), *_told(history)], default=Committed(0, _ANY_EPOCH, ""))
        voters = last_voters(logs, self._members)
        theirs = [log for log in logs if log.node in voters]
        holders = [log.node for log in theirs if _holds(log, committed)]
        if len(holders) <= len(voters) // 2:
            yield {
                "committed_below": committed.below,
                "epoch": committed.epoch,
                "known_by": committed.known_by,
                "ends": {str(log.node): log.end for log in theirs},
            }


def _holds(log: NodeLog, committed: Committed) -> bool:
    """What stands in a hole, or in a snapshot, may be the right thing."""
    if log.end < committed.below or committed.epoch == _ANY_EPOCH:
        return log.end >= committed.below
    return _epoch_at(log, committed.below - 1) in (committed.epoch, _ANY_EPOCH)


def _verdict(is_violated: bool, is_compared: bool) -> Verdict:
    if is_violated:
        return Verdict.INVALID
    return Verdict.VALID if is_compared else Verdict.UNKNOWN


def last_voters(logs: Iterable[NodeLog], members: Members) -> frozenset[int]:
    """By the newest record of them; the controllers where there is none, as in a static quorum."""
    newest = max(
        ((offset, voters) for log in logs for offset, voters in log.voters),
        key=lambda each: each[0],
        default=None,
    )
    return frozenset(members.controllers if newest is None else newest[1].ids)


def _snapshots(logs: Iterable[NodeLog]) -> Iterator[Committed]:
    for log in logs:
        yield from (Committed(end, _ANY_EPOCH, f"a snapshot of node {log.node}") for end in log.snapshots)


def _told(history: History) -> Iterator[Committed]:
    for op in history:
        if op.type is not OpType.OK or not isinstance(op.value, Mapping):
            continue
        told_by = f"operation {op.index} of the history"
        if isinstance(mark := op.value.get(HIGH_WATERMARK), int):
            yield Committed(mark, _ANY_EPOCH, told_by)
        if op.f == WRITE_AT:
            yield Committed(op.value["offset"] + 1, op.value["epoch"], told_by)
        if op.f == OBSERVE and op.value["records"]:
            offset, epoch, *_ = op.value["records"][-1]
            yield Committed(offset + 1, epoch, told_by)


def _difference(one: NodeLog, other: NodeLog) -> Results | None:
    """How two logs differ where both have records; None where they do not."""
    first = max(one.start, other.start)
    ours, theirs = _by_offset(one, first), _by_offset(other, first)
    last = min(one.end, other.end)
    # What is damaged in one of them is a hole, and no other record.
    shared = [offset for offset in ours.keys() & theirs.keys() if offset < last]
    unequal = sorted(offset for offset in shared if ours[offset] != theirs[offset])
    odd = sorted(_odd(ours, theirs, last) if one.is_whole and other.is_whole else ())
    differing = sorted({*unequal, *odd})
    if not differing:
        return None
    offset = differing[0]
    kind, why = _kind(one, other, offset, [each for each in shared if ours[each] == theirs[each]])
    return {"nodes": [one.node, other.node], "offset": offset, "kind": kind, "why": why}


def _by_offset(log: NodeLog, first: int) -> dict[int, Batch]:
    return {batch.base_offset: batch for batch in log.batches if batch.base_offset >= first}


def _odd(ours: Mapping[int, Batch], theirs: Mapping[int, Batch], last: int) -> Iterator[int]:
    """Where a batch begins in one log alone: the other has other records there."""
    return (offset for offset in ours.keys() ^ theirs.keys() if offset < last)


def _kind(one: NodeLog, other: NodeLog, offset: int, equal: Sequence[int]) -> tuple[str, str]:
    epochs = [_epoch_at(log, offset) for log in (one, other)]
    if epochs[0] == epochs[1]:
        return "conflict", f"two batches of epoch {epochs[0]}"
    if again := [each for each in equal if each > offset]:
        return "rejoined", f"from offset {min(again)} on they hold the same again"
    older = one if epochs[0] < epochs[1] else other
    sealed = max(older.snapshots, default=0)
    if sealed > offset:
        return (
            "committed",
            f"node {older.node}, of the older epoch, has a snapshot of all below offset {sealed}",
        )
    return (
        "behind",
        f"node {older.node} ends with records of epoch {min(epochs)} that no leader after it knew",
    )


def _epoch_at(log: NodeLog, offset: int) -> int:
    covering = (each.epoch for each in log.batches if each.base_offset <= offset < each.next_offset)
    return next(covering, _ANY_EPOCH)
