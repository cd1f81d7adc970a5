"""When a snapshot is begun, and when not."""

from kquorum.metadata.image.image import Provenance
from kquorum.metadata.snapshot import (
    FIRST_RETRY_MS,
    LAST_ONE_LOST,
    LONGEST_RETRY_MS,
    MAX_BYTES_EXCEEDED,
    MAX_TIME_EXCEEDED,
    SnapshotPolicy,
    SnapshotTriggers,
)

START_MS = 1_000_000
HERE = Provenance(last_contained_offset=41, last_contained_epoch=2)


def policy(max_bytes: int = 1000, max_interval_ms: int = 60_000) -> SnapshotPolicy:
    return SnapshotPolicy(SnapshotTriggers(max_bytes=max_bytes, max_interval_ms=max_interval_ms), START_MS)


def test_bytes_make_one_due_from_the_limit_on() -> None:
    each = policy()
    each.handle_commit(999)
    assert each.reason_to_begin(START_MS, HERE) is None
    each.handle_commit(1)
    assert each.reason_to_begin(START_MS, HERE) == MAX_BYTES_EXCEEDED


def test_time_makes_one_due_only_where_something_was_committed() -> None:
    each = policy()
    assert each.reason_to_begin(START_MS + 600_000, HERE) is None
    each.handle_commit(1)
    assert each.reason_to_begin(START_MS + 59_999, HERE) is None
    assert each.reason_to_begin(START_MS + 60_000, HERE) == MAX_TIME_EXCEEDED


def test_an_interval_of_zero_is_never_over() -> None:
    each = policy(max_interval_ms=0)
    each.handle_commit(999)
    assert each.reason_to_begin(START_MS + 10**9, HERE) is None


def test_bytes_are_named_before_time() -> None:
    each = policy()
    each.handle_commit(1000)
    assert each.reason_to_begin(START_MS + 60_000, HERE) == MAX_BYTES_EXCEEDED


def test_an_image_that_ends_inside_a_batch_is_passed_over() -> None:
    each = policy()
    each.handle_commit(1000)
    inside = Provenance(last_contained_offset=41, last_contained_epoch=2, is_batch_aligned=False)
    assert each.reason_to_begin(START_MS, inside) is None
    assert each.reason_to_begin(START_MS, HERE) == MAX_BYTES_EXCEEDED


def test_one_at_a_time_and_each_sets_both_counters_back() -> None:
    each = policy()
    each.handle_commit(5000)
    each.begun(START_MS + 10)
    each.handle_commit(5000)
    assert each.reason_to_begin(START_MS + 10, HERE) is None
    each.succeeded(42)
    beyond = Provenance(last_contained_offset=50, last_contained_epoch=2)
    assert each._bytes == 5000, "what came while it was written counts for the next"
    assert each.reason_to_begin(START_MS + 10, beyond) == MAX_BYTES_EXCEEDED
    each.begun(START_MS + 10)
    each.succeeded(51)
    each.handle_commit(1)
    later = Provenance(last_contained_offset=60, last_contained_epoch=2)
    assert each.reason_to_begin(START_MS + 60_009, later) is None
    assert each.reason_to_begin(START_MS + 60_010, later) == MAX_TIME_EXCEEDED


def test_while_a_transaction_is_open_there_is_nothing_new() -> None:
    """The image stands still then, where the last snapshot may have been taken already."""
    each = policy()
    each.handle_commit(1000)
    each.begun(START_MS)
    each.succeeded(HERE.last_contained_offset + 1)
    each.handle_commit(1000)
    assert each.reason_to_begin(START_MS, HERE) is None


def test_a_failure_puts_the_counters_back_and_waits_ever_longer() -> None:
    each = policy()
    each.handle_commit(1500)
    each.begun(START_MS)
    each.handle_commit(7)
    assert each.failed(START_MS) == FIRST_RETRY_MS
    assert each._bytes == 1507
    assert each.reason_to_begin(START_MS + FIRST_RETRY_MS - 1, HERE) is None
    assert each.reason_to_begin(START_MS + FIRST_RETRY_MS, HERE) == MAX_BYTES_EXCEEDED
    delays = []
    for _ in range(20):
        each.begun(START_MS)
        delays.append(each.failed(START_MS))
    assert delays[:2] == [2 * FIRST_RETRY_MS, 4 * FIRST_RETRY_MS]
    assert delays[-1] == LONGEST_RETRY_MS
    each.begun(START_MS)
    each.succeeded(42)
    each.begun(START_MS)
    assert each.failed(START_MS) == FIRST_RETRY_MS, "a success ends the series"


def test_a_failure_by_time_is_not_forgotten() -> None:
    each = policy()
    each.handle_commit(1)
    now_ms = START_MS + 60_000
    each.begun(now_ms)
    each.failed(now_ms)
    assert each.reason_to_begin(now_ms + FIRST_RETRY_MS, HERE) == MAX_TIME_EXCEEDED


def test_what_was_loaded_counts_as_the_last_one() -> None:
    each = policy()
    each.handle_commit(5000)
    each.handle_loaded(START_MS + 50_000, 42)
    assert each._bytes == 0
    each.handle_commit(10)
    beyond = Provenance(last_contained_offset=42, last_contained_epoch=2)
    assert each.reason_to_begin(START_MS + 109_999, beyond) is None
    assert each.reason_to_begin(START_MS + 110_000, HERE) is None, "a snapshot that ends there was loaded"
    assert each.reason_to_begin(START_MS + 110_000, beyond) == MAX_TIME_EXCEEDED


def test_one_that_was_lost_is_replaced_at_once_and_a_failure_does_not_forget_it() -> None:
    each = policy()
    each.handle_lost()
    assert each.reason_to_begin(START_MS, HERE) == LAST_ONE_LOST
    each.begun(START_MS)
    each.failed(START_MS)
    now_ms = START_MS + FIRST_RETRY_MS
    assert each.reason_to_begin(now_ms, HERE) == LAST_ONE_LOST
    each.begun(now_ms)
    each.succeeded(42)
    beyond = Provenance(last_contained_offset=50, last_contained_epoch=2)
    assert each.reason_to_begin(now_ms, beyond) is None
