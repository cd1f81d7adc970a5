"""Why each epoch of a quorum began, from what its replicas noted and what the log says of its leaders.

Every replica notes each role that it takes and why; the log holds a LeaderChange for each leader. Neither alone tells a
whole election: who stood and lost is in no log, and a replica that was down noted nothing. The clocks of several
machines are compared here, so that durations are as good as these agree.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kquorum.raft import roles
from kquorum.wire.control_records import LeaderChangeMessage, decode_control_record_lenient
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.record_batch import read_batch_header


class Cause(StrEnum):
    """Why an epoch began."""

    FIRST_START = "first start"
    FETCH_TIMEOUT = "fetch timeout"
    SHUTDOWN = "shutdown"
    TRANSFER = "transfer"
    CHECK_QUORUM = "check-quorum"
    REMOVED_VOTER = "removed voter"
    FULL_DISK = "full disk"
    RESTART = "restart"
    RESIGNATION = "resignation"
    NO_WINNER = "no winner before"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleEvent:
    """A replica took a role (`raft.ready.RoleChanged`, with who and when)."""

    node_id: int
    timestamp_ms: int
    role: str
    epoch: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChangeAt:
    """The LeaderChange record at `offset`; `previous_ms` is the timestamp of the record before it, the last sign of
    life of the leader before, and None where the log begins here."""

    offset: int
    epoch: int
    leader_id: int
    timestamp_ms: int
    voters: tuple[int, ...] = ()
    granting_voters: tuple[int, ...] = ()
    previous_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """One epoch. `stood` are the candidates, `winner` is None where no candidate was elected (or no replica noted it),
    and `leaderless_ms` is how long there was no leader before, None where that is not known."""

    epoch: int
    cause: Cause
    detail: str
    began_ms: int
    stood: tuple[int, ...]
    voted_for_winner: tuple[int, ...]
    winner: int | None
    won_ms: int | None
    offset: int | None
    leaderless_ms: int | None


# How the words of the core begin (`raft.roles`), and which cause they are.
_RESIGNATIONS: Sequence[tuple[str, Cause]] = (
    (roles.TRANSFER.partition("%")[0], Cause.TRANSFER),
    (roles.REMOVED, Cause.REMOVED_VOTER),
    (roles.SHUTDOWN, Cause.SHUTDOWN),
    (roles.CHECK_QUORUM, Cause.CHECK_QUORUM),
    (roles.NO_SPACE, Cause.FULL_DISK),
    (roles.RESTARTED_LEADER, Cause.RESTART),
)
_CANDIDACIES: Sequence[tuple[str, Cause]] = (
    (roles.FETCH_TIMEOUT, Cause.FETCH_TIMEOUT),
    (roles.LEADER_LEFT, Cause.RESIGNATION),
)
# A replica that starts says so in the first role that it takes.
_STARTS = (roles.STARTED, roles.RESTARTED_LEADER)


def merge(events: Iterable[RoleEvent], leader_changes: Iterable[LeaderChangeAt]) -> tuple[Election, ...]:
    """The elections, ascending by epoch. What several replicas say of the same thing may be given several times."""
    return _Merger(events, leader_changes).elections()


class _Merger:
    def __init__(self, events: Iterable[RoleEvent], leader_changes: Iterable[LeaderChangeAt]) -> None:
        ordered = sorted(set(events), key=lambda event: (event.timestamp_ms, event.epoch))
        self._by_epoch: dict[int, list[RoleEvent]] = defaultdict(list)
        self._by_node: dict[int, list[RoleEvent]] = defaultdict(list)
        for event in ordered:
            self._by_epoch[event.epoch].append(event)
            self._by_node[event.node_id].append(event)
        self._records = _one_for_each_epoch(leader_changes)
        self._winners = self._find_winners()

    def elections(self) -> tuple[Election, ...]:
        epochs = {epoch for epoch, events in self._by_epoch.items() if _is_election(events)}
        return tuple(self._election(epoch) for epoch in sorted(epochs | self._records.keys()))

    def _find_winners(self) -> Mapping[int, int]:
        noted = {
            event.epoch: event.node_id
            for events in self._by_epoch.values()
            for event in events
            if event.role == "leader"
        }
        return noted | {epoch: record.leader_id for epoch, record in self._records.items()}

    def _election(self, epoch: int) -> Election:
        events, record = self._by_epoch[epoch], self._records.get(epoch)
        won_ms = self._won_ms(epoch)
        resignation = self._resignation_before(epoch)
        cause, detail = self._cause(epoch, resignation)
        candidates = [event for event in events if event.role == "candidate"]
        # A candidate notes its candidacy once its vote is on disk; the log may say so a little earlier.
        beginnings = [event.timestamp_ms for event in candidates or events]
        return Election(
            epoch=epoch,
            cause=cause,
            detail=detail,
            began_ms=min(moment for moment in (*beginnings[:1], won_ms) if moment is not None),
            stood=tuple(dict.fromkeys(event.node_id for event in candidates)),
            voted_for_winner=() if record is None else tuple(sorted(record.granting_voters)),
            winner=self._winners.get(epoch),
            won_ms=won_ms,
            offset=None if record is None else record.offset,
            leaderless_ms=self._leaderless_ms(epoch, won_ms, resignation),
        )

    def _won_ms(self, epoch: int) -> int | None:
        record = self._records.get(epoch)
        if record is not None:
            return record.timestamp_ms
        led = [event.timestamp_ms for event in self._by_epoch[epoch] if event.role == "leader"]
        return led[0] if led else None

    # Why

    def _cause(self, epoch: int, resignation: RoleEvent | None) -> tuple[Cause, str]:
        """A leader that gave up explains the next epoch, unless a replica had given up on that leader before."""
        nomination = self._nomination(epoch)
        if resignation is not None and _is_before(resignation, nomination):
            cause = _classified(resignation.cause, _RESIGNATIONS, Cause.RESIGNATION)
            return cause, f"node {resignation.node_id}: {resignation.cause}"
        if self._previous_winner_epoch(epoch) is None and self._is_the_beginning(epoch):
            return Cause.FIRST_START, "" if nomination is None else _told(nomination)
        if nomination is None:
            return Cause.UNKNOWN, "no replica noted why"
        return self._cause_of_nomination(epoch, nomination)

    def _cause_of_nomination(self, epoch: int, nomination: RoleEvent) -> tuple[Cause, str]:
        cause = _classified(nomination.cause, _CANDIDACIES, Cause.UNKNOWN)
        previous = epoch - 1
        if (
            self._by_epoch.get(previous)
            and previous not in self._winners
            and _stood(self._by_epoch[previous])
        ):
            return Cause.NO_WINNER, f"no candidate won epoch {previous}; {_told(nomination)}"
        if cause is Cause.UNKNOWN and self._has_just_started(nomination):
            return Cause.RESTART, _told(nomination)
        if cause is Cause.RESIGNATION and self._leader_has_restarted(epoch):
            return Cause.RESTART, _told(nomination)
        return cause, _told(nomination)

    def _nomination(self, epoch: int) -> RoleEvent | None:
        """Why the first candidate of the epoch stood: the step before, which began its candidacy, if it was noted."""
        candidates = [event for event in self._by_epoch[epoch] if event.role == "candidate"]
        if not candidates:
            return None
        first = candidates[0]
        own = self._by_node[first.node_id]
        for event in reversed(own[: own.index(first)]):
            if event.role == "prospective":
                return event
            if event.role != "candidate":
                break
        return first

    def _has_just_started(self, nomination: RoleEvent) -> bool:
        own = self._by_node[nomination.node_id]
        before = own[: own.index(nomination)]
        return not before or before[-1].cause in _STARTS

    def _leader_has_restarted(self, epoch: int) -> bool:
        """Whether the leader before was killed: one that starts again says that it leads no more, as one does that
        leaves in good order."""
        previous = self._previous_winner_epoch(epoch)
        if previous is None:
            return False
        own = self._by_node[self._winners[previous]]
        led_ms = max((event.timestamp_ms for event in own if event.role == "leader"), default=0)
        return any(
            event.cause in _STARTS and previous <= event.epoch <= epoch and event.timestamp_ms >= led_ms
            for event in own
        )

    def _is_the_beginning(self, epoch: int) -> bool:
        record = self._records.get(epoch)
        return record is None or record.offset == 0

    # Since when

    def _previous_winner_epoch(self, epoch: int) -> int | None:
        return max((other for other in self._winners if other < epoch), default=None)

    def _resignation_before(self, epoch: int) -> RoleEvent | None:
        """How the leader before gave its epoch up, if it is the epoch before this one that it led."""
        previous = self._previous_winner_epoch(epoch)
        if previous is None or any(
            previous < other < epoch and _stood(events) for other, events in self._all()
        ):
            return None
        leader_id = self._winners[previous]
        for event in self._by_epoch[previous]:
            if event.role == "resigned" and event.node_id == leader_id:
                return event
        return None

    def _all(self) -> Iterable[tuple[int, list[RoleEvent]]]:
        return tuple(self._by_epoch.items())

    def _leaderless_ms(self, epoch: int, won_ms: int | None, resignation: RoleEvent | None) -> int | None:
        """From the resignation or the last record of the leader before, also where epochs without a winner came
        between."""
        if won_ms is None or self._previous_winner_epoch(epoch) is None:
            return None
        record = self._records.get(epoch)
        signs = [None if record is None else record.previous_ms]
        signs.append(None if resignation is None else resignation.timestamp_ms)
        known = [sign for sign in signs if sign is not None and sign <= won_ms]
        return won_ms - max(known) if known else None


def _one_for_each_epoch(leader_changes: Iterable[LeaderChangeAt]) -> dict[int, LeaderChangeAt]:
    """Replicas hold the same records; the one that knows what came before says more."""
    found: dict[int, LeaderChangeAt] = {}
    for record in leader_changes:
        known = found.get(record.epoch)
        if known is None or (known.previous_ms is None and record.previous_ms is not None):
            found[record.epoch] = record
    return found


def _is_election(events: Sequence[RoleEvent]) -> bool:
    return any(event.role in ("candidate", "leader") for event in events)


def _stood(events: Sequence[RoleEvent]) -> bool:
    return any(event.role == "candidate" for event in events)


def _is_before(resignation: RoleEvent, nomination: RoleEvent | None) -> bool:
    """Whether the leader gave up first; a nomination for its leaving follows from it whatever the clocks say."""
    if nomination is None or nomination.cause == roles.LEADER_LEFT:
        return True
    return resignation.timestamp_ms <= nomination.timestamp_ms


def _classified(text: str, table: Sequence[tuple[str, Cause]], default: Cause) -> Cause:
    return next((cause for words, cause in table if text.startswith(words)), default)


def _told(event: RoleEvent) -> str:
    return f"node {event.node_id}: {event.cause}"


def leader_change_at(batch: LogBatch, previous_ms: int | None) -> LeaderChangeAt | None:
    """The LeaderChange in a batch, which is the first of its epoch; None where there is none (or none that can be
    read)."""
    if not batch.is_control:
        return None
    for record in batch.records:
        found = decode_control_record_lenient(record.key, record.value).record
        if isinstance(found, LeaderChangeMessage):
            return LeaderChangeAt(
                offset=record.offset,
                epoch=batch.leader_epoch,
                leader_id=found.leader_id,
                timestamp_ms=read_batch_header(batch.data).max_timestamp_ms,
                voters=tuple(voter.voter_id for voter in found.voters),
                granting_voters=tuple(voter.voter_id for voter in found.granting_voters),
                previous_ms=previous_ms,
            )
    return None
