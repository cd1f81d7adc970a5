"""What the active controller does for leaders unasked: back to preferred replicas, and unclean where that is wanted.

Each turn decides a thousand partitions at most, so that nothing else waits for long; the next comes at once then.
"""

from collections.abc import Iterator
from typing import Final

from metadata.controller.config import ControllerConfig
from metadata.controller.context import DecisionContext
from metadata.controller.partitions.election_candidates import (
    Found,
    electable_preferred,
    leaderless_with_active_replica,
)
from metadata.controller.partitions.partition_change import Election
from metadata.controller.partitions.partition_change_builder import change_of
from metadata.controller.periodic_task import Outcome, PeriodicTask
from wire.metadata_records.topics import PartitionChangeRecord

MOST_ELECTIONS: Final = 1000


def balance_leaders(context: DecisionContext) -> Outcome:
    found = electable_preferred(context.image.topics.by_id.values(), context.image.cluster)
    return _elected(context, found, Election.PREFERRED)


def elect_unclean_leaders(context: DecisionContext) -> Outcome:
    """Where the topic permits it, a partition that nobody leads gets whoever is up; otherwise it waits."""
    found = leaderless_with_active_replica(context.image.topics.by_id.values(), context.image.cluster)
    permitted = (each for each in found if context.allows_unclean_election(each[0].name))
    return _elected(context, permitted, Election.UNCLEAN)


def _elected(context: DecisionContext, found: Found, election: Election) -> Outcome:
    records: list[PartitionChangeRecord] = []
    for record in _records(context, found, election):
        records.append(record)
        if len(records) == MOST_ELECTIONS:
            return Outcome(tuple(records), has_more=True)
    return Outcome(tuple(records))


def _records(context: DecisionContext, found: Found, election: Election) -> Iterator[PartitionChangeRecord]:
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
