"""ISRs that only grow, decided for many partitions at once.

When a broker comes back, the leaders ask for it to be added to as many ISRs as it has replicas. Nearly all of these
changes are nothing else: no replica leaves the ISR, the leader may stay, and neither a reassignment nor eligible leader
replicas depend on it. These are checked, written and replayed by columns. All others, refusals included, are left to
`alter_partition`, which decides them one by one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from metadata.controller.context import DecisionContext
from metadata.controller.partitions.change_batch import PartitionChangeBatch
from metadata.image.change_layout import LONGEST_ISR, change_values
from metadata.image.cluster import BrokerRegistration
from metadata.image.directories import LOST, MIGRATING, UNASSIGNED
from metadata.image.metadata_version import partition_record_version
from metadata.image.partition_changes import PartitionChanges, Rows, StackedTables
from metadata.image.partition_columns import PADDING, Column, lists_differ
from metadata.image.partition_state import NO_LEADER_CHANGE, RECOVERED
from metadata.image.topics import TopicImage

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
    asked: Sequence[tuple[TopicImage | None, Sequence[Any]]],
    members_of: Callable[[Any], Members],
    is_eligible: Callable[[tuple[int, int]], bool],
) -> Growth | None:
    """What merely grows of the partitions that were asked for, topic by topic; none of them may be named twice.

    `broker_id` asks. None where columns would not pay, or where the broker may lead nothing at present.
    """
    count = sum(len(partitions) for topic, partitions in asked if topic is not None)
    leader = context.image.cluster.brokers.get(broker_id)
    if count < WORTH_COLUMNS or count > context.config.max_records_per_batch or leader is None:
        return None
    if not leader.is_active or context.liveness.is_being_removed(broker_id):
        return None
    wishes = _Wishes(asked, members_of, is_eligible)
    stack = StackedTables([topic.partitions for topic in wishes.topics], wishes.rows)
    grows = wishes.is_lawful & _is_as_known(stack, wishes, broker_id)
    grows &= ~stack.is_rare(np.arange(len(stack))) & _may_lead(stack, leader)
    grows &= _holds(wishes.isr, stack.isr.T) & _holds(stack.replicas.T, wishes.isr)
    grows &= (wishes.isr == broker_id).any(axis=1)
    is_change = grows & lists_differ(wishes.isr, stack.isr.T)
    epochs = (stack.partition_epochs + is_change).tolist()
    grown = {wishes.places[row]: (wishes.lists[row], epochs[row]) for row in np.flatnonzero(grows).tolist()}
    rows = np.flatnonzero(is_change)
    changes = PartitionChanges(
        topic_ids=np.array([topic.id.bytes for topic in wishes.topics], dtype="V16")[stack.numbers[rows]],
        partition_ids=stack.ids[rows],
        leaders=np.full(len(rows), NO_LEADER_CHANGE, dtype=np.int32),
        isr_counts=wishes.counts[rows],
        isr=wishes.isr[rows],
    )
    values = change_values(changes, partition_record_version(context.metadata_version))
    return Growth(grown=grown, run=PartitionChangeBatch(values=values, changes=changes, others=()))


class _Wishes:
    """The asked partitions that exist, a row each, topic by topic.

    Shapes, for n of them: `leader_epochs`, `partition_epochs`, `recovery_states`, `counts`, `is_lawful` (n,), `isr`
    (n, longest). `rows` are their places in the tables of `topics`. `is_lawful`: all members of the wanted ISR are
    eligible, none is named twice, and there is a layout for so many.
    """

    def __init__(
        self,
        asked: Sequence[tuple[TopicImage | None, Sequence[Any]]],
        members_of: Callable[[Any], Members],
        is_eligible: Callable[[tuple[int, int]], bool],
    ) -> None:
        self.topics: list[TopicImage] = []
        self.rows: list[Rows] = []
        self.places: list[Place] = []
        wanted: list[Any] = []
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
        wanted: Sequence[Any],
        members_of: Callable[[Any], Members],
        is_eligible: Callable[[tuple[int, int]], bool],
    ) -> None:
        """There are few different ISRs: each is judged once."""
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


def _is_as_known(stack: StackedTables, wishes: _Wishes, broker_id: int) -> Mask:
    """Whether the broker leads the partition, and knows its newest state."""
    is_known: Mask = stack.leaders == broker_id
    is_known &= stack.leader_epochs == wishes.leader_epochs
    is_known &= stack.partition_epochs == wishes.partition_epochs
    # A leader that recovers must be alone in the ISR; one that reports its recovery changes more than the ISR.
    is_known &= (stack.recovery_states == RECOVERED) & (wishes.recovery_states == RECOVERED)
    return is_known


def _may_lead(stack: StackedTables, leader: BrokerRegistration) -> Mask:
    """Whether the leader's own replica is in a directory that it can serve; a replica list that names it twice counts
    for where it names it first, as with single partitions."""
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
