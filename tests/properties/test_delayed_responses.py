"""Answers that wait for their commit while more is decided: each is compared with what held when it was decided.

As in Kafka, AlterPartition tells of the partition right after the change, whatever becomes of it before the commit.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kquorum.metadata.controller.partitions import alter_partition
from tests.reference_model import requests
from tests.reference_model.twin import Twin

Later = Callable[[Twin], None]


def the_minimum_isr_is_set(twin: Twin) -> None:
    requests.set_config(twin, "a", "min.insync.replicas", "1")


def eligible_leader_replicas_are_turned_off_and_on(twin: Twin) -> None:
    requests.turn_elr(twin, on=False)
    requests.turn_elr(twin, on=True)


later = pytest.mark.parametrize(
    "later", [the_minimum_isr_is_set, eligible_leader_replicas_are_turned_off_and_on]
)


def report_and_change_before_the_commit(later: Later) -> None:
    """A leader reports twice, once with something new; then the list of eligible replicas is cleared."""
    twin = Twin(25, has_elr=True)
    for broker_id in (1, 2):
        requests.register(twin, broker_id, incarnation=broker_id)
        requests.heartbeat(twin, broker_id)
    requests.create_topic(twin, "a", [[1, 2]], {"min.insync.replicas": "2"})
    twin.is_holding = True
    requests.alter_partition(twin, 1, "a", 0, [1])
    requests.alter_partition(twin, 1, "a", 0, [1])
    reported = twin.model.partition("a", 0).partition_epoch
    later(twin)
    assert twin.model.partition("a", 0).partition_epoch == reported + 1, "nothing came after the reports"
    twin.commit_some(len(twin.held))


@later
def test_an_answer_tells_of_its_own_decision_however_long_it_waits(later: Later) -> None:
    report_and_change_before_the_commit(later)


@later
def test_an_answer_that_tells_of_a_later_change_is_found(
    later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = alter_partition._accepted

    def accepted(wanted: Any, state: Any) -> Any:
        return true(wanted, replace(state, partition_epoch=state.partition_epoch + 1))

    monkeypatch.setattr(alter_partition, "_accepted", accepted)
    with pytest.raises(AssertionError, match=r"^AlterPartition of a-0"):
        report_and_change_before_the_commit(later)
