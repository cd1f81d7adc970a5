"""Random clients of the transaction coordinator against a plain reference, and mistakes that it must find."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kquorum.broker.groups.offsets import OffsetStore
from kquorum.broker.log.producer_state import ProducerStates
from kquorum.broker.transactions import shard as shard_module
from kquorum.broker.transactions import transaction as transaction_module
from kquorum.broker.transactions.guarded_appends import GuardedAppends
from kquorum.broker.transactions.markers import MarkerQueue
from kquorum.broker.transactions.shard import TransactionShard
from kquorum.broker.transactions.transaction import LAST_EPOCH, Transaction
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.broker.transaction_model import BrokenPromise, ModelRun

STEPS = 60
SEEDS = range(12)
PLANTED_SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_readers_see_each_transaction_whole_or_not_at_all(seed: int) -> None:
    ModelRun(seed).run(STEPS)


@pytest.mark.parametrize("seed", SEEDS)
def test_also_where_epochs_are_exhausted(seed: int) -> None:
    ModelRun(seed, starts_at=LAST_EPOCH - 3).run(STEPS)


# Planted mistakes

Plant = Callable[[pytest.MonkeyPatch], None]


def markers_are_not_sent_again_after_a_fail_over(patch: pytest.MonkeyPatch) -> None:
    begin, send = TransactionShard._maybe_begin, TransactionShard._send_markers

    def begin_without(self: TransactionShard, now_ms: int) -> None:
        patch.setattr(TransactionShard, "_send_markers", lambda *_: None)
        begin(self, now_ms)
        patch.setattr(TransactionShard, "_send_markers", send)

    patch.setattr(TransactionShard, "_maybe_begin", begin_without)


def the_end_does_not_raise_the_epoch(patch: pytest.MonkeyPatch) -> None:
    ended = Transaction.ended
    patch.setattr(Transaction, "ended", lambda self, *args: replace(ended(self, *args), epoch=self.epoch))


def an_abort_by_the_coordinator_does_not_fence(patch: pytest.MonkeyPatch) -> None:
    fence = transaction_module.fence

    def without_epoch(known: Transaction, *args: Any) -> Any:
        made = fence(known, *args)
        return made if isinstance(made, ErrorCode) else replace(made, epoch=known.epoch)

    patch.setattr(shard_module, "fence", without_epoch)


def a_new_producer_gets_the_epoch_of_the_last(patch: pytest.MonkeyPatch) -> None:
    initialise = transaction_module.initialise

    def same_epoch(known: Transaction, *args: Any, **fields: Any) -> Any:
        made = initialise(known, *args, **fields)
        return made if isinstance(made, ErrorCode) or known.epoch < 0 else replace(made, epoch=known.epoch)

    patch.setattr(shard_module, "initialise", same_epoch)


def offsets_of_an_aborted_transaction_count(patch: pytest.MonkeyPatch) -> None:
    end = OffsetStore.end_transaction
    patch.setattr(
        OffsetStore,
        "end_transaction",
        lambda self, producer_id, offset, *, is_commit: end(self, producer_id, offset, is_commit=True),
    )


def offsets_of_a_transaction_are_lost_with_the_groups_coordinator(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OffsetStore, "set_in_transaction", lambda *_: None)


def the_end_is_complete_before_its_markers(patch: pytest.MonkeyPatch) -> None:
    add = MarkerQueue.add

    def done_first(self: MarkerQueue, now_ms: int, job: Any) -> None:
        done = job.done
        job.done = lambda *_: None
        add(self, now_ms, job)
        done(now_ms, job)

    patch.setattr(MarkerQueue, "add", done_first)


def only_the_first_partition_gets_a_marker(patch: pytest.MonkeyPatch) -> None:
    place = MarkerQueue._place

    def first_only(self: MarkerQueue, now_ms: int, job: Any, partitions: Any) -> None:
        kept = sorted(partitions)[:1]
        job.left.intersection_update(kept)
        place(self, now_ms, job, kept)

    patch.setattr(MarkerQueue, "_place", first_only)


def a_commit_is_marked_as_an_abort_after_a_fail_over(patch: pytest.MonkeyPatch) -> None:
    begin = TransactionShard._maybe_begin

    def begin_with_aborts(self: TransactionShard, now_ms: int) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Transaction, "is_commit", False)
            begin(self, now_ms)

    patch.setattr(TransactionShard, "_maybe_begin", begin_with_aborts)


def producers_are_not_verified(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "_check_verified", lambda *_: None)

    def unchecked(self: GuardedAppends, *_args: Any, done: Any, **_fields: Any) -> None:
        del self
        done({}, {})

    patch.setattr(GuardedAppends, "check", unchecked)


def the_producer_id_that_follows_is_not_logged(patch: pytest.MonkeyPatch) -> None:
    record = Transaction.record

    def without(self: Transaction) -> Any:
        return record(replace(self, next_producer_id=-1))

    patch.setattr(Transaction, "record", without)


def the_version_of_the_client_is_not_logged(patch: pytest.MonkeyPatch) -> None:
    record = Transaction.record
    patch.setattr(Transaction, "record", lambda self: record(replace(self, client_version=0)))


def what_is_pending_does_not_keep_others_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shard_module._Entry, "is_pending", False)


def a_transaction_past_its_time_goes_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transaction, "has_timed_out", lambda *_: False)


PLANTS: list[tuple[Plant, int]] = [
    (markers_are_not_sent_again_after_a_fail_over, 0),
    (the_end_does_not_raise_the_epoch, 0),
    (an_abort_by_the_coordinator_does_not_fence, 0),
    (a_new_producer_gets_the_epoch_of_the_last, 0),
    (offsets_of_an_aborted_transaction_count, 0),
    (offsets_of_a_transaction_are_lost_with_the_groups_coordinator, 0),
    (the_end_is_complete_before_its_markers, 0),
    (only_the_first_partition_gets_a_marker, 0),
    (a_commit_is_marked_as_an_abort_after_a_fail_over, 0),
    (producers_are_not_verified, 0),
    (the_producer_id_that_follows_is_not_logged, LAST_EPOCH - 3),
    (the_version_of_the_client_is_not_logged, LAST_EPOCH - 3),
    (what_is_pending_does_not_keep_others_out, 0),
    (a_transaction_past_its_time_goes_on, 0),
]


@pytest.mark.parametrize(("plant", "starts_at"), PLANTS, ids=[plant.__name__ for plant, _ in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, starts_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in PLANTED_SEEDS:
        try:
            ModelRun(seed, starts_at=starts_at).run(STEPS)
        except BrokenPromise:
            return
        except AssertionError:
            # The coordinator saw it itself.
            return
    pytest.fail(f"{plant.__name__} was not found")
