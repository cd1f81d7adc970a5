"""Of how many partitions something is true: counted by columns when it is asked for."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from kquorum.metadata.image.partition_state import NO_LEADER, PartitionState
from kquorum.metadata.image.partitions import NUMBER_COLUMNS, PADDING, Column, PartitionTable
from kquorum.metadata.image.topics import TopicsImage

_TABLES_AT_ONCE: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCounts:
    partitions: int = 0
    without_leader: int = 0
    not_led_by_preferred: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCounts:
    """Of one broker. A partition that it leads is under-replicated while its ISR is smaller than its replicas without
    those that a reassignment adds, as Kafka counts (Partition.isUnderReplicated)."""

    replicas: int = 0
    leads: int = 0
    leads_under_replicated: int = 0
    reassigning: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """`of_broker` is None where the node is none, `of_cluster` where it is no controller."""

    of_cluster: PartitionCounts | None = None
    of_broker: ReplicaCounts | None = None


class PartitionCounter:
    """Counts again only when the topics are others than the last time. It may run in a thread: images do not change."""

    def __init__(self) -> None:
        self._counted: tuple[TopicsImage, Counts] | None = None

    def known(self, topics: TopicsImage) -> Counts | None:
        """What was counted of these topics before."""
        return self._counted[1] if self._counted is not None and self._counted[0] is topics else None

    def count(self, topics: TopicsImage, *, is_controller: bool, broker_id: int | None) -> Counts:
        counts = Counts(
            of_cluster=count_partitions(topics) if is_controller else None,
            of_broker=None if broker_id is None else count_replicas(topics, broker_id),
        )
        self._counted = (topics, counts)
        return counts


def count_partitions(topics: TopicsImage) -> PartitionCounts:
    """As Kafka's ControllerMetadataMetrics: a partition without a leader counts as not led by the preferred one."""
    total = leaderless = imbalanced = 0
    for tables in _some(topics):
        leaders = _joined([table.leaders for table in tables])
        preferred = _joined([table.cells[NUMBER_COLUMNS] for table in tables])
        total += len(leaders)
        leaderless += int((leaders == NO_LEADER).sum())
        imbalanced += int((leaders != preferred).sum())
    return PartitionCounts(partitions=total, without_leader=leaderless, not_led_by_preferred=imbalanced)


def count_replicas(topics: TopicsImage, broker_id: int) -> ReplicaCounts:
    replicas = leads = short = reassigning = 0
    for tables in _alike(topics):
        width, isr_width = tables[0].replica_width, tables[0].isr_width
        lists = slice(NUMBER_COLUMNS, NUMBER_COLUMNS + width + isr_width)
        cells = np.concatenate([table.cells[lists] for table in tables], axis=1)
        leaders = _joined([table.leaders for table in tables])
        of_replicas, of_isr = cells[:width], cells[width:]
        is_replica = (of_replicas == broker_id).any(axis=0)
        is_led = leaders == broker_id
        is_short = (of_isr != PADDING).sum(axis=0) < (of_replicas != PADDING).sum(axis=0)
        replicas += int(is_replica.sum())
        leads += int(is_led.sum())
        under_way = [each for table in tables if table.rare_lists for each in _reassigning(table, broker_id)]
        short += int((is_led & is_short).sum()) - sum(map(_lacks_only_added, under_way))
        reassigning += len(under_way)
    return ReplicaCounts(
        replicas=replicas, leads=leads, leads_under_replicated=short, reassigning=reassigning
    )


def _reassigning(table: PartitionTable, broker_id: int) -> Iterator[PartitionState]:
    """What the broker leads and is under reassignment."""
    led = set(table.ids[table.leaders == broker_id].tolist())
    for partition_id, rare in table.rare_lists.items():
        if partition_id in led and (rare.adding_replicas or rare.removing_replicas):
            state = table.get(partition_id)
            assert state is not None, "rare lists are of partitions that the table has"
            yield state


def _lacks_only_added(state: PartitionState) -> bool:
    """Whether its ISR is smaller than all of its replicas, but not than those before the reassignment."""
    before = len(set(state.replicas) - set(state.adding_replicas))
    return before <= len(state.isr) < len(state.replicas)


def _alike(topics: TopicsImage) -> Iterator[Sequence[PartitionTable]]:
    """Tables with lists of equal width, which can be laid side by side."""
    by_widths: defaultdict[tuple[int, int], list[PartitionTable]] = defaultdict(list)
    for tables in _some(topics):
        for table in tables:
            by_widths[table.replica_width, table.isr_width].append(table)
    return iter(by_widths.values())


def _some(topics: TopicsImage) -> Iterator[Sequence[PartitionTable]]:
    having = (topic.partitions for topic in topics.by_id.values() if topic.partitions.replica_width)
    while some := list(islice(having, _TABLES_AT_ONCE)):
        yield some


def _joined(columns: Sequence[Column]) -> Column:
    joined: Column = np.concatenate(columns)
    return joined
