"""Taking a broker off its partitions, with that which follows from it or must not be before it.

A registration is only replaced or deleted, and a directory only given up, when no partition counts on it any more. Up
to 10,000 records all of it is one decision, as in Kafka. Where there are more, a broker that is to leave all of its
partitions is fenced, then these go, some in each turn; meanwhile the broker is kept from joining ISRs and from
leading, and the request is handled when nothing is left to be done before.
"""

from dataclasses import dataclass
from uuid import UUID

from metadata.controller.context import DecisionContext
from metadata.controller.partitions.batched_update import PartitionWalk
from metadata.controller.partitions.broker_movement import Movement
from metadata.controller.partitions.change_batch import PartitionChangeBatch, whole_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Which partitions a broker leaves. `is_for_good`: it loses its eligibility as well, because it crashed or is no
    broker any more. `failed_directories`: only those there, and without being kept from coming back."""

    broker_id: int
    is_for_good: bool = False
    failed_directories: frozenset[UUID] = frozenset()

    def whole_run(self, context: DecisionContext) -> PartitionChangeBatch | None:
        """All that changes, for one decision; None where that is too much for one."""
        return whole_run(context, self.movement(context))

    def movement(self, context: DecisionContext) -> Movement:
        return Movement(
            broker_id=self.broker_id,
            is_leaving=True,
            is_for_good=self.is_for_good,
            failed_directories=self.failed_directories,
            is_last_kept=not context.is_elr_enabled,
        )


class BrokerRemoval:
    """Partitions are looked up again when their turn comes, so whatever happened to them meanwhile counts."""

    def __init__(self, context: DecisionContext, departure: Departure) -> None:
        self.broker_id = departure.broker_id
        self._departure = departure
        self._walk = PartitionWalk(context)
        if not departure.failed_directories:
            context.liveness.begin_removal(departure.broker_id)

    @property
    def is_done(self) -> bool:
        return self._walk.is_done

    def next_run(self, context: DecisionContext) -> PartitionChangeBatch:
        """The changes of the next partitions; there may be none."""
        return self._walk.next_run(context, self._departure.movement(context))
