"""AlterPartition: a partition's leader reports its ISR (rule C11; KIP-497, KIP-841, KIP-903).

When a broker comes back, the leaders ask for it to be added to as many ISRs as it has replicas. Nearly all of these
changes only let the ISR grow: no replica leaves it, the leader may stay, and neither a reassignment nor eligible leader
replicas depend on it. Many of these in one request are checked, written and replayed by columns (`isr_growth`). All
others, refusals included, are decided one by one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions.change_batch import PartitionChangeBatch
from kquorum.metadata.controller.partitions.partition_change import Election, change_of
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.metadata.image.directories import LOST, MIGRATING, UNASSIGNED
from kquorum.metadata.image.metadata_version import partition_record_version
from kquorum.metadata.image.partition_changes import (
    LONGEST_ISR,
    PartitionChanges,
    Rows,
    StackedTables,
    change_values,
)
from kquorum.metadata.image.partition_state import (
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionState,
    partition_after_change,
)
from kquorum.metadata.image.partitions import PADDING, Column, lists_differ
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
    ResponseTopicData,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.topics import PartitionChangeRecord

# Fewer partitions are quicker decided one by one.
WORTH_COLUMNS: Final = 16

# A wanted ISR: broker ids with the epochs that their leader knows them by.
Members = list[tuple[int, int]]
# The place of an asked partition: of its topic in the request, and of itself in that topic.
Place = tuple[int, int]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """`grown` has the partition epoch after the change for each place that was decided here; `run` their records. A
    partition whose ISR is as it was wanted already has no record."""

    grown: dict[Place, tuple[tuple[int, ...], int]]
    run: PartitionChangeBatch


def isr_growth(
    context: DecisionContext,
    broker_id: int,
    asked: Sequence[tuple[TopicImage | None, Sequence[RequestPartitionData]]],
    members_of: Callable[[RequestPartitionData], Members],
    is_eligible: Callable[[tuple[int, int]], bool],
) -> Growth | None:
    """The partitions whose ISR only grows, of those in the request, topic by topic; none may be named twice.

    `broker_id` sent the request. None where columns would not pay, or where the broker may lead nothing at present.
    """
    count = sum(len(partitions) for topic, partitions in asked if topic is not None)
    leader = context.image.cluster.brokers.get(broker_id)
    if count < WORTH_COLUMNS or count > context.config.max_records_per_batch or leader is None:
        return None
    if not leader.is_active or context.liveness.is_being_removed(broker_id):
        return None
    wanted_isrs = _WantedIsrs(asked, members_of, is_eligible)
    stack = StackedTables([topic.partitions for topic in wanted_isrs.topics], wanted_isrs.rows)
    grows = wanted_isrs.is_lawful & _is_as_known(stack, wanted_isrs, broker_id)
    grows &= ~stack.is_rare(np.arange(len(stack))) & _may_lead(stack, leader)
    grows &= _holds(wanted_isrs.isr, stack.isr.T) & _holds(stack.replicas.T, wanted_isrs.isr)
    grows &= (wanted_isrs.isr == broker_id).any(axis=1)
    is_change = grows & lists_differ(wanted_isrs.isr, stack.isr.T)
    epochs = (stack.partition_epochs + is_change).tolist()
    grown = {
        wanted_isrs.places[row]: (wanted_isrs.lists[row], epochs[row])
        for row in np.flatnonzero(grows).tolist()
    }
    rows = np.flatnonzero(is_change)
    changes = PartitionChanges(
        topic_ids=np.array([topic.id.bytes for topic in wanted_isrs.topics], dtype="V16")[
            stack.numbers[rows]
        ],
        partition_ids=stack.ids[rows],
        leaders=np.full(len(rows), NO_LEADER_CHANGE, dtype=np.int32),
        isr_counts=wanted_isrs.counts[rows],
        isr=wanted_isrs.isr[rows],
    )
    values = change_values(changes, partition_record_version(context.metadata_version))
    return Growth(grown=grown, run=PartitionChangeBatch(values=values, changes=changes, others=()))


class _WantedIsrs:
    """The asked partitions that exist, a row each, topic by topic.

    Shapes, for n of them: `leader_epochs`, `partition_epochs`, `recovery_states`, `counts`, `is_lawful` (n,), `isr`
    (n, longest). `rows` are their places in the tables of `topics`. `is_lawful`: all members of the wanted ISR are
    eligible, none is named twice, and there is a layout for so many.
    """

    def __init__(
        self,
        asked: Sequence[tuple[TopicImage | None, Sequence[RequestPartitionData]]],
        members_of: Callable[[RequestPartitionData], Members],
        is_eligible: Callable[[tuple[int, int]], bool],
    ) -> None:
        self.topics: list[TopicImage] = []
        self.rows: list[Rows] = []
        self.places: list[Place] = []
        wanted: list[RequestPartitionData] = []
        for number, (topic, partitions) in enumerate(asked):
            if topic is None or not partitions:
                continue
            known = topic.partitions.ids
            ids = np.array([each.partition_index for each in partitions], dtype=np.int32)
            rows = known.searchsorted(ids)
            is_there = rows < len(known)
            is_there[is_there] = known[rows[is_there]] == ids[is_there]
            self.topics.append(topic)
            self.rows.append(rows[is_there])
            if is_there.all():
                self.places += [(number, place) for place in range(len(partitions))]
                wanted += partitions
            else:
                places = np.flatnonzero(is_there).tolist()
                self.places += [(number, place) for place in places]
                wanted += [partitions[place] for place in places]
        self.leader_epochs = _numbers([each.leader_epoch for each in wanted])
        self.partition_epochs = _numbers([each.partition_epoch for each in wanted])
        self.recovery_states = _numbers([each.leader_recovery_state for each in wanted])
        self._judge(wanted, members_of, is_eligible)

    def _judge(
        self,
        wanted: Sequence[RequestPartitionData],
        members_of: Callable[[RequestPartitionData], Members],
        is_eligible: Callable[[tuple[int, int]], bool],
    ) -> None:
        """A request has few distinct ISRs: each is checked once."""
        kinds: dict[tuple[tuple[int, int], ...], int] = {}
        of_rows = [kinds.setdefault(tuple(members_of(each)), len(kinds)) for each in wanted]
        lists = [tuple([broker_id for broker_id, _ in kind]) for kind in kinds]
        lawful = [
            0 < len(kind) <= LONGEST_ISR and len(set(isr)) == len(kind) and all(map(is_eligible, kind))
            for kind, isr in zip(kinds, lists, strict=True)
        ]
        width = max((len(isr) for isr, is_lawful in zip(lists, lawful, strict=True) if is_lawful), default=0)
        cells = np.full((len(lists), width), PADDING, dtype=np.int32)
        for number, (isr, is_lawful) in enumerate(zip(lists, lawful, strict=True)):
            if is_lawful:
                cells[number, : len(isr)] = isr
        kind_of_rows = np.array(of_rows, dtype=np.intp)
        self.is_lawful: Mask = np.array(lawful, dtype=np.bool_)[kind_of_rows]
        self.counts = _numbers([len(isr) for isr in lists])[kind_of_rows]
        self.isr: Column = cells[kind_of_rows]
        self.lists = [lists[kind] for kind in of_rows]


def _numbers(values: Sequence[int]) -> Column:
    return np.array(values, dtype=np.int32)


def _is_as_known(stack: StackedTables, wanted_isrs: _WantedIsrs, broker_id: int) -> Mask:
    """Whether the broker leads the partition and knows its current epochs."""
    is_known: Mask = stack.leaders == broker_id
    is_known &= stack.leader_epochs == wanted_isrs.leader_epochs
    is_known &= stack.partition_epochs == wanted_isrs.partition_epochs
    # A leader that recovers must be alone in the ISR; one that reports its recovery changes more than the ISR.
    is_known &= (stack.recovery_states == RECOVERED) & (wanted_isrs.recovery_states == RECOVERED)
    return is_known


def _may_lead(stack: StackedTables, leader: BrokerRegistration) -> Mask:
    """Whether the leader's own replica is in an online directory; if the replica list names it twice, the first place
    counts, as with single partitions."""
    is_own = (stack.replicas == leader.id).T
    if not is_own.size:
        return np.zeros(len(stack), dtype=np.bool_)
    online = dict.fromkeys((*leader.log_dirs, MIGRATING, UNASSIGNED), 1) | {LOST: 0}
    is_online = stack.directory_owners(np.arange(len(stack)), online, 0 if leader.log_dirs else 1) == 1
    first = is_own.argmax(axis=1)[:, np.newaxis]
    found: Mask = np.take_along_axis(is_own & is_online, first, axis=1)[:, 0]
    return found


def _holds(lists: Column, members: Column) -> Mask:
    """Whether each list has all members of the other in its row, padding aside."""
    holds = np.ones(len(members), dtype=np.bool_)
    for place in range(members.shape[1]):
        one = members[:, place]
        holds &= (one == PADDING) | (lists == one[:, np.newaxis]).any(axis=1)
    return holds


NO_BROKER_EPOCH = -1


def alter_partition(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """ISRs that only grow are decided together by columns if there are many; all others one by one."""
    body: AlterPartitionRequest = request.body
    context.check_broker_epoch(body.broker_id, body.broker_epoch)
    records: list[PartitionChangeRecord] = []
    topics: list[ResponseTopicData] = []
    eligibility = _Eligibility(context)
    known = [context.image.topics.by_id.get(asked.topic_id) for asked in body.topics]
    growth = None
    if not _names_one_twice(body.topics):
        asked_of = [(topic, asked.partitions) for topic, asked in zip(known, body.topics, strict=True)]
        growth = isr_growth(context, body.broker_id, asked_of, _members, eligibility.of)
    grown = {} if growth is None else growth.grown
    seen: set[tuple[UUID, int]] = set()
    for number, (topic, asked) in enumerate(zip(known, body.topics, strict=True)):
        partitions: list[ResponsePartitionData] = []
        states = _states_of_others(topic, asked.partitions, number, grown)
        for place, wanted in enumerate(asked.partitions):
            after = grown.get((number, place))
            if after is not None:
                partitions.append(_grown(wanted, body.broker_id, *after))
                continue
            identity = (asked.topic_id, wanted.partition_index)
            # A second change would be checked against the state before the first, and undo half of it.
            partitions.append(
                _refused(wanted, ErrorCode.invalid_request)
                if identity in seen
                else _alter(context, eligibility, body.broker_id, topic, states, wanted, records)
            )
            seen.add(identity)
        topics.append(ResponseTopicData(topic_id=asked.topic_id, partitions=tuple(partitions)))
    return ControllerResult(
        records=(*records, *((growth.run,) if growth is not None and growth.run else ())),
        response=AlterPartitionResponse(topics=tuple(topics)),
        is_atomic=False,
    )


def _names_one_twice(topics: Sequence[RequestTopicData]) -> bool:
    if len({asked.topic_id for asked in topics}) < len(topics):
        return True
    return any(
        len({wanted.partition_index for wanted in asked.partitions}) < len(asked.partitions)
        for asked in topics
    )


def _states_of_others(
    topic: TopicImage | None,
    partitions: Sequence[RequestPartitionData],
    number: int,
    grown: Collection[tuple[int, int]],
) -> Mapping[int, PartitionState]:
    """Of the partitions of the topic with this number in the request, those that were not decided together."""
    if topic is None:
        return {}
    ids = [each.partition_index for place, each in enumerate(partitions) if (number, place) not in grown]
    return topic.partitions.found(ids) if ids else {}


class _Eligibility:
    """Which brokers may join an ISR, computed once for each broker and epoch: a request names the same few again and
    again. A broker whose session has expired counts as fenced: it is about to be fenced, and removing it from its
    partitions may take many turns."""

    def __init__(self, context: DecisionContext) -> None:
        self._context = context
        self._known: dict[tuple[int, int], bool] = {}

    def of(self, member: tuple[int, int]) -> bool:
        known = self._known.get(member)
        if known is None:
            known = self._known[member] = self._find(*member)
        return known

    def _find(self, broker_id: int, broker_epoch: int) -> bool:
        context = self._context
        broker = context.image.cluster.brokers.get(broker_id)
        if broker is None or not broker.is_active or context.liveness.is_being_removed(broker_id):
            return False
        if not context.liveness.has_valid_session(broker, context.now_ms):
            return False
        return broker_epoch in (NO_BROKER_EPOCH, broker.epoch)


def _alter(
    context: DecisionContext,
    eligibility: _Eligibility,
    broker_id: int,
    topic: TopicImage | None,
    states: Mapping[int, PartitionState],
    wanted: RequestPartitionData,
    records: list[PartitionChangeRecord],
) -> ResponsePartitionData:
    """Checks one partition, adds its record to `records`, and answers its entry of the response."""
    if topic is None:
        return _refused(wanted, ErrorCode.unknown_topic_id)
    state = states.get(wanted.partition_index)
    if state is None:
        return _refused(wanted, ErrorCode.unknown_topic_or_partition)
    members = _members(wanted)
    error = _epoch_error(broker_id, state, wanted) or _isr_error(eligibility, state, wanted, members)
    if error is not None:
        return _refused(wanted, error)
    record = _change(context, topic, state, wanted, members)
    if record is None:
        return _accepted(wanted, state)
    records.append(record)
    if record.leader not in (broker_id, NO_LEADER_CHANGE):
        # The change completed a reassignment which took the leader away: it must learn of that first.
        return _refused(wanted, ErrorCode.new_leader_elected)
    return _accepted(wanted, partition_after_change(state, record))


def _members(wanted: RequestPartitionData) -> Members:
    """Up to version 2 without epochs."""
    if wanted.new_isr:
        return [(member, NO_BROKER_EPOCH) for member in wanted.new_isr]
    return [(member.broker_id, member.broker_epoch) for member in wanted.new_isr_with_epochs]


def _epoch_error(broker_id: int, state: PartitionState, wanted: RequestPartitionData) -> ErrorCode | None:
    """A leader with a newer epoch than ours has heard from a newer controller."""
    if wanted.leader_epoch > state.leader_epoch or wanted.partition_epoch > state.partition_epoch:
        return ErrorCode.not_controller
    if wanted.leader_epoch < state.leader_epoch:
        return ErrorCode.fenced_leader_epoch
    if broker_id != state.leader:
        return ErrorCode.invalid_request
    if wanted.partition_epoch < state.partition_epoch:
        return ErrorCode.invalid_update_version
    return None


def _isr_error(
    eligibility: _Eligibility, state: PartitionState, wanted: RequestPartitionData, members: Members
) -> ErrorCode | None:
    isr = [broker_id for broker_id, _ in members]
    if len(set(isr)) != len(isr) or not set(isr) <= set(state.replicas) or state.leader not in isr:
        return ErrorCode.invalid_request
    recovery = wanted.leader_recovery_state
    if recovery not in (RECOVERED, RECOVERING) or (recovery == RECOVERING and len(isr) > 1):
        return ErrorCode.invalid_request
    if recovery == RECOVERING and state.leader_recovery_state == RECOVERED:
        return ErrorCode.invalid_request
    if not all(map(eligibility.of, members)):
        return ErrorCode.ineligible_replica
    return None


def _change(
    context: DecisionContext,
    topic: TopicImage,
    state: PartitionState,
    wanted: RequestPartitionData,
    members: Members,
) -> PartitionChangeRecord | None:
    is_unclean_allowed = context.allows_unclean_election(topic.name)
    return change_of(
        context,
        topic,
        wanted.partition_index,
        state,
        Election.UNCLEAN if is_unclean_allowed else Election.ONLINE,
        target_isr=tuple(broker_id for broker_id, _ in members),
        target_recovery_state=wanted.leader_recovery_state,
    ).record()


def _refused(wanted: RequestPartitionData, error: ErrorCode) -> ResponsePartitionData:
    return ResponsePartitionData(partition_index=wanted.partition_index, error_code=error)


def _grown(
    wanted: RequestPartitionData, leader_id: int, isr: tuple[int, ...], partition_epoch: int
) -> ResponsePartitionData:
    return ResponsePartitionData(
        partition_index=wanted.partition_index,
        leader_id=leader_id,
        leader_epoch=wanted.leader_epoch,
        isr=isr,
        leader_recovery_state=RECOVERED,
        partition_epoch=partition_epoch,
    )


def _accepted(wanted: RequestPartitionData, state: PartitionState) -> ResponsePartitionData:
    return ResponsePartitionData(
        partition_index=wanted.partition_index,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        leader_recovery_state=state.leader_recovery_state,
        partition_epoch=state.partition_epoch,
    )
