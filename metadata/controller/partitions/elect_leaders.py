"""Leader elections: ElectLeaders (KIP-460), and those that the controller holds periodically.

The periodic ones: back to preferred replicas, unclean elections where the topic permits them, and clean elections of
partitions that have no leader although a replica with all of their data is up. In Kafka the last kind does not exist,
because a broker's change of state and its consequences for all of its partitions are one decision. Here they are
several where a broker has more than 10,000 partitions: the broker may come back when half of what it led was taken off
it, and a controller may lose its leadership before it has given a returned broker all that it is to lead.

Candidates are searched in the columns of all topics, a million partitions in milliseconds; each is then decided alone,
a thousand per turn at most, so that other work does not wait for long.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions.partition_change import Election, change_of
from kquorum.metadata.controller.periodic import Outcome, PeriodicTask
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.image.cluster import ClusterImage
from kquorum.metadata.image.partition_state import NO_LEADER, PartitionState
from kquorum.metadata.image.partitions import NUMBER_COLUMNS, PADDING, Column, PartitionTable
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.topics import PartitionChangeRecord

# A topic, and the ids of partitions in it.
Found = Iterator[tuple[TopicImage, Column]]
_Mask = NDArray[np.bool_]

_TOPICS_AT_ONCE: Final = 4096


def without_preferred_leader(topics: Iterable[TopicImage]) -> Found:
    for having in _having_replicas(topics):
        yield from _selected(having, _leaders(having) != _preferred(having))


def electable_preferred(topics: Iterable[TopicImage], cluster: ClusterImage) -> Found:
    """Of these, the partitions whose preferred replica is up and in sync (or no replica is in sync)."""
    active = _active(cluster)

    def is_wanted(topics: Sequence[TopicImage]) -> _Mask:
        preferred = _preferred(topics)
        wanted: _Mask = (_leaders(topics) != preferred) & np.isin(preferred, active)
        return wanted

    def is_electable(alike: Sequence[TopicImage]) -> _Mask:
        isr = np.concatenate([topic.partitions.isr for topic in alike])
        is_in_sync = (isr == _preferred(alike)[:, None]).any(axis=1) | (isr == PADDING).all(axis=1)
        electable: _Mask = is_in_sync & is_wanted(alike)
        return electable

    for having in _having_replicas(topics):
        yield from _refined(_selected(having, is_wanted(having)), is_electable)


def leaderless(topics: Iterable[TopicImage]) -> Found:
    for having in _having_replicas(topics):
        yield from _selected(having, _leaders(having) == NO_LEADER)


def leaderless_with_active_replica(topics: Iterable[TopicImage], cluster: ClusterImage) -> Found:
    active = _active(cluster)

    def is_electable(alike: Sequence[TopicImage]) -> _Mask:
        replicas = np.concatenate([topic.partitions.replicas for topic in alike])
        is_up = np.isin(replicas, active).any(axis=1)
        electable: _Mask = np.logical_and(is_up, _leaders(alike) == NO_LEADER)
        return electable

    for having in _having_replicas(topics):
        leaderless_ones = _selected(having, _leaders(having) == NO_LEADER)
        yield from _refined(leaderless_ones, is_electable)


def _having_replicas(topics: Iterable[TopicImage]) -> Iterator[list[TopicImage]]:
    """Yields some topics at a time: a caller that has found enough stops searching."""
    having = (topic for topic in topics if topic.partitions.replica_width)
    while some := list(islice(having, _TOPICS_AT_ONCE)):
        yield some


def _active(cluster: ClusterImage) -> Column:
    return np.array([broker.id for broker in cluster.brokers.values() if broker.is_active], dtype=np.int32)


def _leaders(topics: Sequence[TopicImage]) -> Column:
    leaders: Column = np.concatenate([topic.partitions.leaders for topic in topics])
    return leaders


def _preferred(topics: Sequence[TopicImage]) -> Column:
    """The first replicas, which are a row of a table's cells: there may be very many topics."""
    preferred: Column = np.concatenate([topic.partitions.cells[NUMBER_COLUMNS] for topic in topics])
    return preferred


def _refined(found: Found, test: Callable[[Sequence[TopicImage]], _Mask]) -> Found:
    """Topics whose replica lists and ISRs have the same width are checked together."""
    # NumPy can only concatenate arrays of the same width, and padding all to the widest would copy the largest topics.
    by_widths: defaultdict[tuple[int, int], list[TopicImage]] = defaultdict(list)
    for topic, _ in found:
        by_widths[topic.partitions.replica_width, topic.partitions.isr_width].append(topic)
    for alike in by_widths.values():
        yield from _selected(alike, test(alike))


