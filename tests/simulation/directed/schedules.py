"""All schedules, by name; importing this fills the register."""

from tests.simulation.directed import elections, membership, reads, replication
from tests.simulation.directed.registry import SCHEDULES, Schedule, ScheduleFailed

GROUPS = (elections, replication, membership, reads)

__all__ = ["GROUPS", "SCHEDULES", "Schedule", "ScheduleFailed"]
