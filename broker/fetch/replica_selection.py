"""Which replica a consumer is to read from (KIP-392): the leader, or an in-sync replica in the consumer's rack.

Sans-IO. The leader chooses, and tells the consumer instead of giving it records; the consumer asks that replica until
it cannot serve it, or for the client's `metadata.max.age.ms`, and then the leader again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kquorum.broker.replica.partition import Partition
from kquorum.metadata.image.cluster import BrokerRegistration

LEADER_SELECTOR: Final = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
SELECTORS: Final = (LEADER_SELECTOR, RACK_AWARE_SELECTOR)
"""What `replica.selector.class` may be: the names of Kafka's classes, whose rules these are."""


class _Candidate(NamedTuple):
    """Compared by these: the longest log, then the one that was caught up last, then the larger id."""

    log_end_offset: int
    caught_up_ms: int
    broker_id: int


def nearest_replica(
    partition: Partition,
    offset: int,
    rack: str,
    brokers: Mapping[int, BrokerRegistration],
    listener_name: str,
) -> int | None:
    """The broker whose replica a consumer in this rack is to read `offset` from; None: the leader, which this is.

    Only a replica of the ISR whose log has the offset is chosen, and which the consumer can reach: its broker is not
    fenced, and listens where the consumer asked.
    """
    own = brokers.get(partition.broker_id)
    if not rack or not partition.is_leader or (own is not None and own.rack == rack):
        return None
    best: _Candidate | None = None
    for broker_id, progress in partition.followers.items():
        if broker_id not in partition.isr_state.committed:
            continue
        if not 0 <= progress.log_start_offset <= offset <= progress.log_end_offset:
            continue
        broker = brokers.get(broker_id)
        if broker is None or broker.fenced or broker.rack != rack or broker.end_point(listener_name) is None:
            continue
        candidate = _Candidate(progress.log_end_offset, progress.caught_up_ms, broker_id)
        best = candidate if best is None else max(best, candidate)
    return None if best is None else best.broker_id