def _selected(topics: Sequence[TopicImage], mask: _Mask) -> Found:
    """`mask` is of the partitions of all topics, one topic behind the other."""
    places = np.flatnonzero(mask)
    if not len(places):
        return
    # `bounds[i]` is how many places lie in the topics up to i, so a topic without a place is where it does not grow.
    ends = np.cumsum([len(topic.partitions) for topic in topics])
    bounds = places.searchsorted(ends)
    start = 0
    for number in np.flatnonzero(np.diff(bounds, prepend=0)).tolist():
        table, stop = topics[number].partitions, int(bounds[number])
        yield topics[number], table.ids[places[start:stop] - (int(ends[number]) - len(table))]
        start = stop


class ElectionType(IntEnum):
    """As the request numbers them."""

    PREFERRED = 0
    UNCLEAN = 1


class _Elections:
    """The elections of one request: their records, and the results by topic."""

    def __init__(self, context: DecisionContext, kind: ElectionType) -> None:
        self._context = context
        self._kind = kind
        self.records: dict[tuple[str, int], PartitionChangeRecord] = {}
        self.results: dict[str, list[PartitionResult]] = {}

    def hold(self, topic_name: str, partition_id: int) -> None:
        results = self.results.setdefault(topic_name, [])
        try:
            self._elect(topic_name, partition_id)
        except ApiError as error:
            results.append(_entry(partition_id, error.code, error.message))
        else:
            results.append(_entry(partition_id, ErrorCode.none, None))
        # After each partition, not at the end: a request for all partitions of a large cluster must not hold the loop.
        if len(self.records) > self._context.config.max_records_per_batch:
            raise _too_many(self._context)

    def _elect(self, topic_name: str, partition_id: int) -> None:
        if (topic_name, partition_id) in self.records:
            return
        topic, state = _find(self._context, topic_name, partition_id)
        self.records[topic_name, partition_id] = self._record(topic, partition_id, state)

    def _record(self, topic: TopicImage, partition_id: int, state: PartitionState) -> PartitionChangeRecord:
        is_preferred = self._kind is ElectionType.PREFERRED
        is_content = state.leader == state.preferred_replica if is_preferred else state.leader != NO_LEADER
        if is_content:
            raise ApiError(ErrorCode.election_not_needed, "Leader election not needed for topic partition.")
        election = Election.PREFERRED if is_preferred else Election.UNCLEAN
        record = change_of(self._context, topic, partition_id, state, election).record()
        if record is None and is_preferred:
            reason = "The preferred leader was not available."
            raise ApiError(ErrorCode.preferred_leader_not_available, reason)
        if record is None:
            reason = "Eligible topic partition leaders are not available."
            raise ApiError(ErrorCode.eligible_leaders_not_available, reason)
        return record


