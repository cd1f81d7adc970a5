"""All schedules, by name; importing this fills the register."""

from tests.simulation.directed import elections, failing_disks, membership, reads, replication, snapshots
from tests.simulation.directed.registry import SCHEDULES, Schedule, ScheduleFailed

GROUPS = (elections, replication, membership, reads, snapshots, failing_disks)

__all__ = ["GROUPS", "SCHEDULES", "Schedule", "ScheduleFailed"]
