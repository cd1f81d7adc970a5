"""Which partitions change when a broker goes or comes, and their new leaders and ISRs, by columns.

The rules are those of `PartitionChange`, for ordinary partitions only: no reassignment, no eligible leader replicas now
or after, a new leader from the ISR. This module finds the unusual partitions too, but does not decide them:
`change_batch.py` does, one by one. A million partitions are searched in tens of milliseconds, because most of them
have no replica on the broker.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.image.configs import TOPIC, ConfigResource
from kquorum.metadata.image.directories import LOST, MIGRATING, UNASSIGNED
from kquorum.metadata.image.metadata_version import NO_LEADER_EPOCH_BUMP_ON_ISR_SHRINK
from kquorum.metadata.image.partition_changes import (
    LONGEST_ISR,
    NO_ISR_CHANGE,
    PartitionChanges,
    Rows,
    StackedTables,
    compacted,
)
from kquorum.metadata.image.partition_state import NO_LEADER, NO_LEADER_CHANGE
from kquorum.metadata.image.partitions import PADDING, Column
from kquorum.metadata.image.topics import TopicImage, TopicsImage

Mask = NDArray[np.bool_]

# Owner of a directory id, where that is not exactly one broker.
_ANY_BROKER: Final = -10
_NO_BROKER: Final = -11
_LOST: Final = -12
_SEVERAL: Final = -13


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """A broker that leaves its ISRs and leaderships (`is_leaving`), or one that may lead partitions without a leader.

    `is_for_good`: the broker also loses its place among the eligible leader replicas. `failed_directories`: the broker
    leaves only the partitions that it has there. `is_last_kept`: a partition without a leader, in whose ISR the broker
    is the last member, is not changed.
    """

    broker_id: int
    is_leaving: bool
    is_for_good: bool = False
    failed_directories: frozenset[UUID] = frozenset()
    is_last_kept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerColumns:
    """Which brokers may lead, and which broker owns each directory; the moving broker has the state that it is about to
    get."""

    acceptable: Column
    without_directories: Column
    owners: Mapping[UUID, int]

    @classmethod
    def of(cls, context: DecisionContext, movement: Movement) -> "BrokerColumns":
        acceptable, without_directories = [], []
        owners: dict[UUID, int] = {}
        for broker in context.image.cluster.brokers.values():
            is_moving = broker.id == movement.broker_id
            is_active = not movement.is_leaving if is_moving else broker.is_active
            if is_active and not context.liveness.is_being_removed(broker.id):
                acceptable.append(broker.id)
            if not broker.log_dirs:
                without_directories.append(broker.id)
            for directory_id in broker.log_dirs:
                owners[directory_id] = _SEVERAL if directory_id in owners else broker.id
        owners |= {MIGRATING: _ANY_BROKER, UNASSIGNED: _ANY_BROKER, LOST: _LOST}
        return cls(
            acceptable=np.array(acceptable, dtype=np.int32),
            without_directories=np.array(without_directories, dtype=np.int32),
            owners=owners,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkDecision:
    """`changes` are the changes of the rows `rows` of the stack. The rows in `others` are unusual: the caller decides
    them one by one. Both are ascending."""

    rows: Rows
    changes: PartitionChanges
    others: Rows

    def up_to(self, row: int) -> "BulkDecision":
        """Without the parts of later rows."""
        count = int(self.rows.searchsorted(row, side="right"))
        return BulkDecision(
            rows=self.rows[:count],
            changes=self.changes.take(np.arange(count)),
            others=self.others[self.others <= row],
        )


def affected_rows(stack: StackedTables, movement: Movement) -> Rows:
    """The rows of the partitions that this movement may change."""
    if not movement.is_leaving:
        return np.flatnonzero(stack.leaders == NO_LEADER)
    is_its_own = stack.isr == movement.broker_id
    is_member = is_its_own.any(axis=0)
    if movement.is_last_kept:
        is_last = (is_its_own | (stack.isr == PADDING)).all(axis=0)
        is_member &= ~is_last | (stack.leaders != NO_LEADER)
    rows = np.flatnonzero(is_member)
    if movement.failed_directories:
        return rows[_is_in_failed_directory(stack, rows, movement)]
    return np.union1d(rows, stack.in_elr(movement.broker_id)) if movement.is_for_good else rows


def _is_in_failed_directory(stack: StackedTables, rows: Rows, movement: Movement) -> Mask:
    """A replica list that names it twice counts for where it names it first, as with single partitions."""
    is_failed = stack.directory_owners(rows, dict.fromkeys(movement.failed_directories, 1), 0) == 1
    is_own = (stack.replicas[:, rows] == movement.broker_id).T
    if not is_own.size:
        return np.zeros(len(rows), dtype=np.bool_)
    first = is_own.argmax(axis=1)[:, np.newaxis]
    found: Mask = np.take_along_axis(is_own & is_failed, first, axis=1)[:, 0]
    return found


def decide(
    context: DecisionContext,
    topics: Sequence[TopicImage],
    stack: StackedTables,
    rows: Rows,
    movement: Movement,
) -> BulkDecision:
    """`stack` has a table for each of the topics, or a part of it."""
    choice = _Choice(BrokerColumns.of(context, movement), stack, rows, movement)
    leaders = stack.leaders[rows]
    elected = choice.elected(leaders)
    of_topic = stack.numbers[rows]
    is_unusual = choice.is_unusual(leaders)
    is_unusual |= _allows_unclean(context, topics)[of_topic] & (elected == NO_LEADER)
    # Below min.insync.replicas, replicas that leave the ISR become eligible leader replicas: decided one by one.
    is_too_small = choice.in_sync_counts < _enough(context, topics)[of_topic].clip(max=choice.replica_counts)
    if movement.is_for_good:
        # The broker itself does not become eligible, so only partitions without any replica in sync are unusual.
        is_too_small &= choice.in_sync_counts == 0
    is_unusual |= is_too_small
    shrinks = (choice.in_sync_counts < choice.isr_counts) & (choice.in_sync_counts > 0)
    # Naming the same leader again bumps its epoch.
    same = leaders if context.metadata_version < NO_LEADER_EPOCH_BUMP_ON_ISR_SHRINK else NO_LEADER_CHANGE
    named = np.where(elected != leaders, elected, np.where(shrinks, same, NO_LEADER_CHANGE))
    decided = np.flatnonzero(~is_unusual & (shrinks | (named != NO_LEADER_CHANGE)))
    chosen = rows[decided]
    isr = compacted(choice.isr[decided], choice.stays[decided])
    isr[~shrinks[decided]] = PADDING
    changes = PartitionChanges(
        topic_ids=np.array([topic.id.bytes for topic in topics], dtype="V16")[of_topic[decided]],
        partition_ids=stack.ids[chosen],
        leaders=named[decided].astype(np.int32),
        isr_counts=np.where(shrinks, choice.in_sync_counts, NO_ISR_CHANGE)[decided].astype(np.int32),
        isr=isr,
    )
    return BulkDecision(rows=chosen, changes=changes, others=rows[is_unusual])


class _Choice:
    """The partitions in question, a row each: (rows, longest replica list) and (rows, longest ISR)."""

    def __init__(self, brokers: BrokerColumns, stack: StackedTables, rows: Rows, movement: Movement) -> None:
        self.replicas = stack.replicas[:, rows].T
        self.isr = stack.isr[:, rows].T
        is_member = self.isr != PADDING
        self.stays = is_member & (self.isr != movement.broker_id) if movement.is_leaving else is_member
        self.isr_counts = is_member.sum(axis=1)
        self.in_sync_counts = self.stays.sum(axis=1)
        self.replica_counts = (self.replicas != PADDING).sum(axis=1)
        owners = stack.directory_owners(rows, brokers.owners, _NO_BROKER)
        is_online = (owners == _ANY_BROKER) | (owners == self.replicas)
        is_online |= np.isin(self.replicas, brokers.without_directories) & (owners != _LOST)
        in_sync = np.where(self.stays, self.isr, PADDING)
        self._may_lead = np.isin(self.replicas, brokers.acceptable) & is_online
        self._may_lead &= (self.replicas[:, :, np.newaxis] == in_sync[:, np.newaxis, :]).any(axis=2)
        self._is_unclear = (owners == _SEVERAL).any(axis=1) | stack.is_rare(rows)

    def elected(self, leaders: Column) -> Column:
        """The leader if it may stay, else the first replica that may lead, else NO_LEADER."""
        if not self.replicas.shape[1]:
            return np.full(len(self.replicas), NO_LEADER, dtype=np.int32)
        is_leader = (self.replicas == leaders[:, np.newaxis]) & self._may_lead
        first = np.take_along_axis(self.replicas, self._may_lead.argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
        chosen = np.where(self._may_lead.any(axis=1), first, NO_LEADER)
        elected: Column = np.where(is_leader.any(axis=1), leaders, chosen)
        return elected

    def is_unusual(self, leaders: Column) -> Mask:
        """Lists that no record of a controller makes, or no layout has room for, are unusual too."""
        unusual: Mask = self._is_unclear | (self.isr_counts == 0) | (self.isr_counts > LONGEST_ISR)
        unusual |= (leaders != NO_LEADER) & ~(self.replicas == leaders[:, np.newaxis]).any(axis=1)
        for column in range(1, self.replicas.shape[1]):
            one = self.replicas[:, column, np.newaxis]
            unusual |= ((one == self.replicas[:, :column]) & (one != PADDING)).any(axis=1)
        return unusual


T = TypeVar("T")
_NO_TOPIC: Final = ""


def _of_topics(
    context: DecisionContext, topics: Sequence[TopicImage], value_of: Callable[[str], T]
) -> Iterator[T]:
    """The setting of each topic; few topics have configs of their own."""
    resources = context.image.configs.resources
    otherwise = value_of(_NO_TOPIC)
    for topic in topics:
        yield value_of(topic.name) if ConfigResource(TOPIC, topic.name) in resources else otherwise


def _allows_unclean(context: DecisionContext, topics: Sequence[TopicImage]) -> Mask:
    allowed = _of_topics(context, topics, context.allows_unclean_election)
    return np.fromiter(allowed, dtype=np.bool_, count=len(topics))


def _enough(context: DecisionContext, topics: Sequence[TopicImage]) -> NDArray[np.int64]:
    """With fewer replicas in sync some become eligible leader replicas (KIP-966); 0 where the cluster keeps none."""
    wanted = _of_topics(context, topics, context.min_in_sync_replicas)
    enough = (0 if each is None else max(each, 1) for each in wanted)
    return np.fromiter(enough, dtype=np.int64, count=len(topics))


TOPICS_AT_ONCE: Final = 1024

Found = list[tuple[TopicImage, Column]]


def affected_partitions(topics: TopicsImage, movement: Movement, most: int | None = None) -> Found:
    """Each topic with the ids of its affected partitions, ascending. Beyond `most` partitions further topics may be
    left out, because so many are not decided at once."""
    found: Found = []
    count = 0
    left = iter(topics.by_id.values())
    while some := list(islice(left, TOPICS_AT_ONCE)):
        for topic, ids in _concerned(_touched(some, movement), movement):
            found.append((topic, ids))
            count += ids.size
        if most is not None and count > most:
            break
    return found


def counted_on(topics: TopicsImage, broker_ids: Collection[int]) -> set[int]:
    """Which of these brokers, all of them fenced, still lead a partition or are in an ISR with other members."""
    wanted = np.array(sorted(broker_ids), dtype=np.int32)
    found: set[int] = set()
    left = iter(topics.by_id.values() if broker_ids else ())
    while some := list(islice(left, TOPICS_AT_ONCE)):
        columns = [topic.partitions.isr_cells for topic in some]
        places = np.flatnonzero(_are_hit(columns, np.isin(np.concatenate(columns), wanted)))
        stack = StackedTables([some[place].partitions for place in places.tolist()])
        is_counted = (stack.leaders != NO_LEADER) | ((stack.isr != PADDING).sum(axis=0) > 1)
        found |= set(stack.isr[np.isin(stack.isr, wanted) & is_counted].tolist())
    return found


def _touched(topics: Sequence[TopicImage], movement: Movement) -> Sequence[TopicImage]:
    """Most topics have no replica on a given broker: only the others are searched in detail."""
    if movement.is_leaving:
        columns, wanted = [topic.partitions.isr_cells for topic in topics], movement.broker_id
    else:
        columns, wanted = [topic.partitions.leaders for topic in topics], NO_LEADER
    is_touched = _are_hit(columns, np.concatenate(columns) == wanted)
    if movement.is_for_good:
        is_touched |= np.fromiter((bool(topic.partitions.rare_lists) for topic in topics), dtype=np.bool_)
    return [topics[number] for number in np.flatnonzero(is_touched).tolist()]


def _are_hit(columns: Sequence[Column], is_hit: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of the columns, which lie one behind the other in `is_hit`, have a hit."""
    ends = np.cumsum([len(column) for column in columns])
    are_hit = np.zeros(len(columns), dtype=np.bool_)
    are_hit[ends.searchsorted(np.flatnonzero(is_hit), side="right")] = True
    return are_hit


def _concerned(topics: Sequence[TopicImage], movement: Movement) -> Iterator[tuple[TopicImage, Column]]:
    stack = StackedTables([topic.partitions for topic in topics])
    rows = affected_rows(stack, movement)
    numbers, ids = stack.numbers[rows], stack.ids[rows]
    begins = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    for begin, end in pairwise([*begins, len(rows)]):
        yield topics[numbers[begin]], ids[begin:end]
