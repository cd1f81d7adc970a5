"""Which brokers `wait_applied` waits for, and until which offset."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kquorum.metadata.grpc.quorum.service import wait_applied
from kquorum.metadata.members import BrokerProgress, waited_for
from tests.support.images import broker_record, image_of

BROKERS = image_of(broker_record(1), broker_record(2, fenced=True), broker_record(3)).cluster.brokers


def progress(broker_id: int, applied_offset: int, **changes: Any) -> BrokerProgress:
    registration = replace(BROKERS[broker_id], **changes)
    return BrokerProgress(registration=registration, applied_offset=applied_offset)


def test_only_fenced_brokers_are_not_waited_for() -> None:
    active, fenced = progress(1, 5), progress(2, 5)
    leaving = progress(3, 5, in_controlled_shutdown=True)
    waited = waited_for(9, [active, fenced, leaving])
    assert (waited.lagging, waited.fenced) == ((active, leaving), (fenced,)), "clients still ask who leaves"
    assert not waited.is_applied
    assert waited_for(5, [active, fenced, leaving]).is_applied


class Standby:
    """A leader whose own image is behind what the quorum has committed."""

    def brokers(self) -> Sequence[BrokerProgress]:
        return [progress(1, 5)]

    def committed_offset(self) -> int:
        return 5

    async def last_committed_offset(self) -> int:
        return 9


def test_what_is_waited_for_is_what_was_committed_anywhere_and_not_what_this_node_has() -> None:
    source: Any = Standby()
    waited = asyncio.run(wait_applied(source, None, 60))
    assert (waited.offset, waited.is_applied) == (9, False)
