"""The output of a handler."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kquorum.metadata.controller.partitions.batched_update import BatchedPartitionUpdate, BrokerRemoval
from kquorum.metadata.controller.timeline import Entry
from kquorum.wire.message_schema import Response


@dataclass(slots=True, init=False)
class ControllerResult:
    """What a handler decided; nothing has happened yet. Without a `response` nothing is answered yet, or at all.

    `records` are in the order of the log; runs of records that were decided by columns stand among those that were
    decided one by one. Atomic records go into one batch or not at all; others may be spread over several. With a run of
    changes all of them are one state where the log can hold that, whatever `is_atomic` says.

    `audit_reason` says in words what an administrative change does; None for a change that no administrator asked for.
    `after_append` gets the end offset once the records are in the log of the leader (not yet committed).
    `waits_for_log_end` holds the answer back until all that is in the log then is committed: for what `after_append`
    appended by other means. `batched_update` is the part of the change that is left for later turns. `removal_first`:
    only `records` were decided yet; the request is handled again when this removal is done.
    """

    response: Final[Response | None]
    records: Final[tuple[Entry, ...]]
    is_atomic: Final[bool]
    audit_reason: Final[str | None]
    after_append: Final[Callable[[int], None] | None]
    waits_for_log_end: Final[bool]
    batched_update: Final[BatchedPartitionUpdate | None]
    removal_first: Final[BrokerRemoval | None]

    def __init__(
        self,
        *,
        response: Response | None,
        records: tuple[Entry, ...] = (),
        is_atomic: bool = True,
        audit_reason: str | None = None,
        after_append: Callable[[int], None] | None = None,
        waits_for_log_end: bool = False,
        batched_update: BatchedPartitionUpdate | None = None,
        removal_first: BrokerRemoval | None = None,
    ) -> None:
        self.response = response
        self.records = records
        self.is_atomic = is_atomic
        self.audit_reason = audit_reason
        self.after_append = after_append
        self.waits_for_log_end = waits_for_log_end
        self.batched_update = batched_update
        self.removal_first = removal_first
