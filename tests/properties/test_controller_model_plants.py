"""The checker checked: the stream of random operations must find each fault planted in the controller."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase

from kquorum.metadata.controller.brokers.liveness import BrokerLiveness
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.controller import PERIODIC_TASKS, Controller
from kquorum.metadata.controller.partitions import (
    alter_partition,
    batched_update,
    change_batch,
    elr,
    partition_change,
)
from kquorum.metadata.controller.partitions.broker_movement import Movement
from kquorum.metadata.controller.partitions.elect_leaders import CLEAN_ELECTION
from kquorum.metadata.controller.partitions.partition_change import Elected, PartitionChange, change_of
from kquorum.metadata.controller.topics import new_partitions
from kquorum.metadata.image.partition_state import partition_after_change
from tests.reference_model.short_sequence import run_short_sequence
from tests.reference_model.stream import run_stream
from tests.reference_model.twin import Twin

Plant = Callable[[pytest.MonkeyPatch], None]
REPLAYED_CHANGE = "kquorum.metadata.image.topics.partition_after_change"


def leader_epoch_stays(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        REPLAYED_CHANGE,
        lambda state, change: replace(partition_after_change(state, change), leader_epoch=state.leader_epoch),
    )


def partition_epoch_stays_when_the_leader_does(patch: pytest.MonkeyPatch) -> None:
    def change(state: Any, change: Any) -> Any:
        after = partition_after_change(state, change)
        return (
            replace(after, partition_epoch=state.partition_epoch) if after.leader == state.leader else after
        )

    patch.setattr(REPLAYED_CHANGE, change)


def isr_may_shrink_below_the_leader(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alter_partition, "_isr_error", lambda *_: None)


def fenced_members_join_an_isr(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alter_partition._Eligibility, "of", lambda *_: True)


def eligible_replicas_are_not_cleared(patch: pytest.MonkeyPatch) -> None:
    true = PartitionChange._new_elr

    def keep(self: PartitionChange, *arguments: Any) -> tuple[int, ...]:
        return true(self, *arguments) or self.partition.elr

    patch.setattr(PartitionChange, "_new_elr", keep)


def every_election_may_be_unclean(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DecisionContext, "allows_unclean_election", lambda *_: True)


def a_fenced_broker_stays_in_isrs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(change_batch, "affected_partitions", lambda *_: [])


def any_broker_epoch_will_do(patch: pytest.MonkeyPatch) -> None:
    true = DecisionContext.check_broker_epoch

    def check(self: DecisionContext, broker_id: int, epoch: int) -> Any:
        broker = self.image.cluster.brokers.get(broker_id)
        return true(self, broker_id, epoch if broker is None else broker.epoch)

    patch.setattr(DecisionContext, "check_broker_epoch", check)


def a_reassignment_ends_too_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        partition_change,
        "_is_reassigned",
        lambda isr, replicas, removing: bool(set(replicas) - set(removing) & set(isr)),
    )


def a_cancel_forgets_who_was_in_sync(patch: pytest.MonkeyPatch) -> None:
    def change(*arguments: Any, **targets: Any) -> PartitionChange:
        if "target_isr" in targets:
            targets["target_isr"] = targets["target_isr"][:1]
        return change_of(*arguments, **targets)

    patch.setattr("kquorum.metadata.controller.partitions.reassignments.change_of", change)


def answers_do_not_wait_for_the_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Controller, "_answer", lambda _self, _request, reply, values: reply(values))


def the_minimum_isr_of_topics_is_ignored(patch: pytest.MonkeyPatch) -> None:
    true = DecisionContext.min_in_sync_replicas
    patch.setattr(
        DecisionContext,
        "min_in_sync_replicas",
        lambda self, name: None if true(self, name) is None else 1,
    )


def fenced_brokers_are_in_sync_with_new_partitions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(new_partitions, "is_up", lambda _context, _broker_id: True)


def leaving_brokers_lead_new_partitions(patch: pytest.MonkeyPatch) -> None:
    """Below 3.3-IV3, where only the controller knows."""
    patch.setattr(DecisionContext, "is_leaving", lambda _self, broker: broker.in_controlled_shutdown)


def silent_brokers_join_an_isr(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BrokerLiveness, "has_valid_session", lambda _self, broker, _now_ms: not broker.fenced)


def partitions_stay_without_a_leader(patch: pytest.MonkeyPatch) -> None:
    tasks = tuple(each for each in PERIODIC_TASKS if each is not CLEAN_ELECTION)
    patch.setattr("kquorum.metadata.controller.controller.PERIODIC_TASKS", tasks)


def a_crash_is_forgotten_without_eligible_leader_replicas(patch: pytest.MonkeyPatch) -> None:
    true = batched_update.Departure.movement

    def movement(self: batched_update.Departure, context: DecisionContext) -> Movement:
        return replace(true(self, context), is_for_good=self.is_for_good and context.is_elr_enabled)

    patch.setattr(batched_update.Departure, "movement", movement)


def unmaintained_lists_are_trusted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(elr, "_without_stale_lists", lambda _context: ())


def the_last_replica_is_preferred(patch: pytest.MonkeyPatch) -> None:
    true = PartitionChange._elect

    def elect(self: PartitionChange, isr: Any, replicas: Any, eligible: Any) -> Elected:
        return true(self, isr, replicas[::-1], eligible)

    patch.setattr(PartitionChange, "_elect", elect)


PLANTS: list[Plant] = [
    leader_epoch_stays,
    partition_epoch_stays_when_the_leader_does,
    isr_may_shrink_below_the_leader,
    fenced_members_join_an_isr,
    eligible_replicas_are_not_cleared,
    every_election_may_be_unclean,
    a_fenced_broker_stays_in_isrs,
    any_broker_epoch_will_do,
    a_reassignment_ends_too_early,
    a_cancel_forgets_who_was_in_sync,
    answers_do_not_wait_for_the_commit,
    the_minimum_isr_of_topics_is_ignored,
    fenced_brokers_are_in_sync_with_new_partitions,
    silent_brokers_join_an_isr,
    the_last_replica_is_preferred,
]
# What a stream of some hundred operations seldom comes to: they are planted in the short sequence only.
RARE_PLANTS: list[Plant] = [
    leaving_brokers_lead_new_partitions,
    partitions_stay_without_a_leader,
    a_crash_is_forgotten_without_eligible_leader_replicas,
    unmaintained_lists_are_trusted,
]


@pytest.mark.parametrize("level", [5, 7, 11, 14, 25])
def test_a_random_sequence_without_a_fault(level: int) -> None:
    run_short_sequence(Twin(level, has_elr=False))


def test_a_random_sequence_with_eligible_leader_replicas() -> None:
    run_short_sequence(Twin(25, has_elr=True))


def _tell_all() -> None:
    run_short_sequence(Twin(25, has_elr=False))
    run_short_sequence(Twin(25, has_elr=True))
    run_short_sequence(Twin(5, has_elr=False))


@pytest.mark.parametrize("plant", PLANTS + RARE_PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found_in_the_random_sequence(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        _tell_all()


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        run_stream(300, 30, derandomize=True, database=None, phases=[Phase.generate])