def elect_leaders(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """Raises INVALID_REQUEST for an unknown election type, POLICY_VIOLATION for too many records. Without a list of
    partitions, all that need the election are elected, and only these are answered."""
    body: ElectLeadersRequest = request.body
    kind = _kind(body.election_type)
    elections = _Elections(context, kind)
    for topic_name, partition_id in _wanted(context, body, kind):
        elections.hold(topic_name, partition_id)
    return ControllerResult(
        records=tuple(elections.records.values()),
        response=ElectLeadersResponse(
            replica_election_results=tuple(
                [
                    ReplicaElectionResult(topic=name, partition_result=tuple(results))
                    for name, results in elections.results.items()
                ]
            )
        ),
        is_atomic=False,
        audit_reason=f"elect {kind.name.lower()} leaders of {len(elections.records)} partition(s)"
        if elections.records
        else None,
    )


def _kind(number: int) -> ElectionType:
    try:
        return ElectionType(number)
    except ValueError:
        raise ApiError(ErrorCode.invalid_request, f"Unknown election type {number}") from None


def _wanted(
    context: DecisionContext, request: ElectLeadersRequest, kind: ElectionType
) -> Iterator[tuple[str, int]]:
    if request.topic_partitions is not None:
        for asked in request.topic_partitions:
            for partition_id in asked.partitions:
                yield asked.topic, partition_id
        return
    find = without_preferred_leader if kind is ElectionType.PREFERRED else leaderless
    for topic, partition_ids in find(context.image.topics.by_id.values()):
        for partition_id in partition_ids.tolist():
            yield topic.name, partition_id


def _find(context: DecisionContext, topic_name: str, partition_id: int) -> tuple[TopicImage, PartitionState]:
    topic = context.image.topics.by_name.get(topic_name)
    if topic is None:
        raise ApiError(ErrorCode.unknown_topic_or_partition, f"No such topic as {topic_name}")
    state = topic.partitions.get(partition_id)
    if state is None:
        reason = f"No such partition as {topic_name}-{partition_id}"
        raise ApiError(ErrorCode.unknown_topic_or_partition, reason)
    return topic, state


def _too_many(context: DecisionContext) -> ApiError:
    limit = context.config.max_records_per_batch
    reason = f"The request elects leaders of more than {limit} partitions. Ask for less at a time."
    return ApiError(ErrorCode.policy_violation, reason)


def _entry(partition_id: int, code: ErrorCode, message: str | None) -> PartitionResult:
    return PartitionResult(partition_id=partition_id, error_code=code, error_message=message)


MOST_ELECTIONS: Final = 1000


def balance_leaders(context: DecisionContext) -> Outcome:
    found = electable_preferred(context.image.topics.by_id.values(), context.image.cluster)
    return _elected(context, found, Election.PREFERRED)


def elect_unclean_leaders(context: DecisionContext) -> Outcome:
    """If the topic permits it, a partition without a leader gets any active replica; otherwise it stays leaderless."""
    found = leaderless_with_active_replica(context.image.topics.by_id.values(), context.image.cluster)
    permitted = (each for each in found if context.allows_unclean_election(each[0].name))
    return _elected(context, permitted, Election.UNCLEAN)


def _elected(context: DecisionContext, found: Found, election: Election) -> Outcome:
    records: list[PartitionChangeRecord] = []
    for record in _elected_records(context, found, election):
        records.append(record)
        if len(records) == MOST_ELECTIONS:
            return Outcome(tuple(records), has_more=True)
    return Outcome(tuple(records))


def _elected_records(
    context: DecisionContext, found: Found, election: Election
) -> Iterator[PartitionChangeRecord]:
    for topic, partition_ids in found:
        for partition_id, state in topic.partitions.items_of(partition_ids):
            record = change_of(context, topic, partition_id, state, election).record()
            # Below 3.3-IV3 the metadata do not say that a broker is in controlled shutdown, and gave away what it led.
            if record is not None and context.liveness.shutdown_offset(record.leader) is None:
                yield record


def _balancing_interval_ms(config: ControllerConfig) -> int:
    if not config.auto_leader_rebalance_enable:
        return 0
    return config.leader_imbalance_check_interval_seconds * 1000


LEADER_BALANCING = PeriodicTask(
    name="balance partition leaders", interval_ms=_balancing_interval_ms, run=balance_leaders
)
UNCLEAN_ELECTION = PeriodicTask(
    name="elect unclean leaders",
    interval_ms=lambda config: config.unclean_leader_election_interval_ms,
    run=elect_unclean_leaders,
)


INTERVAL_MS: Final = 10_000

# Some that are looked at cannot be led after all: their directory is offline.
MOST_LOOKED_AT: Final = 10_000


def elect_clean_leaders(context: DecisionContext) -> Outcome:
    topics = context.image.topics
    # The usual case costs nothing: every partition has a leader.
    if sum(topics.led_counts.values()) == topics.partition_count:
        return Outcome()
    records = tuple(islice(_clean_records(context), MOST_ELECTIONS))
    return Outcome(records, has_more=len(records) == MOST_ELECTIONS)


def _clean_records(context: DecisionContext) -> Iterator[PartitionChangeRecord]:
    for topic, partition_id in islice(_candidates(context), MOST_LOOKED_AT):
        state = topic.partitions.get(partition_id)
        assert state is not None, "a query of a table answers ids that the table has"
        record = change_of(context, topic, partition_id, state).record()
        # A broker in controlled shutdown gave away what it led; at an old level the image does not say that it leaves.
        if record is not None and context.liveness.shutdown_offset(record.leader) is None:
            yield record


def _candidates(context: DecisionContext) -> Iterator[tuple[TopicImage, int]]:
    """Those with an active member in the ISR, or else among the eligible and last known leaders."""
    cluster = context.image.cluster
    active = np.array([each.id for each in cluster.brokers.values() if each.is_active], dtype=np.int32)
    for topic, ids in leaderless_with_active_replica(_topics(context), cluster):
        for partition_id in _with_data(topic.partitions, ids, active).tolist():
            yield topic, partition_id


def _with_data(table: PartitionTable, partition_ids: Column, active: Column) -> Column:
    isr = table.isr[table.ids.searchsorted(partition_ids)]
    has_data: NDArray[np.bool_] = np.atleast_1d(np.isin(isr, active).any(axis=1))
    is_up = frozenset(active.tolist())
    # Only with an empty ISR do eligible and last known leaders count (`PartitionChange`); such partitions are few, so a
    # loop is quick enough.
    for place in np.flatnonzero((isr == PADDING).all(axis=1)).tolist():
        lists = table.rare_lists.get(int(partition_ids[place]))
        has_data[place] = lists is not None and not is_up.isdisjoint((*lists.elr, *lists.last_known_elr))
    found: Column = partition_ids[has_data]
    return found


def _topics(context: DecisionContext) -> Sequence[TopicImage]:
    """Starts at another topic each time, so that topics without an electable replica do not hide the others."""
    topics = tuple(context.image.topics.by_id.values())
    start = context.now_ms // INTERVAL_MS % len(topics)
    return topics[start:] + topics[:start]


CLEAN_ELECTION = PeriodicTask(
    name="elect clean leaders", interval_ms=lambda _config: INTERVAL_MS, run=elect_clean_leaders
)
