"""What the active controller does from time to time, without being asked."""

from collections.abc import Iterable

from metadata.controller.config import ControllerConfig
from metadata.controller.partitions.leader_balancing import LEADER_BALANCING, UNCLEAN_ELECTION
from metadata.controller.partitions.leaderless import CLEAN_ELECTION
from metadata.controller.periodic_task import Outcome, PeriodicTask
from metadata.controller.security.delegation_tokens import EXPIRY_SWEEP

__all__ = ("PERIODIC_TASKS", "Outcome", "PeriodicTask", "Schedule")


class Schedule:
    """When each task is due; the first time one interval after the controller became active."""

    def __init__(self, tasks: Iterable[PeriodicTask], config: ControllerConfig, now_ms: int) -> None:
        self._intervals = {task: task.interval_ms(config) for task in tasks}
        self._due_ms = {task: now_ms + each for task, each in self._intervals.items() if each > 0}

    def next_deadline_ms(self) -> int | None:
        return min(self._due_ms.values(), default=None)

    def due_task(self, now_ms: int) -> PeriodicTask | None:
        """The one that has been due for longest."""
        task = min(self._due_ms, key=lambda each: self._due_ms[each], default=None)
        return task if task is not None and self._due_ms[task] <= now_ms else None

    def has_run(self, task: PeriodicTask, now_ms: int, *, has_more: bool) -> None:
        self._due_ms[task] = now_ms if has_more else now_ms + self._intervals[task]


# Fencing and NoOpRecords are not here: the one has deadlines of its own, the other writes without a decision.
PERIODIC_TASKS: tuple[PeriodicTask, ...] = (EXPIRY_SWEEP, CLEAN_ELECTION, LEADER_BALANCING, UNCLEAN_ELECTION)
