"""The lease rules: one controller writes at a time, and one leader for each epoch of a partition.

`write-at` goes to a controller itself, whichever it takes itself for, and its reply says `controller`, `epoch` and
`offset`. Replies are acknowledgements: what a majority has. So

- an epoch has one controller: else there are **two-leaders**;
- a controller acknowledges nothing that was asked of it after a later epoch had acknowledged something: else a
  **deposed-leader-acked**;
- a write that was asked after another had been acknowledged is behind it in the log, and so is all of a later
  epoch behind all of an earlier one: else the **offset-went-back**.

`leadership` is what one broker shows: `{"broker", "partitions": {partition: [leader, leader epoch]}}`. A broker's
leader epochs never go back (**epoch-went-back**), and one leader epoch of a partition has one leader wherever it
is shown (**two-leaders-of-epoch**). What was ever shown is there in a broker's final look, or it has **vanished**.
Partitions that are deleted and made again need the topic's id in their names.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, Operation

WRITE_AT, LEADERSHIP = "write-at", "leadership"
_SHOWN_MAX = 50


@dataclass(frozen=True, slots=True)
class Written:
    """An acknowledged write; the indexes are the lines of the history between which it happened."""

    controller: Any
    epoch: int
    offset: int
    invoked: int
    ended: int


@dataclass(frozen=True, slots=True)
class Shown:
    """What a broker showed of one partition."""

    broker: Any
    partition: str
    leader: Any
    leader_epoch: int
    invoked: int
    ended: int


class LeaderLease:
    """See the head of the module. In doubt without an acknowledged write, or a partition that was shown."""

    def __init__(
        self, write: str | None = WRITE_AT, leadership: str | None = LEADERSHIP, name: str = "lease"
    ) -> None:
        self.name = name
        self._write = write
        self._leadership = leadership

    def check(self, history: History) -> Results:
        ok = [each for each in history.operations() if each.is_ok]
        writes = [_written(each) for each in ok if each.invoke.f == self._write]
        leaderships = [each for each in ok if each.invoke.f == self._leadership]
        shown = [row for each in leaderships for row in _shown(each)]
        found = {
            "two-leaders": list(two_leaders((each.epoch, each.controller, each.ended) for each in writes)),
            "deposed-leader-acked": list(_deposed(writes)),
            "offset-went-back": [*_behind(writes), *_at_one_offset(writes), *_epochs_mixed(writes)],
            "epoch-went-back": list(_epoch_went_back(shown)),
            "two-leaders-of-epoch": list(_two_leaders_of_epoch(shown)),
            "vanished": list(_vanished(leaderships, {each.partition for each in shown})),
        }
        untested = [
            f for f, seen in ((self._write, writes), (self._leadership, shown)) if f is not None and not seen
        ]
        doubt = Verdict.UNKNOWN if untested or not (writes or shown) else Verdict.VALID
        return {
            VALID_KEY: Verdict.INVALID if any(found.values()) else doubt,
            "writes": len(writes),
            "epochs": len({each.epoch for each in writes}),
            "controllers": sorted({str(each.controller) for each in writes}),
            "leaderships": len(leaderships),
            "partitions": len({each.partition for each in shown}),
            "untested": untested,
            **{f"{anomaly}_count": len(rows) for anomaly, rows in found.items()},
            **{anomaly: rows[:_SHOWN_MAX] for anomaly, rows in found.items()},
        }


def _written(operation: Operation) -> Written:
    assert operation.end is not None
    value = operation.end.value
    return Written(
        controller=value["controller"],
        epoch=int(value["epoch"]),
        offset=int(value["offset"]),
        invoked=operation.invoke.index,
        ended=operation.end.index,
    )


def _shown(operation: Operation) -> Iterator[Shown]:
    assert operation.end is not None
    value = operation.end.value
    for partition, (leader, leader_epoch) in value["partitions"].items():
        yield Shown(
            value["broker"],
            partition,
            leader,
            int(leader_epoch),
            operation.invoke.index,
            operation.end.index,
        )


def two_leaders(acts: Iterable[tuple[int, Any, int]]) -> Iterator[Results]:
    """Of (epoch, controller, line of the history): epochs in which two controllers acted as the leader."""
    first: dict[int, tuple[Any, int]] = {}
    for epoch, controller, index in acts:
        other, other_index = first.setdefault(epoch, (controller, index))
        if other != controller:
            yield {"epoch": epoch, "controllers": [other, controller], "indexes": [other_index, index]}


def _with_known(writes: Sequence[Written], rank: str) -> Iterator[tuple[Written, Written]]:
    """Each write with the one of highest rank (epoch, offset) that had been acknowledged when it was invoked."""
    events = sorted(
        [(write.invoked, write) for write in writes] + [(write.ended, write) for write in writes],
        key=lambda event: event[0],
    )
    known: Written | None = None
    for index, write in events:
        if index == write.invoked:
            if known is not None:
                yield write, known
        elif known is None or getattr(write, rank) > getattr(known, rank):
            known = write


def _deposed(writes: Sequence[Written]) -> Iterator[Results]:
    for write, known in _with_known(writes, "epoch"):
        if known.epoch > write.epoch:
            yield {
                "controller": write.controller,
                "epoch": write.epoch,
                "invoked": write.invoked,
                "index": write.ended,
                "by_then": {"controller": known.controller, "epoch": known.epoch, "index": known.ended},
            }


def _behind(writes: Sequence[Written]) -> Iterator[Results]:
    for write, known in _with_known(writes, "offset"):
        if write.offset <= known.offset:
            yield {
                "offset": write.offset,
                "index": write.ended,
                "invoked": write.invoked,
                "by_then": {"offset": known.offset, "index": known.ended},
                "why": "another write had been acknowledged at this offset or a later one",
            }


def _at_one_offset(writes: Sequence[Written]) -> Iterator[Results]:
    """Also for concurrent writes: each may come first."""
    first: dict[int, Written] = {}
    for write in writes:
        other = first.setdefault(write.offset, write)
        if other is not write:
            yield {
                "offset": write.offset,
                "indexes": [other.ended, write.ended],
                "why": "two writes at one offset",
            }


def _epochs_mixed(writes: Sequence[Written]) -> Iterator[Results]:
    last: dict[int, Written] = {}
    first: dict[int, Written] = {}
    for write in writes:
        last[write.epoch] = max(last.get(write.epoch, write), write, key=lambda each: each.offset)
        first[write.epoch] = min(first.get(write.epoch, write), write, key=lambda each: each.offset)
    highest: Written | None = None
    for epoch in sorted(first):
        if highest is not None and first[epoch].offset <= highest.offset:
            yield {
                "offset": first[epoch].offset,
                "epoch": epoch,
                "index": first[epoch].ended,
                "by_then": {"offset": highest.offset, "epoch": highest.epoch, "index": highest.ended},
                "why": "an earlier epoch has a write at this offset or a later one",
            }
        highest = max(highest or last[epoch], last[epoch], key=lambda each: each.offset)


def _epoch_went_back(shown: Sequence[Shown]) -> Iterator[Results]:
    """Of reads that overlap, only a chain is judged in which each was invoked after the one before had ended."""
    chains: dict[tuple[Any, str], list[Shown]] = {}
    for each in sorted(shown, key=lambda row: row.ended):
        chain = chains.setdefault((each.broker, each.partition), [])
        if not chain or chain[-1].ended < each.invoked:
            chain.append(each)
    for (broker, partition), chain in chains.items():
        for before, after in pairwise(chain):
            if after.leader_epoch < before.leader_epoch:
                yield {
                    "broker": broker,
                    "partition": partition,
                    "leader_epochs": [before.leader_epoch, after.leader_epoch],
                    "indexes": [before.ended, after.ended],
                }


def _vanished(leaderships: Iterable[Operation], partitions: Collection[str]) -> Iterator[Results]:
    for each in leaderships:
        if each.invoke.final and (missing := sorted(set(partitions) - each.value["partitions"].keys())):
            assert each.end is not None
            yield {"broker": each.value["broker"], "partitions": missing, "index": each.end.index}


def _two_leaders_of_epoch(shown: Sequence[Shown]) -> Iterator[Results]:
    first: dict[tuple[str, int], Shown] = {}
    for each in shown:
        other = first.setdefault((each.partition, each.leader_epoch), each)
        if other.leader != each.leader:
            yield {
                "partition": each.partition,
                "leader_epoch": each.leader_epoch,
                "leaders": [other.leader, each.leader],
                "brokers": [other.broker, each.broker],
                "indexes": [other.ended, each.ended],
            }
