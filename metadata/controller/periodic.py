"""The periodic tasks of the active controller, and when each is due."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.context import DecisionContext
from kquorum.wire.schema import MetadataRecord


class Outcome(NamedTuple):
    """`has_more`: the task did a slice of its work, and continues after other tasks and requests."""

    records: tuple[MetadataRecord, ...] = ()
    has_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicTask:
    """`interval_ms` is 0 for never."""

    name: str
    interval_ms: Callable[[ControllerConfig], int]
    run: Callable[[DecisionContext], Outcome]


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
