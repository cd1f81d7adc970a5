"""Changes of many partitions, some at a time.

A broker that fails may be in hundreds of thousands of ISRs. Deciding all of that in one turn would keep the leader's
loop from answering fetches for longer than its followers wait, and the next leader would inherit the work: nobody
would ever get through it. So it is done in slices, and between two of them everything else has its turn.
"""

from collections import deque
from uuid import UUID

from metadata.controller.context import DecisionContext
from metadata.controller.transitions import leader_and_isr_records
from metadata.image.cluster import BrokerRegistration
from metadata.image.partition_columns import Column
from metadata.image.topics import TopicImage
from wire.metadata_records.topics import PartitionChangeRecord

PARTITIONS_PER_SLICE = 500


class PartitionSweep:
    """Partitions are looked up when their slice comes, so whatever happened to them meanwhile counts."""

    def __init__(self, context: DecisionContext, broker: BrokerRegistration, *, is_leaving: bool) -> None:
        """`is_leaving`: the broker leaves ISRs and leaderships; otherwise it may lead what has no leader."""
        self.broker_id = broker.id
        self.broker_epoch = broker.epoch
        self.is_leaving = is_leaving
        topics = context.image.topics.by_id.values()
        self._places: deque[tuple[UUID, int]] = deque(
            (topic.id, -1) for topic in topics if self._found(topic, -1).size
        )

    @property
    def is_done(self) -> bool:
        return not self._places

    def concerns(self, broker: BrokerRegistration) -> bool:
        """Whether it was begun for this very registration."""
        return (self.broker_id, self.broker_epoch) == (broker.id, broker.epoch)

    def is_still_due(self, context: DecisionContext) -> bool:
        """Whether the broker is still what it was: leaving or fenced, or else serving."""
        broker = context.image.cluster.brokers.get(self.broker_id)
        if broker is None or broker.epoch != self.broker_epoch:
            return False
        return broker.is_active != self.is_leaving

    def next_records(self, context: DecisionContext) -> list[PartitionChangeRecord]:
        """The changes of the next slice; there may be none in it."""
        records: list[PartitionChangeRecord] = []
        room = PARTITIONS_PER_SLICE
        while self._places and room > 0:
            topic_id, after = self._places.popleft()
            topic = context.image.topics.by_id.get(topic_id)
            if topic is None:
                continue
            found = self._found(topic, after)
            if found.size > room:
                found = found[:room]
                self._places.appendleft((topic_id, int(found[-1])))
            room -= found.size
            records += self._changes(context, topic, found)
        return records

    def _found(self, topic: TopicImage, after: int) -> Column:
        table = topic.partitions
        ids = table.in_isr(self.broker_id) if self.is_leaving else table.leaderless()
        return ids[ids > after] if after >= 0 else ids

    def _changes(
        self, context: DecisionContext, topic: TopicImage, partition_ids: Column
    ) -> list[PartitionChangeRecord]:
        affected = [(topic, partition_ids)]
        if self.is_leaving:
            return list(leader_and_isr_records(context, affected, broker_to_remove=self.broker_id))
        return list(leader_and_isr_records(context, affected, broker_to_add=self.broker_id))
