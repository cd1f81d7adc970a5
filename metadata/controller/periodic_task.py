"""What a task is that the active controller does from time to time; the list of them is in `periodic`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from metadata.controller.config import ControllerConfig
from metadata.controller.context import DecisionContext
from wire.schema import MetadataRecord


class Outcome(NamedTuple):
    """`has_more`: the task did a slice of its work, and wants to go on as soon as others had their turn."""

    records: tuple[MetadataRecord, ...] = ()
    has_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicTask:
    """`interval_ms` is 0 for never."""

    name: str
    interval_ms: Callable[[ControllerConfig], int]
    run: Callable[[DecisionContext], Outcome]
